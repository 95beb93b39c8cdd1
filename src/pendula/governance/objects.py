"""The calls on governed objects as methods, defined once: for a store, for a server and, awaited, for an event loop.

The members, replies and errors are those of HTTP. A refused call raises `JobRefused`; nothing was changed.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Coroutine, Mapping, Sequence
from datetime import datetime
from decimal import Decimal
from typing import Any, Concatenate, Literal, ParamSpec, Required, Self, TypedDict, TypeVar, Unpack, overload

from msgspec import UNSET, UnsetType

from pendula.governance.calls import Governance
from pendula.governance.messages import (
    AMEND,
    ATTACH_EVIDENCE,
    BEGIN,
    CREATE,
    DECIDE,
    FIGURES,
    FINISH,
    GATES,
    LIST,
    MACHINES,
    REFILL,
    ROLLBACK_FINISHED,
    ROLLBACKS,
    SET_GATE,
    SETTLE,
    SHOW,
    WHY,
    Created,
    Decided,
    Figures,
    GatePage,
    Kept,
    Machines,
    ObjectPage,
    OneGate,
    Rollbacks,
    RolledBack,
    ShownObject,
    Step,
    WhyObject,
)
from pendula.governance.model import Impact, Risk
from pendula.jobs.async_scheduler import AsyncScheduler
from pendula.jobs.client import RemoteScheduler
from pendula.jobs.messages import USER_MOST, Call, JobRefused, Message, is_user
from pendula.jobs.model import Actor, Refused
from pendula.jobs.reasons import Unknown
from pendula.jobs.scheduler import Scheduler
from pendula.jobs.transaction import LOCAL, Caller
from pendula.kernel.errors import WrongUsage

P = ParamSpec("P")
R = TypeVar("R", bound=Message)
T = TypeVar("T")
RiskWord = Risk | Literal["low", "medium", "high"]
ImpactWord = Impact | Literal["low", "medium", "high", "critical"]
UnknownWord = Unknown | Literal["multipath", "out_of_scope", "ontic_unknowable"]


class ReasonMember(TypedDict, total=False):
    reason: str | None


class VersionMember(TypedDict, total=False):
    """The call is refused unless the object has this version."""

    version: int | None


class EvidenceMembers(ReasonMember, VersionMember, total=False):
    """A new unknown type can reopen an object that was closed as unknowable."""

    unknown_type: UnknownWord | None


class VerdictMembers(VersionMember, total=False):
    reason: Required[str]
    evidence_refs: Sequence[str] | None
    unknown_type: UnknownWord | None


class AmendedMembers(TypedDict, total=False):
    """Durations are as in ISO 8601, such as P7D; times have a zone."""

    review_interval: str | None
    review_due_at: str | datetime | None
    expires_at: str | datetime | None
    half_life: str | None
    falsify_if: str
    impact_weight: int | float | Decimal | None
    risk_tier: RiskWord | None
    impact_tier: ImpactWord | None


class AmendMembers(AmendedMembers, VersionMember, total=False):
    pass


class NewMembers(AmendedMembers, ReasonMember, total=False):
    status: str
    epistemic_state: Literal["supported", "uncertain", "refuted"]
    evidence_refs: Sequence[str] | None
    source_refs: Sequence[str] | None
    reinforcement_count: int | None
    unknown_type: UnknownWord | None
    uncertainty_ttl: str | None
    auto_verify_budget: int | None
    decision_mode: Literal["explore", "collect", "conservative", "escalate", "abstain"] | None
    hard_persona_limit: bool
    deception_signals: int | None
    last_accessed_at: str | datetime | None


class RefillMembers(TypedDict, total=False):
    budget: int | None


class GateMembers(TypedDict, total=False):
    scope: str


class PageMembers(TypedDict, total=False):
    after: str | None
    limit: int | None


class ObjectPageMembers(PageMembers, total=False):
    place: str | None


class GatePageMembers(PageMembers, total=False):
    scope: str | None


class LimitMember(TypedDict, total=False):
    limit: int | None


class ProofMembers(TypedDict, total=False):
    """The proof of a lease."""

    worker_id: str | None
    lease_token: str | None


class FinishMembers(ProofMembers, total=False):
    """`version` and `gates` are those that `begin` returned."""

    finding: Required[str]
    reason: Required[str]
    evidence_refs: Sequence[str] | None
    unknown_type: UnknownWord | None
    version: int | UnsetType | None
    gates: Mapping[str, int] | UnsetType | None


class GovernedObjects(ABC):
    """Governed objects: state machines, gates, budgets, evidence."""

    @abstractmethod
    def send(self, call: Call[R], members: Mapping[str, Any], *about: str) -> R:
        """Make a call with the members of its body or query; `about` are the arguments in its path."""

    @abstractmethod
    def as_user(self, name: str) -> Self:
        """The same calls in the name of a user, as recorded in the audit trail. A server with tokens uses the name of
        the token instead."""

    def create(self, object_type: str, object_id: str, **members: Unpack[NewMembers]) -> Created:
        """Put an object under governance: `risk_tier`, `evidence_refs`, `review_interval="P7D"`, and so on."""
        return self.send(CREATE, {"object_type": object_type, "object_id": object_id, **members})

    def show(self, object_type: str, object_id: str) -> ShownObject:
        """Return the object, its gates, its latest decisions and its rollbacks."""
        return self.send(SHOW, {}, object_type, object_id)

    def why(self, object_type: str, object_id: str) -> WhyObject:
        """Explain the state, the next action and its time, and any obstacle; `sentence` has it all in one line."""
        return self.send(WHY, {}, object_type, object_id)

    def list(self, object_type: str, **query: Unpack[ObjectPageMembers]) -> ObjectPage:
        """Objects of a type by id; `place`, `after` and `limit` filter."""
        return self.send(LIST, {"object_type": object_type, **_asked(query)})

    def attach_evidence(self, object_type: str, object_id: str, *refs: str, **members: Unpack[EvidenceMembers]) -> Kept:
        return self.send(ATTACH_EVIDENCE, {"evidence_refs": [*refs], **members}, object_type, object_id)

    def decide(
        self, object_type: str, object_id: str, action: str, finding: str, **members: Unpack[VerdictMembers]
    ) -> Decided:
        """Apply the finding of a person, through the machine and the gates; `reason=` is required."""
        return self.send(DECIDE, {"action": action, "finding": finding, **members}, object_type, object_id)

    def amend(self, object_type: str, object_id: str, reason: str, **members: Unpack[AmendMembers]) -> Kept:
        """Change `expires_at`, `review_due_at`, `review_interval`, `half_life`, `falsify_if`, or raise a tier."""
        return self.send(AMEND, {"reason": reason, **members}, object_type, object_id)

    def refill(self, object_type: str, object_id: str, reason: str, **members: Unpack[RefillMembers]) -> Kept:
        """Refill the budget to its full size, or set it to `budget` units."""
        return self.send(REFILL, {"reason": reason, **members}, object_type, object_id)

    def rollback_finished(self, object_type: str, object_id: str, **members: Unpack[ReasonMember]) -> RolledBack:
        return self.send(ROLLBACK_FINISHED, members, object_type, object_id)

    def rollbacks(self, **query: Unpack[LimitMember]) -> Rollbacks:
        """Unfinished rollbacks, the oldest first, at most `limit`."""
        return self.send(ROLLBACKS, _asked(query))

    def set_gate(self, gate: str, verdict: str, reason: str, **members: Unpack[GateMembers]) -> OneGate:
        """Set the verdict of a gate, for all objects or for one with `scope="memory:m_1"`."""
        return self.send(SET_GATE, {"gate": gate, "verdict": verdict, "reason": reason, **members})

    def gates(self, **query: Unpack[GatePageMembers]) -> GatePage:
        """Gates; with `scope` those that apply to it, `after` and `limit` for a page."""
        return self.send(GATES, _asked(query))

    def machines(self) -> Machines:
        """The state machine of each object type, and the possible verdicts of each gate."""
        return self.send(MACHINES, {})

    def figures(self) -> Figures:
        return self.send(FIGURES, {})

    # A job in two steps

    def begin(self, job_id: str, **proof: Unpack[ProofMembers]) -> Step:
        """Check the gates and take the budget before a verification; `entered` is whether to run it."""
        return self.send(BEGIN, proof, job_id)

    def finish(self, job_id: str, **members: Unpack[FinishMembers]) -> Step:
        """End the job with a verdict: `finding`, `reason`, `evidence_refs`, and the proof of the lease."""
        # A job that was not entered has no version and no gates; its `finish` repeats how it ended.
        return self.send(FINISH, {name: value for name, value in members.items() if value is not UNSET}, job_id)

    def settle(self, job_id: str, **proof: Unpack[ProofMembers]) -> Step:
        """End a decay or archive job, which the object itself decides."""
        return self.send(SETTLE, proof, job_id)


class StoredObjects(GovernedObjects):
    """Governed objects of a store in this process."""

    def __init__(self, governance: Governance, caller: Caller = LOCAL) -> None:
        self._governance = governance
        self._caller = caller

    def as_user(self, name: str) -> Self:
        # Without a name a call that needs one is refused, by a store as by a server.
        if name and not is_user(name):
            raise WrongUsage(f"The name of a user has 1 to {USER_MOST} printable characters")
        return type(self)(self._governance, Caller(Actor("user", name), self._caller.request_id))

    def send(self, call: Call[R], members: Mapping[str, Any], *about: str) -> R:
        work: Callable[..., R | Refused] = getattr(self._governance, call.name)
        if not call.reads:
            answer = work(*about, members, self._caller)
        else:
            answer = work(*about) if call.request is None else work(*about, members)
        if isinstance(answer, Refused):
            raise JobRefused(answer)
        return answer


class RemoteObjects(GovernedObjects):
    """Governed objects of a server."""

    def __init__(self, client: RemoteScheduler, user: str | None = None) -> None:
        self._client = client
        self._user = user

    def as_user(self, name: str) -> Self:
        return type(self)(self._client, name)

    def send(self, call: Call[R], members: Mapping[str, Any], *about: str) -> R:
        return self._client.send_as(self._user, call, members, *about)


def _awaited(
    call: Callable[Concatenate[GovernedObjects, P], T],
) -> Callable[Concatenate["AsyncObjects", P], Coroutine[Any, Any, T]]:
    """The same call, made in a thread."""

    async def awaited(self: "AsyncObjects", /, *given: P.args, **members: P.kwargs) -> T:
        return await self.scheduler.made(call, self.blocking, *given, **members)

    awaited.__doc__ = call.__doc__
    return awaited


class AsyncObjects:
    """Governed objects of a store or a server, awaited."""

    def __init__(self, blocking: GovernedObjects, scheduler: AsyncScheduler) -> None:
        self.blocking = blocking
        self.scheduler = scheduler

    def as_user(self, name: str) -> "AsyncObjects":
        """The same calls as a named person, who is recorded in the trail."""
        return AsyncObjects(self.blocking.as_user(name), self.scheduler)

    create = _awaited(GovernedObjects.create)
    show = _awaited(GovernedObjects.show)
    why = _awaited(GovernedObjects.why)
    list = _awaited(GovernedObjects.list)
    attach_evidence = _awaited(GovernedObjects.attach_evidence)
    decide = _awaited(GovernedObjects.decide)
    amend = _awaited(GovernedObjects.amend)
    refill = _awaited(GovernedObjects.refill)
    rollback_finished = _awaited(GovernedObjects.rollback_finished)
    rollbacks = _awaited(GovernedObjects.rollbacks)
    set_gate = _awaited(GovernedObjects.set_gate)
    gates = _awaited(GovernedObjects.gates)
    machines = _awaited(GovernedObjects.machines)
    figures = _awaited(GovernedObjects.figures)
    begin = _awaited(GovernedObjects.begin)
    finish = _awaited(GovernedObjects.finish)
    settle = _awaited(GovernedObjects.settle)


@overload
def governed(client: Scheduler | RemoteScheduler) -> GovernedObjects: ...
@overload
def governed(client: AsyncScheduler) -> AsyncObjects: ...
def governed(client: Scheduler | RemoteScheduler | AsyncScheduler) -> GovernedObjects | AsyncObjects:
    """The governed objects of a store or a server."""
    match client:
        case Scheduler():
            return StoredObjects(Governance(client.calls), client.caller)
        case RemoteScheduler():
            return RemoteObjects(client)
        case AsyncScheduler():
            return AsyncObjects(governed(client.blocking), client)


def _asked(query: Mapping[str, Any]) -> dict[str, Any]:
    """Drop members that are None."""
    return {name: value for name, value in query.items() if value is not None}
