"""The messages of the scheduler: a struct for each request and each reply, which is its only description.

From them come the readers of bodies (`request_reading.read`), the shapes in OpenAPI, the client, the options of the
command line and the Python API. Names are those of the bodies. In a request, times are microseconds since 1970 and JSON
is canonical text, whatever form they had in the body; in a reply, times are text.
"""

from collections.abc import Callable, Iterator, Mapping
from datetime import datetime
from decimal import Decimal
from enum import StrEnum
from re import compile as regex
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Generic, Literal, TypeAlias, TypeVar

from msgspec import UNSET, Meta, Struct, UnsetType, field, to_builtins
from msgspec.structs import force_setattr

from pendula.jobs import model
from pendula.jobs.cron import PLAIN, Cron, zone_of
from pendula.jobs.model import (
    ATTEMPTS_MOST,
    BATCH_MOST,
    LEASE_MOST_SEC,
    MILLION,
    PAYLOAD_MOST_BYTES,
    PRIORITIES,
    RETRY_DELAY_MOST_SEC,
    SECOND,
    WORDS,
    Code,
    Policy,
    PriorityWord,
    Refused,
    Status,
    exact,
    in_full,
    number_of,
    seq_of,
)
from pendula.jobs.request_reading import BadValue, Problem, Request, canonical
from pendula.kernel.canonical import Json, decode
from pendula.kernel.errors import InputRefused, NotCanonical
from pendula.kernel.time import format_utc, parse_utc

OBJECT_ID_MOST = 512  # of ids of objects, correlations and audit events
KEY_MOST = 512
WAIT_MOST_MS = 30_000
OUTCOME_MOST = 64
REASON_MOST = 1000
NOTE_MOST = 200
PAIRS_MOST = 1000
WORKER_MOST, TOKEN_MOST, USER_MOST = 128, 200, 128
ERROR_CODE_MOST = 64
LIST_DEFAULT, LIST_MOST = 100, 1000
WINDOW_DEFAULT, WINDOW_LEAST, WINDOW_MOST = 3600, 60, 604_800
CURSOR_MOST = 18
ZONE_MOST = 64
CRON_MOST = 200
WORKER_ID = regex(r"[A-Za-z0-9._:@-]{1,128}")
QUEUE = regex(r"[a-z0-9_-]{1,64}")
PLAN_NAME = regex(r"[a-z0-9-]{1,64}")
QUEUE_FORM, PLAN_NAME_FORM = "1 to 64 of a-z, 0-9, _ and -", "1 to 64 of a-z, 0-9 and -"
# The statuses that a batch call works on; the first is the default.
CANCELLABLE = (Status.QUEUED, Status.RUNNING)
REVIVABLE = (Status.DEAD_LETTER, Status.FAILED)


def is_user(name: str) -> bool:
    """Whether a person can be recorded under this name."""
    return 1 <= len(name) <= USER_MOST and name.isprintable() and name == name.strip()


# Types of fields. A word of `extra` is for the reader: `words` is a part of the vocabulary of the policy, `code` and
# `allowed` replace those of a fault, `most` is a parameter of the policy.

NEXT_PAGE = "The next_cursor of the page before"


def about(description: str, absent: str = "") -> Meta:
    """What a member is, for OpenAPI and the command line; `absent` is what holds without it."""
    return Meta(description=description, extra={"absent": absent} if absent else None)


# Neither control characters nor lone surrogates.
PRINTABLE = r"^(?!.*[\x00-\x1f\x7f-\x9f\ud800-\udfff])"
TRIMMED = PRINTABLE + r"(?!\s)[\s\S]*(?<!\s)$"

NamedType = Annotated[str, Meta(extra_json_schema={"named": "ObjectType"})]
NamedAction = Annotated[str, Meta(extra_json_schema={"named": "Action"})]
ObjectType = Annotated[NamedType, Meta(extra={"words": "object_types"})]
Action = Annotated[NamedAction, Meta(extra={"words": "actions"})]
ObjectId = Annotated[str, Meta(min_length=1, max_length=OBJECT_ID_MOST, pattern=TRIMMED)]
Text = Annotated[str, Meta(min_length=1, max_length=OBJECT_ID_MOST, pattern=PRINTABLE)]
Key = Annotated[str, Meta(min_length=1, max_length=KEY_MOST, pattern=PRINTABLE)]
Reason = Annotated[str, Meta(min_length=1, max_length=REASON_MOST, pattern=PRINTABLE)]
Outcome = Annotated[str, Meta(min_length=1, max_length=OUTCOME_MOST, pattern=PRINTABLE)]
Note = Annotated[str, Meta(min_length=1, max_length=NOTE_MOST, pattern=PRINTABLE)]
Holder = Annotated[
    str,
    Meta(min_length=1, max_length=WORKER_MOST, pattern=PRINTABLE, description="The worker that holds the job"),
]
Token = Annotated[
    str, Meta(min_length=1, max_length=TOKEN_MOST, pattern=PRINTABLE, description="The token of its lease")
]
HolderOrNone: TypeAlias = Holder | None
TokenOrNone: TypeAlias = Token | None
ErrorCode = Annotated[
    str,
    Meta(
        min_length=1,
        max_length=ERROR_CODE_MOST,
        pattern=PRINTABLE,
        description="Only with this error code, the part of last_error before its first colon, such as timeout",
    ),
]
QueueFilter = Annotated[str, Meta(min_length=1, max_length=64, pattern=PRINTABLE)]
# `\Z` is for Python alone: its `$` lets a line break pass.
QueueName = Annotated[str, Meta(pattern=rf"^{QUEUE.pattern}\Z", extra={"allowed": QUEUE_FORM})]
PlanName = Annotated[str, Meta(pattern=rf"^{PLAN_NAME.pattern}\Z", extra={"allowed": PLAN_NAME_FORM})]
WorkerId = Annotated[
    str,
    Meta(
        pattern=rf"^{WORKER_ID.pattern}\Z",
        extra={"code": Code.INVALID_WORKER_ID, "allowed": "1 to 128 of letters, digits and . _ : @ -"},
    ),
]
Attempts = Annotated[int, Meta(ge=1, le=ATTEMPTS_MOST)]
LeaseSeconds = Annotated[int, Meta(ge=1, le=LEASE_MOST_SEC)]
PageLimit = Annotated[
    int, Meta(ge=1, le=LIST_MOST, extra={"code": Code.INVALID_LIMIT}, description="The maximum number of results")
]
StepLimit = Annotated[int, Meta(ge=1, le=BATCH_MOST, extra={"code": Code.INVALID_LIMIT})]
AlertCursor = Annotated[
    str,
    Meta(
        pattern=rf"^[0-9]{{1,{CURSOR_MOST}}}\Z",
        extra={"allowed": "the next_cursor of the page before"},
        description=NEXT_PAGE,
    ),
]
EventType = Literal[
    "scheduler_job", "state_transition", "decision_gate", "rollback", "investigation", "policy_override"
]
Names = Annotated[
    tuple[QueueName, ...],
    Meta(
        min_length=1,
        extra={"allowed": "a list of names of queues, each once"},
        extra_json_schema={"uniqueItems": True},
    ),
]
Pairs = Annotated[
    tuple[tuple[str, str], ...],
    Meta(
        min_length=1,
        max_length=PAIRS_MOST,
        extra={"allowed": f"a list of 1 to {PAIRS_MOST} pairs of an object type and an action"},
    ),
]
Number: TypeAlias = int | float | Decimal
Moment: TypeAlias = str | datetime  # a time with an offset, as a caller gives it


