"""The messages of governance: a struct for each request and each reply, which is its only description.

From them come the readers of bodies, the shapes in OpenAPI, the routes and the client, as for `pendula.jobs.messages`.
"""

from collections.abc import Iterator
from decimal import Decimal
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeAlias, TypeVar

from msgspec import UNSET, Meta, UnsetType

from pendula.governance.decisions import Ending, Executed, Outcome
from pendula.governance.gates import EVERYTHING, VERDICTS, Gate
from pendula.governance.inputs import rules_of
from pendula.governance.machines import Machine
from pendula.governance.model import ALLOWED, SHOWN_AS, Governed, Impact, Mode, Risk, format_duration, parse_duration
from pendula.governance.tables import Rollback
from pendula.jobs import messages
from pendula.jobs.messages import (
    HELD,
    PRINTABLE,
    TRIMMED,
    Call,
    Count,
    Facts,
    Holder,
    Instant,
    Message,
    ObjectId,
    PageLimit,
    Reason,
    Role,
    Stated,
    Time,
    Token,
    utc_or_null,
)
from pendula.jobs.model import Code, Policy, exact
from pendula.jobs.reasons import Reason as Stored
from pendula.jobs.reasons import Unknown, Verdict, stated
from pendula.jobs.request_reading import BadValue, Problem, Request
from pendula.jobs.sentences import sentence_of
from pendula.kernel.canonical import Json
from pendula.kernel.time import format_utc

REF_MOST, REFS_MOST = 600, 100
PLACE_MOST, SCOPE_MOST, BUDGET_MOST, VERSION_MOST, NUMBER_MOST = 130, 600, 1000, 2**53, 1000
GATE_MOST = 64
PAGE_DEFAULT = 100
WEIGHT_DIGITS = 28
VERDICT_WORDS = sorted({word for words in VERDICTS.values() for word in words})
NEXT_PAGE = "The next_after of the page before"

Word = Annotated[str, Meta(min_length=1, max_length=64, pattern=PRINTABLE)]
Place = Annotated[
    str,
    Meta(
        min_length=1,
        max_length=PLACE_MOST,
        pattern=PRINTABLE,
        description="A state; of a cognition both axes, as in active/supported",
    ),
]
AfterId = Annotated[
    str, Meta(min_length=1, max_length=messages.OBJECT_ID_MOST, pattern=PRINTABLE, description=NEXT_PAGE)
]
AfterGate = Annotated[
    str, Meta(min_length=1, max_length=SCOPE_MOST + GATE_MOST + 1, pattern=PRINTABLE, description=NEXT_PAGE)
]
Scope = Annotated[str, Meta(min_length=1, max_length=SCOPE_MOST, pattern=TRIMMED)]
ScopeFilter = Annotated[
    str,
    Meta(
        min_length=1,
        max_length=SCOPE_MOST,
        pattern=PRINTABLE,
        description="memory:m_1; its own and those of *",
    ),
]
Version = Annotated[int, Meta(ge=1, le=VERSION_MOST)]
Units = Annotated[int, Meta(ge=0, le=BUDGET_MOST)]
Number = Annotated[int, Meta(ge=0, le=NUMBER_MOST)]
GateName = Literal["persona_conflict_gate", "risk_gate", "cognition_gate", "social_gate"]
Versions = Annotated[dict[str, int], Meta(extra={"allowed": "the `gates` that begin returned"})]
# Checked by `problems`, because what is allowed depends on another member or on the settings.
AnyType = Annotated[Any, Meta(extra_json_schema={"type": "string"})]
AnyVerdict = Annotated[Any, Meta(extra_json_schema={"enum": VERDICT_WORDS})]

if TYPE_CHECKING:
    Refs = tuple[str, ...]
    Length = int
    Weight = Decimal
else:

    class Refs(tuple):
        """References to evidence, each once."""

        @classmethod
        def read(cls, value: object) -> tuple[str, ...]:
            if not isinstance(value, list | tuple) or len(value) > REFS_MOST or not all(map(_is_ref, value)):
                raise BadValue(allowed=f"a list of at most {REFS_MOST} references of 1 to {REF_MOST} characters")
            return cls(dict.fromkeys(value))

    class Length(int):
        """Microseconds; in a body, an ISO 8601 duration."""

        @classmethod
        def read(cls, value: object) -> int:
            length = parse_duration(value)
            if length is None:
                raise BadValue(allowed=ALLOWED)
            return cls(length)

    class Weight(Decimal):
        @classmethod
        def read(cls, value: object) -> Decimal:
            if isinstance(value, float):
                value = Decimal(repr(value))
            if isinstance(value, Decimal) and not (value.is_finite() and len(value.as_tuple().digits) <= WEIGHT_DIGITS):
                value = None
            if isinstance(value, bool) or not isinstance(value, int | Decimal) or not 0 <= value <= 100:
                raise BadValue(allowed=f"a number from 0 to 100 of at most {WEIGHT_DIGITS} digits")
            return cls(value)


