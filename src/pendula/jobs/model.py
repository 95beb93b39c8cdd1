"""The data types of the scheduler: jobs, states, vocabulary, policy, refusals.

Times are integers, microseconds since 1970, UTC; they become text in replies only.
"""

from collections.abc import Mapping
from decimal import Decimal
from enum import IntEnum, StrEnum
from typing import Annotated, Any, ClassVar, Literal, TypeAlias

from msgspec import Meta, Struct

from pendula.kernel.canonical import Json
from pendula.kernel.errors import WorldBroken

SECOND = 1_000_000
ERROR_MOST = 4096
CUT = "…[truncated]"
BATCH_MOST = 1000
RETRY_DELAY_MOST_SEC = 2_592_000
LEASE_MOST_SEC = 43_200
ATTEMPTS_MOST = 100
DAY_SEC = 86_400
PAYLOAD_MOST_BYTES = RESULT_MOST_BYTES = 65_536  # of canonical JSON
MILLION = 1_000_000  # progress is stored in millionths
VERIFICATIONS = frozenset({"verify", "revalidate"})  # of a governed object, one at a time


class Status(StrEnum):
    """The states of a job; shown as their words, as in bodies."""

    QUEUED = "queued"
    RUNNING = "running"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    DEAD_LETTER = "dead_letter"

    __repr__ = str.__repr__


TERMINAL = frozenset({Status.SUCCEEDED, Status.FAILED, Status.DEAD_LETTER})


class Priority(IntEnum):
    """The smaller number runs first, so that an index is in the order of a pull.

    It decides among jobs that are due at the same time. With `pull_order = "weighted"` it counts in a backlog, too.
    """

    HIGH = 0
    MEDIUM = 1
    LOW = 2

    @property
    def word(self) -> str:
        return self.name.lower()


PRIORITIES = {priority.word: priority for priority in Priority}
PriorityWord: TypeAlias = Literal["high", "medium", "low"]
WORDS: tuple[PriorityWord, ...] = ("high", "medium", "low")  # by number


class Ended(StrEnum):
    """How the last delivery ended."""

    ACK = "ack"
    FAIL = "fail"
    RELEASE = "release"
    EXPIRY = "expiry"


class RetryBase(StrEnum):
    RUN_AT = "run_at"
    NOW = "now"


class PullClock(StrEnum):
    REQUEST = "request"
    SERVER = "server"


class PullOrder(StrEnum):
    RUN_AT = "run_at"
    WEIGHTED = "weighted"


class AuditCheck(StrEnum):
    LINK = "link"
    STRICT = "strict"


class Durability(StrEnum):
    FULL = "full"
    NORMAL = "normal"


class Vocabulary(Struct, frozen=True):
    """The object types and actions of jobs; a settings file may add some."""

    object_types: tuple[str, ...] = ("memory", "experience", "cognition")
    actions: tuple[str, ...] = ("verify", "revalidate", "decay", "archive", "reinstate-check")

    @property
    def subjects(self) -> tuple[str, ...]:
        """What an event of the trail can be about."""
        return (*self.object_types, "decision", "scheduler_job", "persona")


class GovernanceSettings(Struct, frozen=True):
    """The settings of governed objects, which this package only carries: `pendula.governance.Rules`."""


class Policy(Struct, frozen=True):
    """Every parameter of the scheduler, with its default."""

    vocabulary: Vocabulary = Vocabulary()
    default_priority: Priority = Priority.MEDIUM
    default_max_attempts: Annotated[int, Meta(ge=1, le=ATTEMPTS_MOST)] = 3
    pull_default_limit: Annotated[int, Meta(ge=1, le=1000)] = 100
    pull_max_limit: Annotated[int, Meta(ge=1, le=10_000)] = 1000
    lease_sec: Annotated[int, Meta(ge=1, le=LEASE_MOST_SEC)] = 900
    lease_expiry_retry_delay_sec: Annotated[int, Meta(ge=0, le=DAY_SEC)] = 0
    min_retry_gap_sec: Annotated[int, Meta(ge=0, le=3600)] = 5
    retry_jitter: bool = True
    retry_base: RetryBase = RetryBase.RUN_AT
    pull_clock: PullClock = PullClock.REQUEST
    pull_order: PullOrder = PullOrder.RUN_AT
    head_start_sec: tuple[int, int, int] = (300, 60, 0)  # of high, medium, low, where the order is weighted
    audit_event_check: AuditCheck = AuditCheck.LINK
    auto_followup: bool = True
    one_running_per_object: bool = False
    retention_days: Annotated[int, Meta(ge=1, le=3650)] = 30
    durability: Durability = Durability.FULL
    objects_elsewhere: bool = False  # in another database: acks store write-backs for it
    max_clock_step_sec: Annotated[int, Meta(ge=1, le=DAY_SEC)] = (
        300  # how far a clock, or the `now` of a pull, may be ahead
    )
    unhandled_alert_sec: Annotated[int, Meta(ge=1, le=30 * DAY_SEC)] = (
        600  # how long a kind of job may be due without a delivery before an alert
    )
    governance: GovernanceSettings | None = None  # state machines and limits; None for those of governance


