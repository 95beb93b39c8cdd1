"""Compare governed objects with the audit trail: members, gates, closures, decision traces, rollbacks."""

from collections.abc import Iterator
from decimal import Decimal
from typing import Any

from pendula.governance.model import Governed
from pendula.governance.views import changes, gate_json
from pendula.jobs import audit
from pendula.jobs.audit import Row
from pendula.jobs.store.governed_protocol import Stored
from pendula.jobs.store.protocol import Reader
from pendula.jobs.upkeep.findings import Finding
from pendula.kernel.canonical import Json

PAGE = 5000
# Events of changes of governed objects, and the member that marks the first of them.
OF_GOVERNED = (audit.STATE_EVENT, audit.INVESTIGATION_EVENT, audit.ROLLBACK_EVENT)
OF_GATES = (audit.GATE_EVENT, audit.OVERRIDE_EVENT)
FIRST_MEMBER = "auto_verify_budget"
NOT_IN_TRAIL = frozenset({"version", "updated_at", "object_type", "object_id"})
ObjectKey = tuple[str, str]


class GovernedTrail:
    """Governed objects as the audit trail has them, built event by event."""

    def __init__(self) -> None:
        self._objects: dict[ObjectKey, dict[str, Json]] = {}
        self._gates: dict[tuple[str, str], dict[str, Json]] = {}
        self._traces: dict[str, ObjectKey] = {}
        self._rollbacks: dict[ObjectKey, dict[str, bool]] = {}  # by id, whether it is open

    def read(self, row: Row, event: Any) -> None:
        key, after = (row.object_type, row.object_id), event["after"]
        if row.event_type in OF_GATES and "gate" in after:
            self._gates[after["gate"], after["scope"]] = after
        if (trace := event.get("decision_trace_id")) is not None:
            self._traces[trace] = key
        if row.event_type == audit.ROLLBACK_EVENT:
            self._read_rollback(key, after)
        if row.event_type in OF_GOVERNED and (key in self._objects or FIRST_MEMBER in after):
            self._objects.setdefault(key, {}).update(after)

    def _read_rollback(self, key: ObjectKey, after: Any) -> None:
        known = self._rollbacks.setdefault(key, {})
        if "rollback_id" in after:
            known[after["rollback_id"]] = True
        elif after.get("rollback_pending") is False:
            self._rollbacks[key] = dict.fromkeys(known, False)

    def compare(self, look: Reader) -> Iterator[Finding]:
        """The differences between the trail and the store."""
        yield from self._compare_objects(look)
        yield from self._compare_gates(look)
        yield from self._compare_closed(look)
        yield from self._compare_rollbacks(look)
        for trace, key in self._traces.items():
            if not look.governance.has_trace(trace, *key):
                yield Finding("trace_lost", " ".join(key), f"the trail names {trace}, which is missing")
        for job_id in look.governance.jobs_out_of_turn():
            yield Finding("job_out_of_turn", job_id, f"{job_id} was begun or deferred more often than possible")

    def _compare_objects(self, look: Reader) -> Iterator[Finding]:
        """Every member of every governed object: its state, its next time, its budget."""
        left = set(self._objects)
        for stored in stored_objects(look):
            key = (stored.object_type, stored.object_id)
            left.discard(key)
            where, subject, expected = " ".join(key), stored.subject, self._objects.get(key)
            if subject is None:
                yield Finding("unreadable_object", where, f"{where} cannot be read")
            elif expected is None:
                yield Finding("object_without_trail", where, f"the trail has no event of {where}")
            else:
                yield from _compare_members(subject, expected, where)
                yield from _compare_rows(look, stored, subject, where)
        for object_type, object_id in sorted(left):
            sentence = f"{object_type} {object_id} is governed in the trail and missing in the store"
            yield Finding("object_lost", f"{object_type} {object_id}", sentence)

    def _compare_gates(self, look: Reader) -> Iterator[Finding]:
        present = {(gate.name, gate.scope): gate_json(gate) for gate in look.governance.gates()}
        for name, scope in sorted(present.keys() | self._gates.keys()):
            is_now, expected = present.get((name, scope)), self._gates.get((name, scope))
            if is_now != expected:
                sentence = f"{name} for {scope} is {_describe_gate(is_now)}, in the trail {_describe_gate(expected)}"
                yield Finding("gate_differs", f"{name} {scope}", sentence)

    def _compare_closed(self, look: Reader) -> Iterator[Finding]:
        expected = {key for key, members in self._objects.items() if members.get("closed") is not None}
        for key in sorted(expected ^ look.governance.closed()):
            where = " ".join(key)
            yield Finding(
                "closed_differs", where, f"{where} is closed for verification in the store or in the trail, not in both"
            )

    def _compare_rollbacks(self, look: Reader) -> Iterator[Finding]:
        for key, expected in self._rollbacks.items():
            rows = look.governance.rollbacks(*key)
            if expected != {f"rb_{row.n:012d}": row.finished_at is None for row in rows}:
                where = " ".join(key)
                yield Finding("rollback_differs", where, f"the rollbacks of {where} differ from the trail")


def _describe_gate(gate: dict[str, Json] | None) -> str:
    if gate is None:
        return "missing"
    return f"{gate['verdict']} at version {gate['version']}, set by {gate['set_by']}"


def stored_objects(look: Reader) -> Iterator[Stored]:
    """All stored governed objects, by type and id."""
    after = ("", "")
    while True:
        page = look.governance.stored(after, PAGE)
        yield from page
        if len(page) < PAGE:
            return
        after = (page[-1].object_type, page[-1].object_id)


def _compare_members(subject: Governed, expected: dict[str, Json], where: str) -> Iterator[Finding]:
    # The trail has decimals as text.
    present = {
        name: str(value) if isinstance(value, Decimal) else value for name, value in changes(None, subject)[1].items()
    }
    for name in sorted(present.keys() - NOT_IN_TRAIL):
        if expected.get(name) != present[name]:
            sentence = f"{name} of {where} is {present[name]!r}, in the trail {expected.get(name)!r}"
            yield Finding("trail_differs", where, sentence)


def _compare_rows(look: Reader, stored: Stored, subject: Governed, where: str) -> Iterator[Finding]:
    """Check the columns by which the object is found."""
    own = (stored.object_type, stored.object_id, stored.place, stored.next_action_at)
    if own != (subject.object_type, subject.object_id, subject.place, subject.next_action_at):
        yield Finding("objects_differ", where, f"the index columns of {where} differ from the object")
    row = look.object(stored.object_type, stored.object_id)
    listed = None if row is None else (row.state, row.next_action_at, row.version)
    if listed != (subject.status, subject.next_action_at, subject.version):
        yield Finding("objects_differ", where, f"the row of {where} in the table of objects differs from the object")
