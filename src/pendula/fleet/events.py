"""The output of a fleet: one event for every tick, and one for everything that changed in it.

Events contain digests of commands and locks instead of these themselves; a replay computes them again.
"""

from collections.abc import Iterator, Sequence
from hashlib import sha256
from typing import TypeAlias

import msgspec
from msgspec import UNSET, Struct
from msgspec.structs import replace

from pendula.fleet.contracts import Alert, HoldReason, OperatorAction, TaskState
from pendula.fleet.sentences import incident_sentence
from pendula.fleet.tasks.model import DispatchStep, TaskAlert, TaskEventRefused, Transition
from pendula.fleet.tasks.operators import ActionResult
from pendula.fleet.tick.aiming import Aim
from pendula.fleet.tick.reasons import blocker_of, code_of, held_against, hold_reason, requested_id, resource_id
from pendula.fleet.tick.records import Record
from pendula.fleet.tick.traffic import TickOutputs
from pendula.fleet.units import MILLION
from pendula.kernel.canonical import Json


class Event(Struct, frozen=True, rename="camel"):
    """Base of all events: names in the JSON are those of the contract."""


class Ticked(Event, frozen=True, tag="ticked"):
    """A tick is over. `locks` and `commands` are digests of all locks and commands."""

    tick: int
    now_ms: int
    locks: str
    commands: str


class TickFailed(Event, frozen=True, tag="tick_failed"):
    """A tick failed: nothing was decided, and every truck gets a stop command. `error` names the exception."""

    tick: int
    error: str

    @property
    def message(self) -> str:
        return self.error


class TickLate(Event, frozen=True, tag="tick_late"):
    """More than two periods have passed since the tick before: no commands go out, and the watchdogs of the trucks
    stop them."""

    tick: int
    gap_ms: int


class RouteAccepted(Event, frozen=True, tag="route_accepted"):
    """A route came into force."""

    robot_id: str
    route_id: str
    revision: int


class RouteRefused(Event, frozen=True, tag="route_refused"):
    """A route that did not come into force; `cycle`: trucks of which each would be blocked by the next."""

    robot_id: str
    route_id: str
    revision: int
    code: str
    cycle: tuple[str, ...] = ()


class Granted(Event, frozen=True, tag="granted"):
    """The grant of a truck ends elsewhere than before. Its pivot may drive up to there on its route."""

    robot_id: str
    route_id: str
    revision: int
    grant_end_um: int


class HoldChanged(Event, frozen=True, tag="hold_changed"):
    """The reason why a truck stands changed; NONE when it goes on."""

    robot_id: str
    hold_reason: HoldReason
    reason_code: str | None
    blocker_robot_id: str | None
    # What the blocker holds, and what the truck requested.
    blocker_resource_id: str | None
    requested_resource_id: str | None


class TaskMoved(Event, frozen=True, tag="task"):
    """A task changed its state; `before` is None for a new task."""

    task_id: str
    before: TaskState | None
    state: TaskState
    cause: str
    robot_id: str | None
    # The operator who decided it.
    by: str | None = None


class OperatorAnswered(Event, frozen=True, tag="operator_answer"):
    """What came of an operator action, and what it freed."""

    action: OperatorAction
    answer: ActionResult

    @property
    def message(self) -> str:
        return self.answer.message

    def form(self, at_ms: int) -> dict[str, Json]:
        """The form in results of runs."""
        about = {"robotId": self.action.robotId, "taskId": self.action.taskId}
        return {
            "atMs": at_ms,
            "actionId": self.action.actionId,
            "type": self.action.type,
            **{name: one for name, one in about.items() if one is not UNSET},
            "code": self.answer.code,
            "message": self.answer.message,
        }


class Operated(Event, frozen=True, tag="operation"):
    """A truck starts to load or to unload in its node."""

    robot_id: str
    kind: str
    node_id: str
    duration_ms: int


class ReportDropped(Event, frozen=True, tag="report_dropped"):
    """A report of a truck was dropped."""

    robot_id: str
    code: str


class AlertRaised(Event, frozen=True, tag="alert"):
    """An alert for operators."""

    alert: Alert


class NoticeRaised(Event, frozen=True, tag="notice"):
    """An alert of severity INFO that needs no action: a truck or a route has waited for a while. Not in the list of
    alerts."""

    notice: Alert


