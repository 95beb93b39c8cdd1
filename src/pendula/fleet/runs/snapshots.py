"""The state of a fleet after a tick in the forms of the contract: trucks, grants, locks.

Commands to trucks are part of a snapshot computed from a journal; the stored state does not have them.
"""

from collections.abc import Iterator

from pendula.fleet.contracts.traffic import LockResult, RobotState, TickSnapshot
from pendula.fleet.engine import FleetEngine
from pendula.fleet.model import CONTRACT_VERSION
from pendula.fleet.runs.export import tasks_of
from pendula.fleet.runs.reading import moments
from pendula.fleet.runs.verifying import require_same
from pendula.fleet.views.robot_state import robot_state
from pendula.kernel.canonical import encode
from pendula.kernel.journal import Journal


def robots_of(engine: FleetEngine) -> tuple[RobotState, ...]:
    """Every truck that has reported, by id."""
    now = engine.traffic.now_ms
    states = [robot_state(record, now, *tasks_of(engine, record.number)) for record in engine.traffic.records]
    return tuple([state for state in states if state is not None])


def results_of(engine: FleetEngine) -> tuple[LockResult, ...]:
    """Lock results of every truck, by id."""
    return engine.traffic.results()


def tick_snapshot(engine: FleetEngine) -> TickSnapshot:
    """The complete snapshot of the last tick of an engine."""
    return TickSnapshot(
        contractVersion=CONTRACT_VERSION,
        tick=engine.traffic.tick_number,
        nowMs=engine.traffic.now_ms,
        robots=robots_of(engine),
        lockResults=results_of(engine),
        locks=engine.traffic.snapshot(),
        commands=tuple(engine.orders_out.commands),
    )


def snapshots(journal: Journal, tick: int | None = None, upto: int | None = None) -> Iterator[TickSnapshot]:
    """The snapshots of a range of ticks, or of all; raises `UnknownTick`, and `ReplayDiffers` if a tick differs from
    its record."""
    for engine, moment in moments(journal, tick):
        if upto is not None and moment.ticked.tick > upto:
            return
        require_same(moment)
        yield tick_snapshot(engine)


def snapshot_lines(journal: Journal, tick: int | None = None, upto: int | None = None) -> Iterator[bytes]:
    """Snapshots as canonical JSON, one per line."""
    return map(encode, snapshots(journal, tick, upto))


def snapshot_at(journal: Journal, tick: int) -> TickSnapshot:
    """The snapshot of one tick; raises as `snapshots` does."""
    return next(snapshots(journal, tick, tick))
