"""Three days of a fleet, as fast as a processor gives them: one truck on a tiny map, with tasks that never end.

    python -m tests.fleet.scenarios.three_days HOURS

Only what a fleet in operation has runs: its engine and its truck, no judge. Prints, as JSON, what the process and the
engine keep after an hour, and at the end. What a fleet forgets (tasks that are over, answers to people) is full by the
end of the first hour.
"""

import json
import os
import sys
from pathlib import Path

from msgspec import Struct, to_builtins
from msgspec.structs import replace

from pendula.fleet.commands import Tick
from pendula.fleet.model import Point
from pendula.fleet.scenarios import Run, Scenario, shipped
from pendula.fleet.tasks import OperationDone, TaskStream
from pendula.fleet.tasks.book import REMEMBERED
from tests.fleet.scenarios.entries import entries

HOUR_MS = 3_600_000
# The longest that is allowed: fewer ticks for the same time.
TICK_MS = 200
_PLACES_UM = {"A": 0, "B": 3_500_000, "P": 7_000_000}


class Kept(Struct, frozen=True):
    """After a time: entries of all that an engine and its world keep, bytes of a snapshot, and of the process."""

    hours: int
    done: int
    entries: int
    state: int
    resident: int


def endless() -> Scenario:
    plain = shipped("task-held")
    nodes = tuple(replace(one, at=Point(_PLACES_UM[one.id], 0)) for one in plain.source.nodes)
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
    """A tick without the eyes of the judge."""
    now = run.world.now_ms
    heard = run.gateway.received()
    run.engine.apply(Tick(now, heard.reports, tuple(map(OperationDone, heard.done))))
    orders = run.engine.orders_out
    run.gateway.announce(orders.routes)
    run.gateway.operate(orders.operations)
    run.gateway.send(orders.commands)
    run.world.advance(now + TICK_MS)


def kept(run: Run) -> Kept:
    engine, done = run.engine, run.dispatch.book.done
    assert done >= REMEMBERED, "too few tasks in an hour to have forgotten one"
    every = entries(engine) + entries(run.world)
    return Kept(run.now_ms // HOUR_MS, done, every, len(engine.state()), resident_bytes())


def resident_bytes() -> int:
    """0 where the system does not say."""
    status = Path("/proc/self/statm")
    return int(status.read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") if status.exists() else 0


def lived(hours: int) -> list[Kept]:
    run = Run(endless())
    told = []
    for upto in (1, hours):
        while run.now_ms < upto * HOUR_MS:
            step(run)
        told.append(kept(run))
    return told


if __name__ == "__main__":
    sys.stdout.write(json.dumps(to_builtins(lived(int(sys.argv[1])))))
