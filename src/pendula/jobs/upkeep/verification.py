"""Whether a store is what it should be: its invariants, its trail, and whether the trail tells the present state."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from msgspec import Struct

from pendula.jobs import audit
from pendula.jobs.audit import FIRST, Row, shown
from pendula.jobs.model import Job, Status
from pendula.jobs.store.protocol import AuditListing, Listing, Reader, Store
from pendula.jobs.upkeep.findings import Finding
from pendula.jobs.upkeep.governed_trail import GovernedStory
from pendula.kernel.canonical import Json, decode
from pendula.kernel.errors import InputRefused, WorldBroken
from pendula.kernel.time import format_utc

PAGE = 5000
DAMAGED = "damaged_file"
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


class Replayed(Struct, frozen=True):
    """What following the trail from its beginning gave."""

    events: int
    jobs: int
    findings: tuple[Finding, ...]


def damaged(sentence: str) -> Finding:
    """The file as a whole is not what was written."""
    return Finding(DAMAGED, "file", sentence)


def check(store: Store) -> list[Finding]:
    """Everything that is wrong; nothing when the store is sound."""
    found = [damaged(line) for line in store.integrity()]
    found += _looked(store, "jobs", lambda look: list(_invariants(look)))
    found += _looked(store, "audit", lambda look: list(_replay(look).findings))
    return found


def _looked(store: Store, where: str, look: Callable[[Reader], list[Finding]]) -> list[Finding]:
    """What a look finds; that it cannot be finished is a finding, and no reason to leave out the others."""
    try:
        return store.read(look, damaged=True)
    except WorldBroken as broken:
        return [Finding(DAMAGED, where, broken.message)]


def replay(store: Store) -> Replayed:
    """Whether the chain holds, and whether the trail tells what the store holds."""
    return store.read(_replay, damaged=True)


def _invariants(look: Reader) -> Iterator[Finding]:
    counted: dict[tuple[str, str, str, int, str], int] = {}
    for job in _jobs(look):
        for law in _laws(job):
            yield Finding(law, str(job.job_id), f"{job.job_id} is {job.status} with attempt {job.attempt}: {law}")
        key = (job.status, job.object_type, job.action, job.priority, job.queue)
        counted[key] = counted.get(key, 0) + 1
    told = {(status, *rest): n for status, *rest, n in look.figures(0, 0).counts}
    if told != counted:
        yield Finding("counts_differ", "counts", "the numbers that metrics are made of are not those of the jobs")


def _laws(job: Job) -> list[str]:
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
    found: list[Finding] = []
    story = _Story()
    for one in audit.verify(story.read(_rows(look))):
        found.append(Finding("trail_broken", f"event {one.n}", one.problem))
        story.doubt()
    if not found:
        found += _compared(look, story.jobs)
        found += _objects_compared(look, story.objects)
        found += story.governed.compared(look)
    return Replayed(story.events, len(story.jobs), tuple(found))


class _Story:
    """What the trail tells, event by event."""

    def __init__(self) -> None:
        self.events = 0
        self._doubted = False
        self.jobs: dict[str, dict[str, Json]] = {}
        self.objects: dict[tuple[str, str], dict[str, Json]] = {}
        self.governed = GovernedStory()

    def doubt(self) -> None:
        """From here on events are counted only: one of them is not what was written."""
        self._doubted = True

    def read(self, rows: Iterator[Row]) -> Iterator[Row]:
        for row in rows:
            yield row
            self.events += 1
            if not self._doubted:
                self._hear(row)

    def _hear(self, row: Row) -> None:
        event: Any = decode(row.body.encode())
        if not isinstance(event.get("after"), dict):
            return  # in the chain, and nothing we write: what it should have told differs from the store
        about = (row.object_type, row.object_id)
        if row.event_type == audit.JOB_EVENT:
            self.jobs.setdefault(row.object_id, dict(BEGINNING)).update(event["after"])
        elif row.event_type == audit.STATE_EVENT:
            self.objects.setdefault(about, {}).update(event["after"])
        self.governed.hear(row, event)


def _objects_compared(look: Reader, told: Mapping[tuple[str, str], Mapping[str, Json]]) -> Iterator[Finding]:
    for (object_type, object_id), fields in told.items():
        if "next_action_at" not in fields:
            continue
        row = look.object(object_type, object_id)
        present = None if row is None or row.next_action_at is None else format_utc(row.next_action_at)
        if present != fields["next_action_at"]:
            sentence = f"next_action_at of {object_id} is {present!r}, the trail tells {fields['next_action_at']!r}"
            yield Finding("trail_differs", f"{object_type} {object_id}", sentence)


def _compared(look: Reader, told: Mapping[str, Mapping[str, Json]]) -> Iterator[Finding]:
    left = set(told)
    for job in _jobs(look):
        left.discard(job.job_id)
        trail = told.get(job.job_id)
        if trail is None:
            yield Finding("job_without_trail", job.job_id, f"no event tells of {job.job_id}")
            continue
        try:
            present = shown(job, TOLD)
        except (TypeError, IndexError, ValueError, InputRefused) as trouble:
            yield Finding("unreadable_job", str(job.job_id), f"{job.job_id} cannot be read: {trouble}")
            continue
        for name in TOLD:
            if name in trail and trail[name] != present[name]:
                sentence = f"{name} of {job.job_id} is {present[name]!r}, the trail tells {trail[name]!r}"
                yield Finding("trail_differs", job.job_id, sentence)
    # A job that is over may have been removed after its time; one that is not may never be.
    for job_id in sorted(left):
        status = told[job_id]["status"]
        if status in (Status.QUEUED, Status.RUNNING):
            yield Finding("job_lost", job_id, f"the trail tells of {job_id}, which is {status}, and it is not there")


def _jobs(look: Reader) -> Iterator[Job]:
    before: int | None = None
    while True:
        page = look.jobs(Listing(PAGE, before))
        yield from page
        if len(page) < PAGE:
            return
        before = page[-1].seq


def _rows(look: Reader) -> Iterator[Row]:
    after = 0
    while True:
        page = look.events(AuditListing(PAGE, after))
        yield from page
        if len(page) < PAGE:
            return
        after = page[-1].n
