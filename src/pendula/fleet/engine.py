"""The engine of the scheduler: each tick takes reports of trucks and operator actions, and returns events.

It satisfies `pendula.kernel.engine.Engine`. Commands for trucks and operations are in `orders_out`, not in the events:
the driver of the engine sends them once the tick is in the journal.
"""

import dataclasses
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import ClassVar, Self

import msgspec
from msgspec import UNSET, Struct, to_builtins
from msgspec.structs import replace

from pendula.fleet import explain, saving
from pendula.fleet.commands import Commands, Config, MissingRecords, StartPlace, Tick
from pendula.fleet.compiled_sites import site_of
from pendula.fleet.contracts import OperatorAction, RobotStatus
from pendula.fleet.events import (
    FleetEvent,
    TickFailed,
    TickLate,
    action_events,
    alert_events,
    merge_alerts,
    task_events,
    tick_events,
)
from pendula.fleet.map.planner import Anchor, AtNode, OnEdge
from pendula.fleet.map.routes import RoutePlan
from pendula.fleet.map.site import CompiledMap
from pendula.fleet.sentences import sentence_of
from pendula.fleet.tasks import Dispatch, DispatchStep, Operation, truck_views
from pendula.fleet.tasks.book import Driver
from pendula.fleet.tasks.model import TaskAlert
from pendula.fleet.tasks.operators import ActionInbox, ActionResult, ActionType
from pendula.fleet.tick.aiming import Aim, CommandBatch
from pendula.fleet.tick.observing import LastDropped, TruckReport
from pendula.fleet.tick.orders import AppliedOrder, Order, OrderKind
from pendula.fleet.tick.records import Record
from pendula.fleet.tick.saving import SavedRoute, plan_of
from pendula.fleet.tick.traffic import TickInputs, TickOutputs, Traffic
from pendula.kernel.canonical import Json, encode
from pendula.kernel.engine import NoOutside, Outcome, Outside, Reason, Refusal
from pendula.kernel.errors import InputRefused

LOGGING_DEGRADED = "LOGGING_DEGRADED"
LOGGING_RESTORED = "LOGGING_RESTORED"
GATEWAY_FAILED = "GATEWAY_FAILED"
# Before every operator action of the same tick.
RESTARTED = Order("", OrderKind.RESTARTED, at_ms=-1)


class BadConfig(InputRefused):
    """A fleet cannot be made of this configuration."""

    code = "bad_fleet_config"


class OrdersOut(Struct, frozen=True):
    """What goes out after a tick: commands for trucks, their routes, and operations in nodes."""

    aims: tuple[Aim, ...] = ()
    routes: tuple[RoutePlan, ...] = ()
    operations: tuple[Operation, ...] = ()

    @property
    def commands(self) -> CommandBatch:
        """One command for every truck, in the form of the contract."""
        return CommandBatch(self.aims)