def _number(value: object, most: int, parts: int) -> int:
    """A number from 0 to `most`, in whole parts."""
    if isinstance(value, float):
        value = Decimal(str(value))
    if isinstance(value, Decimal) and not value.is_finite():
        value = None
    if isinstance(value, bool) or not isinstance(value, int | Decimal) or not 0 <= value <= most:
        raise BadValue(allowed=f"a number from 0 to {most}")
    return int(value * parts)


def _parsed(value: object, most: int, parse: Callable[[str], object], allowed: str) -> str:
    """A text that `parse` accepts, unchanged."""
    if not isinstance(value, str) or not 1 <= len(value) <= most or not value.isprintable():
        raise BadValue(allowed=f"1 to {most} characters without control characters")
    try:
        parse(value)
    except InputRefused as wrong:
        raise BadValue(allowed=allowed, problem=wrong.message) from None
    return value


if TYPE_CHECKING:
    Instant = int
    Delay = int
    Fraction = int
    Rank = int
    JobCursor = int
    EventCursor = int
    JsonText = str
    ErrorText = str
    CronText = str
    ZoneName = str
    # Where a default of the policy takes the place of null.
    RankOrDefault = int
    AttemptsOrDefault = int
    LimitOrDefault = int
    TypesOrAll = tuple[str, ...]
    ActionsOrAll = tuple[str, ...]
    QueuesOrAll = tuple[str, ...]
    PairsOrAll = tuple[tuple[str, str], ...]
    WaitOrNone = int
    QueueOrDefault = str
    ZoneOrDefault = str
else:
    # Each `read` makes the value of a request from that of a body, or raises `BadValue`.

    class Instant(int):
        """Microseconds since 1970; in a body, text with an offset."""

        @classmethod
        def read(cls, value: object) -> int:
            try:
                return cls(parse_utc(value.isoformat() if isinstance(value, datetime) else value))
            except InputRefused as wrong:
                raise BadValue(Code(wrong.code)) from None

    class Delay(int):
        """Microseconds; in a body, seconds."""

        @classmethod
        def read(cls, value: object) -> int:
            return cls(_number(value, RETRY_DELAY_MOST_SEC, SECOND))

    class Fraction(int):
        """Millionths; in a body, a number from 0 to 1."""

        @classmethod
        def read(cls, value: object) -> int:
            return cls(_number(value, 1, MILLION))

    class Rank(int):
        """The number of a priority; in a body, its word."""

        @classmethod
        def read(cls, value: object) -> int:
            if not isinstance(value, str) or value not in PRIORITIES:
                raise BadValue(Code.INVALID_ENUM, allowed=[*PRIORITIES])
            return cls(PRIORITIES[value])

    class JobCursor(int):
        """The number of a job; in a body, its id, as the last page had it."""

        @classmethod
        def read(cls, value: object) -> int:
            number = seq_of(value) if isinstance(value, str) else None
            if number is None:
                raise BadValue(allowed="the next_cursor of a reply")
            return cls(number)

    class EventCursor(int):
        """The number of an event; in a body, its id."""

        @classmethod
        def read(cls, value: object) -> int:
            number = number_of(value) if isinstance(value, str) else None
            if number is None:
                raise BadValue(allowed="the id of an event")
            return cls(number)

    class JsonText(str):
        """Canonical JSON; in a body, any value."""

        @classmethod
        def read(cls, value: object) -> str:
            try:
                text = canonical(value)
            except NotCanonical as wrong:
                allowed = str(wrong.details.get("allowed", "a JSON value"))
                raise BadValue(allowed=allowed, path=str(wrong.details.get("path", "$"))) from None
            if len(text) > PAYLOAD_MOST_BYTES:
                raise BadValue(allowed=f"a JSON value of at most {PAYLOAD_MOST_BYTES} bytes", bytes=len(text))
            return cls(text.decode())

    class ErrorText(str):
        """A text that is not blank. A lone surrogate, as in some file names, must not prevent a failure from being
        recorded."""

        @classmethod
        def read(cls, value: object) -> str:
            if not isinstance(value, str) or not value.strip():
                raise BadValue(allowed="a text of at least one character that is not blank")
            return cls(value.encode(errors="replace").decode())

    class CronText(str):
        @classmethod
        def read(cls, value: object) -> str:
            return cls(_parsed(value, CRON_MOST, Cron.parse, "a cron expression that occurs, such as 0 3 * * *"))

    class ZoneName(str):
        @classmethod
        def read(cls, value: object) -> str:
            return cls(_parsed(value, ZONE_MOST, zone_of, "UTC, or an IANA time zone such as Europe/Berlin"))

    RankOrDefault = Rank | None
    AttemptsOrDefault = Attempts | None
    LimitOrDefault = Annotated[int, Meta(ge=1, extra={"code": Code.INVALID_LIMIT, "most": "pull_max_limit"})] | None
    TypesOrAll = Annotated[tuple[NamedType, ...], Meta(min_length=1, extra={"words": "object_types"})] | None
    ActionsOrAll = Annotated[tuple[NamedAction, ...], Meta(min_length=1, extra={"words": "actions"})] | None
    QueuesOrAll = Names | None
    PairsOrAll = Pairs | None
    WaitOrNone = Annotated[int, Meta(ge=0, le=WAIT_MOST_MS)] | None
    QueueOrDefault = QueueName | None
    ZoneOrDefault = ZoneName | None

