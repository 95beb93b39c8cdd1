"""`GovernedObjects`: the calls of governance as Python methods, with the members, replies and errors of HTTP."""

from typing import Any, Self

from pendula.jobs.governance.service import Governance
from pendula.jobs.model import Actor, JobRefused, Refused
from pendula.jobs.transaction.replies import LOCAL, Answer, Caller

Members = Any  # members of a body; the reader of each call checks their names


class GovernedObjects:
    """Governed objects of one store. A rejected call raises `JobRefused` and changes nothing."""

    def __init__(self, governance: Governance, caller: Caller = LOCAL) -> None:
        self._governance = governance
        self._caller = caller

    def as_user(self, name: str) -> Self:
        """The same calls in the name of a user, as recorded in the audit trail."""
        return type(self)(self._governance, Caller(Actor("user", name), self._caller.request_id))

    def create(self, object_type: str, object_id: str, **members: Members) -> dict[str, Any]:
        """Put an object under governance: `risk_tier`, `evidence_refs`, `review_interval="P7D"`, and so on."""
        body = {"object_type": object_type, "object_id": object_id, **members}
        return _granted(self._governance.create(body, self._caller))

    def show(self, object_type: str, object_id: str) -> dict[str, Any]:
        """Return the object, its gates, its latest decisions and its rollbacks."""
        return _granted(self._governance.show(object_type, object_id))

    def why(self, object_type: str, object_id: str) -> dict[str, Any]:
        """Explain the state, the next action and its time, and any obstacle; `sentence` has it all in one line."""
        return _granted(self._governance.why(object_type, object_id))

    def list(self, object_type: str, **query: Members) -> dict[str, Any]:
        """Objects of a type by id: `{"objects", "next_after"}`; `place`, `after` and `limit` filter."""
        return _granted(self._governance.page({"object_type": object_type, **_asked(query)}))

    def attach_evidence(self, object_type: str, object_id: str, *refs: str, **members: Members) -> dict[str, Any]:
        body = {"evidence_refs": list(refs), **members}
        return _granted(self._governance.attach_evidence(object_type, object_id, body, self._caller))

    def decide(self, object_type: str, object_id: str, action: str, finding: str, **members: Members) -> dict[str, Any]:
        """Apply the finding of a person, through the machine and the gates; `reason=` is required."""
        body = {"action": action, "finding": finding, **members}
        return _granted(self._governance.decide(object_type, object_id, body, self._caller))

    def amend(self, object_type: str, object_id: str, reason: str, **members: Members) -> dict[str, Any]:
        """Change `expires_at`, `review_due_at`, `review_interval`, `half_life`, `falsify_if`, or raise a tier."""
        body = {"reason": reason, **members}
        return _granted(self._governance.amend(object_type, object_id, body, self._caller))

    def refill(self, object_type: str, object_id: str, reason: str, **members: Members) -> dict[str, Any]:
        """Refill the budget to its full size, or set it to `budget` units."""
        body = {"reason": reason, **members}
        return _granted(self._governance.refill(object_type, object_id, body, self._caller))

    def rollback_finished(self, object_type: str, object_id: str, **members: Members) -> dict[str, Any]:
        return _granted(self._governance.rollback_finished(object_type, object_id, members, self._caller))

    def rollbacks(self, **query: Members) -> dict[str, Any]:
        """Unfinished rollbacks, the oldest first, at most `limit`."""
        return _granted(self._governance.rollbacks(_asked(query)))

    def set_gate(self, gate: str, verdict: str, reason: str, **members: Members) -> dict[str, Any]:
        """Set the verdict of a gate, for all objects or for one with `scope="memory:m_1"`."""
        body = {"gate": gate, "verdict": verdict, "reason": reason, **members}
        return _granted(self._governance.set_gate(body, self._caller))

    def gates(self, **query: Members) -> dict[str, Any]:
        """Gates: `{"gates", "next_after"}`; with `scope` those that apply to it, `after` and `limit` for a page."""
        return _granted(self._governance.gates(_asked(query)))

    def machines(self) -> dict[str, Any]:
        """The state machine of each object type, and the possible verdicts of each gate."""
        return _granted(self._governance.machines())

    def figures(self) -> dict[str, Any]:
        return _granted(self._governance.figures())

    # A job in two steps

    def begin(self, job_id: str, **proof: Members) -> dict[str, Any]:
        """Check the gates and take the budget before a verification; `entered` is whether to run it."""
        return _granted(self._governance.begin(job_id, proof, self._caller))

    def finish(self, job_id: str, **members: Members) -> dict[str, Any]:
        """End the job with a verdict: `finding`, `reason`, `evidence_refs`, and the proof of the lease."""
        return _granted(self._governance.finish(job_id, members, self._caller))

    def settle(self, job_id: str, **proof: Members) -> dict[str, Any]:
        """End a decay or archive job, which the object itself decides."""
        return _granted(self._governance.settle(job_id, proof, self._caller))


def _asked(query: dict[str, Any]) -> dict[str, Any]:
    """Drop members that are None."""
    return {name: value for name, value in query.items() if value is not None}


def _granted(answer: Answer) -> dict[str, Any]:
    if isinstance(answer, Refused):
        raise JobRefused(answer)
    return answer.body
