"""The data of the scheduler: definitions, instances, knowledge, epochs, options."""

from decimal import Decimal, InvalidOperation
from enum import StrEnum
from typing import Annotated, Any, Literal

from msgspec import UNSET, Meta, Struct, UnsetType

from pendula.documents import Cursor, Members
from pendula.documents.typed import CLOSED, Read, limits, written
from pendula.kernel.canonical import Json
from pendula.kernel.errors import InputRefused

PRIORITY_MOST = 1000
FACTOR_MOST = 10
MINUTES_MOST = 525_600  # a year of minutes: the longest an action may take
FOLLOW_UPS_EACH = 64

Name = Annotated[str, Meta(min_length=1, max_length=256)]
Priority = Annotated[int, Meta(ge=0, le=PRIORITY_MOST)]
Hold = Annotated[int, Meta(ge=0, le=MINUTES_MOST)]


DIGITS_MOST = 50  # of an amount


def is_amount(value: Decimal) -> bool:
    """Whether a number is a valid amount: finite, at least 0, at most DIGITS_MOST digits."""
    if not value.is_finite() or value < 0:
        return False
    digits, exponent = value.as_tuple()[1:]
    return isinstance(exponent, int) and -DIGITS_MOST <= exponent <= DIGITS_MOST and len(digits) <= DIGITS_MOST


def _read_exact(at: Cursor) -> Decimal:
    """A number, or its text, which may be NaN or infinite."""
    value = at.any()
    if isinstance(value, Decimal):
        return value
    return at.parsed(_exact, stand_in=Decimal(0)) if at.is_text else at.decimal()


def _exact(text: str) -> Decimal:
    try:
        return Decimal(text)
    except InvalidOperation:
        raise InputRefused(f"{text!r} is not a number") from None


def _read_amount(at: Cursor) -> Decimal:
    amount = _read_exact(at)
    if not is_amount(amount):
        at.refuse(f"{amount} is not a number from 0 with at most {DIGITS_MOST} digits")
        return Decimal(0)
    return amount


def _read_share(at: Cursor) -> Decimal:
    share = _read_exact(at)
    if not share.is_finite() or not 0 <= share <= 1:
        at.refuse(f"{share} is not a number from 0 to 1")
        return Decimal(0)
    return share


# Exact numbers are numbers; the text form is for tools that would turn them into floats.
_NUMBER = written(anyOf=[{"type": "number"}, {"type": "string", "pattern": r"^[+-]?[0-9]+(\.[0-9]+)?$"}])
Exact = Annotated[Decimal, Read(_read_exact, Decimal(0)), _NUMBER]
Amount = Annotated[Decimal, Read(_read_amount, Decimal(0)), _NUMBER]
Share = Annotated[Decimal, Read(_read_share, Decimal(0)), _NUMBER]


class Effort(StrEnum):
    LOW = "low"
    MEDIUM = "medium"
    HIGH = "high"


class Wait(StrEnum):
    """What an instance does when its locks are taken: join the queues, or fail."""

    QUEUE = "queue"
    FAIL = "fail"


class OnShortage(StrEnum):
    """What an instance does when its resources are short."""

    REFUSE = "refuse"
    WAIT = "wait"


class Resume(StrEnum):
    """What happens to an interrupted instance."""

    AUTO = "auto"
    MANUAL = "manual"
    DROP = "drop"


class Scope(StrEnum):
    """The audience of an item or event."""

    PRIVATE = "private"
    ALLIES_ONLY = "allies_only"
    PC = "pc"
    PUBLIC = "public"
    REDACTED = "redacted"


class Channel(StrEnum):
    """The origin of a knowledge item."""

    DIRECT = "direct"
    OVERHEAR = "overhear"
    RUMOR = "rumor"
    LOG = "log"
    REFLEX_LINK = "reflex_link"
    SYSTEM = "system"


class Code(StrEnum):
    """Codes of rejections, in the order of the checks, then of diagnostics and refused configurations."""

    INVALID_ACTION = "InvalidAction"
    DUPLICATE_ACTION_ID = "DuplicateActionId"
    INVALID_TIMESTAMP = "InvalidTimestamp"
    UNKNOWN_VERB = "UnknownVerb"
    INVALID_DURATION = "InvalidDuration"
    INVALID_EFFORT = "InvalidEffort"
    INVALID_SKILL_LEVEL = "InvalidSkillLevel"
    INVALID_MATRIX = "InvalidMatrix"
    UNKNOWN_LOCK = "UnknownLock"
    INSUFFICIENT_RESOURCES = "InsufficientResources"
    CANNOT_ACQUIRE_LOCK = "CannotAcquireLock"
    LIMIT_EXCEEDED = "LimitExceeded"
    CANCELLED = "Cancelled"
    NOT_CANCELLABLE = "NotCancellable"
    NOT_INTERRUPTIBLE = "NotInterruptible"
    NOT_RESUMABLE = "NotResumable"
    INVALID_INTERRUPT = "InvalidInterrupt"
    INVALID_COMMAND = "InvalidCommand"
    INVALID_EPOCH = "InvalidEpoch"
    INVALID_CARRY_OVER = "InvalidCarryOver"
    INTERRUPT_IGNORED = "interrupt_ignored"
    PREEMPT_REFUSED = "preempt_refused"
    UNKNOWN_FIELDS = "unknown_fields"


class Need(Struct, frozen=True, forbid_unknown_fields=True):
    """A resource that an instance uses or produces; `produce` reserves nothing and adds the amount at the end."""

    name: Name
    amount: Amount
    refund: bool = False
    produce: bool = False


