"""What is measured while a scenario runs: waiting, alerts, refusals, invariants, where trucks were."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

from msgspec import UNSET

from pendula.fleet.checker import Violation
from pendula.fleet.checker.judge import Kind
from pendula.fleet.contracts.traffic import Alert, CommandMode
from pendula.fleet.driving.params import TrafficParams
from pendula.fleet.driving.records import Record
from pendula.fleet.events import FleetEvent, Incident, OperatorAnswered
from pendula.fleet.routing.route_plan import RoutePlan
from pendula.fleet.simulator.faults import FaultKind
from pendula.fleet.simulator.world import World
from pendula.fleet.site.compiled_map import CompiledMap
from pendula.fleet.tick import TickOutputs
from pendula.fleet.trucks.envelope import brakes_um, braking_um
from pendula.fleet.views.reasons import code_of, stands_for
from pendula.fleet.views.swings import Swings

# What is checked from outside, tick by tick; everything else traffic asserts itself.
WATCHED = ("I-1", "I-2", "I-3", "I-7", "I-8", "I-13", "I-14")
# Of a kind, in a result; all are counted.
MOST_LISTED = 100
# The place of a truck that is out of the hall: on no edge, and not between the ends of any.
NOWHERE = (-1, 0)


@dataclass(frozen=True, slots=True)
class Breach:
    """An invariant that did not hold."""

    at_ms: int
    invariant: str
    sentence: str


@dataclass(slots=True)
class Waits:
    """How a truck waited for others: the longest time on end for every reason, and how often it changed between go and
    hold. `stood_ms`: how long it stood with which code, whether it waited or was stopped."""

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
    # How many routes of every truck were refused.
    refused: Counter[str] = field(default_factory=Counter)
    violations: Counter[str] = field(default_factory=Counter)
    breaches: list[Breach] = field(default_factory=list)
    # What the fleet itself called an incident, and when.
    incidents: list[tuple[int, Incident]] = field(default_factory=list)
    # What people wanted and did not get, by its id, and when.
    refused_actions: dict[str, tuple[int, OperatorAnswered]] = field(default_factory=dict)
    # Edge and position of every truck: now, and tick by tick where somebody will ask for that. A run of days has no
    # room for all of them.
    keeps_places: bool = False
    now_at: tuple[tuple[int, int], ...] = ()
    places: list[tuple[tuple[int, int], ...]] = field(default_factory=list)
    # When every truck was first and last stopped with a code.
    stops: dict[tuple[str, str], tuple[int, int]] = field(default_factory=dict)
    # How long every truck kept what it gave back, the longest; and what somebody else had of it meanwhile.
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
        self, outputs: TickOutputs, found: Sequence[Violation], broken: Sequence[tuple[str, str]], world: World
    ) -> None:
        """One tick: what was decided, what the judge saw, which of I-13 and I-14 was broken, where the trucks are."""
        self.ticks += 1
        for name, text in broken:
            self._breach(outputs.now_ms, name, text)
        # From the records: the results of a tick are made for readers, and cost as much as the rest of its outputs.
        for record, aim in zip(outputs.scene.records, outputs.aims, strict=True):
            self._wait(record, aim.mode, outputs.now_ms)
            self.swings.note(record, aim.mode, outputs.now_ms)
            if aim.target_um > aim.stop_um:
                self._breach(outputs.now_ms, "I-3", f"{aim.robot_id} is sent beyond its stop line")
        for alert in outputs.alerts:
            self.alerts.setdefault(alert.code, (outputs.now_ms, alert))
        for notice in outputs.notices:
            self.notices.setdefault(notice.code, (outputs.now_ms, notice))
        self.refused.update(one.robot_id for one in outputs.refused_routes)
        if outputs.error is not None:
            self._breach(outputs.now_ms, "I-4", outputs.error)
        for one in found:
            number = "I-2" if one.kind is Kind.ENVELOPES_MEET else "I-7"
            names = " and ".join(one.robot_ids)
            self._breach(one.at_ms, number, f"{one.kind.value}: {names}, {one.gap_m:.3f} m on level {one.level.value}")
        self._give_back(outputs.scene.records, outputs.now_ms)
        self._look(outputs.now_ms, world)
        self._stop_lines(outputs, world)
        self.swings.note_routes(outputs.accepted_routes, outputs.now_ms)
        self.swings.note_places(self.now_at, outputs.now_ms)

    def hear(self, events: Sequence[FleetEvent], now_ms: int) -> None:
        """What a tick told."""
        found = [(now_ms, one) for one in events if isinstance(one, Incident)]
        self.incidents += found[: MOST_LISTED - len(self.incidents)]
        for one in events:
            if isinstance(one, OperatorAnswered):
                self._answer(one, now_ms)

    def _answer(self, told: OperatorAnswered, now_ms: int) -> None:
        """Refusals are kept; a first word that is said again in time was none."""
        if not told.answer.accepted:
            if len(self.refused_actions) < MOST_LISTED:
                self.refused_actions.setdefault(told.action.actionId, (now_ms, told))
        elif told.action.confirmationOf is not UNSET:
            self.refused_actions.pop(told.action.confirmationOf, None)

    def _wait(self, record: Record, mode: CommandMode, now_ms: int) -> None:
        one = self.waits.get(record.robot_id)
        if one is None:
            one = self.waits[record.robot_id] = Waits()
        code, since = code_of(record), record.waiting_since_ms
        if record.stop_code is not None:
            first, _ = self.stops.get((record.robot_id, record.stop_code), (now_ms, now_ms))
            self.stops[record.robot_id, record.stop_code] = first, now_ms
        stands = stands_for(record)
        if stands is not None:
            one.stood_ms[stands] += self.params.tick_period_ms
        if record.waiting is not None and code is not None and since is not None:
            one.longest_ms[code] = max(one.longest_ms[code], now_ms - since)
            one.total_ms[code] += self.params.tick_period_ms
        # A truck that has arrived, or is about to turn, holds as well, but for nobody.
        held = mode is CommandMode.HOLD and record.waiting is not None
        if (held or mode is CommandMode.GO) and mode is not one.mode:
            one.changes += one.mode is not None
            one.mode = mode

    def _give_back(self, records: Sequence[Record], now_ms: int) -> None:
        """Who gives something back keeps all of it until nothing of it is kept any more: by what is held, whatever the
        record says of the giving."""
        for record in records:
            if record.retraction is not None and record.robot_id not in self._giving:
                self._giving[record.robot_id] = now_ms, frozenset(record.retraction.resources)
        for name, (since, given) in list(self._giving.items()):
            if all(given.isdisjoint(one.keeps) for one in records if one.robot_id == name):
                self.gave_back_ms[name] = max(self.gave_back_ms.get(name, 0), now_ms - since)
                del self._giving[name]
                continue
            early = [one.robot_id for one in records if one.robot_id != name and not given.isdisjoint(one.keeps)]
            self.taken_early += [f"{other} had at {now_ms} ms what {name} gave back" for other in early]

    def _look(self, now_ms: int, world: World) -> None:
        seen = zip(world.trucks, world.out, strict=True)
        before, self.now_at = self.now_at, tuple([NOWHERE if out else (one.edge, one.on_um) for one, out in seen])
        if self.keeps_places:
            self.places.append(self.now_at)
        # Nobody was anywhere before the first tick.
        for (edge, on), (old, at) in zip(self.now_at, before, strict=bool(before)):
            if (old, at) != NOWHERE:
                self.driven_um += on - at if edge == old else on
        self._directions_of(now_ms)

    def _stop_lines(self, outputs: TickOutputs, world: World) -> None:
        """Every truck can stop before the line that it is told, and before the one that it knows of: by where it truly
        is, since traffic judges by what it believes. A truck whose brakes have failed keeps no line."""
        for truck, faults, aim in zip(world.trucks, world.faults, outputs.aims, strict=True):
            order, route, plan = truck.order, truck.route, aim.plan
            if not truck.v_um_s or order is None or FaultKind.OVERRUN in faults.latest:
                continue
            at_um = truck.s_um - self.params.stop_line_tol_um
            # A line that is nearer than the one it knows takes the latency to be obeyed; of what is known that is over.
            same = route is not None and plan is not None and _name(route) == _name(plan)
            nearer = same and aim.mode is not CommandMode.STOP and aim.stop_um < order.stop_line_um
            if nearer and braking_um(truck.profile, truck.v_um_s) > aim.stop_um - at_um:
                self._breach(outputs.now_ms, "I-8", f"{aim.robot_id} is told a stop line it cannot keep")
            knows_um = brakes_um(truck.profile, truck.v_um_s)
            if order.mode is not CommandMode.STOP and knows_um > order.stop_line_um - at_um:
                self._breach(outputs.now_ms, "I-8", f"{aim.robot_id} cannot stop before its stop line")

    def _directions_of(self, now_ms: int) -> None:
        """Which way every lane is driven, by trucks that are between its ends."""
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


def _name(route: RoutePlan) -> tuple[str, int]:
    return route.route_id, route.revision
