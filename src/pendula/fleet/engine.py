"""The engine of the scheduler: tick after tick, what trucks report and people want goes in, what was decided comes out.

It satisfies `pendula.kernel.engine.Engine`. What is to be done after a tick, commands for the trucks and operations, is
in `orders_out`, not in what is streamed: whoever drives the engine sends it once the tick is written down.
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
from pendula.fleet.contracts.traffic import OperatorAction, RobotStatus
from pendula.fleet.driving.records import Record
from pendula.fleet.events import FleetEvent, TickFailed, TickLate
from pendula.fleet.health.orders import AppliedOrder, Order, OrderKind
from pendula.fleet.operators import ActionResult, ActionType, Desk
from pendula.fleet.routing.planner import Anchor, AtNode, OnEdge
from pendula.fleet.routing.route_plan import RoutePlan
from pendula.fleet.sentences import sentence_of
from pendula.fleet.site.compiled_map import CompiledMap
from pendula.fleet.targets.rolling_target import Aim, Told
from pendula.fleet.tasks import Dispatch, DispatchStep, Operation, truck_views
from pendula.fleet.tasks.drivers import Driver
from pendula.fleet.tasks.model import TaskAlert
from pendula.fleet.telling import answered, joined, raised, told, told_of_tasks
from pendula.fleet.tick.observing import TruckReport
from pendula.fleet.tick.saving import SavedRoute, plan_of
from pendula.fleet.tick.traffic import TickInputs, TickOutputs, Traffic
from pendula.fleet.views.dropped import LastDropped
from pendula.kernel.bodies import NoOutside
from pendula.kernel.canonical import Json, encode
from pendula.kernel.engine import Outcome, Outside, Reason, Refusal
from pendula.kernel.errors import InputRefused

LOGGING_DEGRADED = "LOGGING_DEGRADED"
LOGGING_RESTORED = "LOGGING_RESTORED"
GATEWAY_FAILED = "GATEWAY_FAILED"
# Before everything that people want of the same tick.
RESTARTED = Order("", OrderKind.RESTARTED, at_ms=-1)


class BadConfig(InputRefused):
    """A fleet cannot be made of this configuration."""

    code = "bad_fleet_config"


class OrdersOut(Struct, frozen=True):
    """What goes out after a tick: commands for trucks, routes they are to know, and what they are to do in nodes."""

    aims: tuple[Aim, ...] = ()
    routes: tuple[RoutePlan, ...] = ()
    operations: tuple[Operation, ...] = ()

    @property
    def commands(self) -> Told:
        """One for every truck, in the form of the contract."""
        return Told(self.aims)


class FleetEngine:
    """A fleet on its site. `last` is what traffic decided in the last tick."""

    scheduler: ClassVar[str] = "fleet"
    decisions: ClassVar[int] = 1
    time_unit: ClassVar[str] = "ms"
    commands: ClassVar[object] = Commands
    events: ClassVar[object] = FleetEvent

    def __init__(self, config: Config, traffic: Traffic, dispatch: Dispatch, trouble: str | None = None) -> None:
        self.config = config
        self.traffic = traffic
        self.dispatch = dispatch
        self.desk = Desk(traffic.site, config.traffic)
        self.outside: Outside = NoOutside()
        self.last: TickOutputs | None = None
        self.orders_out = OrdersOut()
        # Why nothing is written down, as long as that is so.
        self.trouble = trouble
        # Reports that were dropped last, by the truck they name, for answers: whoever serves the fleet sets it, it is
        # in no state, and nothing is decided upon it.
        self.dropped: Mapping[str, LastDropped] = {}

    @classmethod
    def create(cls, config: Json) -> Self:
        """Raises `BadConfig`, `OtherMap`, or `TrafficRefused` for a fleet that may not run on its map."""
        told = read_config(config)
        if told.state is not UNSET:
            return cls._restored(told, encode(told.state))
        site = site_of(told)
        starts = {one.robot_id: _anchor(site, one) for one in told.starts}
        traffic = Traffic.create(site, told.fleet, told.profiles, told.traffic, starts=starts, override=told.override)
        if told.begin_ms is not UNSET:
            traffic.now_ms = told.begin_ms
        return cls(told, traffic, dispatch_of(told, traffic, starts))

    @classmethod
    def from_state(cls, config: Json, state: bytes) -> Self:
        return cls._restored(read_config(config), state)

    @classmethod
    def _restored(cls, config: Config, state: bytes) -> Self:
        site = site_of(config)
        starts = {one.robot_id: _anchor(site, one) for one in config.starts}
        saved = saving.read(state)
        traffic = saving.traffic_of(saved, config, site)
        dispatch = dispatch_of(config, traffic, starts)
        saving.restore_dispatch(saved, dispatch)
        engine = cls(config, traffic, dispatch, saved.trouble)
        saving.restore_desk(saved, engine.desk)
        dispatch.keep_off(traffic.barred(), traffic.closings)
        return engine

    @property
    def site(self) -> CompiledMap:
        return self.traffic.site

    def with_news(self, tick: Tick, trouble: str | None, missing: MissingRecords | None = None) -> Tick:
        """A tick that also says how the journal is, and what is missing of it."""
        if missing is not None:
            tick = replace(tick, missing=missing)
        return tick if trouble is None else replace(tick, trouble=trouble)

    def state(self) -> bytes:
        return saving.encoded(self.traffic, self.dispatch, self.desk, self.trouble)

    def now(self) -> int:
        return self.traffic.now_ms

    def next_due(self) -> int:
        """A tick is due one period after the last."""
        return self.traffic.now_ms + (self.config.traffic.tick_period_ms if self.traffic.tick_number else 0)

    def apply(self, command: Commands) -> Outcome[FleetEvent]:
        match command:
            case Tick():
                return self._tick(command)

    @staticmethod
    def sentence(code: str, facts: Mapping[str, Json]) -> str:
        return sentence_of(code, facts)

    def why(self, question: Json) -> Reason:
        """Why a truck stands, as `{"robot": id}`, or a task waits, as `{"task": id}`."""
        return explain.why(self.traffic, self.dispatch, question, self.dropped)

    def broken(self) -> Iterable[str]:
        return self.traffic.broken()

    def _tick(self, command: Tick) -> Outcome[FleetEvent]:
        refusal = self._not_now(command.now_ms)
        plans = [self._plan(one) for one in command.routes]
        refusal = refusal or next((one for one in plans if isinstance(one, Refusal)), None)
        if refusal is not None:
            return Outcome(refusal=refusal)
        before, gap = self.traffic.records, self._gap_ms(command.now_ms)
        step, outputs, answers = self._decide(command, tuple([one for one in plans if isinstance(one, RoutePlan)]))
        late = gap > 2 * self.config.traffic.tick_period_ms
        alerts, of_tasks = joined(outputs.alerts, step.alerts)
        self.last = dataclasses.replace(outputs, alerts=alerts) if step.alerts else outputs
        self.orders_out = self._orders(command, step, () if late else outputs.aims)
        alarms = (*of_tasks, *self._troubled(command))
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
        """What the tick that was just decided tells; `before` is how trucks were before it."""
        assert self.last is not None
        return (
            *told(before, self.last, self.orders_out.aims),
            *told_of_tasks(step, self.dispatch.take_transitions()),
            *answered(command.operator_actions, answers),
            *raised(self.last.tick, command.now_ms, alarms),
        )

    def _decide(
        self, command: Tick, routes: tuple[RoutePlan, ...]
    ) -> tuple[DispatchStep, TickOutputs, tuple[ActionResult, ...]]:
        """People first, then tasks, then traffic: what is wanted, who goes where, and who may go on."""
        trucks = self.traffic.records
        asked = self.desk.take(command.operator_actions, command.now_ms, trucks)
        wanted = [self._about_task(one) for one in asked.tasks]
        cleared = {one.order_id for one in asked.orders if self._clears(one)}
        views = truck_views(trucks, self.config.traffic, command.now_ms, command.reports)
        self.dispatch.keep_off(self.traffic.barred(), self.traffic.closings)
        step = self.dispatch.dispatch(command.now_ms, views, command.task_events)
        reports = self._as_dispatched(command.reports)
        orders = (*asked.orders, *((RESTARTED,) if command.restarted else ()))
        outputs = self.traffic.tick(TickInputs(command.now_ms, reports, (*step.routes, *routes), orders))
        self.dispatch.settled(outputs.accepted_routes, outputs.refused_routes)
        applied = [AppliedOrder(one.order_id) if one.order_id in cleared else one for one in outputs.applied_orders]
        self._follow(orders, applied)
        settled = self.desk.settle([*wanted, *applied], outputs.tick)
        return step, outputs, (*asked.answers, *settled)

    def _orders(self, command: Tick, step: DispatchStep, aims: tuple[Aim, ...]) -> OrdersOut:
        """What goes out. A manager that was away does not know what reached the trucks: they hear all of it again."""
        assert self.last is not None
        if command.restarted:
            return replace(self.everything_told(), aims=aims)
        return OrdersOut(aims, (*step.routes, *self.last.accepted_routes), step.operations)

    def everything_told(self) -> OrdersOut:
        """All routes and operations that trucks are about, for whoever does not know what reached them."""
        plans = [(one.track.plan if one.track is not None else None, one.pending) for one in self.traffic.records]
        routes = tuple(one for both in plans for one in both if one is not None)
        return OrdersOut(routes=routes, operations=self.dispatch.operations())

    def _about_task(self, action: OperatorAction) -> AppliedOrder:
        """Cancels, withdraws, holds or resumes a task; who did it is the cause that the task remembers."""
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
        """Whether an order clears what a truck failed at in a node, of which traffic knows nothing."""
        faulty = [one.robot_id for one in self.traffic.records if self.dispatch.is_faulty(one.number)]
        return order.kind is OrderKind.CLEAR and order.robot_id in faulty

    def _follow(self, orders: Iterable[Order], applied: Iterable[AppliedOrder]) -> None:
        """What traffic did about a truck, its tasks have to know."""
        kinds = {one.order_id: one for one in orders}
        for one in applied:
            order = kinds[one.order_id]
            if one.code is not None or order.robot_id is None:
                continue
            if order.kind is OrderKind.CLEAR:
                self.dispatch.cleared(order.robot_id)
            elif order.kind is OrderKind.REMOVE:
                self.dispatch.removed(order.robot_id)

    def _not_now(self, now_ms: int) -> Refusal | None:
        last = self.traffic.now_ms
        if now_ms >= last:
            return None
        return Refusal("time_went_back", {"nowMs": now_ms, "lastMs": last})

    def _gap_ms(self, now_ms: int) -> int:
        """Since the tick before; nothing came before the first."""
        return now_ms - self.traffic.now_ms if self.traffic.tick_number else 0

    def _as_dispatched(self, reports: tuple[TruckReport, ...]) -> tuple[TruckReport, ...]:
        """What a truck is about is known here, whatever it says itself; so is a fault in what it was to do."""
        driver = self.dispatch.driver
        return tuple([_as_driven(one, driver(one.robot_id)) for one in reports])

    def _troubled(self, command: Tick) -> Iterator[TaskAlert]:
        """An alert when the journal is not written any more, and one when it is again."""
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
    """Whether a tick is in force: one that was refused or failed has changed nothing of what is known of trucks."""
    return outcome.refusal is None and not any(isinstance(one, TickFailed) for one in outcome.events)


def dispatch_of(config: Config, traffic: Traffic, starts: Mapping[str, Anchor]) -> Dispatch:
    """The tasks of a fleet before its first tick."""
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
    """Raises `BadConfig` with the place of what is wrong."""
    try:
        return msgspec.convert(config, Config)
    except msgspec.ValidationError as trouble:
        raise BadConfig(f"This is not the configuration of a fleet: {trouble}") from None


def config_form(config: Config) -> Json:
    """The configuration as it is written into a journal."""
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
