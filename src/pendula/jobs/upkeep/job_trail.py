"""Compare jobs and the next times of objects with the audit trail, read backwards.

The last event that names a member has its present value. So only the set of members already compared is kept for each
job, until its enqueue event is read.
"""

from collections.abc import Iterator, Mapping

import msgspec
from msgspec import Struct

from pendula.jobs.audit import FIRST, JOB_EVENT, STATE_EVENT, Row, shown
from pendula.jobs.ids import job_id
from pendula.jobs.model import Finding, Job, Status
from pendula.jobs.store.protocol import AuditListing, Listing, Reader
from pendula.kernel.canonical import Json
from pendula.kernel.errors import InputRefused
from pendula.kernel.time import format_utc

PAGE = 5000
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


def compare(look: Reader) -> list[Finding]:
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
        change = _read(row)
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
        change = None if key in self._dated else _read(row)
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


def _read(row: Row) -> _Change | None:
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
