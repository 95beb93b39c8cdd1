"""Traffic of a fleet on a site, in atomic, deterministic ticks.

The order of inputs does not matter, no clock is read, nothing is random. After an internal error the old state stays,
and every truck gets a stop command.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import cached_property
from typing import Self

from msgspec import DecodeError, structs, to_builtins

from pendula.fleet.contracts import Alert, CorridorRequest, LockResult, LockSnapshot, RollingTargetCommand
from pendula.fleet.map.liveness import Certificate, certify_cached
from pendula.fleet.map.planner import Anchor, AtNode, Closed, Planner
from pendula.fleet.map.routes import RoutePlan, plan_route
from pendula.fleet.map.site import CompiledMap
from pendula.fleet.map.trucks import RobotProfile
from pendula.fleet.model import Finding, Fleet
from pendula.fleet.tick import reasons, saving
from pendula.fleet.tick.aiming import Aim, TickPorts, result, stopped
from pendula.fleet.tick.draft import Draft, RefusedRoute, efforts
from pendula.fleet.tick.invariants import FirstMove, falsely_blamed, first_move, held_between_ticks, passed_over
from pendula.fleet.tick.new_routes import Wayfinder
from pendula.fleet.tick.observing import DroppedReport, TruckReport
from pendula.fleet.tick.orders import (
    AppliedOrder,
    Order,
    OrderKind,
    closed_by_operators,
    closed_to_routes,
    held_at,
    held_in_node,
    shut_of,
)
from pendula.fleet.tick.params import NodeLockPolicy, TrafficParams, asked_um, faults, short_um
from pendula.fleet.tick.phases import PHASES
from pendula.fleet.tick.records import Record
from pendula.fleet.tick.snapshot import Scene, queue_places, snapshot
from pendula.fleet.tick.track import Ground, track_of
from pendula.fleet.tick.turns import Directions, two_way
from pendula.fleet.traffic.grants import Accepted, Effort, Rule, accept_route
from pendula.fleet.traffic.lock_state import Closing, Demand, Exclusion, LockState
from pendula.kernel.canonical import digest
from pendula.kernel.errors import InputRefused, WrongUsage

# Start of a fleet: trucks in their rest nodes or elsewhere, and whether that state is safe (W4).

# Checked once, so the search may be long.
_NODES = 3_000


def record_of(
    site: CompiledMap, number: int, profile: RobotProfile, robot_id: str, park_node_id: str, params: TrafficParams
) -> Record:
    """The record of a truck before its first report: it stands in its rest node."""
    rest = site.node_number[park_node_id]
    return Record(
        site=site,
        number=number,
        robot_id=robot_id,
        profile=profile,
        rest=rest,
        short_um=short_um(profile, params),
        node=rest,
        asked_um=asked_um(profile, params),
    )


def place_all(
    records: list[Record],
    locks: LockState,
    starts: Mapping[str, Anchor],
    closed: Mapping[str, Closed],
    ground: Ground,
    rule: Rule,
) -> list[str]:
    """Place every truck at its start, with a route to rest. Returns a sentence for each that cannot be placed."""
    faults = []
    # Trucks at rest block no other truck: they come first, so that the others are checked against all of them.
    for record in sorted(records, key=lambda record: (record.robot_id in starts, record.robot_id)):
        start = starts.get(record.robot_id)
        fault = (
            _at_rest(record, locks, rule)
            if start is None or start == AtNode(record.rest)
            else _elsewhere(record, locks, start, closed[record.robot_id], ground, rule)
        )
        if fault is not None:
            faults.append(fault if isinstance(fault, str) else _in_the_way(record, records, fault))
    return faults


def _in_the_way(record: Record, records: list[Record], cycle: tuple[int, ...]) -> str:
    """The sentence for a truck that would close a cycle at its start."""
    others = ", ".join(repr(records[number].robot_id) for number in cycle if number != record.number)
    because = f", because of {others}" if others else ""
    return f"W4: truck {record.robot_id!r} cannot start where it stands{because}"


def _at_rest(record: Record, locks: LockState, rule: Rule) -> tuple[int, ...] | None:
    record.held = held_in_node(record, record.rest)
    row = sorted(record.held)
    return _placed(record, locks, Demand.of_rows([row], [row]), rule)


def _elsewhere(
    record: Record, locks: LockState, start: Anchor, closed: Closed, ground: Ground, rule: Rule
) -> str | tuple[int, ...] | None:
    planner = Planner(ground.site, record.profile)
    plan = plan_route(
        planner,
        record.robot_id,
        f"{record.robot_id}-start",
        start,
        (record.rest,),
        record.rest,
        reason="START",
        closed=closed,
    )
    if not isinstance(plan, RoutePlan):
        return f"W4: truck {record.robot_id!r} has no route to rest from its start"
    if isinstance(start, AtNode):
        record.node = start.node
    record.held = held_at(record, ground, plan)
    # The plan is in force from the first tick; until then it stands.
    track = track_of(ground, plan, record.short_um, plan.start_um, record.held)
    fault = _placed(record, locks, track.demand, rule)
    record.track = track
    record.at_um = record.hold_um = record.farthest_um = record.target_um = plan.start_um
    record.bound_um = plan.start_um - record.short_um
    return fault


def _placed(record: Record, locks: LockState, demand: Demand, rule: Rule) -> tuple[int, ...] | None:
    """None, or the cycle that the truck would close."""
    effort = Effort(per_search=_NODES)
    answer = accept_route(locks, record.number, demand, 0, rule=rule, effort=effort)
    return None if isinstance(answer, Accepted) else answer.cycle


class TrafficRefused(InputRefused):
    """A fleet cannot run automatically on a map. Facts: `findings`, sentences of what is wrong."""

    code = "traffic_refused"


@dataclass(frozen=True, slots=True)
class TickInputs:
    """Input of a tick. `routes`: only new or changed ones, complete to rest; `orders`: from operators."""

    now_ms: int
    reports: tuple[TruckReport, ...] = ()
    routes: tuple[RoutePlan, ...] = ()
    orders: tuple[Order, ...] = ()


@dataclass(frozen=True)
class TickOutputs:
    """Output of a tick, each part sorted by robot id. `error`: why the tick failed."""

    scene: Scene
    aims: tuple[Aim, ...]
    accepted_routes: tuple[RoutePlan, ...] = ()
    refused_routes: tuple[RefusedRoute, ...] = ()
    dropped_reports: tuple[DroppedReport, ...] = ()
    applied_orders: tuple[AppliedOrder, ...] = ()
    alerts: tuple[Alert, ...] = ()
    # Alerts of severity INFO that need no action.
    notices: tuple[Alert, ...] = ()
    error: str | None = None

    @property
    def tick(self) -> int:
        return self.scene.tick

    @property
    def now_ms(self) -> int:
        return self.scene.now_ms

    @cached_property
    def commands(self) -> tuple[RollingTargetCommand, ...]:
        """The command of every truck, in the form of the contract."""
        return tuple(aim.command() for aim in self.aims)

    @cached_property
    def results(self) -> tuple[LockResult, ...]:
        """Granted or blocked, for each truck."""
        records = self.scene.records
        places = queue_places([records[number] for number in self.scene.order], records)
        return tuple(result(record, records, self.now_ms, places.get(record.number)) for record in records)

    def snapshot(self) -> LockSnapshot:
        """The locks after this tick, built on demand."""
        return snapshot(self.scene)

    def digest(self) -> str:
        """`sha256:…` over results, commands and snapshot: equal inputs give equal digests."""
        parts = [self.results, self.commands, self.snapshot()]
        return "sha256:" + digest(to_builtins(parts, builtin_types=(Decimal,)))


class Traffic:
    """Locks, routes and targets of one fleet. `closed`: what each truck must avoid; plan routes with it."""

    def __init__(
        self,
        site: CompiledMap,
        fleet: Fleet,
        profiles: Mapping[str, RobotProfile],
        params: TrafficParams,
        certificate: Certificate,
    ) -> None:
        self.site = site
        self.params = params
        self.certificate = certificate
        self.override = not certificate.live
        self.tick_number = 0
        self.now_ms = 0
        self._ground = Ground(site, params.node_lock_policy, params.safety_buffer_um)
        self._records = [
            record_of(site, number, profiles[truck.profile_id], truck.robot_id, truck.park_node_id, params)
            for number, truck in enumerate(sorted(fleet.trucks, key=lambda truck: truck.robot_id))
        ]
        self._numbers = {record.robot_id: record.number for record in self._records}
        self._locks = LockState(Exclusion.of_site(site), len(self._records))
        self._two_way = two_way(site)
        self._directions = Directions()
        self._cycles: dict[tuple[int, ...], int] = {}
        self._closings: Mapping[str, Closing] = {}
        self._alerts = 0
        # Replaceable parts; their own memory is not part of the state.
        self.ports = TickPorts()
        self._ticking = False
        self._order: tuple[int, ...] = tuple(range(len(self._records)))
        # For the invariant I-13 only, never for decisions: restoring a state restarts the count.
        self._first_move: FirstMove | None = None

    @classmethod
    def create(
        cls,
        site: CompiledMap,
        fleet: Fleet,
        profiles: Sequence[RobotProfile],
        params: TrafficParams | None = None,
        *,
        starts: Mapping[str, Anchor] | None = None,
        override: bool = False,
    ) -> Self:
        """Traffic of a fleet whose trucks stand in their rest nodes, or at `starts`. Raises `TrafficRefused` for
        contradicting parameters, a map that is not LIVE for the fleet without `override`, and a start from which some
        truck cannot get to rest."""
        params = params or TrafficParams()
        wrong = list(faults(params, profiles, site.params))
        tolerant = structs.replace(fleet, arrive_tol_um=params.arrive_tol_um)
        certificate, findings = certify_cached(site, tolerant, tuple(profiles))
        if certificate is None or wrong:
            wrong += _sentences(findings)
            raise TrafficRefused("traffic cannot start: " + "; ".join(wrong), findings=wrong)
        if not certificate.live and not override:
            wrong = _sentences(findings)
            raise TrafficRefused("the map is not LIVE for this fleet: " + "; ".join(wrong), findings=wrong)
        self = cls(site, fleet, {profile.profile_id: profile for profile in profiles}, params, certificate)
        rule = self.rule if certificate.live else Rule.OFF
        wrong = place_all(self._records, self._locks, starts or {}, self.closed, self._ground, rule)
        if wrong:
            raise TrafficRefused("the fleet cannot start there: " + "; ".join(wrong), findings=wrong)
        return self

    @property
    def records(self) -> Sequence[Record]:
        """The records of all trucks, by name, read-only. Each tick creates new ones."""
        return self._records

    @property
    def robot_ids(self) -> Collection[str]:
        return self._numbers

    def broken(self) -> list[str]:
        """Broken invariants between two ticks."""
        held = held_between_ticks(self._records, self._locks, self.params)
        return [f"{name}: {text}" for name, text in (*held, *self.passed_over(), *self.falsely_blamed())]

    def passed_over(self) -> list[tuple[str, str]]:
        """I-13 with a sentence, if the first truck of the witness is kept from a free unit."""
        return list(passed_over(self._records, self._first_move, self.params))

    def falsely_blamed(self) -> list[tuple[str, str]]:
        """I-14 with a sentence for every truck whose blocker does not hold the named resource."""
        return list(falsely_blamed(self._records, self._locks))

    @property
    def rule(self) -> Rule:
        return Rule.WITNESS if self.params.refuge else Rule.OFF

    @cached_property
    def closed(self) -> dict[str, Closed]:
        """What each truck must avoid so that all others can rest. If every passed node is locked, no truck may pass a
        node whose zone a truck at rest blocks."""
        closed = self.certificate.closed
        if self.params.node_lock_policy is NodeLockPolicy.TURNING:
            return closed
        incoming = self.site.network.incoming
        return {
            robot: Closed(places.edges | {edge for node in places.turns for edge in incoming[node]}, places.turns)
            for robot, places in closed.items()
        }

    def tick(self, inputs: TickInputs) -> TickOutputs:
        """One atomic step. After an internal error, or if the clock went back, the old state stays and all trucks stop.
        Raises `WrongUsage` while another thread is in a tick."""
        if self._ticking:
            raise WrongUsage("a tick is under way: one thread at a time calls tick")
        self._ticking = True
        try:
            return self._tick(inputs)
        finally:
            self._ticking = False

    def _tick(self, inputs: TickInputs) -> TickOutputs:
        wrong = _wrong_time(inputs.now_ms, self.now_ms)
        if wrong is not None:
            self.tick_number += 1
            return self._stopped(wrong, inputs)
        before = self.tick_number, self.now_ms
        saved = [None if truck is None else truck.copied() for truck in self._locks.trucks]
        witness, home, shut = list(self._locks.witness), list(self._locks.home), self._locks.shut
        draft = self._draft(inputs)
        self.tick_number += 1
        self.now_ms = inputs.now_ms
        try:
            for phase in PHASES:
                phase(draft)
        except BaseException as error:
            self._locks = saving.restored(self._locks.exclusion, saved, witness, home, shut)
            if not isinstance(error, Exception):
                # The program is being interrupted: undo this tick completely.
                self.tick_number, self.now_ms = before
                raise
            return self._stopped(f"{type(error).__name__}: {error}", inputs)
        for old, new in zip(self._records, draft.records, strict=True):
            new.note_stop(old, self.now_ms)
        self._records, self._directions, self._cycles = draft.records, draft.directions, draft.cycles
        self._closings = draft.closings
        self._alerts, self._order = draft.alert_count, tuple(record.number for record in draft.order)
        drained = {waiter for _, waiter in self._directions.drained.values()}
        self._first_move = first_move(self._records, self._locks, drained, self._first_move)
        return TickOutputs(
            scene=self._scene(),
            aims=tuple(draft.aims),
            accepted_routes=tuple(draft.accepted),
            refused_routes=tuple(draft.refused),
            dropped_reports=tuple(draft.dropped),
            applied_orders=tuple(draft.applied),
            alerts=tuple(draft.alerts),
            notices=tuple(draft.notices),
        )

    @property
    def closings(self) -> tuple[Closing, ...]:
        """Places closed by operators, by name."""
        return tuple(self._closings[name] for name in sorted(self._closings))

    def why(self, robot_id: str) -> reasons.Reason:
        """Why a truck stands, with the chain of blockers to its root. Raises `KeyError` for an unknown truck."""
        return self._why(self._records[self._numbers[robot_id]], self._queue_places())

    def whys(self) -> list[reasons.Reason]:
        """The reasons of all trucks, in their order; the queues are computed once."""
        places = self._queue_places()
        return [self._why(record, places) for record in self._records]

    def _why(self, record: Record, places: Mapping[int, int]) -> reasons.Reason:
        return reasons.why(record, self._records, self.now_ms, places.get(record.number), self._closing_before(record))

    def _closing_before(self, record: Record) -> Closing | None:
        """The closed place that a truck waits for."""
        waiting = record.waiting
        if waiting is None or waiting.code != reasons.WAIT_CLOSED or waiting.resource is None:
            return None
        resource = waiting.resource
        return next(
            (closing for closing in self.closings if resource in shut_of(self.site, closing.resource).resources), None
        )

    def _queue_places(self) -> dict[int, int]:
        return queue_places([self._records[number] for number in self._order], self._records)

    def request(self, robot_id: str) -> CorridorRequest | None:
        """The request of a truck; None without a route."""
        return self.ports.corridor.build(self._records[self._numbers[robot_id]], self.now_ms, self.params)

    def results(self) -> tuple[LockResult, ...]:
        """Granted or blocked after the last tick, for every truck by its id."""
        places = self._queue_places()
        return tuple(
            [result(record, self._records, self.now_ms, places.get(record.number)) for record in self._records]
        )

    def snapshot(self) -> LockSnapshot:
        """The locks after the last tick."""
        return snapshot(self._scene())

    def state(self) -> bytes:
        """Everything that the next tick depends on beside site, fleet and parameters."""
        directions = self._directions
        return saving.encode(
            saving.SavedTraffic(
                form=saving.FORM,
                compiled_hash=self.site.compiled_hash,
                params_hash=self.params.digest(),
                fleet_hash=saving.fleet_hash(self._records),
                tick=self.tick_number,
                now_ms=self.now_ms,
                alerts=self._alerts,
                order=self._order,
                trucks=tuple(saving.saved_truck(record, self._locks) for record in self._records),
                witness=tuple(self._locks.witness),
                home=tuple(self._locks.home),
                active=directions.active,
                empty_since=directions.empty_since,
                drained=directions.drained,
                cycles=tuple(self._cycles.items()),
                closings=self.closings,
            )
        )

    @classmethod
    def from_state(
        cls,
        site: CompiledMap,
        fleet: Fleet,
        profiles: Sequence[RobotProfile],
        params: TrafficParams | None,
        state: bytes,
    ) -> Self:
        """Traffic restored from a state. Raises `TrafficRefused` if the state is of another site, fleet or set of
        parameters."""
        try:
            saved = saving.decode(state)
        except DecodeError as error:
            raise TrafficRefused("this is not a traffic state of this version", findings=[]) from error
        self = cls.create(site, fleet, profiles, params, override=True)
        own = (saving.FORM, site.compiled_hash, self.params.digest(), saving.fleet_hash(self._records))
        if (saved.form, saved.compiled_hash, saved.params_hash, saved.fleet_hash) != own:
            raise TrafficRefused("the state is of another map, fleet or set of parameters", findings=[])
        self.tick_number, self.now_ms, self._alerts, self._order = saved.tick, saved.now_ms, saved.alerts, saved.order
        for truck, record in zip(saved.trucks, self._records, strict=True):
            saving.restore_truck(truck, record, self._ground, self._locks)
        fresh = LockState(self._locks.exclusion, len(self._records))
        trucks = [
            None if truck.lock is None else saving.restored_lock(truck.lock, fresh, number)
            for number, truck in enumerate(saved.trucks)
        ]
        self._closings = {closing.resource: closing for closing in saved.closings}
        shut = tuple(shut_of(site, closing.resource) for closing in self.closings)
        self._locks = saving.restored(fresh.exclusion, trucks, saved.witness, saved.home, shut)
        self._directions = saving.directions_of(saved)
        self._cycles = dict(saved.cycles)
        return self

    def _draft(self, inputs: TickInputs) -> Draft:
        effort, admissions = efforts(self.params, len(self._records))
        self._ways.shut = closed_by_operators(self._locks.shut)
        return Draft(
            tick=self.tick_number,
            now_ms=inputs.now_ms,
            reports=inputs.reports,
            routes=inputs.routes,
            orders=inputs.orders,
            ground=self._ground,
            params=self.params,
            rule=self.rule,
            records=[record.copied() for record in self._records],
            numbers=self._numbers,
            closed=self.closed,
            locks=self._locks,
            effort=effort,
            admissions=admissions,
            directions=self._directions.copied(),
            two_way=self._two_way,
            ways=self._ways,
            cycles=self._cycles,
            alert_count=self._alerts,
            ports=self.ports,
            closings=self._closings,
        )

    @cached_property
    def _ways(self) -> Wayfinder:
        return Wayfinder(self.site, self.closed, self.params)

    def closed_to_routes(self) -> Closed:
        """What failed trucks and operators close to other trucks; routes over it are refused."""
        return closed_to_routes(self._locks, self.site)

    def _stopped(self, error: str, inputs: TickInputs) -> TickOutputs:
        """Stop all trucks and check no route. Command numbers keep rising; after a restart no truck goes on before all
        have reported."""
        self._records = [record.copied() for record in self._records]
        self._first_move = None
        if any(order.kind is OrderKind.RESTARTED for order in inputs.orders):
            for record in self._records:
                record.unheard = True
        aims = tuple(stopped(record, self.now_ms, self.params) for record in self._records)
        refused = tuple(
            RefusedRoute(route.robot_id, route.route_id, route.revision, "TICK_FAILED") for route in inputs.routes
        )
        return TickOutputs(scene=self._scene(), aims=aims, refused_routes=refused, error=error)

    def _scene(self) -> Scene:
        return Scene(
            site=self.site,
            tick=self.tick_number,
            now_ms=self.now_ms,
            override=self.override,
            records=self._records,
            order=self._order,
            empty_since=self._directions.empty_since,
            drained={group: closed for group, (closed, _) in self._directions.drained.items()},
            closings=self.closings,
        )


def _wrong_time(now_ms: int, before_ms: int) -> str | None:
    if type(now_ms) is not int:
        return f"the time of a tick is a whole number of milliseconds, not {now_ms!r}"
    return f"the clock went back from {before_ms} to {now_ms}" if now_ms < before_ms else None


def _sentences(findings: Sequence[Finding]) -> list[str]:
    return [
        f"{finding.code.value}: {finding.message}" + (f" ({finding.remedy})" if finding.remedy else "")
        for finding in findings
    ]
