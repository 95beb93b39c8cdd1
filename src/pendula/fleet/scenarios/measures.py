"""Measurements of a run, and its unmet expectations."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from msgspec import UNSET

from pendula.fleet.checker import Kind, Violation
from pendula.fleet.contracts import Alert, CommandMode
from pendula.fleet.events import FleetEvent, Incident, OperatorAnswered
from pendula.fleet.map.routes import RoutePlan
from pendula.fleet.map.site import CompiledMap
from pendula.fleet.map.trucks import brakes_um, braking_um
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
from pendula.fleet.simulator.truck import FaultKind
from pendula.fleet.simulator.world import World
from pendula.fleet.tick import TickOutputs
from pendula.fleet.tick.params import TrafficParams
from pendula.fleet.tick.reasons import code_of, stands_for
from pendula.fleet.tick.records import Record
from pendula.fleet.tick.swings import Swings
from pendula.fleet.units import plain
from pendula.kernel.wording import counted

# Invariants that are checked here, tick by tick; traffic asserts the others itself.
WATCHED = ("I-1", "I-2", "I-3", "I-7", "I-8", "I-13", "I-14")
# The limit of listed items per kind in a result; all are counted.
MOST_LISTED = 100
# The position of a truck that is out of the hall: on no edge.
NOWHERE = (-1, 0)


@dataclass(frozen=True, slots=True)
class Breach:
    """A broken invariant."""

    at_ms: int
    invariant: str
    sentence: str


@dataclass(slots=True)
class Waits:
    """The waits of a truck for others: the longest uninterrupted and the total time by reason, and the number of
    changes between GO and HOLD. `stood_ms`: standing time by code, waiting or stopped."""

    longest_ms: Counter[str] = field(default_factory=Counter)
    total_ms: Counter[str] = field(default_factory=Counter)
    stood_ms: Counter[str] = field(default_factory=Counter)
    changes: int = 0
    mode: CommandMode | None = None


@dataclass(slots=True)
class Measures:
    site: CompiledMap
    params: TrafficParams
    robot_ids: tuple[str, ...]
    ticks: int = 0
    waits: dict[str, Waits] = field(default_factory=dict)
    # The first alert and the first notice of each code, and when it was raised.
    alerts: dict[str, tuple[int, Alert]] = field(default_factory=dict)
    notices: dict[str, tuple[int, Alert]] = field(default_factory=dict)
    # Number of refused routes of every truck.
    refused: Counter[str] = field(default_factory=Counter)
    violations: Counter[str] = field(default_factory=Counter)
    breaches: list[Breach] = field(default_factory=list)
    # Incidents reported by the fleet, with their times.
    incidents: list[tuple[int, Incident]] = field(default_factory=list)
    # Rejected operator actions by id, with their times.
    refused_actions: dict[str, tuple[int, OperatorAnswered]] = field(default_factory=dict)
    # Edge and position of every truck: now, and in every tick only if an expectation needs it, as a run of days would
    # need too much memory.
    keeps_places: bool = False
    now_at: tuple[tuple[int, int], ...] = ()
    places: list[tuple[tuple[int, int], ...]] = field(default_factory=list)
    # First and last time at which every truck was stopped with a code.
    stops: dict[tuple[str, str], tuple[int, int]] = field(default_factory=dict)
    # The longest time that every truck kept returned resources; and sentences about trucks that held them too early.
    gave_back_ms: dict[str, int] = field(default_factory=dict)
    taken_early: list[str] = field(default_factory=list)
    _giving: dict[str, tuple[int, frozenset[int]]] = field(default_factory=dict)
    driven_um: int = 0
    flips: Counter[int] = field(default_factory=Counter)
    _directions: dict[int, int] = field(default_factory=dict)
    swings: Swings = field(init=False)

    def __post_init__(self) -> None:
        self.swings = Swings(self.site)

    def raised(self, code: str) -> tuple[int, Alert] | None:
        """The first alert or notice of a code, and when it was raised."""
        return self.alerts.get(code) or self.notices.get(code)

    def note(
        self, outputs: TickOutputs, violations: Sequence[Violation], breaches: Sequence[tuple[str, str]], world: World
    ) -> None:
        """Record a tick: its outputs, the violations found by the judge, violations of I-13 and I-14, and positions."""
        self.ticks += 1
        for name, text in breaches:
            self._breach(outputs.now_ms, name, text)
        # Use the records: building the results of a tick costs as much as all its other outputs.
        for record, aim in zip(outputs.scene.records, outputs.aims, strict=True):
            self._wait(record, aim.mode, outputs.now_ms)
            self.swings.note(record, aim.mode, outputs.now_ms)
            if aim.target_um > aim.stop_um:
                self._breach(outputs.now_ms, "I-3", f"{aim.robot_id} is sent beyond its stop line")
        for alert in outputs.alerts:
            self.alerts.setdefault(alert.code, (outputs.now_ms, alert))
        for notice in outputs.notices:
            self.notices.setdefault(notice.code, (outputs.now_ms, notice))
        self.refused.update(route.robot_id for route in outputs.refused_routes)
        if outputs.error is not None:
            self._breach(outputs.now_ms, "I-4", outputs.error)
        for violation in violations:
            number = "I-2" if violation.kind is Kind.ENVELOPES_MEET else "I-7"
            names = " and ".join(violation.robot_ids)
            sentence = f"{violation.kind.value}: {names}, {violation.gap_m:.3f} m on level {violation.level.value}"
            self._breach(violation.at_ms, number, sentence)
        self._give_back(outputs.scene.records, outputs.now_ms)
        self._note_positions(outputs.now_ms, world)
        self._stop_lines(outputs, world)
        self.swings.note_routes(outputs.accepted_routes, outputs.now_ms)
        self.swings.note_places(self.now_at, outputs.now_ms)

    def note_events(self, events: Sequence[FleetEvent], now_ms: int) -> None:
        """Record the events of a tick."""
        incidents = [(now_ms, event) for event in events if isinstance(event, Incident)]
        self.incidents += incidents[: MOST_LISTED - len(self.incidents)]
        for event in events:
            if isinstance(event, OperatorAnswered):
                self._answer(event, now_ms)

    def _answer(self, event: OperatorAnswered, now_ms: int) -> None:
        """Record a refusal; drop the refusal of a first request that has been confirmed in time."""
        if not event.answer.accepted:
            if len(self.refused_actions) < MOST_LISTED:
                self.refused_actions.setdefault(event.action.actionId, (now_ms, event))
        elif event.action.confirmationOf is not UNSET:
            self.refused_actions.pop(event.action.confirmationOf, None)

    def _wait(self, record: Record, mode: CommandMode, now_ms: int) -> None:
        waits = self.waits.get(record.robot_id)
        if waits is None:
            waits = self.waits[record.robot_id] = Waits()
        code, since = code_of(record), record.waiting_since_ms
        if record.stop_code is not None:
            first, _ = self.stops.get((record.robot_id, record.stop_code), (now_ms, now_ms))
            self.stops[record.robot_id, record.stop_code] = first, now_ms
        stands = stands_for(record)
        if stands is not None:
            waits.stood_ms[stands] += self.params.tick_period_ms
        if record.waiting is not None and code is not None and since is not None:
            waits.longest_ms[code] = max(waits.longest_ms[code], now_ms - since)
            waits.total_ms[code] += self.params.tick_period_ms
        # A truck that has arrived or is about to turn holds, too, but not for another truck.
        held = mode is CommandMode.HOLD and record.waiting is not None
        if (held or mode is CommandMode.GO) and mode is not waits.mode:
            waits.changes += waits.mode is not None
            waits.mode = mode

    def _give_back(self, records: Sequence[Record], now_ms: int) -> None:
        """Measure retractions by what is actually held: all resources of a retraction count as kept until none is
        held."""
        for record in records:
            if record.retraction is not None and record.robot_id not in self._giving:
                self._giving[record.robot_id] = now_ms, frozenset(record.retraction.resources)
        for name, (since, given) in list(self._giving.items()):
            if all(given.isdisjoint(record.keeps) for record in records if record.robot_id == name):
                self.gave_back_ms[name] = max(self.gave_back_ms.get(name, 0), now_ms - since)
                del self._giving[name]
                continue
            early = [
                record.robot_id for record in records if record.robot_id != name and not given.isdisjoint(record.keeps)
            ]
            self.taken_early += [f"{other} held at {now_ms} ms what {name} had not yet returned" for other in early]

    def _note_positions(self, now_ms: int, world: World) -> None:
        trucks = zip(world.trucks, world.out, strict=True)
        before, self.now_at = (
            self.now_at,
            tuple([NOWHERE if out else (truck.edge, truck.on_um) for truck, out in trucks]),
        )
        if self.keeps_places:
            self.places.append(self.now_at)
        # Before the first tick there are no positions.
        for (edge, on), (old, at) in zip(self.now_at, before, strict=bool(before)):
            if (old, at) != NOWHERE:
                self.driven_um += on - at if edge == old else on
        self._directions_of(now_ms)

    def _stop_lines(self, outputs: TickOutputs, world: World) -> None:
        """Check I-8 by simulated positions: every truck can stop before its commanded stop line and before the one it
        knows. A truck whose brakes have failed is exempt."""
        for truck, faults, aim in zip(world.trucks, world.faults, outputs.aims, strict=True):
            order, route, plan = truck.order, truck.route, aim.plan
            if not truck.v_um_s or order is None or FaultKind.OVERRUN in faults.latest:
                continue
            at_um = truck.s_um - self.params.stop_line_tol_um
            # A nearer line takes the latency to be obeyed; for the known line the latency is over.
            same = route is not None and plan is not None and _route_key(route) == _route_key(plan)
            nearer = same and aim.mode is not CommandMode.STOP and aim.stop_um < order.stop_line_um
            if nearer and braking_um(truck.profile, truck.v_um_s) > aim.stop_um - at_um:
                self._breach(outputs.now_ms, "I-8", f"{aim.robot_id} is given a stop line it cannot keep")
            knows_um = brakes_um(truck.profile, truck.v_um_s)
            if order.mode is not CommandMode.STOP and knows_um > order.stop_line_um - at_um:
                self._breach(outputs.now_ms, "I-8", f"{aim.robot_id} cannot stop before its stop line")

    def _directions_of(self, now_ms: int) -> None:
        """Record the direction of every lane with a truck between its ends."""
        edges = self.site.network.edges
        now: dict[int, int] = {}
        for edge, on in self.now_at:
            if 0 < on < edges[edge].path.length_um:
                group = self.site.network.group_of[edge]
                if now.setdefault(group, edge) != edge:
                    self._breach(now_ms, "I-1", f"{edges[edge].key} is driven both ways")
        for group, edge in now.items():
            if self._directions.get(group, edge) != edge:
                self.flips[group] += 1
            self._directions[group] = edge

    def _breach(self, at_ms: int, invariant: str, sentence: str) -> None:
        self.violations[invariant] += 1
        if len(self.breaches) < MOST_LISTED:
            self.breaches.append(Breach(at_ms, invariant, sentence))


def _route_key(route: RoutePlan) -> tuple[str, int]:
    return route.route_id, route.revision


# Sentences about unmet expectations of a scenario. Broken invariants are always unmet.


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