# Replaced by `Request.fill`.
UNFILLED: Any = None


# Requests


class Enqueue(Request, frozen=True, gc=False):
    """Store a job. A request with the key of a stored job returns that job."""

    object_type: ObjectType
    object_id: ObjectId
    action: Action
    run_at: Annotated[Instant | None, about("When the job is due", "now")] = None
    priority: Annotated[
        RankOrDefault,
        about(
            "low, medium or high: the order of jobs due at the same time; with the setting pull_order = weighted also "
            "in a backlog",
            "medium",
        ),
    ] = UNFILLED
    max_attempts: Annotated[AttemptsOrDefault, about("Attempts before it is a dead letter, 1 to 100", "3")] = UNFILLED
    idempotency_key: Annotated[Key | None, about("One job per key", "derived from the rest")] = None
    correlation_id: Annotated[Text | None, about("An id that related jobs share")] = None
    queue: Annotated[QueueOrDefault, about("The queue", "default")] = UNFILLED
    payload: Annotated[JsonText | None, about("Arguments for its handler")] = None
    unique: Annotated[
        Literal["waiting"] | None, about("waiting: no second job while one for the same work is queued or running")
    ] = None

    def late(self, now: int) -> Iterator[Problem]:
        # Alone it is reported after the lookup of the key: a repeated request may come late.
        if self.run_at is not None and self.run_at < now:
            yield "run_at", BadValue(Code.RUN_AT_IN_PAST)

    def fill(self, policy: Policy) -> None:
        if self.priority is None:
            force_setattr(self, "priority", int(policy.default_priority))
        if self.max_attempts is None:
            force_setattr(self, "max_attempts", policy.default_max_attempts)
        if self.queue is None:
            force_setattr(self, "queue", "default")


class Batch(Request, frozen=True, kw_only=True):
    """Store many jobs, each with its own result; with `atomic` all or none."""

    jobs: Annotated[list[Enqueue], Meta(min_length=1, max_length=BATCH_MOST)]
    atomic: bool = False


class Pull(Request, frozen=True):
    """Deliver due jobs, each with a lease."""

    worker_id: Annotated[WorkerId, about("The name of the worker")]
    limit: Annotated[LimitOrDefault, about("At most this many jobs", "100")] = UNFILLED
    now: Annotated[Instant | None, about("Jobs due by this time", "now")] = None
    lease_sec: Annotated[LeaseSeconds | None, about("The length of the leases", "900")] = None
    object_types: Annotated[TypesOrAll, about("Only these")] = UNFILLED
    actions: Annotated[ActionsOrAll, about("Only these")] = UNFILLED
    queues: Annotated[QueuesOrAll, about("Only these, in this order")] = UNFILLED
    # What a worker handles; there are no jobs of unknown words.
    pairs: Annotated[PairsOrAll, about("Only these pairs of an object type and an action")] = UNFILLED
    wait_ms: Annotated[WaitOrNone, about("Wait up to this many milliseconds for a job", "0")] = UNFILLED

    def problems(self, policy: Policy, now: int) -> Iterator[Problem]:
        if self.limit is not None and self.limit > policy.pull_max_limit:
            yield "limit", BadValue(Code.INVALID_LIMIT, allowed=f"an integer from 1 to {policy.pull_max_limit}")
        latest = now if policy.pull_clock == "server" else now + policy.max_clock_step_sec * SECOND
        if self.now is not None and self.now > latest:
            yield "now", BadValue(Code.NOW_IN_FUTURE, allowed=f"a time until {format_utc(latest)}")
        if self.queues and len(set(self.queues)) != len(self.queues):
            yield "queues", BadValue(allowed="a list of names of queues, each once")

    def fill(self, policy: Policy) -> None:
        if self.limit is None:
            force_setattr(self, "limit", policy.pull_default_limit)
        if self.wait_ms is None:
            force_setattr(self, "wait_ms", 0)
        for name in ("object_types", "actions", "queues", "pairs"):
            if getattr(self, name) is None:
                force_setattr(self, name, ())


