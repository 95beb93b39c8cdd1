"""Check a store: its file, its invariants, and whether its audit trail leads to the present state."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeVar

import msgspec
from msgspec import Struct

from pendula.jobs import audit
from pendula.jobs.audit import FIRST, JOB_EVENT, STATE_EVENT, Row, shown
from pendula.jobs.hooks import governance
from pendula.jobs.model import SECOND, Finding, Job, Policy, Status, job_id
from pendula.jobs.store.protocol import AuditListing, Listing, Reader, Store
from pendula.kernel.canonical import Json, decode
from pendula.kernel.errors import InputRefused, WorldBroken
from pendula.kernel.time import format_utc

T = TypeVar("T")
PAGE = 5000
DAMAGED = "damaged_file"
TIME_AHEAD = "time_ahead"
# Matches only a member of an event: inside a string the quotation marks are escaped.
ENQUEUED = '"before":null'
TRACED = '"decision_trace_id"'


class Replayed(Struct, frozen=True):
    """The result of a replay of the trail."""

    events: int
    jobs: int
    findings: tuple[Finding, ...]


def damaged(sentence: str) -> Finding:
    return Finding(DAMAGED, "file", sentence)


def check(
    store: Store,
    now: int | None = None,
    step_sec: int = Policy().max_clock_step_sec,
    *,
    followups: bool = True,
) -> list[Finding]:
    """All findings; none for a sound store.

    With `now`, the time of a correct clock, a store time ahead of it by more than `step_sec` is a finding. With
    `followups` (the setting `auto_followup`), so is a governed object whose date has passed and that has no job.
    """
    found = [damaged(line) for line in store.integrity()]
    if now is not None:
        found += _findings_of(store, "time", lambda look: _time_ahead(look.latest_time(), now, step_sec))
    found += _findings_of(store, "jobs", lambda look: list(_invariants(look)))
    if followups:
        found += _findings_of(store, "objects", lambda look: list(_forgotten_objects(look, now or 0)))
    found += _findings_of(store, "audit", lambda look: list(_replay(look).findings))
    return found


def _time_ahead(latest: int, now: int, step_sec: int) -> list[Finding]:
    ahead = (latest - now) // SECOND
    if ahead <= step_sec:
        return []
    sentence = (
        f"the time of the store, {format_utc(latest)}, is {ahead} s ahead of this machine's clock; where that is "
        "right, set the time with: pendula jobs set-time"
    )
    return [Finding(TIME_AHEAD, "time", sentence)]


def _forgotten_objects(look: Reader, now: int) -> Iterator[Finding]:
    if look.any_governed():
        yield from governance().forgotten(look, max(now, look.latest_time()))


def _findings_of(store: Store, where: str, look: Callable[[Reader], list[Finding]]) -> list[Finding]:
    """The findings of one check; a failure of the check is itself a finding, and other checks still run."""
    try:
        return _read(store, look)
    except WorldBroken as broken:
        return [Finding(DAMAGED, where, broken.message)]


def replay(store: Store) -> Replayed:
    """Check the chain of the trail, and compare the trail with the store."""
    return _read(store, _replay)


def _read(store: Store, look: Callable[[Reader], T]) -> T:
    """Read the store; if it has invalid text, read again in the tolerant mode, which is slower."""
    try:
        return store.read(look)
    except WorldBroken:
        return store.read(look, damaged=True)


def _invariants(look: Reader) -> Iterator[Finding]:
    counted: dict[tuple[str, str, str, int, str], int] = {}
    for job in jobs_of(look):
        for law in _broken_laws(job):
            yield Finding(law, str(job.job_id), f"{job.job_id} is {job.status} with attempt {job.attempt}: {law}")
        key = (job.status, job.object_type, job.action, job.priority, job.queue)
        counted[key] = counted.get(key, 0) + 1
    stored = {(status, *rest): n for status, *rest, n in look.figures(0, 0).counts}
    if stored != counted:
        yield Finding("counts_differ", "counts", "the counters of the metrics differ from the jobs")


def _broken_laws(job: Job) -> list[str]:
    try:
        return list(_broken(job))
    except TypeError:
        return ["unreadable_job"]


def _broken(job: Job) -> Iterator[str]:
    if not 0 <= job.attempt <= job.max_attempts:
        yield "attempt_out_of_range"
    if job.status == Status.DEAD_LETTER and job.attempt != job.max_attempts:
        yield "dead_letter_with_attempts_left"
    held = (job.worker_id is not None, job.lease_expires_at is not None, job.lease is not None)
    if job.status == Status.RUNNING and not all(held):
        yield "running_without_lease"
    if job.status != Status.RUNNING and any(held):
        yield "lease_without_running"
    if job.status not in tuple(Status):
        yield "unknown_status"


def _replay(look: Reader) -> Replayed:
    findings: list[Finding] = []
    summary = _TrailSummary()
    for broken in audit.verify(summary.read(_rows(look))):
        findings.append(Finding("trail_broken", f"event {broken.n}", broken.problem))
        summary.stop_comparing()
    if not findings:
        findings += compare_jobs(look)
        findings += summary.governed.compare(look)
    return Replayed(summary.events, summary.jobs, tuple(findings))


class _TrailSummary:
    """Collects counts and the governed objects while the chain is verified."""

    def __init__(self) -> None:
        self.events = 0
        self.jobs = 0
        self.governed = governance().trail()
        self._counts_only = False

    def stop_comparing(self) -> None:
        """Only count events from here on, because one of them was altered."""
        self._counts_only = True

    def read(self, rows: Iterator[Row]) -> Iterator[Row]:
        for row in rows:
            yield row
            self.events += 1
            if not self._counts_only:
                self._read_event(row)

    def _read_event(self, row: Row) -> None:
        if row.event_type == audit.JOB_EVENT:
            self.jobs += ENQUEUED in row.body
            if TRACED not in row.body:
                return  # most events; `compare_jobs` reads them later
        event: Any = decode(row.body.encode())
        if isinstance(event.get("after"), dict):
            self.governed.read(row, event)


def _rows(look: Reader) -> Iterator[Row]:
    after = 0
    while True:
        page = look.events(AuditListing(PAGE, after))
        yield from page
        if len(page) < PAGE:
            return
        after = page[-1].n


# Initial members of a job that the enqueue event leaves out.
BEGINNING: Mapping[str, Json] = {
    "audit_event_id": None,
    "cancel_requested_at": None,
    "delivery_count": 0,
    "last_error": None,
    "outcome": None,
    "outcome_result_sha256": None,
    "payload_sha256": None,
    "worker_id": None,
}
# The members compared. The end of a lease is not among them, because a renewal changes it without an event.
COMPARED = tuple(sorted({*FIRST, *BEGINNING}))
_BITS = {name: 1 << place for place, name in enumerate(COMPARED)}


class _Change(Struct, gc=False):
    """The relevant part of an event."""

    after: dict[str, Json]
    before: msgspec.Raw

    @property
    def is_enqueue(self) -> bool:
        return bytes(self.before) == b"null"


_change = msgspec.json.Decoder(_Change).decode


def compare_jobs(look: Reader) -> list[Finding]:
    """The differences between an unbroken trail and the store: jobs, the newest first, then objects."""
    story = _BackwardComparison(look)
    for page in _pages(look):
        story.read(page)
    story.finish()
    return [
        finding for *_, finding in sorted(story.of_jobs, key=lambda entry: (-entry[0], entry[1]))
    ] + story.of_objects


class _BackwardComparison:
    def __init__(self, look: Reader) -> None:
        self.of_jobs: list[tuple[int, int, Finding]] = []  # number of the job, index of the member
        self.of_objects: list[Finding] = []
        self._look = look
        self._begun: dict[int, int] = {}  # jobs whose enqueue is not read yet, with the members compared
        self._found = 0  # stored jobs that the trail has
        self._dated: set[tuple[str, str]] = set()

    def read(self, page: list[Row]) -> None:
        numbers = {row.job_seq for row in page if row.event_type == JOB_EVENT and row.job_seq is not None}
        jobs = self._look.numbered(sorted(numbers))
        present = {job.seq: job for job in jobs if job.job_id == job_id(job.seq)}
        for row in page:
            if row.event_type == JOB_EVENT and row.job_seq is not None:
                self._read_job(row.job_seq, row, present)
            elif row.event_type == STATE_EVENT:
                self._read_object(row)

    def _read_job(self, seq: int, row: Row, present: Mapping[int, Job]) -> None:
        change = _change_in(row)
        if change is None:
            return
        seen = self._begun.get(seq, 0)
        after = {**BEGINNING, **change.after} if change.is_enqueue else change.after
        last_values: dict[str, Json] = {}
        for name, value in after.items():
            bit = _BITS.get(name)
            if bit is not None and not seen & bit:
                seen |= bit
                last_values[name] = value
        if seq in present and last_values:
            self._compare_job(present[seq], last_values)
        elif seq not in present:
            self._report_lost(seq, last_values)
        if change.is_enqueue:
            self._begun.pop(seq, None)
            self._found += seq in present
        else:
            self._begun[seq] = seen

    def _compare_job(self, job: Job, last_values: Mapping[str, Json]) -> None:
        try:
            present = shown(job, tuple(last_values))
        except (TypeError, IndexError, ValueError, InputRefused) as trouble:
            sentence = f"{job.job_id} cannot be read: {trouble}"
            self.of_jobs.append((job.seq, 0, Finding("unreadable_job", job.job_id, sentence)))
            return
        for name in last_values if present != last_values else ():
            if present[name] != last_values[name]:
                sentence = f"{name} of {job.job_id} is {present[name]!r}, in the trail {last_values[name]!r}"
                self.of_jobs.append((job.seq, COMPARED.index(name), Finding("trail_differs", job.job_id, sentence)))

    def _report_lost(self, seq: int, last_values: Mapping[str, Json]) -> None:
        """A finished job may have been deleted by retention, any other job never."""
        if (status := last_values.get("status")) in (Status.QUEUED, Status.RUNNING):
            sentence = f"{job_id(seq)} is {status} in the trail and missing in the store"
            self.of_jobs.append((seq, 0, Finding("job_lost", job_id(seq), sentence)))

    def _read_object(self, row: Row) -> None:
        key = (row.object_type, row.object_id)
        change = None if key in self._dated else _change_in(row)
        if change is None or "next_action_at" not in change.after:
            return
        self._dated.add(key)
        expected, stored = change.after["next_action_at"], self._look.object(*key)
        present = None if stored is None or stored.next_action_at is None else format_utc(stored.next_action_at)
        if present != expected:
            sentence = f"next_action_at of {row.object_id} is {present!r}, in the trail {expected!r}"
            self.of_objects.append(Finding("trail_differs", " ".join(key), sentence))

    def finish(self) -> None:
        """Report stored jobs that the trail does not have."""
        if self._found == self._look.count(Listing(PAGE)):
            return
        seen = {row.job_seq for page in _pages(self._look) for row in page if row.event_type == JOB_EVENT}
        for job in jobs_of(self._look):
            if job.seq not in seen or job.job_id != job_id(job.seq):
                finding = Finding("job_without_trail", job.job_id, f"the trail has no event of {job.job_id}")
                self.of_jobs.append((job.seq, 0, finding))


def _change_in(row: Row) -> _Change | None:
    """None for an event in another form; the missing change then shows as a difference."""
    try:
        return _change(row.body)
    except msgspec.ValidationError:
        return None


def _pages(look: Reader) -> Iterator[list[Row]]:
    """All events, the newest first. In an unbroken chain their numbers have no gaps."""
    last = look.last_event()
    while last > 0:
        first = max(0, last - PAGE)
        page = [row for row in look.events(AuditListing(PAGE, first)) if row.n <= last]
        yield page[::-1]
        last = first


def jobs_of(look: Reader) -> Iterator[Job]:
    """All jobs, the newest first."""
    before: int | None = None
    while True:
        page = look.jobs(Listing(PAGE, before))
        yield from page
        if len(page) < PAGE:
            return
        before = page[-1].seq
