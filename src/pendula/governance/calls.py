"""`Governance`: every call on governed objects, from jobs and people; each change is one transaction."""

from collections.abc import Callable
from typing import TypeVar

from pendula.governance import changes, deliveries
from pendula.governance.applying import INTERNAL_COUNTS
from pendula.governance.bodies import read_gate_page, read_limit, read_page
from pendula.governance.inputs import object_not_found, rules_of
from pendula.governance.tables import tables_of
from pendula.governance.views import gate_json, gate_words, machine_json, object_json, rollback_json
from pendula.governance.why import why
from pendula.jobs.calls import Calls
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
        return Reply({"objects": objects, "next_after": next_after})

    def gates(self, query: Body) -> Answer:
        """All gates, or those that apply to one scope; gates for all objects first. `next_after` is the next page."""
        page = read_gate_page(query)
        if isinstance(page, Faults):
            return page.refusal()
        gates = self._calls.store.read(lambda look: tables_of(look).gate_page(page.scope, page.after, page.limit + 1))
        shown: list[Json] = [gate_json(gate) for gate in gates[: page.limit]]
        last = gates[page.limit - 1] if len(gates) > page.limit else None
        return Reply({"gates": shown, "next_after": None if last is None else f"{last.scope} {last.name}"})

    def rollbacks(self, query: Body) -> Answer:
        """Unfinished rollbacks, the oldest first."""
        limit = read_limit(query)
        if isinstance(limit, Faults):
            return limit.refusal()
        rollbacks = self._calls.store.read(lambda look: tables_of(look).open_rollbacks(limit))
        return Reply({"rollbacks": [rollback_json(rollback) for rollback in rollbacks]})

    def machines(self) -> Reply:
        """The state machine of each object type, and the possible verdicts of each gate."""
        machines: list[Json] = [
            machine_json(machine) for _, machine in sorted(rules_of(self._calls.policy).machines.items())
        ]
        return Reply({"machines": machines, "gates": gate_words()})

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
        return Reply(body)

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
    return Reply({"object": object_json(subject), "gates": gates, "decision_traces": traces, "rollbacks": rollbacks})
