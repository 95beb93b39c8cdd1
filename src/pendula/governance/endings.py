"""How an action on a governed object ends: for the job, for the object, and whether to escalate."""

from enum import StrEnum
from typing import Annotated

from msgspec import Meta, Struct

from pendula.documents.typed import Parse
from pendula.governance.gates import Gate, Reading
from pendula.governance.model import DAY_US, Governed, Impact, Risk
from pendula.jobs.decide import OUTCOME_DEFERRED
from pendula.jobs.durations import duration_us
from pendula.jobs.reasons import Reason

DEFER_US = 3_600_000_000
DEFERRALS_MOST = 10


class How(StrEnum):
    """How the job ends."""

    ACK = "ack"
    FAIL = "fail"  # no retry
    RETRY = "retry"
    DEFER = "defer"


class Outcome(StrEnum):
    """What happened to the object; the outcome of the job."""

    TRANSITIONED = "transitioned"
    NOOP = "noop"
    BUDGET_EXHAUSTED = "budget_exhausted"
    CLOSED = "ontic_closed"
    LIMIT_REACHED = "ontic_limit_reached"
    DEFERRED = OUTCOME_DEFERRED
    BLOCKED = "gate_blocked"
    UNAVAILABLE = "gate_unavailable"
    ILLEGAL = "illegal_transition"
    INCOMPLETE = "object_incomplete"
    CONFLICT = "state_conflict"


class Executed(StrEnum):
    """How a decision of high risk ended."""

    EXECUTED = "executed"
    LIMITED = "limited"
    BLOCKED = "blocked"
    ESCALATED = "escalated"
    ABSTAINED = "abstained"


class Limits(Struct, frozen=True):
    """Settings for all governed objects."""

    min_evidence_count: Annotated[int, Meta(ge=1, le=100)] = 1
    ontic_verify_limit: Annotated[int, Meta(ge=1, le=10)] = 1
    auto_verify_budget: Annotated[int, Meta(ge=0, le=1000)] = 2
    uncertainty_ttl: Annotated[int, Parse(duration_us, 7 * DAY_US)] = 7 * DAY_US
    learning_period_days: Annotated[int, Meta(ge=1, le=365)] = 7


class ActionContext(Struct, frozen=True):
    """The inputs of a decision about an action. The tiers are effective: an experience has them from its sources.

    `gates` are all that apply to the object, read in the transaction that will write; `deferrals` counts how often the
    job was deferred; the action of a person is not `automatic`.
    """

    action: str
    now: int
    risk: Risk
    impact: Impact
    gates: tuple[Gate, ...] = ()
    limits: Limits = Limits()
    deferrals: int = 0
    automatic: bool = True


class Ending(Struct, frozen=True, kw_only=True):
    """All effects of an action, stored together or not at all.

    `subject` is the new object; `escalation` is why a person must decide; `closes` ends the waiting verifications of
    the object; `rollback` requests a rollback; `error` is the job's last error.
    """

    how: How
    outcome: Outcome
    subject: Governed
    reason: Reason
    evidence: tuple[str, ...] = ()
    executed: Executed | None = None
    reading: Reading | None = None
    escalation: Reason | None = None
    rollback: bool = False
    closes: bool = False
    retry_at: int | None = None
    error: str | None = None
