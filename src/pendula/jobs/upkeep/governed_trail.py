"""Whether governed objects are what the trail tells: their members and gates, what was closed, traced, rolled back."""

from collections.abc import Iterator
from decimal import Decimal
from typing import Any

from pendula.jobs import audit
from pendula.jobs.audit import Row
from pendula.jobs.governing.views import changes, gate_json
from pendula.jobs.objects.governed import Governed
from pendula.jobs.store.governed_protocol import Stored
from pendula.jobs.store.protocol import Reader
from pendula.jobs.upkeep.findings import Finding
from pendula.kernel.canonical import Json

PAGE = 5000
# Events that tell of a change of a governed object, and the member by which the first of them is known.
OF_GOVERNED = (audit.STATE_EVENT, audit.INVESTIGATION_EVENT, audit.ROLLBACK_EVENT)
OF_GATES = (audit.GATE_EVENT, audit.OVERRIDE_EVENT)
PUT_UNDER = "auto_verify_budget"
UNTOLD = frozenset({"version", "updated_at", "object_type", "object_id"})
About = tuple[str, str]


class GovernedStory:
    """What the trail tells of governed objects, event by event."""

    def __init__(self) -> None:
        self._objects: dict[About, dict[str, Json]] = {}
        self._gates: dict[tuple[str, str], dict[str, Json]] = {}
        self._traces: dict[str, About] = {}
        self._rollbacks: dict[About, dict[str, bool]] = {}  # by id, whether it waits

    def hear(self, row: Row, event: Any) -> None:
        about, after = (row.object_type, row.object_id), event["after"]
        if row.event_type in OF_GATES and "gate" in after:
            self._gates[after["gate"], after["scope"]] = after
        if (trace := event.get("decision_trace_id")) is not None:
            self._traces[trace] = about
        if row.event_type == audit.ROLLBACK_EVENT:
            self._hear_rollback(about, after)
        if row.event_type in OF_GOVERNED and (about in self._objects or PUT_UNDER in after):
            self._objects.setdefault(about, {}).update(after)

    def _hear_rollback(self, about: About, after: Any) -> None:
        known = self._rollbacks.setdefault(about, {})
        if "rollback_id" in after:
            known[after["rollback_id"]] = True
        elif after.get("rollback_pending") is False:
            self._rollbacks[about] = dict.fromkeys(known, False)

    def compared(self, look: Reader) -> Iterator[Finding]:
        """Where the store holds something else."""
        yield from self._objects_compared(look)
        yield from self._gates_compared(look)
        yield from self._closed_compared(look)
        yield from self._rollbacks_compared(look)
        for trace, about in self._traces.items():
            if not look.governance.has_trace(trace, *about):
                yield Finding("trace_lost", " ".join(about), f"the trail names {trace}, and it is not there")
        for job_id in look.governance.jobs_out_of_turn():
            yield Finding("job_out_of_turn", job_id, f"{job_id} was begun or put off more often than it can have been")

    def _objects_compared(self, look: Reader) -> Iterator[Finding]:
        """Every member of every governed object: its state, its next time, its budget."""
        left = set(self._objects)
        for stored in stored_objects(look):
            about = (stored.object_type, stored.object_id)
            left.discard(about)
            where, subject, told = " ".join(about), stored.subject, self._objects.get(about)
            if subject is None:
                yield Finding("unreadable_object", where, f"{where} cannot be read")
            elif told is None:
                yield Finding("object_without_trail", where, f"no event tells of {where}")
            else:
                yield from _members_compared(subject, told, where)
                yield from _rows_compared(look, stored, subject, where)
        for object_type, object_id in sorted(left):
            sentence = f"the trail tells of {object_type} {object_id}, which is governed, and it is not there"
            yield Finding("object_lost", f"{object_type} {object_id}", sentence)

    def _gates_compared(self, look: Reader) -> Iterator[Finding]:
        present = {(gate.name, gate.scope): gate_json(gate) for gate in look.governance.gates()}
        for name, scope in sorted(present.keys() | self._gates.keys()):
            is_now, told = present.get((name, scope)), self._gates.get((name, scope))
            if is_now != told:
                sentence = f"{name} for {scope} is {_word(is_now)}, the trail tells {_word(told)}"
                yield Finding("gate_differs", f"{name} {scope}", sentence)

    def _closed_compared(self, look: Reader) -> Iterator[Finding]:
        told = {about for about, members in self._objects.items() if members.get("closed") is not None}
        for about in sorted(told ^ look.governance.closed()):
            where = " ".join(about)
            yield Finding("closed_differs", where, f"whether {where} is closed for verification is not what it says")

    def _rollbacks_compared(self, look: Reader) -> Iterator[Finding]:
        for about, told in self._rollbacks.items():
            rows = look.governance.rollbacks(*about)
            if told != {f"rb_{one.n:012d}": one.finished_at is None for one in rows}:
                where = " ".join(about)
                yield Finding("rollback_differs", where, f"the rollbacks of {where} are not those that the trail tells")


def _word(gate: dict[str, Json] | None) -> str:
    if gate is None:
        return "not there"
    return f"{gate['verdict']} at version {gate['version']}, set by {gate['set_by']}"


def stored_objects(look: Reader) -> Iterator[Stored]:
    """All governed objects by type and id, as they lie there."""
    after = ("", "")
    while True:
        page = look.governance.stored(after, PAGE)
        yield from page
        if len(page) < PAGE:
            return
        after = (page[-1].object_type, page[-1].object_id)


def _members_compared(subject: Governed, told: dict[str, Json], where: str) -> Iterator[Finding]:
    # The trail writes exact decimals as texts.
    present = {name: str(it) if isinstance(it, Decimal) else it for name, it in changes(None, subject)[1].items()}
    for name in sorted(present.keys() - UNTOLD):
        if told.get(name) != present[name]:
            sentence = f"{name} of {where} is {present[name]!r}, the trail tells {told.get(name)!r}"
            yield Finding("trail_differs", where, sentence)


def _rows_compared(look: Reader, stored: Stored, subject: Governed, where: str) -> Iterator[Finding]:
    """What is kept beside the object, to find it by."""
    own = (stored.object_type, stored.object_id, stored.place, stored.next_action_at)
    if own != (subject.object_type, subject.object_id, subject.place, subject.next_action_at):
        yield Finding("objects_differ", where, f"{where} would be found where it is not")
    row = look.object(stored.object_type, stored.object_id)
    there = None if row is None else (row.state, row.next_action_at, row.version)
    if there != (subject.status, subject.next_action_at, subject.version):
        yield Finding("objects_differ", where, f"{where} is not where the row among all objects says")