class Ack(Request, frozen=True, kw_only=True, gc=False):
    """Finish a job as succeeded. `next_action_at`: unset keeps the time of the object, None clears it."""

    result: Annotated[
        Literal["succeeded"] | UnsetType,
        Meta(extra={"code": Code.INVALID_RESULT, "hint": "report a failure with the call fail"}),
    ] = UNSET
    audit_event_id: Annotated[Text | None, about("The audit event of the result", "the one of this ack")] = None
    next_action_at: Annotated[Instant | UnsetType | None, about("The next time of the object; null clears it")] = UNSET
    next_action: Annotated[Action | None, about("The next action", "the same")] = None
    outcome: Annotated[Outcome | None, about("A label for reports")] = None
    outcome_result: Annotated[JsonText | None, about("The full result")] = None
    worker_id: HolderOrNone = None
    lease_token: TokenOrNone = None

    def problems(self, policy: Policy, now: int) -> Iterator[Problem]:  # noqa: ARG002
        if self.result is UNSET:
            yield "result", INVALID_RESULT
        if isinstance(self.next_action_at, int) and self.next_action_at < now:
            present = format_utc(now)
            problem = f"{format_utc(self.next_action_at)} is earlier than now, {present}; "
            problem += "name a later time, or null for none"
            yield "next_action_at", BadValue(Code.NEXT_ACTION_AT_IN_PAST, problem=problem, now=present)


INVALID_RESULT = BadValue(Code.INVALID_RESULT, allowed=["succeeded"], hint="report a failure with the call fail")


class AckEntry(Ack, frozen=True, kw_only=True):
    """An ack in a batch, with the id of its job."""

    job_id: str


class AckBatch(Request, frozen=True, kw_only=True):
    """Finish many jobs, each with its own result."""

    acks: Annotated[list[AckEntry], Meta(min_length=1, max_length=BATCH_MOST)]


class Fail(Request, frozen=True):
    """A failed attempt. Without a delay, the pause grows with each attempt."""

    error: Annotated[ErrorText, Meta(extra={"code": Code.INVALID_FIELD}), about("The error")]
    retry_delay_us: Annotated[Delay | UnsetType, about("Retry after this many seconds", "longer each time")] = field(
        name="retry_delay_sec", default=UNSET
    )
    retryable: Annotated[bool, about("Whether it may be retried")] = True
    cancelled: Annotated[bool, about("It stopped because its cancellation was requested")] = False
    worker_id: HolderOrNone = None
    lease_token: TokenOrNone = None


class Renew(Request, frozen=True, kw_only=True):
    """Extend a lease; `progress` is in millionths, None keeps the last one."""

    worker_id: Holder
    lease_token: Token
    lease_sec: Annotated[LeaseSeconds | None, about("The new length of the lease, from now", "as the settings say")] = (
        None
    )
    progress: Annotated[Fraction | None, about("How far the job is, from 0 to 1")] = None
    progress_note: Annotated[Note | None, about("A few words beside progress")] = None

    def problems(self, policy: Policy, now: int) -> Iterator[Problem]:  # noqa: ARG002
        if self.progress_note is not None and self.progress is None:
            yield "progress_note", BadValue(allowed="a few words beside progress")


class Release(Request, frozen=True, kw_only=True):
    """Return a job that was not started."""

    worker_id: Holder
    lease_token: Token


class Stated(Request, frozen=True, kw_only=True):
    """A call without other members than a reason."""

    reason: Reason | None = None


class Cancel(Stated, frozen=True, kw_only=True):
    """End a queued job; ask a running one to stop."""


class Requeue(Request, frozen=True, kw_only=True):
    """Queue an ended job again, with all its attempts."""

    run_at: Instant | None = None
    reason: Reason | None = None

    def problems(self, policy: Policy, now: int) -> Iterator[Problem]:  # noqa: ARG002
        return _past_run_at(self.run_at, now)


class Chosen(Request, frozen=True, kw_only=True):
    """Which jobs, but for their status."""

    object_type: Annotated[ObjectType | UnsetType, about("Only of this object type")] = UNSET
    object_id: Annotated[Text | UnsetType, about("Only of this object")] = UNSET
    action: Annotated[Action | UnsetType, about("Only with this action")] = UNSET
    queue: Annotated[QueueFilter | UnsetType, about("Only of this queue")] = UNSET
    correlation_id: Annotated[Text | UnsetType, about("Only with this correlation id")] = UNSET
    error_code: ErrorCode | UnsetType = UNSET
    created_after: Annotated[Instant, Meta(description="Stored then or later")] | None = None
    created_before: Annotated[Instant, Meta(description="Stored before then")] | None = None


class Filter(Chosen, frozen=True, kw_only=True):
    """Which jobs."""

    status: Status | UnsetType = UNSET


class CancelFilter(Chosen, frozen=True, kw_only=True):
    """Which jobs to cancel; without a status, queued ones."""

    status: Literal["queued", "running"] | UnsetType = UNSET


class RequeueFilter(Chosen, frozen=True, kw_only=True):
    """Which jobs to requeue; without a status, dead letters."""

    status: Literal["dead_letter", "failed"] | UnsetType = UNSET


SOME_FILTER = Meta(extra={"allowed": "an object with at least one filter"})


class CancelBatch(Request, frozen=True, kw_only=True):
    """One step of a cancellation by filter."""

    filter: Annotated[CancelFilter, SOME_FILTER]
    limit: StepLimit | None = None
    cursor: JobCursor | None = None
    reason: Reason | None = None

    def problems(self, policy: Policy, now: int) -> Iterator[Problem]:  # noqa: ARG002
        return _empty_filter(self.filter)


