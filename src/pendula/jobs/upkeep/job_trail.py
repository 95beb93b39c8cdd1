"""Whether jobs and the next times of objects are what the trail tells, read from its end.

What the last event says of a member is what it must be; an earlier one counts for members that no later one named. So
nothing is kept of a job but which of its members were told, and that until its enqueue comes up.
"""

from collections.abc import Iterator, Mapping

import msgspec
from msgspec import Struct

from pendula.jobs.audit import FIRST, JOB_EVENT, STATE_EVENT, Row, shown
from pendula.jobs.ids import job_id
from pendula.jobs.model import Job, Status
from pendula.jobs.store.protocol import AuditListing, Listing, Reader
from pendula.jobs.upkeep.findings import Finding
from pendula.kernel.canonical import Json
from pendula.kernel.errors import InputRefused
from pendula.kernel.time import format_utc

PAGE = 5000
# What a job begins with and an enqueue does not write down.
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
# What the trail must tell of every job. A renewal moves the end of a lease without an event, so that is not among them.
TOLD = tuple(sorted({*FIRST, *BEGINNING}))
_BITS = {name: 1 << place for place, name in enumerate(TOLD)}


class _Change(Struct, gc=False):
    """What matters here of an event."""

    after: dict[str, Json]
    before: msgspec.Raw

    @property
    def is_enqueue(self) -> bool:
        return bytes(self.before) == b"null"


_change = msgspec.json.Decoder(_Change).decode


def compared(look: Reader) -> list[Finding]:
    """Where the store holds something else than an unbroken trail tells: jobs, the newest first, then objects."""
    story = _Backwards(look)
    for page in _pages(look):
        story.read(page)
    story.end()
    return [finding for *_, finding in sorted(story.of_jobs, key=lambda one: (-one[0], one[1]))] + story.of_objects


class _Backwards:
    def __init__(self, look: Reader) -> None:
        self.of_jobs: list[tuple[int, int, Finding]] = []  # number of the job, place of the member
        self.of_objects: list[Finding] = []
        self._look = look
        self._begun: dict[int, int] = {}  # jobs whose enqueue has not come up, and which members were told
        self._found = 0  # jobs that are there and were told of
        self._dated: set[tuple[str, str]] = set()

    def read(self, page: list[Row]) -> None:
        """Events, the newest first."""
        numbers = {row.job_seq for row in page if row.event_type == JOB_EVENT and row.job_seq is not None}
        jobs = self._look.numbered(sorted(numbers))
        present = {job.seq: job for job in jobs if job.job_id == job_id(job.seq)}
        for row in page:
            if row.event_type == JOB_EVENT and row.job_seq is not None:
                self._of_job(row.job_seq, row, present)
            elif row.event_type == STATE_EVENT:
                self._of_object(row)

    def _of_job(self, seq: int, row: Row, present: Mapping[int, Job]) -> None:
        change = _read(row)
        if change is None:
            return
        told = self._begun.get(seq, 0)
        after = {**BEGINNING, **change.after} if change.is_enqueue else change.after
        news: dict[str, Json] = {}
        for name, value in after.items():
            bit = _BITS.get(name)
            if bit is not None and not told & bit:
                told |= bit
                news[name] = value
        if seq in present and news:
            self._hold_against(present[seq], news)
        elif seq not in present:
            self._of_lost(seq, news)
        if change.is_enqueue:
            self._begun.pop(seq, None)
            self._found += seq in present
        else:
            self._begun[seq] = told

    def _hold_against(self, job: Job, news: Mapping[str, Json]) -> None:
        try:
            present = shown(job, tuple(news))
        except (TypeError, IndexError, ValueError, InputRefused) as trouble:
            sentence = f"{job.job_id} cannot be read: {trouble}"
            self.of_jobs.append((job.seq, 0, Finding("unreadable_job", job.job_id, sentence)))
            return
        for name in news if present != news else ():
            if present[name] != news[name]:
                sentence = f"{name} of {job.job_id} is {present[name]!r}, the trail tells {news[name]!r}"
                self.of_jobs.append((job.seq, TOLD.index(name), Finding("trail_differs", job.job_id, sentence)))

    def _of_lost(self, seq: int, news: Mapping[str, Json]) -> None:
        """A job that is over may have been removed after its time; one that is not may never be."""
        if (status := news.get("status")) in (Status.QUEUED, Status.RUNNING):
            sentence = f"the trail tells of {job_id(seq)}, which is {status}, and it is not there"
            self.of_jobs.append((seq, 0, Finding("job_lost", job_id(seq), sentence)))

    def _of_object(self, row: Row) -> None:
        about = (row.object_type, row.object_id)
        change = None if about in self._dated else _read(row)
        if change is None or "next_action_at" not in change.after:
            return
        self._dated.add(about)
        told, found = change.after["next_action_at"], self._look.object(*about)
        present = None if found is None or found.next_action_at is None else format_utc(found.next_action_at)
        if present != told:
            sentence = f"next_action_at of {row.object_id} is {present!r}, the trail tells {told!r}"
            self.of_objects.append(Finding("trail_differs", " ".join(about), sentence))

    def end(self) -> None:
        """What no event tells of."""
        if self._found == self._look.count(Listing(PAGE)):
            return
        told = {row.job_seq for page in _pages(self._look) for row in page if row.event_type == JOB_EVENT}
        for job in jobs_of(self._look):
            if job.seq not in told or job.job_id != job_id(job.seq):
                finding = Finding("job_without_trail", job.job_id, f"no event tells of {job.job_id}")
                self.of_jobs.append((job.seq, 0, finding))


def _read(row: Row) -> _Change | None:
    """None for what is in the chain and is nothing we write: what it should have told differs from the store."""
    try:
        return _change(row.body)
    except msgspec.ValidationError:
        return None


def _pages(look: Reader) -> Iterator[list[Row]]:
    """All events, the newest first. Their numbers have no gaps where the chain holds."""
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
