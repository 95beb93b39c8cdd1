"""A governed object: its state, evidence, tiers and dates; its effective tiers, and its weight over time. All pure.

Times are microseconds since 1970, UTC; durations are microseconds.
"""

from collections.abc import Callable
from decimal import Context, Decimal
from enum import StrEnum
from re import ASCII
from re import compile as regex

from msgspec import Struct

from pendula.jobs.reasons import Unknown
from pendula.kernel.errors import InputRefused

DAY_US = 86_400_000_000


class Risk(StrEnum):
    LOW = "low"
    MEDIUM = "medium"
    HIGH = "high"


class Impact(StrEnum):
    LOW = "low"
    MEDIUM = "medium"
    HIGH = "high"
    CRITICAL = "critical"


class Mode(StrEnum):
    """How decisions are made while an object is uncertain."""

    EXPLORE = "explore"
    COLLECT = "collect"
    CONSERVATIVE = "conservative"
    ESCALATE = "escalate"
    ABSTAIN = "abstain"


class Epistemic(StrEnum):
    SUPPORTED = "supported"
    UNCERTAIN = "uncertain"
    REFUTED = "refuted"


# Members whose JSON name differs.
SHOWN_AS = {"epistemic": "epistemic_state", "evidence": "evidence_refs", "sources": "source_refs"}
CANNOT_BE_KNOWN = "cannot be known"


class Governed(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One object under governance. `version` grows by one with every change.

    `status` and `epistemic` are the two axes of a cognition; other types have only the first. `verify_budget_left` is
    the remaining budget of automatic verifications while the object is uncertain, `verifications` counts all of its
    life. `closed` is the reason why it is not verified any more.
    """

    object_type: str
    object_id: str
    status: str
    version: int
    created_at: int
    updated_at: int
    epistemic: str | None = None
    risk_tier: Risk = Risk.LOW
    impact_tier: Impact = Impact.LOW
    evidence: tuple[str, ...] = ()
    sources: tuple[str, ...] = ()
    next_action: str | None = None
    next_action_at: int | None = None
    last_verified_at: int | None = None
    last_accessed_at: int | None = None
    last_reinforced_at: int | None = None
    stale_since: int | None = None
    review_interval: int | None = None
    review_due_at: int | None = None
    expires_at: int | None = None
    half_life: int = 30 * DAY_US
    reinforcement_count: int = 0
    impact_weight: Decimal = Decimal(0)
    falsify_if: str | None = None
    unknown_type: Unknown | None = None
    uncertain_since: int | None = None
    uncertainty_ttl: int | None = None
    auto_verify_budget: int | None = None
    verify_budget_left: int = 0
    verifications: int = 0
    decision_mode: Mode | None = None
    closed: str | None = None
    hard_persona_limit: bool = False
    deception_signals: int = 0
    rollback_pending: bool = False

    @property
    def place(self) -> str:
        """The state in its machine: both axes joined by a slash."""
        return self.status if self.epistemic is None else f"{self.status}/{self.epistemic}"

    @property
    def ref(self) -> str:
        return f"{self.object_type}:{self.object_id}"

    @property
    def uncertainty_ends(self) -> int | None:
        if self.uncertain_since is None or self.uncertainty_ttl is None:
            return None
        return self.uncertain_since + self.uncertainty_ttl


MEMORY_REF = "memory:"
_RISKS, _IMPACTS = list(Risk), list(Impact)


def tiers(subject: Governed, memory: Callable[[str], Governed | None]) -> tuple[Risk, Impact]:
    """The tiers of the object; for an experience the highest among itself and its source memories.

    An experience without source memories has high risk. Its own tiers count, so that sources cannot lower them.
    """
    if subject.object_type != "experience":
        return subject.risk_tier, subject.impact_tier
    ids = (ref.removeprefix(MEMORY_REF) for ref in subject.sources if ref.startswith(MEMORY_REF))
    memories = [source for source in map(memory, ids) if source is not None]
    if not memories:
        return Risk.HIGH, subject.impact_tier
    risk = max((source.risk_tier for source in (subject, *memories)), key=_RISKS.index)
    return risk, max((source.impact_tier for source in (subject, *memories)), key=_IMPACTS.index)


THRESHOLDS = {Risk.LOW: Decimal("0.25"), Risk.MEDIUM: Decimal("0.20"), Risk.HIGH: Decimal("0.10")}
_HALF, _ONE = Decimal("0.5"), Decimal(1)


def weight(subject: Governed, now: int) -> Decimal:
    """Between 0 and 1; 1 for an object used or reinforced just now."""
    context = Context(prec=28)
    newest = max(
        time for time in (subject.created_at, subject.last_accessed_at, subject.last_reinforced_at) if time is not None
    )
    unused = Decimal(max(0, now - newest))
    reinforced = context.add(_ONE, context.ln(Decimal(1 + subject.reinforcement_count)))
    lasting = context.multiply(reinforced, context.add(_ONE, subject.impact_weight))
    halvings = context.divide(unused, context.multiply(Decimal(subject.half_life), lasting))
    return context.power(_HALF, halvings)


def has_faded(subject: Governed, risk: Risk, now: int) -> bool:
    """Whether the weight is below the threshold of this risk."""
    return weight(subject, now) < THRESHOLDS[risk]


_SHAPE = regex(
    r"P(?:(\d{1,6})W|(?:(\d{1,6})D)?(?:T(?:(\d{1,6})H)?(?:(\d{1,8})M)?(?:(\d{1,9}(?:\.\d{1,6})?)S)?)?)", ASCII
)
_UNITS = (604_800, 86_400, 3600, 60, 1)
SECOND_US = 1_000_000
DAYS_MOST = 36_525  # a hundred years, so that every date so far ahead can be written
ALLOWED = f"a duration such as P7D, PT12H or P1DT30M (no months or years), at most P{DAYS_MOST}D"


def parse_duration(text: object) -> int | None:
    """Whole microseconds, above 0 and at most a hundred years; None for anything else."""
    match = _SHAPE.fullmatch(text) if isinstance(text, str) and not text.endswith("T") else None
    if match is None or not any(match.groups()):
        return None
    parts = zip(match.groups(), _UNITS, strict=True)
    seconds = sum((Decimal(amount) * unit for amount, unit in parts if amount), Decimal(0))
    micros = int(seconds * SECOND_US)
    return micros if 0 < micros <= DAYS_MOST * 86_400 * SECOND_US else None


def duration_us(text: str) -> int:
    """Like `parse_duration`, but raises `InputRefused`."""
    length = parse_duration(text)
    if length is None:
        raise InputRefused(f"{text[:100]!r} is not a duration; write {ALLOWED}", value=text[:100])
    return length


def format_duration(micros: int) -> str:
    days, rest = divmod(micros, 86_400 * SECOND_US)
    hours, rest = divmod(rest, 3600 * SECOND_US)
    minutes, rest = divmod(rest, 60 * SECOND_US)
    seconds = f"{rest // SECOND_US}.{rest % SECOND_US:06d}".rstrip("0").rstrip(".")
    clock = "".join(f"{n}{unit}" for n, unit in ((hours, "H"), (minutes, "M"), (seconds, "S")) if n not in (0, "0"))
    day = f"{days}D" if days or not clock else ""
    return f"P{day}T{clock}" if clock else f"P{day}"