class FleetEngine:
    """A fleet on its site. `last` is the output of traffic in the last tick."""

    scheduler: ClassVar[str] = "fleet"
    decisions: ClassVar[int] = 1
    time_unit: ClassVar[str] = "ms"
    commands: ClassVar[object] = Commands
    events: ClassVar[object] = FleetEvent

    def __init__(self, config: Config, traffic: Traffic, dispatch: Dispatch, trouble: str | None = None) -> None:
        self.config = config
        self.traffic = traffic
        self.dispatch = dispatch
        self.inbox = ActionInbox(traffic.site, config.traffic)
        self.outside: Outside = NoOutside()
        self.last: TickOutputs | None = None
        self.orders_out = OrdersOut()
        # Why the journal is not written; None while it is.
        self.trouble = trouble
        # The last dropped report of each truck, for answers of `why`. Set by the server; not part of the state, and no
        # decision depends on it.
        self.dropped: Mapping[str, LastDropped] = {}

    @classmethod
    def create(cls, config: Json) -> Self:
        """Raises `BadConfig`, `OtherMap`, or `TrafficRefused` for a fleet that may not run on its map."""
        read = read_config(config)
        if read.state is not UNSET:
            return cls._restored(read, encode(read.state))
        site = site_of(read)
        starts = {start.robot_id: _anchor(site, start) for start in read.starts}
        traffic = Traffic.create(site, read.fleet, read.profiles, read.traffic, starts=starts, override=read.override)
        if read.begin_ms is not UNSET:
            traffic.now_ms = read.begin_ms
        return cls(read, traffic, dispatch_of(read, traffic, starts))

    @classmethod
    def from_state(cls, config: Json, state: bytes) -> Self:
        return cls._restored(read_config(config), state)

    @classmethod
    def _restored(cls, config: Config, state: bytes) -> Self:
        site = site_of(config)
        starts = {start.robot_id: _anchor(site, start) for start in config.starts}
        saved = saving.read(state)
        traffic = saving.traffic_of(saved, config, site)
        dispatch = dispatch_of(config, traffic, starts)
        saving.restore_dispatch(saved, dispatch)
        engine = cls(config, traffic, dispatch, saved.trouble)
        saving.restore_inbox(saved, engine.inbox)
        dispatch.keep_off(traffic.closed_to_routes(), traffic.closings)
        return engine

    @property
    def site(self) -> CompiledMap:
        return self.traffic.site

    def with_news(self, tick: Tick, trouble: str | None, missing: MissingRecords | None = None) -> Tick:
        """The tick with the trouble of the journal, and the records it misses."""
        if missing is not None:
            tick = replace(tick, missing=missing)
        return tick if trouble is None else replace(tick, trouble=trouble)

    def state(self) -> bytes:
        return saving.encoded(self.traffic, self.dispatch, self.inbox, self.trouble)

    def now(self) -> int:
        return self.traffic.now_ms

    def next_due(self) -> int:
        """One tick period after the last tick."""
        return self.traffic.now_ms + (self.config.traffic.tick_period_ms if self.traffic.tick_number else 0)

    def apply(self, command: Commands) -> Outcome[FleetEvent]:
        match command:
            case Tick():
                return self._tick(command)

    @staticmethod
    def sentence(code: str, facts: Mapping[str, Json]) -> str:
        return sentence_of(code, facts)

    def why(self, question: Json) -> Reason:
        """Why a truck stands (`{"robot": id}`) or a task waits (`{"task": id}`)."""
        return explain.why(self.traffic, self.dispatch, question, self.dropped)

    def broken(self) -> Iterable[str]:
        return self.traffic.broken()

    def _tick(self, command: Tick) -> Outcome[FleetEvent]:
        refusal = self._refuse_time(command.now_ms)
        plans = [self._plan(form) for form in command.routes]
        refusal = refusal or next((plan for plan in plans if isinstance(plan, Refusal)), None)
        if refusal is not None:
            return Outcome(refusal=refusal)
        before, gap = self.traffic.records, self._gap_ms(command.now_ms)
        step, outputs, answers = self._decide(command, tuple([plan for plan in plans if isinstance(plan, RoutePlan)]))
        late = gap > 2 * self.config.traffic.tick_period_ms
        alerts, of_tasks = merge_alerts(outputs.alerts, step.alerts)
        self.last = dataclasses.replace(outputs, alerts=alerts) if step.alerts else outputs
        self.orders_out = self._orders(command, step, () if late else outputs.aims)
        alarms = (*of_tasks, *self._journal_alerts(command))
        events = self._events(before, command, step, answers, alarms)
        return Outcome((*events, TickLate(outputs.tick, gap)) if late else events)

    def _events(
        self,
        before: Sequence[Record],
        command: Tick,
        step: DispatchStep,
        answers: tuple[ActionResult, ...],
        alarms: Sequence[TaskAlert],
    ) -> tuple[FleetEvent, ...]:
        """The events of the tick that was just decided; `before`: the trucks before it."""
        assert self.last is not None
        return (
            *tick_events(before, self.last, self.orders_out.aims),
            *task_events(step, self.dispatch.take_transitions()),
            *action_events(command.operator_actions, answers),
            *alert_events(self.last.tick, command.now_ms, alarms),
        )

    def _decide(
        self, command: Tick, routes: tuple[RoutePlan, ...]
    ) -> tuple[DispatchStep, TickOutputs, tuple[ActionResult, ...]]:
        """Operator actions first, then tasks, then traffic."""
        trucks = self.traffic.records
        taken = self.inbox.take(command.operator_actions, command.now_ms, trucks)
        changed = [self._change_task(action) for action in taken.tasks]
        cleared = {order.order_id for order in taken.orders if self._clears(order)}
        views = truck_views(trucks, self.config.traffic, command.now_ms, command.reports)
        self.dispatch.keep_off(self.traffic.closed_to_routes(), self.traffic.closings)
        step = self.dispatch.dispatch(command.now_ms, views, command.task_events)
        reports = self._as_dispatched(command.reports)
        orders = (*taken.orders, *((RESTARTED,) if command.restarted else ()))
        outputs = self.traffic.tick(TickInputs(command.now_ms, reports, (*step.routes, *routes), orders))
        self.dispatch.settled(outputs.accepted_routes, outputs.refused_routes)
        applied = [AppliedOrder(done.order_id) if done.order_id in cleared else done for done in outputs.applied_orders]
        self._follow(orders, applied)
        settled = self.inbox.settle([*changed, *applied], outputs.tick)
        return step, outputs, (*taken.answers, *settled)

    def _orders(self, command: Tick, step: DispatchStep, aims: tuple[Aim, ...]) -> OrdersOut:
        """What goes out. A restarted manager does not know what reached the trucks, so everything is sent again."""
        assert self.last is not None
        if command.restarted:
            return replace(self.all_orders(), aims=aims)
        return OrdersOut(aims, (*step.routes, *self.last.accepted_routes), step.operations)

    def all_orders(self) -> OrdersOut:
        """All routes and operations in force, for a sender that does not know what reached the trucks."""
        plans = [
            (record.track.plan if record.track is not None else None, record.pending) for record in self.traffic.records
        ]
        routes = tuple(plan for both in plans for plan in both if plan is not None)
        return OrdersOut(routes=routes, operations=self.dispatch.operations())

    def _change_task(self, action: OperatorAction) -> AppliedOrder:
        """Cancel, withdraw, hold or resume a task; the task stores the operator."""
        assert isinstance(action.taskId, str)
        change = {
            ActionType.CANCEL_TASK: self.dispatch.cancel,
            ActionType.WITHDRAW_TASK: self.dispatch.withdraw,
            ActionType.HOLD_TASK: self.dispatch.hold,
            ActionType.RESUME_TASK: self.dispatch.resume,
        }[ActionType(action.type)]
        refusal = change(action.taskId, action.operatorId)
        if refusal is None:
            return AppliedOrder(action.actionId)
        return AppliedOrder(action.actionId, refusal.code, refusal.facts)

    def _clears(self, order: Order) -> bool:
        """Whether an order clears a failed operation, which traffic does not know."""
        faulty = [record.robot_id for record in self.traffic.records if self.dispatch.is_faulty(record.number)]
        return order.kind is OrderKind.CLEAR and order.robot_id in faulty

    def _follow(self, orders: Iterable[Order], applied: Iterable[AppliedOrder]) -> None:
        """Tell tasks which trucks were cleared or removed."""
        by_id = {order.order_id: order for order in orders}
        for done in applied:
            order = by_id[done.order_id]
            if done.code is not None or order.robot_id is None:
                continue
            if order.kind is OrderKind.CLEAR:
                self.dispatch.cleared(order.robot_id)
            elif order.kind is OrderKind.REMOVE:
                self.dispatch.removed(order.robot_id)

    def _refuse_time(self, now_ms: int) -> Refusal | None:
        last = self.traffic.now_ms
        if now_ms >= last:
            return None
        return Refusal("time_went_back", {"nowMs": now_ms, "lastMs": last})

    def _gap_ms(self, now_ms: int) -> int:
        """Milliseconds since the last tick; 0 for the first."""
        return now_ms - self.traffic.now_ms if self.traffic.tick_number else 0

    def _as_dispatched(self, reports: tuple[TruckReport, ...]) -> tuple[TruckReport, ...]:
        """Reports with the phase and the faults that tasks know, whatever trucks report."""
        driver = self.dispatch.driver
        return tuple([_as_driven(report, driver(report.robot_id)) for report in reports])

    def _journal_alerts(self, command: Tick) -> Iterator[TaskAlert]:
        """Alerts when the journal stops being written and when it is written again, and for a failed gateway."""
        trouble = command.trouble
        if trouble is not None and self.trouble is None:
            yield TaskAlert(LOGGING_DEGRADED, "ERROR", None, {"trouble": trouble})
        if trouble is None and self.trouble is not None:
            details: dict[str, Json] = {"trouble": self.trouble}
            if command.missing is not UNSET:
                details["missing"] = to_builtins(command.missing)
            yield TaskAlert(LOGGING_RESTORED, "WARN" if "missing" in details else "INFO", None, details)
        self.trouble = trouble
        if command.gateway is not UNSET:
            yield TaskAlert(GATEWAY_FAILED, "ERROR", None, {"problem": command.gateway})

    def _plan(self, form: SavedRoute) -> RoutePlan | Refusal:
        try:
            return plan_of(form, self.site)
        except LookupError as wrong:
            facts: dict[str, Json] = {"routeId": form.route_id, "robotId": form.robot_id, "fault": str(wrong.args[0])}
            return Refusal("route_off_the_map", facts)