def _is_ref(ref: object) -> bool:
    return isinstance(ref, str) and 1 <= len(ref) <= REF_MOST and ref.isprintable() and ref == ref.strip()


# Requests


class Begin(Request, frozen=True, kw_only=True):
    """The proof of a lease."""

    worker_id: Holder | None = None
    lease_token: Token | None = None


class VerdictMembers(Request, frozen=True, kw_only=True):
    finding: Word
    reason: Reason
    evidence_refs: Refs | None = None
    unknown_type: Unknown | None = None
    version: Version | None = None  # of the object that the verdict is about

    @property
    def verdict(self) -> Verdict:
        return Verdict(self.finding, self.reason, self.evidence_refs or (), self.unknown_type)


class Finish(VerdictMembers, frozen=True, kw_only=True):
    """End a governed job with a verdict."""

    worker_id: Holder | None = None
    lease_token: Token | None = None
    gates: Versions | None = None


class Decision(VerdictMembers, frozen=True, kw_only=True):
    """The finding of a person."""

    action: Word


class NewObject(Request, frozen=True, kw_only=True):
    """The initial members of an object."""

    object_type: Word
    object_id: ObjectId
    risk_tier: Risk | None = None
    impact_tier: Impact | None = None
    evidence_refs: Refs | None = None
    source_refs: Refs | None = None
    unknown_type: Unknown | None = None
    decision_mode: Mode | None = None
    falsify_if: Reason | UnsetType = UNSET
    impact_weight: Weight | None = None
    hard_persona_limit: bool | UnsetType = UNSET
    review_due_at: Instant | None = None
    expires_at: Instant | None = None
    last_accessed_at: Instant | None = None
    review_interval: Length | None = None
    half_life: Length | None = None
    uncertainty_ttl: Length | None = None
    auto_verify_budget: Number | None = None
    deception_signals: Number | None = None
    reinforcement_count: Number | None = None
    status: Word | UnsetType = UNSET
    epistemic_state: Word | UnsetType = UNSET
    reason: Reason | UnsetType = UNSET

    def problems(self, policy: Policy, now: int) -> Iterator[Problem]:  # noqa: ARG002
        yield from _past_expiry(self.expires_at, now)
        if self.last_accessed_at is not None and self.last_accessed_at > now:
            yield "last_accessed_at", BadValue(allowed=f"not later than now, {format_utc(now)}")

    @property
    def because(self) -> Stored:
        return or_code(self.reason, "governed")

    @property
    def members(self) -> dict[str, Any]:
        """What is given of the members of an object, by the names of the model."""
        others = ("object_type", "object_id", "status", "epistemic_state", "reason")
        return _given(self, [name for name in self.__struct_fields__ if name not in others])


class Amendment(Request, frozen=True, kw_only=True):
    """Changed members."""

    risk_tier: Risk | None = None
    impact_tier: Impact | None = None
    falsify_if: Reason | UnsetType = UNSET
    impact_weight: Weight | None = None
    review_due_at: Instant | None = None
    expires_at: Instant | None = None
    review_interval: Length | None = None
    half_life: Length | None = None
    reason: Reason
    version: Version | None = None

    def problems(self, policy: Policy, now: int) -> Iterator[Problem]:  # noqa: ARG002
        yield from _past_expiry(self.expires_at, now)

    @property
    def because(self) -> Stored:
        return stated(self.reason)

    @property
    def members(self) -> dict[str, Any]:
        """What is given, by the names of the model."""
        return _given(self, AMENDABLE)


AMENDABLE = (
    *("review_interval", "review_due_at", "expires_at", "half_life", "falsify_if", "impact_weight"),
    *("risk_tier", "impact_tier"),
)
_IN_MODEL = {"evidence_refs": "evidence", "source_refs": "sources"}


