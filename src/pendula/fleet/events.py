"""The output of a fleet: one event for every tick, and one for everything that changed in it.

Events contain digests of commands and locks instead of these themselves; a replay computes them again.
"""

from typing import TypeAlias

from msgspec import UNSET, Struct

from pendula.fleet.contracts.traffic import Alert, HoldReason, OperatorAction, TaskState
from pendula.fleet.operators import ActionResult
from pendula.fleet.sentences import incident_sentence, sentence_of
from pendula.fleet.tasks.model import TaskEvent
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


class TaskEventRefused(Event, frozen=True, tag="task_event_refused"):
    """A report about a task or a node that changes nothing."""

    event: TaskEvent
    code: str
    facts: dict[str, Json]

    @property
    def message(self) -> str:
        return sentence_of(self.code, self.facts)


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