def took_place(outcome: Outcome[FleetEvent]) -> bool:
    """Whether a tick is in force: a refused or failed tick has changed nothing about trucks."""
    return outcome.refusal is None and not any(isinstance(event, TickFailed) for event in outcome.events)


def dispatch_of(config: Config, traffic: Traffic, starts: Mapping[str, Anchor]) -> Dispatch:
    """Tasks of a fleet before its first tick."""
    return Dispatch(
        traffic.site,
        config.fleet.trucks,
        {one.profile_id: one for one in config.profiles},
        traffic.closed,
        config.streams,
        config.dispatch,
        starts=starts,
    )


def _as_driven(report: TruckReport, driver: Driver | None) -> TruckReport:
    if driver is None:
        return report
    status = RobotStatus.FAULT if driver.faulty else report.status
    if (report.phase, report.status) == (driver.shown_phase, status):
        return report
    return replace(report, phase=driver.shown_phase, status=status)


def read_config(config: Json) -> Config:
    """Raises `BadConfig` with the path of the fault."""
    try:
        return msgspec.convert(config, Config)
    except msgspec.ValidationError as trouble:
        raise BadConfig(f"invalid fleet configuration: {trouble}") from None


def config_form(config: Config) -> Json:
    """The configuration as the journal stores it."""
    form: Json = msgspec.to_builtins(config)
    return form


def _anchor(site: CompiledMap, place: StartPlace) -> Anchor:
    if place.edge_key is not None:
        number = next((n for n, one in enumerate(site.network.edges) if one.key == place.edge_key), None)
        if number is None:
            raise BadConfig(f"{place.robot_id!r} starts on {place.edge_key!r}, which is not on the map")
        return OnEdge(number, place.s_um)
    if place.node_id not in site.node_number:
        raise BadConfig(f"{place.robot_id!r} starts in {place.node_id!r}, which is not on the map")
    return AtNode(site.node_number[place.node_id], place.yaw_urad)