def _past_expiry(expires_at: int | None, now: int) -> Iterator[Problem]:
    """A review may be overdue already."""
    if expires_at is not None and expires_at <= now:
        yield "expires_at", BadValue(allowed=f"later than now, {format_utc(now)}")


def _given(request: Request, names: list[str] | tuple[str, ...]) -> dict[str, Any]:
    values = {_IN_MODEL.get(name, name): getattr(request, name) for name in names}
    return {name: value for name, value in values.items() if value is not None and value is not UNSET}


class Evidence(Request, frozen=True, kw_only=True):
    """References to attach; a new unknown type can reopen an object that was closed as unknowable."""

    evidence_refs: Refs
    reason: Reason | UnsetType = UNSET
    unknown_type: Unknown | None = None
    version: Version | None = None

    def problems(self, policy: Policy, now: int) -> Iterator[Problem]:  # noqa: ARG002
        if self.evidence_refs == ():
            yield "evidence_refs", BadValue(allowed="at least one reference")

    @property
    def because(self) -> Stored:
        return or_code(self.reason, "evidence_attached")


class Refill(Request, frozen=True, kw_only=True):
    budget: Units | None = None
    reason: Reason

    @property
    def because(self) -> Stored:
        return stated(self.reason)


class SetGate(Request, frozen=True, kw_only=True):
    """A gate may be set before its object exists, so that the object can be blocked from the start."""

    gate: GateName
    verdict: AnyVerdict
    scope: Scope | UnsetType = UNSET
    reason: Reason

    def problems(self, policy: Policy, now: int) -> Iterator[Problem]:  # noqa: ARG002
        allowed = VERDICTS.get(self.gate or "")
        if allowed is not None and self.verdict not in allowed:
            yield "verdict", BadValue(Code.INVALID_ENUM, allowed=[*allowed])
        kinds, scope = rules_of(policy).machines, self.scope or EVERYTHING
        kind, _, about = scope.partition(":")
        if scope != EVERYTHING and (kind not in kinds or not about or about != about.strip()):
            yield "scope", BadValue(allowed=f"* or type:id with a type of {', '.join(sorted(kinds))}")


class ListObjects(Request, frozen=True, kw_only=True):
    """A page of objects of a type by id; all, or those in one place."""

    object_type: AnyType
    place: Place | UnsetType = UNSET
    after: AfterId | UnsetType = UNSET
    limit: PageLimit | None = None

    def problems(self, policy: Policy, now: int) -> Iterator[Problem]:  # noqa: ARG002
        kinds = sorted(rules_of(policy).machines)
        if not isinstance(self.object_type, str) or self.object_type not in kinds:
            yield "object_type", BadValue(Code.INVALID_ENUM, allowed=[*kinds])


class ListGates(Request, frozen=True, kw_only=True):
    """A page of gates by scope and name; all gates, or those that apply to one scope."""

    scope: ScopeFilter | UnsetType = UNSET
    after: AfterGate | UnsetType = UNSET
    limit: PageLimit | None = None


class ListRollbacks(Request, frozen=True, kw_only=True):
    limit: PageLimit | None = None


def or_code(text: str | UnsetType | None, code: str) -> Stored:
    """The words of the caller, or the code that stands for none."""
    return stated(text) if text else Stored(code)


# Replies

Words: TypeAlias = dict[str, str]
Duration = str


class GovernedObject(Message, frozen=True):
    """Every member of an object, in the order of the model."""

    object_type: str
    object_id: str
    status: str
    version: Count
    created_at: Time
    updated_at: Time
    epistemic_state: str | None
    risk_tier: Risk
    impact_tier: Impact
    evidence_refs: list[str]
    source_refs: list[str]
    next_action: str | None
    next_action_at: Time | None
    last_verified_at: Time | None
    last_accessed_at: Time | None
    last_reinforced_at: Time | None
    stale_since: Time | None
    review_interval: Duration | None
    review_due_at: Time | None
    expires_at: Time | None
    half_life: Duration
    reinforcement_count: Count
    impact_weight: Annotated[int, Meta(ge=0, le=100)] | Decimal
    falsify_if: str | None
    unknown_type: Unknown | None
    uncertain_since: Time | None
    uncertainty_ttl: Duration | None
    auto_verify_budget: Count | None
    verify_budget_left: Count
    verifications: Count
    decision_mode: Mode | None
    closed: str | None
    hard_persona_limit: bool
    deception_signals: Count
    rollback_pending: bool


