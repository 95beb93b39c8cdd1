"""How an action on a governed object ends: what becomes of the job, of the object, and who has to be told."""

from enum import StrEnum

from msgspec import Struct

from pendula.jobs.objects.gates import Gate, Reading
from pendula.jobs.objects.governed import DAY_US, Governed, Impact, Risk, Unknown
from pendula.jobs.objects.reasons import Reason, stated

DEFER_US = 3_600_000_000
DEFERRALS_MOST = 10


class How(StrEnum):
    """What becomes of the job."""

    ACK = "ack"
    FAIL = "fail"  # no retry
    RETRY = "retry"
    DEFER = "defer"


class Outcome(StrEnum):
    """What became of the object, in the word that the job keeps."""

    TRANSITIONED = "transitioned"
    NOOP = "noop"
    BUDGET_EXHAUSTED = "budget_exhausted"
    CLOSED = "ontic_closed"
    LIMIT_REACHED = "ontic_limit_reached"
    DEFERRED = "deferred"
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
    """What a deployment sets for all its objects."""

    min_evidence_count: int = 1
    ontic_verify_limit: int = 1
    auto_verify_budget: int = 2
    uncertainty_ttl: int = 7 * DAY_US
    learning_period_days: int = 7


class Asked(Struct, frozen=True):
    """An action on an object at a moment. The tiers are those that count: an experience has them from its sources.

    `gates` are all that are set for the object, read in the transaction that will write; `deferrals` counts how often
    the job was put off; what a person asks for is not `automatic`.
    """

    action: str
    now: int
    risk: Risk
    impact: Impact
    gates: tuple[Gate, ...] = ()
    limits: Limits = Limits()
    deferrals: int = 0
    automatic: bool = True


class Verdict(Struct, frozen=True):
    """What a verifier, or a person, found. A reason that they stated is text."""

    finding: str
    reason: Reason | str
    evidence: tuple[str, ...] = ()
    unknown_type: Unknown | None = None

    @property
    def because(self) -> Reason:
        return stated(self.reason) if isinstance(self.reason, str) else self.reason


class Ending(Struct, frozen=True, kw_only=True):
    """All that follows from an action, to be stored together or not at all.

    `subject` is the object as it is to be; `escalation` says why a person has to look; `closes` ends the waiting
    verifications of the object; `rollback` hands it to the rollback service; `error` is the job's last error.
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