class Job(Struct, frozen=True, gc=False):
    """One planned action on one object. `delivery_count` is the fence: one more with each delivery.

    Tokens are stored as hashes. `expired`: an earlier holder may still be alive, since its lease expired or the job was
    requeued. Then the lease token is required.
    `payload` and `outcome_result` are canonical JSON, `progress` is in millionths.
    """

    seq: int
    job_id: str
    object_type: str
    object_id: str
    action: str
    run_at: int
    priority: int
    attempt: int
    max_attempts: int
    idempotency_key: str
    status: str
    last_error: str | None
    created_at: int
    updated_at: int
    scheduled_for: int
    worker_id: str | None = None
    lease: bytes | None = None
    lease_expires_at: int | None = None
    delivery_count: int = 0
    correlation_id: str | None = None
    audit_event_id: str | None = None
    outcome: str | None = None
    queue: str = "default"
    last_lease: bytes | None = None
    ended: str | None = None
    expired: int = 0
    payload: str | None = None
    cancel_requested_at: int | None = None
    progress: int | None = None
    progress_note: str | None = None
    outcome_result: str | None = None


def exact(number: Decimal) -> int | Decimal:
    """A number as in replies: whole ones are integers, fractions exact decimals."""
    return int(number) if number == number.to_integral_value() else number.normalize()


class Actor(Struct, frozen=True):
    """The author of a change: system, user, worker or service."""

    type: str
    id: str


SYSTEM = Actor("system", "scheduler")


class Code(StrEnum):
    """Codes of refusals."""

    JOB_NOT_FOUND = "job_not_found"
    OBJECT_NOT_FOUND = "object_not_found"
    IDEMPOTENCY_KEY_CONFLICT = "idempotency_key_conflict"
    JOB_NOT_RUNNING = "job_not_running"
    JOB_NOT_QUEUED = "job_not_queued"
    JOB_NOT_DEAD_LETTER = "job_not_dead_letter"
    LEASE_LOST = "lease_lost"
    LEASE_EXPIRED = "lease_expired"
    LEASE_TOKEN_REQUIRED = "lease_token_required"
    VALIDATION_FAILED = "validation_failed"
    MISSING_FIELD = "missing_field"
    UNKNOWN_FIELD = "unknown_field"
    INVALID_FIELD = "invalid_field"
    INVALID_ENUM = "invalid_enum"
    INVALID_TIMESTAMP = "invalid_timestamp"
    NAIVE_TIMESTAMP = "naive_timestamp"
    TIMESTAMP_OUT_OF_RANGE = "timestamp_out_of_range"
    RUN_AT_IN_PAST = "run_at_in_past"
    NOW_IN_FUTURE = "now_in_future"
    NEXT_ACTION_AT_IN_PAST = "next_action_at_in_past"
    INVALID_LIMIT = "invalid_limit"
    INVALID_WORKER_ID = "invalid_worker_id"
    INVALID_RESULT = "invalid_result"
    AUDIT_EVENT_UNKNOWN = "audit_event_unknown"
    BATCH_REJECTED = "batch_rejected"
    PLAN_NOT_FOUND = "plan_not_found"
    PLAN_IN_SETTINGS = "plan_in_settings"
    TOO_MANY_PLANS = "too_many_plans"
    OBJECT_EXISTS = "object_exists"
    OBJECT_GOVERNED = "object_governed"
    STATE_CONFLICT = "state_conflict"
    ILLEGAL_TRANSITION = "illegal_transition"
    GATE_CLOSED = "gate_closed"
    NOT_BEGUN = "not_begun"
    USER_REQUIRED = "user_required"
    ONTIC_VERIFICATION_CLOSED = "ontic_verification_closed"


