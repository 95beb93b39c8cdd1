"""What comes out of a fleet: one record of every tick, and what changed in it.

Commands to trucks and the locks themselves are not told: digests stand for them, and a replay makes them again.
"""

from typing import TypeAlias

from msgspec import UNSET, Struct

from pendula.fleet.contracts.traffic import Alert, HoldReason, OperatorAction, TaskState
from pendula.fleet.operators import ActionResult
from pendula.fleet.sentences import incident_sentence, sentence_of
from pendula.fleet.tasks.model import TaskEvent
from pendula.kernel.canonical import Json


class Event(Struct, frozen=True, rename="camel"):
    """What all events share: names in the JSON are those of the contract."""


class Ticked(Event, frozen=True, tag="ticked"):
    """A tick is over. `locks` and `commands` are digests of what is held and of what trucks are told."""

    tick: int
    now_ms: int
    locks: str
    commands: str


class TickFailed(Event, frozen=True, tag="tick_failed"):
    """Nothing was decided, and every truck is told to stop. `error` names the exception."""

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
    """A route is in force from now on."""

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
    """The grant of a truck ends elsewhere than before: its pivot may come up to there on its route."""

    robot_id: str
    route_id: str
    revision: int
    grant_end_um: int


class HoldChanged(Event, frozen=True, tag="hold_changed"):
    """Why a truck stands is not what it was; NONE where it goes on."""

    robot_id: str
    hold_reason: HoldReason
    reason_code: str | None
    blocker_robot_id: str | None
    # What the blocker holds, and what was asked for.
    blocker_resource_id: str | None
    requested_resource_id: str | None


class TaskMoved(Event, frozen=True, tag="task"):
    """A task came into another state; `before` is None for one that is new."""

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
        """As results of runs have it."""
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
    """A truck is to load or to unload in the node it stands in."""

    robot_id: str
    kind: str
    node_id: str
    duration_ms: int


class ReportDropped(Event, frozen=True, tag="report_dropped"):
    """A report of a truck that could not be taken."""

    robot_id: str
    code: str


class AlertRaised(Event, frozen=True, tag="alert"):
    """Something that a person should know."""

    alert: Alert


class NoticeRaised(Event, frozen=True, tag="notice"):
    """Routine that needs no action, in the form of an alert of severity INFO: a truck has waited for a while, a route
    waits. Not in the list of alerts."""

    notice: Alert


class Incident(Event, frozen=True, tag="incident"):
    """Something that must not happen unnoticed: a bundle is made of the minute before and after it."""

    incident_id: str
    code: str
    robot_ids: tuple[str, ...]
    # The alert or the error that it came from.
    facts: dict[str, Json] = {}

    @property
    def message(self) -> str:
        return incident_sentence(self.code, self.robot_ids, self.facts)

    def form(self, at_ms: int) -> dict[str, Json]:
        """As results of runs and lists of incidents have it."""
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