class RequeueBatch(Request, frozen=True, kw_only=True):
    """One step of a requeue by filter."""

    filter: Annotated[RequeueFilter, SOME_FILTER]
    limit: StepLimit | None = None
    cursor: JobCursor | None = None
    reason: Reason | None = None
    run_at: Instant | None = None

    def problems(self, policy: Policy, now: int) -> Iterator[Problem]:  # noqa: ARG002
        yield from _empty_filter(self.filter)
        yield from _past_run_at(self.run_at, now)


def _past_run_at(run_at: int | None, now: int) -> Iterator[Problem]:
    if run_at is not None and run_at < now:
        yield "run_at", BadValue(Code.RUN_AT_IN_PAST)


def _empty_filter(chosen: Chosen | None) -> Iterator[Problem]:
    """An empty filter would change all jobs by mistake."""
    if chosen is not None and all(getattr(chosen, name) in (UNSET, None) for name in chosen.__struct_fields__):
        yield "filter", BadValue(allowed="an object with at least one filter")


class ListJobs(Filter, frozen=True, kw_only=True):
    """A page of jobs, newest first."""

    limit: PageLimit | None = None
    cursor: Annotated[JobCursor, Meta(description=NEXT_PAGE)] | None = None


class ListAlerts(Request, frozen=True, kw_only=True):
    limit: PageLimit | None = None
    cursor: AlertCursor | None = None


class ReadTrail(Request, frozen=True, kw_only=True):
    """A page of the trail, in order."""

    limit: PageLimit | None = None
    after: Annotated[EventCursor, Meta(description=NEXT_PAGE)] | None = None
    object_type: Annotated[str, Meta(extra={"words": "subjects"})] | UnsetType = UNSET
    object_id: Text | UnsetType = UNSET
    job_id: Annotated[Any, Meta(extra_json_schema={"type": "string"})] = None
    event_type: Annotated[EventType, Meta(extra_json_schema={"named": "EventType"})] | UnsetType = UNSET


class ReadMetrics(Request, frozen=True, kw_only=True):
    window_sec: Annotated[int, Meta(ge=WINDOW_LEAST, le=WINDOW_MOST)] | None = None


class ReadPast(Request, frozen=True, kw_only=True):
    at: Annotated[
        Any, Meta(description="The id of an event; without one, now", extra_json_schema={"type": "string"})
    ] = None


class SetTime(Request, frozen=True, kw_only=True):
    """Declare the clock of this machine right."""

    reason: Reason


class FreeKey(Request, frozen=True, kw_only=True):
    """Let the key of a deleted job be used again."""

    idempotency_key: Key
    reason: Reason


class Recurring(Request, frozen=True):
    """A job that recurs at the times of a cron expression in a time zone."""

    name: PlanName
    cron: CronText
    object_type: ObjectType
    object_id: ObjectId
    action: Action
    priority: Annotated[Rank | None, about("low, medium or high", "medium")] = None
    max_attempts: Annotated[Attempts | None, about("Attempts before it is a dead letter, 1 to 100", "3")] = None
    queue: Annotated[QueueOrDefault, about("The queue", "default")] = "default"
    zone: Annotated[ZoneOrDefault, about("A time zone, such as Europe/Berlin", PLAIN)] = PLAIN
    payload: Annotated[JsonText | None, about("Arguments for its handler")] = None

    def fill(self, policy: Policy) -> None:  # noqa: ARG002
        if self.zone is None:
            force_setattr(self, "zone", PLAIN)
        if self.queue is None:
            force_setattr(self, "queue", "default")


class Proof(Struct, frozen=True):
    """Proof of a lease: the worker and its token, as far as given."""

    worker_id: str | None = None
    lease_token: str | None = None


def read_proof(given: Mapping[str, Any]) -> Proof:
    """The proof in a body; values of other types are faults of the body and prove nothing."""
    worker, token = given.get("worker_id"), given.get("lease_token")
    return Proof(worker if isinstance(worker, str) else None, token if isinstance(token, str) else None)


# Replies


class Message(Struct, frozen=True):
    """What a call gives. Nothing is left out of a body: what is absent is null."""


ShownPriority = Annotated[PriorityWord, Meta(extra_json_schema={"named": "Priority"})]
ShownType = Annotated[EventType, Meta(extra_json_schema={"named": "EventType"})]
Anything = Annotated[Any, Meta(description="Any JSON value of at most 65536 bytes in canonical form; null when absent")]
Count = Annotated[int, Meta(ge=0)]
Facts: TypeAlias = dict[str, Any]
Time = Annotated[str, Meta(extra_json_schema={"format": "date-time"})]
Ratio: TypeAlias = Annotated[int, Meta(ge=0, le=1)] | Decimal


class Progress(Message, frozen=True):
    """How far a job is, from 0 to 1, as its worker reported."""

    fraction: int | Decimal
    note: str | None


class Job(Message, frozen=True, gc=False):
    """A job as callers see it. Only the pull that grants a lease shows its token."""

    job_id: Annotated[str, Meta(pattern="^job_[0-9A-Za-z]{8,40}$")]
    object_type: str
    object_id: str
    action: str
    run_at: Time
    priority: ShownPriority
    attempt: Count
    max_attempts: Count
    idempotency_key: str
    status: Status
    last_error: str | None
    created_at: Time
    updated_at: Time
    scheduled_for: Time
    worker_id: str | None
    lease_token: str | None
    lease_expires_at: Time | None
    delivery_count: Count
    correlation_id: str | None
    audit_event_id: str | None
    outcome: str | None
    queue: str
    payload: Anything
    cancel_requested_at: Time | None
    progress: Progress | None
    outcome_result: Anything