class ShownGate(Message, frozen=True):
    """A gate, its verdict, and who set it."""

    gate: str
    scope: str
    verdict: str
    version: Count
    set_at: Time
    set_by: str
    reason: str
    override_by: str | None


class ShownRollback(Message, frozen=True):
    """A request to take back everything that was built on an object."""

    rollback_id: str
    object_type: str
    object_id: str
    asked_at: Time
    reason: str
    job_id: str | None
    finished_at: Time | None


class Step(Message, frozen=True, kw_only=True):
    """A step of a governed job. If it was entered, the verifier may run; otherwise the job has ended."""

    entered: bool
    job: messages.Job
    object: GovernedObject | None
    already_ended: bool | UnsetType = UNSET
    outcome: Outcome | UnsetType = UNSET
    reason: str | UnsetType = UNSET
    executed: Executed | UnsetType | None = UNSET
    gates: Facts | UnsetType = UNSET  # versions where it was entered, else verdicts
    decision_trace_id: str | UnsetType | None = UNSET
    escalated: bool | UnsetType = UNSET
    followup_job_id: str | UnsetType | None = UNSET
    gates_moved: bool | UnsetType = UNSET
    version: Count | UnsetType = UNSET
    verdicts: list[ShownGate] | UnsetType = UNSET
    mode: str | UnsetType | None = UNSET


class Kept(Message, frozen=True):
    """A changed object and the job for its next date."""

    object: GovernedObject
    followup_job_id: str | None


class Created(Kept, frozen=True):
    """The object was not under governance before."""


class Decided(Message, frozen=True, kw_only=True):
    outcome: Outcome
    reason: str
    executed: Executed | None
    gates: Words
    decision_trace_id: str | None
    escalated: bool
    object: GovernedObject
    followup_job_id: str | None


class RolledBack(Message, frozen=True):
    object: GovernedObject
    rollbacks: list[ShownRollback]


class ObjectPage(Message, frozen=True):
    objects: list[GovernedObject]
    next_after: str | None


class DecisionTrace(Message, frozen=True):
    """How a decision of high risk came about."""

    decision_trace_id: str
    at: Time
    action: str
    outcome: Executed
    verdicts: Words
    versions: dict[str, int]
    reason: str
    evidence_refs: list[str]
    risk_tier: Risk
    job_id: str | None
    code: str
    facts: Facts


class ShownObject(Message, frozen=True):
    object: GovernedObject
    gates: list[ShownGate]
    decision_traces: list[DecisionTrace]
    rollbacks: list[ShownRollback]


class WayOut(Message, frozen=True):
    action: str
    finding: str
    leads_to: str


class WhyObject(Message, frozen=True):
    """Why an object is in its state, what comes next and when, and any obstacle."""

    sentence: str
    status: str
    because: Facts | None
    next_action: str | None
    next_action_at: Time | None
    next_job_id: str | None
    in_the_way: str | None
    risk_tier: Risk
    impact_tier: Impact
    ways_out: list[WayOut]
    object: GovernedObject


class GatePage(Message, frozen=True):
    gates: list[ShownGate]
    next_after: str | None


class OneGate(Message, frozen=True):
    gate: ShownGate


class Rollbacks(Message, frozen=True):
    rollbacks: list[ShownRollback]


class CountedWord(Message, frozen=True):
    kind: str
    word: str
    count: Count


class ForAPerson(Message, frozen=True):
    """How many objects wait for a person to decide, and the first of them."""

    count: Count
    first: list[GovernedObject]


class Figures(Message, frozen=True):
    places: list[messages.Place]
    counts: list[CountedWord]
    for_a_person: ForAPerson


class MachinePlace(Message, frozen=True):
    place: str
    trust: Count
    uncertain: bool
    next_action: str | None
    after: Duration | None
    at: str | None


class MachineArrow(Message, frozen=True):
    source: str
    action: str
    finding: str
    target: str
    gates: list[str]


class ForbiddenArrow(Message, frozen=True):
    source: str
    target: str
    because: str


class ShownMachine(Message, frozen=True):
    """A state machine for drawing."""

    object_type: str
    first: str
    places: list[MachinePlace]
    arrows: list[MachineArrow]
    never: list[ForbiddenArrow]


class GateWords(Message, frozen=True):
    """The possible verdicts of a gate, and whether high-risk actions require it."""

    gate: str
    verdicts: list[str]
    required: bool


class Machines(Message, frozen=True):
    machines: list[ShownMachine]
    gates: list[GateWords]


# Views

