"""What the server says over HTTP, as shapes: the JSON of every answer and, from them, the OpenAPI document."""

from enum import StrEnum
from typing import Any

import msgspec
from msgspec import Raw, Struct

from pendula.kernel.canonical import Json
from pendula.kernel.engine import Reason
from pendula.server.security.identity import Role


class State(StrEnum):
    """How an engine or a whole scheduler is."""

    STARTING = "starting"
    READY = "ready"
    BROKEN = "broken"


class EngineView(Struct, frozen=True):
    """One engine; `commands` counts since the server started, `broken` says why it refuses everything."""

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
    """`reason` is the code of what is wrong, `note` what should be looked at though all is well."""

    name: str
    ok: bool
    reason: str | None
    note: str | None = None


class ClockState(Struct, frozen=True):
    """By how many seconds time here is ahead of the machine's clock, which was put back, and in how many they agree.

    Time never goes back: it goes at half its speed meanwhile, and whatever is due at a time is due sooner by so much.
    """

    ahead_sec: int
    agrees_in_sec: int


class Readiness(Struct, frozen=True):
    status: str
    checks: list[Check]
    clock: ClockState

    def by_scheduler(self) -> "Readiness":
        """Without the names of engines: a scheduler is as well as the worst of its engines."""
        schedulers: dict[str, Check] = {}
        for check in self.checks:
            name = check.name.partition("/")[0]
            worst = schedulers.get(name)
            if worst is None or worst.ok:
                note = check.note if worst is None or worst.note is None else worst.note
                schedulers[name] = Check(name, check.ok, check.reason, note)
        return Readiness(self.status, list(schedulers.values()), self.clock)


class SessionView(Struct, frozen=True):
    """Who the caller is."""

    name: str
    role: Role
    tokens_required: bool


class SignIn(Struct, frozen=True, forbid_unknown_fields=True):
    token: str


class Question(Struct, frozen=True, forbid_unknown_fields=True):
    question: Json


class StateView(Struct, frozen=True):
    """An engine as it is after record `n`."""

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
    """Some records, and which there are: fewer than asked for where they are large."""

    records: list[RecordView]
    first_n: int
    last_n: int
    snapshots: list[tuple[int, int]]


class Moment(Struct, frozen=True):
    """A record and the time of the engine then; `at` is the time of the wall, where it is told."""

    n: int
    t: int
    at: str | None = None


class MomentsView(Struct, frozen=True):
    """Moments of a journal, in order."""

    moments: list[Moment]


class MomentView(Struct, frozen=True):
    """The moment that was looked for and the one after it; null where there is none."""

    moment: Moment | None
    next: Moment | None


class Incident(Struct, frozen=True):
    """A record of something that went wrong: a refused command, or an event of a kind the scheduler names."""

    n: int
    t: int
    code: str
    sentence: str


class IncidentView(Struct, frozen=True):
    """The incident that was looked for; null where there is none."""

    incident: Incident | None


class Effect(StrEnum):
    """What became of a command: it took effect, waits for its time, was refused as a whole, or changed nothing."""

    DONE = "done"
    ACCEPTED = "accepted"
    REFUSED = "refused"
    NONE = "none"


class Complaint(Struct, frozen=True):
    """Why a part of a command was refused."""

    code: str
    message: str


class Became(Struct, frozen=True):
    """What became of a command that was applied; `complaints` are about the parts of it that were refused."""

    effect: Effect
    complaints: list[Complaint] = []


class CommandResult(Struct, frozen=True):
    """What a command did. One that the engine refuses is answered with 409 and the refusal as the error; `effect` is
    `refused` where it was applied and none of what it asked for was taken."""

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
    """What a reader of a stream missed; `missed` is null where nobody can count it any more."""

    missed: int | None
    after: str | None
    next: str | None


# Parts that are canonical bytes already are put in as they are; only the frame around them is written here.
encode_view = msgspec.json.Encoder(order="sorted", decimal_format="number").encode