def job_of(row: model.Job, lease_token: str | None = None) -> Job:
    """The public form of a stored job."""
    return Job(
        row.job_id,
        row.object_type,
        row.object_id,
        row.action,
        format_utc(row.run_at),
        WORDS[row.priority],
        row.attempt,
        row.max_attempts,
        row.idempotency_key,
        STATUS_BY_WORD[row.status],
        row.last_error,
        format_utc(row.created_at),
        format_utc(row.updated_at),
        format_utc(row.scheduled_for),
        row.worker_id,
        lease_token,
        utc_or_null(row.lease_expires_at),
        row.delivery_count,
        row.correlation_id,
        row.audit_event_id,
        row.outcome,
        row.queue,
        None if row.payload is None else decode(row.payload.encode()),
        utc_or_null(row.cancel_requested_at),
        None if row.progress is None else progress_of(row.progress, row.progress_note),
        None if row.outcome_result is None else decode(row.outcome_result.encode()),
    )


def job_json(row: model.Job) -> dict[str, Json]:
    """The public form of a stored job as plain JSON."""
    return plain(job_of(row))


STATUS_BY_WORD = {status.value: status for status in Status}


def utc_or_null(at: int | None) -> str | None:
    """A time as in replies."""
    return None if at is None else format_utc(at)


def progress_of(millionths: int, note: str | None) -> Progress:
    return Progress(exact(Decimal(millionths) / MILLION), note)


class ErrorFacts(Message, frozen=True):
    code: str
    message: str
    details: Facts


class Enqueued(Message, frozen=True):
    """`deduplicated`: the job was stored before, and nothing was changed."""

    deduplicated: bool
    job: Job


class BatchEntry(Message, frozen=True, omit_defaults=True):
    """The result of one entry: a job, or the error. `status` is that of HTTP."""

    status: int
    deduplicated: bool | None = None
    job: Job | None = None
    error: ErrorFacts | None = None


class BatchResults(Message, frozen=True):
    results: list[BatchEntry]


class Pulled(Message, frozen=True):
    """The delivered jobs, each with its lease token; `now` is the time up to which they were due."""

    now: Time
    count: Count
    reclaimed: Count
    jobs: list[Job]


class ObjectTime(Message, frozen=True):
    """An object and its next time."""

    object_type: str
    object_id: str
    next_action_at: Time | None


class Acked(Message, frozen=True):
    already_acked: bool
    job: Job
    object: ObjectTime
    followup_job_id: str | None


class AckResult(Message, frozen=True, omit_defaults=True):
    """The result of one entry: the members of an ack, or the error. `status` is that of HTTP."""

    status: int
    already_acked: bool | None = None
    job: Job | None = None
    object: ObjectTime | None = None
    followup_job_id: str | UnsetType | None = UNSET
    error: ErrorFacts | None = None


class AckResults(Message, frozen=True):
    results: list[AckResult]


class Failed(Message, frozen=True):
    already_failed: bool
    retry: bool
    job: Job


class Renewed(Message, frozen=True):
    lease_expires_at: Time
    cancel_requested_at: Time | None


class Operated(Message, frozen=True):
    """One step of a batch call; `next_cursor` leads to the next one."""

    matched: Count
    changed: Count
    next_cursor: str | None


class Counted(Message, frozen=True):
    count: Count


class OneJob(Message, frozen=True):
    job: Job


class JobList(Message, frozen=True):
    jobs: list[Job]
    next_cursor: str | None


class Actor(Message, frozen=True):
    type: Literal["system", "user", "worker", "service"]
    id: str


class Event(Message, frozen=True):
    """An event of the trail, with its reason as a sentence, and as a code with facts."""

    id: Annotated[str, Meta(pattern="^aud_")]
    event_type: ShownType
    actor: Actor
    object_type: str
    object_id: str
    before: Facts | None
    after: Facts
    reason: str
    code: str
    facts: Facts
    evidence_refs: Annotated[list[str], Meta(min_length=1)]
    timestamp: Time
    job_id: str | None
    correlation_id: str | None
    metadata: Facts
    risk_tier: str | UnsetType = UNSET
    decision_trace_id: str | UnsetType = UNSET


class JobError(Message, frozen=True):
    attempt: Count
    worker_id: str | None
    at: Time
    error: str


class History(Message, frozen=True):
    """Every error of a job, oldest first, and its whole trail."""

    job_id: str
    errors: list[JobError]
    events: list[Event]


class Trail(Message, frozen=True):
    events: list[Event]
    next_cursor: str | None


class Alerts(Message, frozen=True):
    """Alerts, newest first; members beyond the common ones depend on the kind."""

    alerts: list[Annotated[Facts, Meta(extra_json_schema={"named": "Alert"})]]
    next_cursor: str | None


class StoredObject(Message, frozen=True):
    object_type: str
    object_id: str
    next_action_at: Time | None
    version: Count
    state: str | None


class UnhandledWork(Message, frozen=True):
    """Due jobs of one kind that no worker handles."""

    object_type: str
    action: str
    count: Count
    since: Time
    job_id: str


class Worker(Message, frozen=True):
    """The last heartbeat of a worker; null is not known."""

    worker_id: str
    started_at: Time
    seen_at: Time
    age_sec: Count
    ended_at: Time | None
    concurrency: Count | None
    running: Count | None
    taken: Count
    succeeded: Count | None
    failed: Count | None
    dropped: Count | None
    released: Count | None
    handles: list[str]
    queues: list[str]