class Refused(Struct, frozen=True):
    """A refused call, as a value; nothing was changed."""

    code: Code
    message: str
    details: dict[str, Json] = {}

    def as_json(self) -> dict[str, Json]:
        return {"code": self.code.value, "message": self.message, "details": self.details}


TIME_FORM = "a time with an offset, such as 2026-02-21T00:00:00Z"
ALLOWED_TIMES = {Code.INVALID_TIMESTAMP.value: TIME_FORM, Code.NAIVE_TIMESTAMP.value: TIME_FORM}
VOCABULARY = frozenset({"object_type", "object_types", "action", "actions", "next_action"})
DECLARE_WORDS = "declare your own object_types and actions in Scheduler.open(…) or in a settings file (--config FILE)"


def in_full(message: str, details: Mapping[str, Any]) -> str:
    """The full text of a refusal: every faulty field with what is allowed. Programs read the details."""
    faults = details.get("fields") or []
    hint = f"; {DECLARE_WORDS}" if any(_is_of_the_vocabulary(fault) for fault in faults) else ""
    clauses = [fault_clause(fault) for fault in faults]
    if len(clauses) == 1:
        return f"{clauses[0]}{hint}" if message == clauses[0] else message
    return f"{message}: {'; '.join(clauses)}{hint}" if clauses else message


def fault_clause(fault: Mapping[str, Any]) -> str:
    """The fault of one field, as a clause: `priority must be one of high, medium, low`."""
    field, code = fault["field"], fault["code"]
    allowed = fault.get("allowed") or ALLOWED_TIMES.get(code)
    words = ", ".join(allowed) if isinstance(allowed, list) else allowed
    if problem := fault.get("problem"):
        return f"{field}: {problem}"
    if code == Code.MISSING_FIELD:
        return f"{field} is missing; give at least one of {words}" if words else f"{field} is missing"
    if code == Code.UNKNOWN_FIELD:
        return f"unknown member {field}; allowed: {words}"
    if words:
        return f"{field} must be {'one of ' if isinstance(allowed, list) and len(allowed) > 1 else ''}{words}"
    return f"{field}: {code.replace('_', ' ')}"


def _is_of_the_vocabulary(fault: Mapping[str, Any]) -> bool:
    return fault["code"] == Code.INVALID_ENUM and fault["field"].rpartition(".")[2] in VOCABULARY


class Finding(Struct, frozen=True):
    """A finding of a check of a store."""

    code: str
    where: str
    sentence: str


class ClockAhead(WorldBroken):
    """The clock of this process is too far ahead. Facts: `clock`, `expected`."""

    code = "clock_ahead"
    status: ClassVar[int] = 503


class StorageBusy(WorldBroken):
    """Another writer locked the file for too long; nothing was changed."""

    code = "storage_busy"
    status: ClassVar[int] = 503


ALPHABET = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
DIGITS = 12
_AS_PYTHON = str.maketrans(ALPHABET, "0123456789abcdefghijklmnopqrstuv")  # the digits of `int(…, 32)`
_PAIRS = tuple(high + low for high in ALPHABET for low in ALPHABET)


def job_id(seq: int) -> str:
    """The id of the job with this number."""
    # Two digits at a time, since every enqueue makes an id.
    high = f"{_PAIRS[seq >> 50 & 1023]}{_PAIRS[seq >> 40 & 1023]}{_PAIRS[seq >> 30 & 1023]}"
    return f"job_{high}{_PAIRS[seq >> 20 & 1023]}{_PAIRS[seq >> 10 & 1023]}{_PAIRS[seq & 1023]}"


def seq_of(text: str) -> int | None:
    """The number in a job id; None for any other text."""
    if len(text) != DIGITS + len("job_"):
        return None
    try:
        seq = int(text[4:].translate(_AS_PYTHON), 32)
    except ValueError:
        return None
    # `int` accepts more: small letters, blanks, letters outside the alphabet.
    return seq if seq >= 0 and job_id(seq) == text else None


def event_id(n: int) -> str:
    return f"aud_{n:012d}"


def number_of(event: str) -> int | None:
    """The number in the id of an event of this trail; None for any other id."""
    digits = event.removeprefix("aud_")
    return int(digits) if digits != event and len(digits) == 12 and digits.isascii() and digits.isdecimal() else None
