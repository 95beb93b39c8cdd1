"""Replay the ticks of a journal and compare them; the first deviation is named by tick, truck and field."""

from collections.abc import Callable
from itertools import zip_longest
from typing import Any

from msgspec import Struct, to_builtins

from pendula.fleet.events import FleetEvent, Incident
from pendula.fleet.runs.reading import Moment, moments
from pendula.kernel.canonical import Json
from pendula.kernel.driver import ReplayDiffers
from pendula.kernel.journal import Journal
from pendula.kernel.segments import missing_of


class Deviation(Struct, frozen=True, rename="camel"):
    """The first difference between a journal and its replay; `robot_id` is None if it is not about one truck."""

    tick: int
    robot_id: str | None
    field: str
    recorded: Json
    computed: Json


def verify_ticks(
    journal: Journal,
    tick: int | None = None,
    upto: int | None = None,
    watch: Callable[[Moment], None] = lambda _: None,
) -> dict[str, Any]:
    """Replay a range of ticks up to the first difference; `watch` is called for every tick."""
    first_tick = last_tick = ticks = 0
    robots: list[str] = []
    incidents: list[Incident] = []
    deviation: Deviation | None = None
    for engine, moment in moments(journal, tick):
        if upto is not None and moment.ticked.tick > upto:
            break
        first_tick = first_tick or moment.ticked.tick
        last_tick, ticks = moment.ticked.tick, ticks + 1
        robots = robots or sorted(engine.traffic.robot_ids)
        incidents += (event for event in moment.computed if isinstance(event, Incident))
        watch(moment)
        deviation = deviation_of(moment)
        if deviation is not None:
            break
    return {
        "firstTick": first_tick,
        "lastTick": last_tick,
        "ticks": ticks,
        "robots": robots,
        "incidents": [to_builtins(incident) for incident in incidents],
        # Bytes of an incomplete last write; its tick is not counted.
        "cutTailBytes": getattr(journal, "cut_tail_bytes", 0),
        "tail": getattr(journal, "tail_note", None),
        "missing": missing_of(journal.header),
        "firstDifference": None if deviation is None else to_builtins(deviation),
    }


def require_same(moment: Moment) -> None:
    """Raises `ReplayDiffers` if a tick differs from its record."""
    if moment.recorded is not None and moment.recorded != moment.computed:
        raise ReplayDiffers(f"Tick {moment.ticked.tick} differs from its record", n=moment.n)


def deviation_of(moment: Moment) -> Deviation | None:
    """The first deviation of a tick; a truck takes precedence over a digest of all trucks."""
    if moment.recorded is None or moment.recorded == moment.computed:
        return None
    pairs = [(a, b) for a, b in zip_longest(moment.recorded, moment.computed) if a != b]
    named = [(a, b) for a, b in pairs if _robot(a or b) is not None]
    recorded, computed = (named or pairs)[0]
    before, after = _members(recorded), _members(computed)
    field = next(name for name in sorted({*before, *after}) if before.get(name) != after.get(name))
    robot = _robot(recorded or computed)
    return Deviation(moment.ticked.tick, robot, field, before.get(field), after.get(field))


def _robot(event: FleetEvent | None) -> str | None:
    return getattr(event, "robot_id", None)


def _members(event: FleetEvent | None) -> dict[str, Json]:
    return {} if event is None else to_builtins(event)