TIMES = (
    *("created_at", "updated_at", "next_action_at", "last_verified_at", "last_accessed_at", "last_reinforced_at"),
    *("stale_since", "review_due_at", "expires_at", "uncertain_since"),
)
LENGTHS = ("review_interval", "half_life", "uncertainty_ttl")
NOT_IN_TRAIL = ("version", "updated_at")


def object_of(subject: Governed) -> GovernedObject:
    return GovernedObject(*(_shown(member_json(subject, name)) for name in Governed.__struct_fields__))


def _shown(member: Any) -> Any:
    return exact(member) if isinstance(member, Decimal) else member


def member_json(subject: Governed, name: str) -> Json:
    value = getattr(subject, name)
    if name in TIMES:
        return utc_or_null(value)
    if name in LENGTHS:
        return None if value is None else format_duration(value)
    if isinstance(value, tuple):
        return list(value)
    # An enum member becomes a plain string.
    return str(value) if isinstance(value, str) else value


def changes(before: Governed | None, after: Governed) -> tuple[dict[str, Json] | None, dict[str, Json]]:
    """The members that differ, old and new, without `version` and `updated_at`."""
    names = [name for name in Governed.__struct_fields__ if name not in NOT_IN_TRAIL]
    if before is None:
        return None, _members(after, names)
    touched = [name for name in names if getattr(before, name) != getattr(after, name)]
    return _members(before, touched), _members(after, touched)


def _members(subject: Governed, names: list[str]) -> dict[str, Json]:
    return {SHOWN_AS.get(name, name): member_json(subject, name) for name in names}


def gate_of(gate: Gate) -> ShownGate:
    at = format_utc(gate.set_at)
    return ShownGate(gate.name, gate.scope, gate.verdict, gate.version, at, gate.set_by, gate.reason, gate.override_by)


def rollback_of(rollback: Rollback) -> ShownRollback:
    return ShownRollback(
        rollback_id=f"rb_{rollback.n:012d}",
        object_type=rollback.object_type,
        object_id=rollback.object_id,
        asked_at=format_utc(rollback.asked_at),
        reason=sentence_of(rollback.reason),
        job_id=rollback.job_id,
        finished_at=utc_or_null(rollback.finished_at),
    )


def ending_json(ending: Ending, trace: str | None) -> dict[str, Any]:
    """The members of a reply that tell how an action ended."""
    return {
        "outcome": ending.outcome,
        "reason": sentence_of(ending.reason),
        "executed": ending.executed,
        "gates": {} if ending.reading is None else {**ending.reading.verdicts},
        "decision_trace_id": trace,
        "escalated": ending.escalation is not None,
    }


def shown_machine(machine: Machine) -> ShownMachine:
    """Places, the most trusted first, then by name; arrows; forbidden transitions."""
    places = []
    for place, trust in sorted(machine.trust.items(), key=lambda entry: (-entry[1], entry[0])):
        follow, uncertain = machine.follow.get(place), place in machine.uncertain
        if follow is None:
            places.append(MachinePlace(place, trust, uncertain, None, None, None))
        else:
            after = format_duration(follow.after)
            places.append(MachinePlace(place, trust, uncertain, follow.action, after, follow.at))
    return ShownMachine(
        machine.object_type,
        machine.first,
        places,
        [
            MachineArrow(arrow.source, arrow.action, arrow.finding, arrow.target, [*arrow.gates])
            for arrow in machine.arrows
        ],
        [ForbiddenArrow(rule.source, rule.target, rule.because) for rule in machine.never],
    )


# Calls

OBJECT, JOB = "{object_type}/{object_id}", "/jobs/{job_id}"
R = TypeVar("R", bound=Message)


def _changing(
    name: str, path: str, request: type[Request], reply: type[R], sentence: str, *refusals: Code, method: str = "POST"
) -> Call[R]:
    return Call(name, method, path, request, reply, Role.OPERATOR, sentence, refusals)


def _asking(
    name: str, path: str, reply: type[R], sentence: str, *refusals: Code, request: type[Request] | None = None
) -> Call[R]:
    return Call(name, "GET", path, request, reply, Role.VIEWER, sentence, refusals)