class Incident(Event, frozen=True, tag="incident"):
    """An incident: the minute before and after it is kept as a bundle."""

    incident_id: str
    code: str
    robot_ids: tuple[str, ...]
    # The alert or the error that it came from.
    facts: dict[str, Json] = {}

    @property
    def message(self) -> str:
        return incident_sentence(self.code, self.robot_ids, self.facts)

    def form(self, at_ms: int) -> dict[str, Json]:
        """The form in results of runs and lists of incidents."""
        return {
            "incidentId": self.incident_id,
            "atMs": at_ms,
            "code": self.code,
            "robotIds": list(self.robot_ids),
            "message": self.message,
        }


FleetEvent: TypeAlias = (
    Ticked
    | TickFailed
    | TickLate
    | RouteAccepted
    | RouteRefused
    | Granted
    | HoldChanged
    | TaskMoved
    | TaskEventRefused
    | OperatorAnswered
    | Operated
    | ReportDropped
    | AlertRaised
    | NoticeRaised
    | Incident
)


# The events of a tick: a record of it, and everything that changed in it.

# Stops that a bundle is made of (FLT-OBS-11).
INCIDENT_STOPS = frozenset(
    {
        "STOP_POSE_JUMP",
        "STOP_OFF_ROUTE",
        "STOP_OVERRUN",
        "STOP_FOREIGN_OCCUPANCY",
        "STOP_OCCUPANCY_CONFLICT",
        "STOP_NO_COMMS",
        "STOP_INVARIANT",
    }
)
INCIDENT_ALERTS = frozenset({"DEADLOCK_SUSPECTED", "DEADLOCK_CONFIRMED", "OCCUPANCY_CONFLICT"})
TICK_FAILED = "TICK_FAILED"
# Cached texts of lengths: a few for every truck.
MOST_TEXTS = 1 << 12
# Not canonical JSON, which would cost ten times as much: equal values give equal bytes, and these are only hashed.
_packed = msgspec.msgpack.Encoder().encode


def tick_events(before: Sequence[Record], outputs: TickOutputs, aims: Sequence[Aim]) -> Iterator[FleetEvent]:
    """All events of traffic in a tick, in a fixed order."""
    after = outputs.scene.records
    yield Ticked(outputs.tick, outputs.now_ms, locks_digest(after), _commands_digest(aims))
    if outputs.error is not None:
        yield TickFailed(outputs.tick, outputs.error)
    for dropped in outputs.dropped_reports:
        yield ReportDropped(dropped.robot_id, dropped.code)
    for route in outputs.accepted_routes:
        yield RouteAccepted(route.robot_id, route.route_id, route.revision)
    for refused in outputs.refused_routes:
        yield RouteRefused(refused.robot_id, refused.route_id, refused.revision, refused.code, refused.cycle)
    for old, new in zip(before, after, strict=True):
        # Nothing is built for a truck that goes on as before, as most do.
        if new.track is not old.track or new.granted != old.granted or not _holds_alike(old, new):
            yield from _changes(old, new, after)
    for alert in outputs.alerts:
        yield AlertRaised(alert)
    for notice in outputs.notices:
        yield NoticeRaised(notice)
    yield from _incidents(before, outputs)


def task_events(step: DispatchStep, later: Sequence[Transition]) -> Iterator[FleetEvent]:
    """Changes of tasks: in the step, and after traffic decided on its routes."""
    yield from step.refused
    for moved in (*step.transitions, *later):
        yield TaskMoved(moved.task_id, moved.before, moved.state, moved.cause, moved.robot_id, moved.by)
    for operation in step.operations:
        yield Operated(operation.robot_id, operation.kind, operation.node_id, operation.duration_ms)


def action_events(actions: Sequence[OperatorAction], answers: Sequence[ActionResult]) -> Iterator[OperatorAnswered]:
    """Operator actions and what came of them, by action id."""
    by_id = {action.actionId: action for action in actions}
    for answer in sorted(answers, key=lambda answer: answer.actionId):
        yield OperatorAnswered(by_id[answer.actionId], answer)


def alert_events(tick: int, now_ms: int, alerts: Sequence[TaskAlert]) -> Iterator[AlertRaised]:
    """Alerts that do not come from traffic; their ids do not clash with those that do."""
    for number, alert in enumerate(alerts, 1):
        yield AlertRaised(
            Alert(
                alertId=f"al-{tick}-{number}",
                code=alert.code,
                severity=alert.severity,
                sinceMs=now_ms,
                details=alert.details,
                robotId=UNSET if alert.robot_id is None else alert.robot_id,
            )
        )