class Workers(Message, frozen=True):
    workers: list[Worker]


class ByStatus(Message, frozen=True):
    """How many jobs are in each status."""

    queued: Count
    running: Count
    succeeded: Count
    failed: Count
    dead_letter: Count


class Metrics(Message, frozen=True):
    now: Time
    window_sec: int
    jobs_due_count: Count
    jobs_lag_seconds: int | Decimal
    job_success_rate: int | Decimal | None
    job_retry_rate: int | Decimal | None
    dead_letter_count: Count
    jobs: ByStatus
    alerts_waiting: Count
    unhandled: list[UnhandledWork]
    workers: list[Worker]


class Place(Message, frozen=True):
    """How many governed objects were at a place."""

    object_type: str
    place: str
    objects: Count


class Past(Message, frozen=True):
    """The queue and the governed objects after the event `at`."""

    at: str | None
    first: str | None
    last: str | None
    now: Time | None
    event: Event | None
    jobs: ByStatus
    waiting: list[Job]
    places: list[Place]


WhyReason: TypeAlias = Literal[
    "ended",
    "runs",
    "lease_over",
    "waits_for_time",
    "waits_for_retry",
    "waits_for_gate",
    "waits_for_object",
    "waits_for_worker",
    "waits_for_turn",
]


class Why(Message, frozen=True):
    job_id: str
    reason: WhyReason
    sentence: str
    facts: Facts


class TimeSet(Message, frozen=True):
    """What was counted again from the right time."""

    before: Time
    now: Time
    due: Count
    leases: Count
    kept: Count
    plans: Count
    kept_jobs: list[str]


class Freed(Message, frozen=True):
    freed: bool
    idempotency_key: str


class Planned(Message, frozen=True):
    """A time plan; `next_at` is null while it is paused or no process maintains it."""

    name: Annotated[str, Meta(pattern=f"^{PLAN_NAME.pattern}$")]
    cron: str
    zone: str
    object_type: str
    object_id: str
    action: str
    priority: ShownPriority | None
    max_attempts: Count | None
    queue: str
    payload: Anything
    source: Literal["call", "settings"]
    paused_at: Time | None
    paused_by: str | None
    next_at: Time | None
    job_id: str | None


class OnePlan(Message, frozen=True):
    plan: Planned


class NewPlan(OnePlan, frozen=True):
    """The plan was not there before."""


class Plans(Message, frozen=True):
    plans: list[Planned]


class PlanRemoved(Message, frozen=True):
    removed: bool
    name: str


# Refusals

# The HTTP status of each code; all others are 422.
STATUS_OF = {
    Code.JOB_NOT_FOUND: 404,
    Code.OBJECT_NOT_FOUND: 404,
    Code.IDEMPOTENCY_KEY_CONFLICT: 409,
    Code.JOB_NOT_RUNNING: 409,
    Code.JOB_NOT_QUEUED: 409,
    Code.JOB_NOT_DEAD_LETTER: 409,
    Code.LEASE_LOST: 409,
    Code.LEASE_EXPIRED: 409,
    Code.LEASE_TOKEN_REQUIRED: 409,
    Code.PLAN_NOT_FOUND: 404,
    Code.PLAN_IN_SETTINGS: 409,
    Code.TOO_MANY_PLANS: 409,
    Code.OBJECT_EXISTS: 409,
    Code.OBJECT_GOVERNED: 409,
    Code.STATE_CONFLICT: 409,
    Code.ILLEGAL_TRANSITION: 409,
    Code.GATE_CLOSED: 409,
    Code.NOT_BEGUN: 409,
    Code.USER_REQUIRED: 403,
    Code.ONTIC_VERIFICATION_CLOSED: 409,
}
UNPROCESSABLE = 422


def status_of(refused: Refused) -> int:
    return STATUS_OF.get(refused.code, UNPROCESSABLE)


class JobRefused(InputRefused):
    """A refused call, raised by the Python API; `code`, `status` and `details` are those of HTTP."""

    code: ClassVar[str] = "job_refused"

    def __init__(self, refused: Refused) -> None:
        super().__init__(refused.message, **refused.details)
        self.refused = refused
        self.status = status_of(refused)
        self.__dict__["code"] = refused.code.value

    def __str__(self) -> str:
        """The message with every faulty field and what is allowed there."""
        return in_full(self.message, self.details)


# Calls

R = TypeVar("R", bound=Message)


class Role(StrEnum):
    """Who may make a call over HTTP."""

    VIEWER = "viewer"
    OPERATOR = "operator"
    ADMIN = "admin"


class Call(Struct, Generic[R], frozen=True):
    """A call: its name in Python and its place over HTTP, below `/scheduler`.

    Parts of the path in braces are arguments. `refusals` are its codes, beside those of a body.
    """

    name: str
    method: str
    path: str
    request: type[Request] | None
    reply: type[R]
    role: Role
    sentence: str  # empty: that of the method in `scheduler_calls`
    refusals: tuple[Code, ...]

    @property
    def reads(self) -> bool:
        return self.method == "GET"


HELD = (
    Code.JOB_NOT_FOUND,
    Code.JOB_NOT_RUNNING,
    Code.LEASE_LOST,
    Code.LEASE_EXPIRED,
    Code.LEASE_TOKEN_REQUIRED,
)


def _post(
    name: str,
    path: str,
    request: type[Request],
    reply: type[R],
    *refusals: Code,
    role: Role = Role.OPERATOR,
    method: str = "POST",
) -> Call[R]:
    return Call(name, method, path, request, reply, role, "", refusals)


