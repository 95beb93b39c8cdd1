"""`GovernedObjects`: the calls of governance as Python methods, with the members, replies and errors of HTTP."""

from typing import Any, Self

from pendula.jobs.governance.service import Governance
from pendula.jobs.model import Actor, JobRefused, Refused
from pendula.jobs.transaction.replies import LOCAL, Answer, Caller

Members = Any  # what a body may hold; each call says which names it knows


class GovernedObjects:
    """Governed objects of one store. What is refused is raised as `JobRefused`; nothing changed then."""

    def __init__(self, governance: Governance, caller: Caller = LOCAL) -> None:
        self._governance = governance
        self._caller = caller

    def as_user(self, name: str) -> Self:
        """The same in the name of a person, who then stands in the trail."""
        return type(self)(self._governance, Caller(Actor("user", name), self._caller.request_id))

    def create(self, object_type: str, object_id: str, **members: Members) -> dict[str, Any]:
        """Put an object under governance: `risk_tier`, `evidence_refs`, `review_interval="P7D"`, and so on."""
        body = {"object_type": object_type, "object_id": object_id, **members}
        return _granted(self._governance.create(body, self._caller))

    def show(self, object_type: str, object_id: str) -> dict[str, Any]:
        """The object, its gates, its latest decisions, its rollbacks."""
        return _granted(self._governance.show(object_type, object_id))

    def why(self, object_type: str, object_id: str) -> dict[str, Any]:
        """Why it is in this state, what comes next and when, what is in the way; `sentence` says it all."""
        return _granted(self._governance.why(object_type, object_id))

    def list(self, object_type: str, **query: Members) -> dict[str, Any]:
        """Objects of a type by id: `{"objects", "next_after"}`; `place`, `after` and `limit` choose among them."""
        return _granted(self._governance.page({"object_type": object_type, **_asked(query)}))

    def attach_evidence(self, object_type: str, object_id: str, *refs: str, **members: Members) -> dict[str, Any]:
        body = {"evidence_refs": list(refs), **members}
        return _granted(self._governance.attach_evidence(object_type, object_id, body, self._caller))

    def decide(self, object_type: str, object_id: str, action: str, finding: str, **members: Members) -> dict[str, Any]:
        """What a person found, through the machine and the gates; `reason=` is required."""
        body = {"action": action, "finding": finding, **members}
        return _granted(self._governance.decide(object_type, object_id, body, self._caller))

    def amend(self, object_type: str, object_id: str, reason: str, **members: Members) -> dict[str, Any]:
        """Say otherwise: `expires_at`, `review_due_at`, `review_interval`, `half_life`, `falsify_if`, a higher tier."""
        body = {"reason": reason, **members}
        return _granted(self._governance.amend(object_type, object_id, body, self._caller))

    def refill(self, object_type: str, object_id: str, reason: str, **members: Members) -> dict[str, Any]:
        """Give it its whole budget again, or `budget` units."""
        body = {"reason": reason, **members}
        return _granted(self._governance.refill(object_type, object_id, body, self._caller))

    def rollback_finished(self, object_type: str, object_id: str, **members: Members) -> dict[str, Any]:
        return _granted(self._governance.rollback_finished(object_type, object_id, members, self._caller))

    def rollbacks(self, **query: Members) -> dict[str, Any]:
        """Those that nobody has reported finished, the oldest first, at most `limit`."""
        return _granted(self._governance.rollbacks(_asked(query)))

    def set_gate(self, gate: str, verdict: str, reason: str, **members: Members) -> dict[str, Any]:
        """Give a gate its word, for everything, or for one object with `scope="memory:m_1"`."""
        body = {"gate": gate, "verdict": verdict, "reason": reason, **members}
        return _granted(self._governance.set_gate(body, self._caller))

    def gates(self, **query: Members) -> dict[str, Any]:
        """Gates: `{"gates", "next_after"}`; with `scope` those that count for it, `after` and `limit` for a page."""
        return _granted(self._governance.gates(_asked(query)))

    def machines(self) -> dict[str, Any]:
        """The state machine of each type of object, and the words that gates can be given."""
        return _granted(self._governance.machines())

    def figures(self) -> dict[str, Any]:
        return _granted(self._governance.figures())

    # A job in two steps

    def begin(self, job_id: str, **proof: Members) -> dict[str, Any]:
        """Read the gates and take the budget before a verification; `entered` says whether to go on."""
        return _granted(self._governance.begin(job_id, proof, self._caller))

    def finish(self, job_id: str, **members: Members) -> dict[str, Any]:
        """End the job with a verdict: `finding`, `reason`, `evidence_refs`, and the proof of the lease."""
        return _granted(self._governance.finish(job_id, members, self._caller))

    def settle(self, job_id: str, **proof: Members) -> dict[str, Any]:
        """End a decay or an archive, which the object itself decides."""
        return _granted(self._governance.settle(job_id, proof, self._caller))


def _asked(query: dict[str, Any]) -> dict[str, Any]:
    """What a query names; None is the same as not to name it."""
    return {name: value for name, value in query.items() if value is not None}


def _granted(answer: Answer) -> dict[str, Any]:
    if isinstance(answer, Refused):
        raise JobRefused(answer)
    return answer.body
