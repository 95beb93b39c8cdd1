"""Sentences about unmet expectations of a scenario. Broken invariants are always unmet."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from pendula.fleet.scenarios.measures import Measures
from pendula.fleet.scenarios.model import (
    AlertComes,
    AllAtRest,
    Arrives,
    Calm,
    DirectionFlips,
    Expectation,
    GivesBack,
    GoHoldChanges,
    LongestWait,
    NeverBeyond,
    NeverTogether,
    NoAlert,
    NoTruckWaits,
    Place,
    RouteRefused,
    SomeTruckWaits,
    Stands,
    TasksDone,
)
from pendula.fleet.units import plain
from pendula.kernel.wording import counted


@dataclass(frozen=True, slots=True)
class Outcome:
    """The results of a run that expectations need. `stands_in`: the node of every truck, None for one that drives."""

    measures: Measures
    tasks_done: int
    tasks_open: int
    stands_in: dict[str, str | None]
    rests_in: dict[str, str]

    def positions(self, place: Place) -> Iterator[int | None]:
        """For every tick the position of the truck on the edge of a place; None if it is not there."""
        truck = self.measures.robot_ids.index(place.robot_id)
        edge = self.measures.site.edge_number[place.edge_key]
        for row in self.measures.places:
            on = row[truck][1] if row[truck][0] == edge else None
            inside = on is not None and place.from_um <= on and (place.to_um is None or on <= place.to_um)
            yield on if inside else None


def needs_positions(expected: Sequence[Expectation]) -> bool:
    """Whether an expectation needs the positions of trucks in every tick."""
    return any(isinstance(expectation, Arrives | NeverBeyond | NeverTogether) for expectation in expected)


def unmet(outcome: Outcome, expected: Sequence[Expectation]) -> list[str]:
    """A sentence for every broken invariant and every unmet expectation."""
    measures = outcome.measures
    broken = [f"{name} was broken {counted(count, 'time')}" for name, count in sorted(measures.violations.items())]
    return [*broken, *(sentence for expectation in expected for sentence in _unmet(outcome, expectation))]


def _unmet(outcome: Outcome, expectation: Expectation) -> Iterator[str]:
    match expectation:
        case TasksDone() | AllAtRest() | Arrives():
            yield from _unmet_end(outcome, expectation)
        case NeverBeyond() | NeverTogether() | DirectionFlips():
            yield from _unmet_place(outcome, expectation)
        case LongestWait() | NoTruckWaits() | SomeTruckWaits() | GoHoldChanges():
            yield from _unmet_wait(outcome, expectation)
        case AlertComes(code, by_ms, within_ms):
            raised, alert = outcome.measures.raised(code) or (by_ms + 1, None)
            if alert is None or raised > by_ms:
                yield f"the alert {code} was not raised by {by_ms} ms"
            elif within_ms is not None and raised - alert.sinceMs > within_ms:
                yield f"the alert {code} was raised after {raised - alert.sinceMs} ms, more than {within_ms}"
        case NoAlert(code):
            raised_alert = outcome.measures.raised(code)
            if raised_alert is not None:
                yield f"the alert {code} was raised at {raised_alert[0]} ms"
        case Stands():
            yield from _unmet_stop(outcome, expectation)
        case GivesBack(robot_id, at_least_ms):
            kept_ms = outcome.measures.gave_back_ms.get(robot_id)
            if kept_ms is None:
                yield f"{robot_id} returned nothing"
            elif kept_ms < at_least_ms:
                yield f"{robot_id} kept the returned resources for {kept_ms} ms, less than {at_least_ms}"
            yield from outcome.measures.taken_early[:1]
        case Calm():
            yield from _unmet_calm(outcome, expectation)
        case RouteRefused(robot_id):
            if not any(robot_id in (None, refused) for refused in outcome.measures.refused):
                yield f"no route of {robot_id or 'any truck'} was refused"


def _unmet_calm(outcome: Outcome, expectation: Calm) -> Iterator[str]:
    limits = {
        "changed between go and hold, times": ("goHoldChanges", expectation.go_hold_changes),
        "moved its hold point back, um": ("holdBackUm", expectation.hold_back_um),
        "moved its target back, um": ("targetBackUm", expectation.target_back_um),
        "changed its direction, times": ("directionFlips", expectation.direction_flips),
        "was rerouted, times": ("replans", expectation.replans),
    }
    for what, (name, limit) in limits.items():
        most, of, at_ms = outcome.measures.swings.worst.get(name, (0, "", 0))
        if most > limit:
            yield f"{of} {what} {most} within a window up to {at_ms} ms, more than {limit}"


def _unmet_stop(outcome: Outcome, expectation: Stands) -> Iterator[str]:
    first, last = outcome.measures.stops.get(
        (expectation.robot_id, expectation.reason_code), (expectation.by_ms + 1, 0)
    )
    if first > expectation.by_ms:
        yield f"{expectation.robot_id} was not stopped with {expectation.reason_code} by {expectation.by_ms} ms"
    elif expectation.until_ms is not None and last > expectation.until_ms:
        stopped = f"{expectation.robot_id} was stopped with {expectation.reason_code}"
        yield f"{stopped} until {last} ms, longer than {expectation.until_ms}"


def _unmet_end(outcome: Outcome, expectation: Expectation) -> Iterator[str]:
    match expectation:
        case TasksDone(count):
            if count is None and outcome.tasks_open:
                yield f"tasks left open: {outcome.tasks_open}"
            if count is not None and outcome.tasks_done != count:
                yield f"tasks done: {outcome.tasks_done}, not {count}"
        case AllAtRest():
            for robot, rest in outcome.rests_in.items():
                if outcome.stands_in[robot] != rest:
                    yield f"{robot} is not in its rest node {rest}"
        case Arrives(robot_id, node_id, by_ms):
            ticks = by_ms // outcome.measures.params.tick_period_ms
            if not _was_in(outcome, robot_id, node_id, ticks):
                yield f"{robot_id} did not arrive at {node_id} by {by_ms} ms"


def _was_in(outcome: Outcome, robot_id: str, node_id: str, ticks: int) -> bool:
    network = outcome.measures.site.network
    truck, node = outcome.measures.robot_ids.index(robot_id), outcome.measures.site.node_number[node_id]
    ends = {edge: network.edges[edge].path.length_um for edge in network.incoming[node]}
    return any(row[truck][1] >= ends.get(row[truck][0], 1 << 62) for row in outcome.measures.places[:ticks])


def _unmet_place(outcome: Outcome, expectation: Expectation) -> Iterator[str]:
    tick_ms = outcome.measures.params.tick_period_ms
    match expectation:
        case NeverBeyond(robot_id, edge_key, s_um, meanwhile):
            others = outcome.positions(meanwhile) if meanwhile is not None else [0] * outcome.measures.ticks
            mine = outcome.positions(Place(robot_id, edge_key))
            for tick, (on, other) in enumerate(zip(mine, others, strict=True)):
                if on is not None and other is not None and on > s_um:
                    when = f"at {tick * tick_ms} ms, beyond {plain(s_um)} m"
                    yield f"{robot_id} was at {plain(on)} m of {edge_key} {when}"
                    return
        case NeverTogether(places):
            for tick, together in enumerate(zip(*(outcome.positions(place) for place in places), strict=True)):
                if all(on is not None for on in together):
                    names = " and ".join(place.robot_id for place in places)
                    yield f"{names} were at these places at the same time, at {tick * tick_ms} ms"
                    return
        case DirectionFlips(group_key, at_most):
            keys = [group.key for group in outcome.measures.site.network.groups]
            flips = outcome.measures.flips[keys.index(group_key)]
            if flips > at_most:
                yield f"{group_key} changed its direction {counted(flips, 'time')}, more than {at_most}"


def _unmet_wait(outcome: Outcome, expectation: Expectation) -> Iterator[str]:
    every = outcome.measures.waits
    match expectation:
        case LongestWait(at_most_ms, robot_id, reason_code):
            for robot, waits in every.items():
                times = [ms for code, ms in waits.longest_ms.items() if reason_code in (None, code)]
                if robot_id in (None, robot) and max(times, default=0) > at_most_ms:
                    yield f"{robot} waited {max(times)} ms, longer than {at_most_ms}"
        case NoTruckWaits():
            yield from (
                f"{robot} waited: {', '.join(waits.total_ms)}" for robot, waits in every.items() if waits.total_ms
            )
        case SomeTruckWaits(reason_code, robot_id):
            if not any(waits.total_ms[reason_code] for robot, waits in every.items() if robot_id in (None, robot)):
                yield (
                    f"no truck waited with {reason_code}"
                    if robot_id is None
                    else f"{robot_id} never waited with {reason_code}"
                )
        case GoHoldChanges(at_most, robot_id):
            for robot, waits in every.items():
                if robot_id in (None, robot) and waits.changes > at_most:
                    yield f"{robot} changed between go and hold {counted(waits.changes, 'time')}, more than {at_most}"
