"""`Governance`: every call on governed objects, from jobs and people; each change is one transaction."""

from collections.abc import Callable
from typing import Any, TypeVar

from msgspec import convert

from pendula.governance import changes, deliveries
from pendula.governance.applying import INTERNAL_COUNTS
from pendula.governance.gates import REQUIRED, VERDICTS
from pendula.governance.inputs import object_not_found, rules_of
from pendula.governance.messages import (
    PAGE_DEFAULT,
    CountedWord,
    Created,
    Decided,
    DecisionTrace,
    Figures,
    ForAPerson,
    GatePage,
    GateWords,
    Kept,
    ListGates,
    ListObjects,
    ListRollbacks,
    Machines,
    ObjectPage,
    OneGate,
    Rollbacks,
    RolledBack,
    ShownObject,
    Step,
    WhyObject,
    gate_of,
    object_of,
    rollback_of,
    shown_machine,
)
from pendula.governance.tables import tables_of
from pendula.governance.why import why
from pendula.jobs.calls import Calls
from pendula.jobs.messages import Place
from pendula.jobs.model import Refused
from pendula.jobs.request_reading import Faults, read
from pendula.jobs.sentences import shown_reason
from pendula.jobs.store.protocol import Reader
from pendula.jobs.transaction import LOCAL, Body, Caller

T = TypeVar("T")
TRACES_SHOWN = 20
FIRST_SHOWN = 3


class Governance:
    """Governed objects over one store, beside its `Calls`."""

    def __init__(self, calls: Calls) -> None:
        self._calls = calls

    # A job in two steps

    def begin(self, job_id: str, body: Body, caller: Caller = LOCAL) -> Step | Refused:
        return self._change(deliveries.begin, caller, job_id, body)

    def finish(self, job_id: str, body: Body, caller: Caller = LOCAL) -> Step | Refused:
        return self._change(deliveries.finish, caller, job_id, body)

    def settle(self, job_id: str, body: Body, caller: Caller = LOCAL) -> Step | Refused:
        return self._change(deliveries.settle, caller, job_id, body)

    # Objects

    def create(self, body: Body, caller: Caller = LOCAL) -> Created | Refused:
        return self._change(changes.create, caller, body)

    def attach_evidence(self, object_type: str, object_id: str, body: Body, caller: Caller = LOCAL) -> Kept | Refused:
        return self._change(changes.attach_evidence, caller, object_type, object_id, body)

    def amend(self, object_type: str, object_id: str, body: Body, caller: Caller = LOCAL) -> Kept | Refused:
        return self._change(changes.amend, caller, object_type, object_id, body)

    def refill(self, object_type: str, object_id: str, body: Body, caller: Caller = LOCAL) -> Kept | Refused:
        return self._change(changes.refill, caller, object_type, object_id, body)

    def decide(self, object_type: str, object_id: str, body: Body, caller: Caller = LOCAL) -> Decided | Refused:
        return self._change(changes.decide, caller, object_type, object_id, body)

    def rollback_finished(
        self, object_type: str, object_id: str, body: Body, caller: Caller = LOCAL
    ) -> RolledBack | Refused:
        return self._change(changes.rollback_finished, caller, object_type, object_id, body)

    def set_gate(self, body: Body, caller: Caller = LOCAL) -> OneGate | Refused:
        return self._change(changes.set_gate, caller, body)

    # Questions

    def show(self, object_type: str, object_id: str) -> ShownObject | Refused:
        return self._calls.store.read(lambda look: _shown(look, object_type, object_id))

    def why(self, object_type: str, object_id: str) -> WhyObject | Refused:
        now, policy = self._calls.clock(), self._calls.policy
        return self._calls.store.read(lambda look: why(look, object_type, object_id, policy, now))

    def page(self, query: Body) -> ObjectPage | Refused:
        """Objects of a type by id, all or those in one place; `next_after` starts the next page."""
        page = read(ListObjects, query, self._calls.policy)
        if isinstance(page, Faults):
            return page.refusal()
        limit = page.limit or PAGE_DEFAULT
        subjects = self._calls.store.read(
            lambda look: tables_of(look).page(page.object_type, page.place or None, page.after or "", limit + 1)
        )
        next_after = subjects[limit - 1].object_id if len(subjects) > limit else None
        return ObjectPage([object_of(subject) for subject in subjects[:limit]], next_after)

    def gates(self, query: Body) -> GatePage | Refused:
        """All gates, or those that apply to one scope; gates for all objects first. `next_after` is the next page."""
        page = read(ListGates, query, self._calls.policy)
        if isinstance(page, Faults):
            return page.refusal()
        limit = page.limit or PAGE_DEFAULT
        scope, _, name = (page.after or "").rpartition(" ")
        gates = self._calls.store.read(
            lambda look: tables_of(look).gate_page(page.scope or None, (scope, name), limit + 1)
        )
        last = gates[limit - 1] if len(gates) > limit else None
        return GatePage(
            [gate_of(gate) for gate in gates[:limit]], None if last is None else f"{last.scope} {last.name}"
        )

    def rollbacks(self, query: Body) -> Rollbacks | Refused:
        """Unfinished rollbacks, the oldest first."""
        request = read(ListRollbacks, query, self._calls.policy)
        if isinstance(request, Faults):
            return request.refusal()
        limit = request.limit or PAGE_DEFAULT
        rollbacks = self._calls.store.read(lambda look: tables_of(look).open_rollbacks(limit))
        return Rollbacks([rollback_of(rollback) for rollback in rollbacks])

    def machines(self) -> Machines:
        """The state machine of each object type, and the possible verdicts of each gate."""
        machines = [shown_machine(machine) for _, machine in sorted(rules_of(self._calls.policy).machines.items())]
        return Machines(machines, [GateWords(name, [*words], name in REQUIRED) for name, words in VERDICTS.items()])

    def figures(self) -> Figures:
        """The number of objects by place, the counters of governance, and the objects that need a person."""
        places, counts, (waiting, first) = self._calls.store.read(
            lambda look: (tables_of(look).places(), tables_of(look).counts(), tables_of(look).for_a_person(FIRST_SHOWN))
        )
        return Figures(
            [Place(kind, place, count) for kind, place, count in places],
            [CountedWord(*counted) for counted in counts if counted[0] not in INTERNAL_COUNTS],
            ForAPerson(waiting, [object_of(subject) for subject in first]),
        )

    # Inside

    def _change(self, work: Callable[..., T], caller: Caller, *given: object) -> T:
        """Make a change in a transaction of its own."""
        policy = self._calls.policy
        return self._calls.change(lambda tx, now: work(tx, *given, caller.actor, policy, now), caller)


def _shown(look: Reader, object_type: str, object_id: str) -> ShownObject | Refused:
    tables = tables_of(look)
    subject = tables.governed(object_type, object_id)
    if subject is None:
        return object_not_found(object_type, object_id)
    traces = []
    for name, body in tables.traces(object_type, object_id, TRACES_SHOWN):
        assert isinstance(body, dict)
        assert isinstance(body["reason"], dict)
        members: dict[str, Any] = {"decision_trace_id": name, **body, **shown_reason(body["reason"])}
        traces.append(convert(members, DecisionTrace))
    return ShownObject(
        object_of(subject),
        [gate_of(gate) for gate in tables.gates(subject.ref)],
        traces,
        [rollback_of(one) for one in tables.rollbacks(object_type, object_id)],
    )
