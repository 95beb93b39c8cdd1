"""`Governance`: every call on governed objects, from jobs and people; each change is one transaction.

`GovernedObjects` has the same calls as Python methods, with the members, replies and errors of HTTP.
"""

from collections.abc import Callable
from typing import Any, Self, TypeVar

from pendula.governance import changes, deliveries
from pendula.governance.applying import INTERNAL_COUNTS
from pendula.governance.bodies import read_gate_page, read_limit, read_page
from pendula.governance.inputs import object_not_found, rules_of
from pendula.governance.tables import tables_of
from pendula.governance.views import gate_json, gate_words, machine_json, object_json, rollback_json
from pendula.governance.why import why
from pendula.jobs.calls import Calls
from pendula.jobs.model import Actor, JobRefused, Refused
from pendula.jobs.request_reading import Faults
from pendula.jobs.sentences import shown_reason
from pendula.jobs.store.protocol import Reader, Writer
from pendula.jobs.transaction.replies import LOCAL, Answer, Body, Caller, Reply
from pendula.kernel.canonical import Json

T = TypeVar("T")
TRACES_SHOWN = 20
FIRST_SHOWN = 3


class Governance:
    """Governed objects over one store, beside its `Calls`."""

    def __init__(self, calls: Calls) -> None:
        self._calls = calls

    # A job in two steps

    def begin(self, job_id: str, body: Body, caller: Caller = LOCAL) -> Answer:
        return self._write(
            lambda tx, now: deliveries.begin(tx, job_id, body, caller.actor, self._calls.policy, now), caller
        )

    def finish(self, job_id: str, body: Body, caller: Caller = LOCAL) -> Answer:
        return self._write(
            lambda tx, now: deliveries.finish(tx, job_id, body, caller.actor, self._calls.policy, now), caller
        )

    def settle(self, job_id: str, body: Body, caller: Caller = LOCAL) -> Answer:
        return self._write(
            lambda tx, now: deliveries.settle(tx, job_id, body, caller.actor, self._calls.policy, now), caller
        )

    # Objects

    def create(self, body: Body, caller: Caller = LOCAL) -> Answer:
        return self._write(lambda tx, now: changes.create(tx, body, caller.actor, self._calls.policy, now), caller)

    def attach_evidence(self, object_type: str, object_id: str, body: Body, caller: Caller = LOCAL) -> Answer:
        return self._keep(changes.attach_evidence, object_type, object_id, body, caller)

    def amend(self, object_type: str, object_id: str, body: Body, caller: Caller = LOCAL) -> Answer:
        return self._keep(changes.amend, object_type, object_id, body, caller)

    def refill(self, object_type: str, object_id: str, body: Body, caller: Caller = LOCAL) -> Answer:
        return self._keep(changes.refill, object_type, object_id, body, caller)

    def decide(self, object_type: str, object_id: str, body: Body, caller: Caller = LOCAL) -> Answer:
        return self._keep(changes.decide, object_type, object_id, body, caller)

    def rollback_finished(self, object_type: str, object_id: str, body: Body, caller: Caller = LOCAL) -> Answer:
        return self._keep(changes.rollback_finished, object_type, object_id, body, caller)

    def set_gate(self, body: Body, caller: Caller = LOCAL) -> Answer:
        policy = self._calls.policy
        return self._write(lambda tx, now: changes.set_gate(tx, body, caller.actor, policy, now), caller)

    # Questions

    def show(self, object_type: str, object_id: str) -> Answer:
        return self._calls.store.read(lambda look: _shown(look, object_type, object_id))

    def why(self, object_type: str, object_id: str) -> Answer:
        now, policy = self._calls.clock(), self._calls.policy
        return self._calls.store.read(lambda look: why(look, object_type, object_id, policy, now))

    def page(self, query: Body) -> Answer:
        """Objects of a type by id, all or those in one place; `next_after` starts the next page."""
        page = read_page(query, rules_of(self._calls.policy).machines)
        if isinstance(page, Faults):
            return page.refusal()
        subjects = self._calls.store.read(
            lambda look: tables_of(look).page(page.object_type, page.place, page.after, page.limit + 1)
        )
        objects: list[Json] = [object_json(subject) for subject in subjects[: page.limit]]
        next_after = subjects[page.limit - 1].object_id if len(subjects) > page.limit else None
        return Reply(200, {"objects": objects, "next_after": next_after})

    def gates(self, query: Body) -> Answer:
        """All gates, or those that apply to one scope; gates for all objects first. `next_after` is the next page."""
        page = read_gate_page(query)
        if isinstance(page, Faults):
            return page.refusal()
        gates = self._calls.store.read(lambda look: tables_of(look).gate_page(page.scope, page.after, page.limit + 1))
        shown: list[Json] = [gate_json(gate) for gate in gates[: page.limit]]
        last = gates[page.limit - 1] if len(gates) > page.limit else None
        return Reply(200, {"gates": shown, "next_after": None if last is None else f"{last.scope} {last.name}"})

    def rollbacks(self, query: Body) -> Answer:
        """Unfinished rollbacks, the oldest first."""
        limit = read_limit(query)
        if isinstance(limit, Faults):
            return limit.refusal()
        rollbacks = self._calls.store.read(lambda look: tables_of(look).open_rollbacks(limit))
        return Reply(200, {"rollbacks": [rollback_json(rollback) for rollback in rollbacks]})

    def machines(self) -> Reply:
        """The state machine of each object type, and the possible verdicts of each gate."""
        machines: list[Json] = [
            machine_json(machine) for _, machine in sorted(rules_of(self._calls.policy).machines.items())
        ]
        return Reply(200, {"machines": machines, "gates": gate_words()})

    def figures(self) -> Reply:
        """The number of objects by place, the counters of governance, and the objects that need a person."""
        places, counts, (waiting, first) = self._calls.store.read(
            lambda look: (tables_of(look).places(), tables_of(look).counts(), tables_of(look).for_a_person(FIRST_SHOWN))
        )
        body: dict[str, Json] = {
            "places": [{"object_type": kind, "place": place, "objects": count} for kind, place, count in places],
            "counts": [
                {"kind": kind, "word": word, "count": count}
                for kind, word, count in counts
                if kind not in INTERNAL_COUNTS
            ],
            "for_a_person": {"count": waiting, "first": [object_json(subject) for subject in first]},
        }
        return Reply(200, body)

    # Inside

    def _keep(
        self, work: Callable[..., Answer], object_type: str, object_id: str, body: Body, caller: Caller
    ) -> Answer:
        policy = self._calls.policy
        return self._write(
            lambda tx, now: work(tx, object_type, object_id, body, actor=caller.actor, policy=policy, now=now), caller
        )

    def _write(self, work: Callable[[Writer, int], T], caller: Caller) -> T:
        return self._calls.change(work, caller)


def _shown(look: Reader, object_type: str, object_id: str) -> Answer:
    subject = tables_of(look).governed(object_type, object_id)
    if subject is None:
        return object_not_found(object_type, object_id)
    traces: list[Json] = []
    for name, body in tables_of(look).traces(object_type, object_id, TRACES_SHOWN):
        assert isinstance(body, dict)
        assert isinstance(body["reason"], dict)
        traces.append({"decision_trace_id": name, **body, **shown_reason(body["reason"])})
    gates: list[Json] = [gate_json(gate) for gate in tables_of(look).gates(subject.ref)]
    rollbacks: list[Json] = [rollback_json(one) for one in tables_of(look).rollbacks(object_type, object_id)]
    return Reply(
        200, {"object": object_json(subject), "gates": gates, "decision_traces": traces, "rollbacks": rollbacks}
    )


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