def merge_alerts(alerts: Sequence[Alert], of_tasks: Sequence[TaskAlert]) -> tuple[tuple[Alert, ...], list[TaskAlert]]:
    """Merge alerts that traffic and tasks raise in one tick for the same truck and code; also returns the alerts of
    tasks that were not merged."""
    by_truck: dict[tuple[str, object], TaskAlert] = {(alert.code, alert.robot_id): alert for alert in of_tasks}
    known = {(alert.code, alert.robotId) for alert in alerts}
    both = tuple(
        alert
        if (more := by_truck.get((alert.code, alert.robotId))) is None
        else replace(alert, severity=more.severity, details={**alert.details, **more.details})
        for alert in alerts
    )
    return both, [alert for alert in of_tasks if (alert.code, alert.robot_id) not in known]


def _changes(old: Record, new: Record, records: Sequence[Record]) -> Iterator[FleetEvent]:
    if new.track is not None and (new.track is not old.track or new.granted != old.granted):
        plan = new.track.plan
        yield Granted(new.robot_id, plan.route_id, plan.revision, new.grant_um)
    if _holds_alike(old, new):
        return
    against, by = held_against(new, records), blocker_of(new)
    yield HoldChanged(
        robot_id=new.robot_id,
        hold_reason=hold_reason(new),
        reason_code=code_of(new),
        blocker_robot_id=None if by is None else records[by].robot_id,
        blocker_resource_id=None if against is None else resource_id(new.site, against.resource),
        requested_resource_id=requested_id(new),
    )


def _holds_alike(old: Record, new: Record) -> bool:
    """Whether a truck stands, or drives, for the same reason. Cheap: this holds for most trucks in most ticks."""
    if new.stop_code != old.stop_code or not (new.waiting is old.waiting or new.waiting == old.waiting):
        return False
    if new.phase is old.phase and new.pending is old.pending and new.refused_cycle is old.refused_cycle:
        return True
    return code_of(new) == code_of(old)


def _incidents(before: Sequence[Record], outputs: TickOutputs) -> Iterator[Incident]:
    found: list[tuple[str, tuple[str, ...], dict[str, Json]]] = []
    if outputs.error is not None:
        found.append((TICK_FAILED, (), {"error": outputs.error}))
    for old, new in zip(before, outputs.scene.records, strict=True):
        code = new.stop_code
        if code is not None and code != old.stop_code and code in INCIDENT_STOPS:
            found.append((code, (new.robot_id,), {}))
    for alert in outputs.alerts:
        if alert.code in INCIDENT_ALERTS:
            found.append((alert.code, _named(alert), {"alertId": alert.alertId}))
    for number, (code, names, facts) in enumerate(found, 1):
        yield Incident(f"inc-{outputs.tick}-{number}", code, names, facts)


def _named(alert: Alert) -> tuple[str, ...]:
    return (alert.robotId,) if isinstance(alert.robotId, str) else ()


def locks_digest(records: Sequence[Record]) -> str:
    """Over everything in a snapshot of the locks: positions, grants, holds, waits and retractions."""
    return digest_of([_shown(record) for record in records])


def _commands_digest(aims: Sequence[Aim]) -> str:
    """Over what a command decides; poses and the path slice follow from the route and these positions."""
    text = _METRES
    return digest_of(
        [
            (
                aim.robot_id,
                aim.seq,
                aim.mode,
                aim.hold_reason,
                "" if (plan := aim.plan) is None else plan.route_id,
                0 if plan is None else plan.revision,
                (text[aim.target_um], text[aim.stop_um], text[aim.speed_um_s], aim.valid_ms),
            )
            for aim in aims
        ]
    )


class _Metres(dict[int, str]):
    """Text of `metres`, without building decimals. Stop lines, speeds and targets of standing trucks stay the same for
    many ticks, so texts are cached, up to `MOST_TEXTS`."""

    def __missing__(self, micros: int) -> str:
        if len(self) >= MOST_TEXTS:
            self.clear()
        whole, rest = divmod(abs(micros), MILLION)
        sign = "-" if micros < 0 else ""
        text = self[micros] = f"{sign}{whole}.{rest:06d}".rstrip("0") if rest else f"{sign}{whole}"
        return text


_METRES = _Metres()


def digest_of(value: object) -> str:
    return "sha256:" + sha256(_packed(value)).hexdigest()


def _shown(record: Record) -> tuple[object, ...]:
    plan = None if record.track is None else record.track.plan
    waiting, given = record.waiting, record.retraction
    return (
        None if plan is None else (plan.route_id, plan.revision),
        (record.granted, record.reserved, record.at_um, record.bound_um, record.hold_um, record.farthest_um),
        (record.seq, record.ack_seq, record.health, record.stop_code, record.priority, record.rank),
        [*record.held],
        None if waiting is None else (waiting.code, waiting.resource, waiting.by, waiting.theirs, waiting.cycle),
        None if given is None else (given.seq, given.stop_line_um, given.resources),
    )