BEGIN = _changing(
    "begin",
    f"{JOB}/begin",
    Begin,
    Step,
    "Begin a verification: check the gates and take the budget; `entered` is whether to run it.",
    *HELD,
    Code.OBJECT_NOT_FOUND,
)
FINISH = _changing(
    "finish",
    f"{JOB}/finish",
    Finish,
    Step,
    "End a governed job with a verdict: transition, trail, follow-up and ack in one transaction.",
    *HELD,
    Code.OBJECT_NOT_FOUND,
    Code.NOT_BEGUN,
)
SETTLE = _changing(
    "settle",
    f"{JOB}/settle",
    Begin,
    Step,
    "End a decay or an archive, which the object itself decides.",
    *HELD,
    Code.OBJECT_NOT_FOUND,
    Code.NOT_BEGUN,
)
CREATE = _changing(
    "create",
    "/objects",
    NewObject,
    Created,
    "Put an object under governance and enqueue its first job.",
    Code.OBJECT_EXISTS,
)
LIST = _asking(
    "page", "/objects", ObjectPage, "Governed objects of a type, by id.", Code.INVALID_LIMIT, request=ListObjects
)
SHOW = _asking(
    "show",
    f"/objects/show/{OBJECT}",
    ShownObject,
    "A governed object, its gates, its latest decisions, its rollbacks.",
    Code.OBJECT_NOT_FOUND,
    Code.INVALID_ENUM,
)
WHY = _asking(
    "why",
    f"/objects/why/{OBJECT}",
    WhyObject,
    "Why it is in this state, what comes next and when, and any obstacle.",
    Code.OBJECT_NOT_FOUND,
    Code.INVALID_ENUM,
)
ATTACH_EVIDENCE = _changing(
    "attach_evidence",
    f"/objects/evidence/{OBJECT}",
    Evidence,
    Kept,
    "Attach references; a new unknown type can reopen an object closed as unknowable.",
    Code.OBJECT_NOT_FOUND,
    Code.STATE_CONFLICT,
)
DECIDE = _changing(
    "decide",
    f"/objects/decide/{OBJECT}",
    Decision,
    Decided,
    "Apply the finding of a named user, through the same machine and gates as a job.",
    Code.OBJECT_NOT_FOUND,
    Code.USER_REQUIRED,
    Code.STATE_CONFLICT,
    Code.ILLEGAL_TRANSITION,
    Code.GATE_CLOSED,
)
AMEND = _changing(
    "amend",
    f"/objects/amend/{OBJECT}",
    Amendment,
    Kept,
    "Change dates or falsify_if in the name of a user, or raise a tier.",
    Code.OBJECT_NOT_FOUND,
    Code.USER_REQUIRED,
    Code.STATE_CONFLICT,
    Code.ILLEGAL_TRANSITION,
)
REFILL = _changing(
    "refill",
    f"/objects/refill/{OBJECT}",
    Refill,
    Kept,
    "Refill the verification budget in the name of a user.",
    Code.OBJECT_NOT_FOUND,
    Code.USER_REQUIRED,
    Code.STATE_CONFLICT,
)
ROLLBACK_FINISHED = _changing(
    "rollback_finished",
    f"/objects/rollback-finished/{OBJECT}",
    Stated,
    RolledBack,
    "Report that the rollback of everything built on the object is finished.",
    Code.OBJECT_NOT_FOUND,
    Code.STATE_CONFLICT,
)
GATES = _asking(
    "gates",
    "/gates",
    GatePage,
    "All gates by scope and name, those for all objects first, or the gates that apply to one scope.",
    Code.INVALID_LIMIT,
    request=ListGates,
)
SET_GATE = _changing(
    "set_gate",
    "/gates",
    SetGate,
    OneGate,
    "Set the verdict of a gate, for all objects or for one; an override needs a named user.",
    Code.USER_REQUIRED,
    method="PUT",
)
ROLLBACKS = _asking(
    "rollbacks",
    "/rollbacks",
    Rollbacks,
    "Unfinished rollbacks, the oldest first.",
    Code.INVALID_LIMIT,
    request=ListRollbacks,
)
FIGURES = _asking("figures", "/governance", Figures, "The number of objects by place, and the counters of governance.")
MACHINES = _asking(
    "machines", "/machines", Machines, "The state machine of each object type, and the possible verdicts of each gate."
)
CALLS: tuple[Call[Any], ...] = (
    *(BEGIN, FINISH, SETTLE, CREATE, LIST, SHOW, WHY, ATTACH_EVIDENCE, DECIDE, AMEND, REFILL, ROLLBACK_FINISHED),
    *(GATES, SET_GATE, ROLLBACKS, FIGURES, MACHINES),
)
