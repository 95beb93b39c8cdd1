"""The structs of HTTP responses, from which the JSON and the OpenAPI document are derived."""

from enum import StrEnum
from typing import Any

import msgspec
from msgspec import Raw, Struct

from pendula.kernel.canonical import Json
from pendula.kernel.engine import Reason
from pendula.server.security.identity import Role


class State(StrEnum):
    """The state of an engine or a scheduler."""

    STARTING = "starting"
    READY = "ready"
    BROKEN = "broken"


class EngineView(Struct, frozen=True):
    """One engine; `commands` counts since the server started, `broken` is why it refuses all commands."""

    name: str
    time_unit: str
    now: int
    commands: int
    broken: str | None


class EngineSummary(Struct, frozen=True):
    """One engine in the list of its scheduler; `state` is ready, starting, broken or closed, `t` its time."""

    name: str
    state: str
    t: int | None
    broken: str | None


class SchedulerView(Struct, frozen=True):
    name: str
    title: str
    sentence: str
    state: State
    reason: Reason | None
    engines: list[EngineView]


class SchedulerList(Struct, frozen=True):
    version: str
    demo: bool
    schedulers: list[SchedulerView]


class Health(Struct, frozen=True):
    status: str


class Check(Struct, frozen=True):
    """`reason` is an error code, `note` a hint that does not affect readiness."""

    name: str
    ok: bool
    reason: str | None
    note: str | None = None


class ClockState(Struct, frozen=True):
    """The lead in seconds over the system clock after that was set back, and in how many seconds it is gone.

    Time never goes back: it runs at half speed meanwhile, so scheduled work is due earlier by the lead.
    """

    ahead_sec: int
    agrees_in_sec: int


class Readiness(Struct, frozen=True):
    status: str
    checks: list[Check]
    clock: ClockState

    def by_scheduler(self) -> "Readiness":
        """Without engine names: a scheduler has the worst state of its engines."""
        schedulers: dict[str, Check] = {}
        for check in self.checks:
            name = check.name.partition("/")[0]
            worst = schedulers.get(name)
            if worst is None or worst.ok:
                note = check.note if worst is None or worst.note is None else worst.note
                schedulers[name] = Check(name, check.ok, check.reason, note)
        return Readiness(self.status, list(schedulers.values()), self.clock)


class SessionView(Struct, frozen=True):
    """The identity of the caller."""

    name: str
    role: Role
    tokens_required: bool


class SignIn(Struct, frozen=True, forbid_unknown_fields=True):
    token: str


class Question(Struct, frozen=True, forbid_unknown_fields=True):
    question: Json


class StateView(Struct, frozen=True):
    """An engine as of record `n`."""

    n: int
    t: int
    state: Raw
    next_due: int | None
    broken: list[str]


class RecordView(Struct, frozen=True):
    n: int
    t: int
    kind: str
    body: Raw


class JournalView(Struct, frozen=True):
    """Records, fewer than requested if they are large, and the range of existing ones."""

    records: list[RecordView]
    first_n: int
    last_n: int
    snapshots: list[tuple[int, int]]


class Moment(Struct, frozen=True):
    """A record and its engine time; `at` is the wall-clock time, if known."""

    n: int
    t: int
    at: str | None = None


class MomentsView(Struct, frozen=True):
    """Moments of a journal, in order."""

    moments: list[Moment]


class MomentView(Struct, frozen=True):
    """The requested moment and the next one; null if there is none."""

    moment: Moment | None
    next: Moment | None


class Incident(Struct, frozen=True):
    """A record with a refused command, or with an event that the scheduler counts as an incident."""

    n: int
    t: int
    code: str
    sentence: str


class IncidentView(Struct, frozen=True):
    """The requested incident; null if there is none."""

    incident: Incident | None


class Effect(StrEnum):
    """The effect of a command: it took effect, is scheduled, was refused completely, or changed nothing."""

    DONE = "done"
    ACCEPTED = "accepted"
    REFUSED = "refused"
    NONE = "none"


class Complaint(Struct, frozen=True):
    """Why a part of a command was refused."""

    code: str
    message: str


class Became(Struct, frozen=True):
    """The effect of an applied command; `complaints` are about its refused parts."""

    effect: Effect
    complaints: list[Complaint] = []


class CommandResult(Struct, frozen=True):
    """The result of a command. A command that the engine refuses is answered with 409 and the refusal as the error;
    `effect` is `refused` if the command was applied but all its parts were refused."""

    n: int
    events: list[Raw]
    answer: Json
    effect: Effect
    complaints: list[Complaint]
    refusal: None = None


class ErrorFacts(Struct, frozen=True):
    code: str
    message: str
    details: dict[str, Any]


class ErrorView(Struct, frozen=True):
    error: ErrorFacts


class GapView(Struct, frozen=True):
    """Missed events of a stream; `missed` is null if their number is unknown."""

    missed: int | None
    after: str | None
    next: str | None


# Parts with canonical bytes are inserted unchanged; only the surrounding JSON is written here.
encode_view = msgspec.json.Encoder(order="sorted", decimal_format="number").encode
