"""Three days of a fleet, as fast as the processor allows: one truck on a tiny map, with endless tasks.

    python -m tests.fleet.scenarios.three_days HOURS [JOURNAL]

Runs only the engine and the truck, without a judge; with a folder also a journal that rolls from segment to segment
and deletes the oldest. Prints, each as a line of JSON, what the process and the engine keep
after an hour, every six hours, and at the end. What a fleet forgets (tasks that are over, answers to people) is full by
the end of the first hour.
"""

import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path

from msgspec import Struct, to_builtins
from msgspec.structs import replace

from pendula.fleet.commands import Tick
from pendula.fleet.engine import FleetEngine
from pendula.fleet.gateway import read_gateway
from pendula.fleet.model import Point
from pendula.fleet.runs import Recording, RingJournal, recording_disk
from pendula.fleet.scenarios import Run, Scenario, shipped
from pendula.fleet.scenarios.running import Applier
from pendula.fleet.tasks import TaskStream
from pendula.fleet.tasks.book import REMEMBERED
from pendula.kernel.canonical import Json
from tests.fleet.scenarios.entries import entries

HOUR_MS = 3_600_000
EVERY_HOURS = 6
# An hour writes about a third of it: half of it is kept, in whole segments, and the rest is deleted.
JOURNAL_BYTES = 64 * 2**20
# The longest allowed: fewer ticks for the same time.
TICK_MS = 200
SYNC_TICKS = 50
_PLACES_UM = {"A": 0, "B": 3_500_000, "P": 7_000_000}


class MemoryUse(Struct, frozen=True):
    """After a time: entries of all that an engine and its world keep, bytes of a snapshot, of the process, and of the
    journal on its disk."""

    hours: int
    done: int
    entries: int
    state: int
    resident: int
    journal: int = 0


def endless() -> Scenario:
    plain = shipped("task-held")
    nodes = tuple(replace(node, at=Point(_PLACES_UM[node.id], 0)) for node in plain.source.nodes)
    stream = TaskStream("S", ("P",), ("P",), pick_ms=500, drop_ms=500)
    return replace(
        plain,
        source=replace(plain.source, nodes=nodes),
        streams=(stream,),
        tasks=(),
        actions=(),
        expect=(),
        traffic=replace(plain.traffic, tick_period_ms=TICK_MS),
        world=replace(plain.world, step_ms=TICK_MS, telemetry_period_ms=TICK_MS),
    )


def step(run: Run) -> None:
    """A tick without the judge."""
    now = run.world.now_ms
    came = run.gateway.poll()
    run.applier.apply(Tick(now, read_gateway(came).reports, came.over))
    orders = run.engine.orders_out
    run.gateway.announce(orders.routes)
    run.gateway.operate(orders.operations)
    run.gateway.send(orders.commands)
    run.world.advance(now + TICK_MS)


def wait_for_the_disk(run: Run) -> None:
    """A disk keeps up with a fleet in operation; a fleet that runs hundreds of times faster has to wait for it, or
    pending writes would count as memory in use."""
    if isinstance(run.applier, Recording) and run.now_ms % (SYNC_TICKS * TICK_MS) == 0:
        journal = run.applier.driver.journal
        assert isinstance(journal, RingJournal)
        journal.wait()


def memory_use(run: Run, journal: Path | None) -> MemoryUse:
    engine, done = run.engine, run.dispatch.book.done
    assert done >= REMEMBERED, "too few tasks in an hour to have forgotten one"
    every = entries(engine) + entries(run.world)
    written = 0 if journal is None else sum(path.stat().st_size for path in journal.glob("*.journal"))
    return MemoryUse(run.now_ms // HOUR_MS, done, every, len(engine.state()), resident_bytes(), written)


def resident_bytes() -> int:
    """0 if the system does not report it."""
    status = Path("/proc/self/statm")
    return int(status.read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") if status.exists() else 0


def hourly_memory_use(hours: int, journal: Path | None = None) -> Iterator[MemoryUse]:
    def recorded(engine: FleetEngine, config: Json) -> Applier:
        if journal is None:
            return engine
        return Recording.begin(engine, config, recording_disk(journal), journal_bytes=JOURNAL_BYTES)

    run = Run(endless(), make_applier=recorded)
    for upto in sorted({1, *range(EVERY_HOURS, hours, EVERY_HOURS), hours}):
        while run.now_ms < upto * HOUR_MS:
            step(run)
            wait_for_the_disk(run)
        yield memory_use(run, journal)
    if isinstance(run.applier, Recording):
        assert run.applier.degraded is None
        run.applier.close()


if __name__ == "__main__":
    for figures in hourly_memory_use(int(sys.argv[1]), *map(Path, sys.argv[2:])):
        sys.stdout.write(json.dumps(to_builtins(figures)) + "\n")
        sys.stdout.flush()