def _get(name: str, path: str, reply: type[R], *refusals: Code, request: type[Request] | None = None) -> Call[R]:
    return Call(name, "GET", path, request, reply, Role.VIEWER, "", refusals)


ENQUEUE = _post(
    "enqueue",
    "/jobs",
    Enqueue,
    Enqueued,
    Code.IDEMPOTENCY_KEY_CONFLICT,
    Code.ONTIC_VERIFICATION_CLOSED,
    Code.RUN_AT_IN_PAST,
)
ENQUEUE_BATCH = _post("enqueue_batch", "/jobs/batch", Batch, BatchResults, Code.BATCH_REJECTED)
PULL = _post("pull", "/jobs/pull", Pull, Pulled, Code.INVALID_LIMIT, Code.INVALID_WORKER_ID, Code.NOW_IN_FUTURE)
ACK = _post(
    "ack",
    "/jobs/{job_id}/ack",
    Ack,
    Acked,
    *HELD,
    Code.INVALID_RESULT,
    Code.NEXT_ACTION_AT_IN_PAST,
    Code.AUDIT_EVENT_UNKNOWN,
)
ACK_BATCH = _post("ack_batch", "/jobs/ack-batch", AckBatch, AckResults)
FAIL = _post("fail", "/jobs/{job_id}/fail", Fail, Failed, *HELD)
RENEW = _post("renew", "/jobs/{job_id}/renew", Renew, Renewed, *HELD)
RELEASE = _post("release", "/jobs/{job_id}/release", Release, OneJob, *HELD)
CANCEL = _post("cancel", "/jobs/{job_id}/cancel", Cancel, OneJob, Code.JOB_NOT_FOUND, Code.JOB_NOT_QUEUED)
REQUEUE = _post(
    "requeue",
    "/jobs/{job_id}/requeue",
    Requeue,
    OneJob,
    Code.JOB_NOT_FOUND,
    Code.JOB_NOT_DEAD_LETTER,
    Code.RUN_AT_IN_PAST,
)
CANCEL_BATCH = _post("cancel_batch", "/jobs/cancel-batch", CancelBatch, Operated, Code.INVALID_LIMIT)
REQUEUE_BATCH = _post(
    "requeue_batch", "/jobs/requeue-batch", RequeueBatch, Operated, Code.INVALID_LIMIT, Code.RUN_AT_IN_PAST
)
SET_TIME = _post("set_time", "/time", SetTime, TimeSet, role=Role.ADMIN)
FREE_KEY = _post("free_key", "/keys/free", FreeKey, Freed, Code.IDEMPOTENCY_KEY_CONFLICT, role=Role.ADMIN)
LIST = _get("list", "/jobs", JobList, Code.INVALID_LIMIT, request=ListJobs)
COUNT = _get("count", "/jobs/count", Counted, request=Filter)
SHOW = _get("show", "/jobs/{job_id}", OneJob, Code.JOB_NOT_FOUND)
HISTORY = _get("history", "/jobs/{job_id}/history", History, Code.JOB_NOT_FOUND)
WHY = _get("why", "/jobs/{job_id}/why", Why, Code.JOB_NOT_FOUND)
AUDIT = _get("audit", "/audit", Trail, Code.INVALID_LIMIT, request=ReadTrail)
METRICS = _get("metrics", "/metrics", Metrics, request=ReadMetrics)
ALERTS = _get("alerts", "/alerts", Alerts, Code.INVALID_LIMIT, request=ListAlerts)
PAST = _get("past", "/past", Past, request=ReadPast)
WORKERS = _get("workers", "/workers", Workers)
OBJECT = _get("object", "/objects/{object_type}/{object_id}", StoredObject, Code.OBJECT_NOT_FOUND)
PLANS = _get("plans", "/plans", Plans)
PUT_PLAN = _post(
    "put_plan", "/plans/{name}", Recurring, OnePlan, Code.PLAN_IN_SETTINGS, Code.TOO_MANY_PLANS, method="PUT"
)
PAUSE_PLAN = _post("pause_plan", "/plans/{name}/pause", Stated, OnePlan, Code.PLAN_NOT_FOUND)
RESUME_PLAN = _post("resume_plan", "/plans/{name}/resume", Stated, OnePlan, Code.PLAN_NOT_FOUND)
RUN_NOW = _post("run_now", "/plans/{name}/run-now", Stated, Enqueued, Code.PLAN_NOT_FOUND)
REMOVE_PLAN = _post(
    "remove_plan", "/plans/{name}/remove", Stated, PlanRemoved, Code.PLAN_NOT_FOUND, Code.PLAN_IN_SETTINGS
)
# `show` is the last of its paths, which it would hide.
CALLS: tuple[Call[Any], ...] = (
    *(ENQUEUE, ENQUEUE_BATCH, PULL, ACK, ACK_BATCH, FAIL, RENEW, RELEASE, CANCEL, REQUEUE, CANCEL_BATCH, REQUEUE_BATCH),
    *(SET_TIME, FREE_KEY, LIST, COUNT, SHOW, HISTORY, WHY, AUDIT, METRICS, ALERTS, PAST, WORKERS, OBJECT),
    *(PLANS, PUT_PLAN, PAUSE_PLAN, RESUME_PLAN, RUN_NOW, REMOVE_PLAN),
)
CALL_NAMED: Mapping[str, Call[Any]] = {call.name: call for call in CALLS}


def plain(message: Message) -> dict[str, Any]:
    """A message as plain JSON; fractions are exact."""
    found: dict[str, Any] = to_builtins(message, builtin_types=(Decimal,))
    return found
