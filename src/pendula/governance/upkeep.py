"""The upkeep of governed objects: compare them with the audit trail, find forgotten ones, watch the learning rate.

There is one alert for each stall of learning (three periods without an exploratory verification), however many
processes check; the next one only after another exploratory verification.
"""

from collections.abc import Iterator
from decimal import Decimal
from typing import Any

from msgspec.structs import replace

from pendula.governance.applying import Stall, stall
from pendula.governance.inputs import rules_of
from pendula.governance.messages import changes, gate_of
from pendula.governance.model import Governed
from pendula.governance.tables import Stored, tables_of
from pendula.jobs import audit
from pendula.jobs.audit import Row
from pendula.jobs.messages import plain
from pendula.jobs.model import Finding, Policy, Status
from pendula.jobs.store.protocol import Listing, Reader, Store
from pendula.kernel.canonical import Json
from pendula.kernel.time import format_utc

PAGE = 5000
# Events of changes of governed objects, and the member that marks the first of them.
OF_GOVERNED = (audit.STATE_EVENT, audit.INVESTIGATION_EVENT, audit.ROLLBACK_EVENT)
OF_GATES = (audit.GATE_EVENT, audit.OVERRIDE_EVENT)
FIRST_MEMBER = "auto_verify_budget"
NOT_IN_TRAIL = frozenset({"version", "updated_at", "object_type", "object_id"})
ObjectKey = tuple[str, str]
FORGOTTEN = "object_forgotten"
PENDING = (Status.QUEUED, Status.RUNNING)
ALERT = "governance.learning_stalled"


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
            if not tables_of(look).has_trace(trace, *key):
                yield Finding("trace_lost", " ".join(key), f"the trail names {trace}, which is missing")
        for job_id in tables_of(look).jobs_out_of_turn():
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
        present = {(gate.name, gate.scope): plain(gate_of(gate)) for gate in tables_of(look).gates()}
        for name, scope in sorted(present.keys() | self._gates.keys()):
            is_now, expected = present.get((name, scope)), self._gates.get((name, scope))
            if is_now != expected:
                sentence = f"{name} for {scope} is {_describe_gate(is_now)}, in the trail {_describe_gate(expected)}"
                yield Finding("gate_differs", f"{name} {scope}", sentence)

    def _compare_closed(self, look: Reader) -> Iterator[Finding]:
        expected = {key for key, members in self._objects.items() if members.get("closed") is not None}
        for key in sorted(expected ^ tables_of(look).closed()):
            where = " ".join(key)
            yield Finding(
                "closed_differs", where, f"{where} is closed for verification in the store or in the trail, not in both"
            )

    def _compare_rollbacks(self, look: Reader) -> Iterator[Finding]:
        for key, expected in self._rollbacks.items():
            rows = tables_of(look).rollbacks(*key)
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
        page = tables_of(look).stored(after, PAGE)
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


def forgotten(look: Reader, now: int) -> Iterator[Finding]:
    """Governed objects whose date has passed and for which no job waits or runs."""
    for stored in stored_objects(look):
        subject = stored.subject
        if subject is None or subject.next_action is None or (subject.next_action_at or 0) > now:
            continue
        if not any(look.jobs(replace(_one_job(subject), status=status)) for status in PENDING):
            where = f"{subject.object_type} {subject.object_id}"
            due = (
                "has no date" if subject.next_action_at is None else f"was due at {format_utc(subject.next_action_at)}"
            )
            sentence = (
                f"{subject.next_action} of {where} {due} and has no job; new evidence, an "
                "amendment or a decision enqueues one: pendula jobs objects"
            )
            yield Finding(FORGOTTEN, where, sentence)


def _one_job(subject: Governed) -> Listing:
    return Listing(1, object_type=subject.object_type, object_id=subject.object_id)


def check_learning(store: Store, policy: Policy, now: int) -> bool:
    """Store an alert unless this stall has one; return whether there is a stall."""
    days = rules_of(policy).limits.learning_period_days
    found = store.read(lambda look: stall(tables_of(look), days, now))
    if found is not None:
        alert_id = f"learning_stalled:{found.last}"
        store.write(lambda tx: tx.alert(alert_id, _alert(alert_id, found, now)))
    return found is not None


def _alert(alert_id: str, found: Stall, now: int) -> dict[str, Json]:
    return {
        "alert": ALERT,
        "alert_id": alert_id,
        "severity": "warning",
        "periods": found.periods,
        "since": format_utc(found.since),
        "at": format_utc(now),
    }