Fact = Annotated[str, Meta(max_length=256)] | bool | int | None
Condition = dict[Name, Fact | tuple[Fact, ...]]


class FollowUp(Struct, frozen=True, forbid_unknown_fields=True):
    """A submission that follows the end of an action: another verb, `after_min` minutes later, under conditions.

    `when` maps names of `world_state`, or `params.<name>` of the action, to the value or the values that they must
    have. Actor and params default to those of the action.
    """

    verb: Name
    after_min: Hold = 0
    when: Condition | None = None
    actor: Name | None = None
    params: Json = None


class ActionDef(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The definition of a verb."""

    base_duration_min: Annotated[int, limits(minimum=1)]
    effort: Effort
    interruptible: bool
    locks: tuple[Name, ...] = ()
    may_trigger_event: bool = False
    resources: tuple[Need, ...] = ()
    skill: str | None = None
    priority: Priority = 0
    preempts: bool = False
    interrupts: tuple[str, ...] | Literal["*"] = ()
    wait: Wait = Wait.QUEUE
    resume: Resume = Resume.AUTO
    place: Name | None = None
    on_shortage: OnShortage = OnShortage.REFUSE
    hold_min: Hold = 0
    followups: Annotated[tuple[FollowUp, ...], Meta(max_length=FOLLOW_UPS_EACH)] = ()


class Reveal(Struct, frozen=True):
    """A knowledge item to reveal at the end of an instance, and its audience."""

    id: Name
    to_scope: Scope = Scope.PC
    visibility_to: tuple[str, ...] = ()
    reveals: tuple[int, ...] = ()


class Visibility(Struct, frozen=True):
    """The audience of the events of an instance, besides its actor."""

    scope: Scope = Scope.PRIVATE
    visibility_to: tuple[str, ...] = ()


class Instance(Struct, frozen=True, gc=False):
    """One submission: actor, verb, and the earliest start as `submitted_at` or as `t` in minutes of the run.

    There may be a million of them and none refers to another, so the cycle collector skips them (`gc=False`).
    """

    id: Name
    actor: Name
    verb: Name
    params: Json = None
    submitted_at: str | None = None
    t: int | None = None
    priority: Priority | None = None
    # Unset is not empty: a triggering action without `knowledge` reveals itself.
    knowledge: tuple[str | Annotated[Reveal, CLOSED], ...] | UnsetType = UNSET
    visibility: Annotated[Visibility | None, CLOSED] = None
    process: str | None = None

    def check(self, at: Members) -> None:
        if "submitted_at" not in at and "t" not in at:
            at.owner.refuse("submitted_at or t is missing", code="missing_field", allowed=("submitted_at", "t"))

    def members(self) -> dict[str, Any]:
        """As an object, without unset members."""
        return {name: value for name in self.__struct_fields__ if (value := getattr(self, name)) is not UNSET}


class KnowledgeItem(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Something that actors can know: subject, source, audience, confidence and lifetime (`ttl_min`, 0: unlimited)."""

    id: Name
    about: Json = None
    channel: Channel = Channel.DIRECT
    source: str | None = None
    scope: Scope = Scope.PRIVATE
    confidence: Share = Decimal(1)
    freshness: int = 0
    ttl_min: int = 0
    visibility_to: tuple[str, ...] = ()
    derivation: Json = None
    attachments: tuple[Json, ...] = ()

    @property
    def expires(self) -> int | None:
        """The first minute after its lifetime; None if it never expires."""
        return self.freshness + self.ttl_min + 1 if self.ttl_min else None


class Modifier(Struct, frozen=True, rename={"since": "from", "until": "to"}, forbid_unknown_fields=True):
    """A named factor on durations, for submissions with since ≤ t_submit < until.

    With `daily` both are times of day. `when` is a condition on `world_state`.
    """

    name: Name
    factor: Exact
    since: int | str | None = None
    until: int | str | None = None
    verbs: tuple[str, ...] | None = None
    actors: tuple[str, ...] | None = None
    daily: bool = False
    when: Condition | None = None


class LockRule(Struct, frozen=True, forbid_unknown_fields=True):
    """How many actions may hold a lock at once."""

    capacity: Annotated[int, Meta(ge=1, le=1_000_000)] = 1


class EpochFrame(Struct, frozen=True, forbid_unknown_fields=True):
    """The first epoch of a run."""

    index: Annotated[int, Meta(ge=0)]
    start_at: str
    end_at: str


Bound = Annotated[int, Meta(ge=1)] | None


class Bounds(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Limits of a world; None is the default."""

    instances: Bound = None
    locks: Bound = None
    locks_each: Bound = None
    resources_each: Bound = None
    follow_ups: Bound = None


class Options(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Constants of a run. `pc` is the player character, `allies` its party."""

    slots: Annotated[int, Meta(ge=1, le=1440)] = 24
    slot_minutes: Annotated[int, Meta(ge=1, le=10_080)] = 60
    actor_exclusive: bool = False
    strict_locks: tuple[str, ...] | None = None
    pc: str | None = None
    allies: tuple[str, ...] = ()
    confidence_threshold: Share = Decimal(0)
    noise_seed: int | None = None
    follow_ups: bool = False
    ask_modifiers: bool = False
    remember_epochs: Annotated[int, Meta(ge=0, le=100_000)] | None = None
    # Without effect: there is one event queue, and files that name either stay valid.
    queue: Literal["buckets", "heap"] = "buckets"
    limits: Bounds = Bounds()
