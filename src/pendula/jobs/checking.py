"""Whether a store is what it should be: its invariants, its trail, and whether the trail tells the present state."""

from collections.abc import Iterator, Mapping
from typing import Any

from msgspec import Struct

from pendula.jobs import audit
from pendula.jobs.audit import FIRST, Row, shown
from pendula.jobs.model import Job, Status
from pendula.jobs.store.protocol import AuditListing, Listing, Reader, Store
from pendula.kernel.canonical import Json, decode

PAGE = 5000
# What the trail must tell of every job. A renewal moves the end of a lease without an event, so that is not among them.
TOLD = tuple(
    sorted({*FIRST, "delivery_count", "worker_id", "last_error", "outcome", "audit_event_id"} - {"scheduled_for"})
)


class Finding(Struct, frozen=True):
    """One thing that is wrong with a store."""

    code: str
    where: str
    sentence: str


class Replayed(Struct, frozen=True):
    """What following the trail from its beginning gave."""

    events: int
    jobs: int
    findings: tuple[Finding, ...]


def check(store: Store) -> list[Finding]:
    """Everything that is wrong; nothing when the store is sound."""
    found = [Finding("damaged_file", "file", line) for line in getattr(store, "integrity", list)()]
    found += store.read(lambda look: list(_invariants(look)))
    found += replay(store).findings
    return found


def replay(store: Store) -> Replayed:
    """Whether the chain holds, and whether the trail tells what the store holds."""
    return store.read(_replay)


def _invariants(look: Reader) -> Iterator[Finding]:
    counted: dict[tuple[str, str, str, int, str], int] = {}
    for job in _jobs(look):
        for law in _broken(job):
            yield Finding(law, job.job_id, f"{job.job_id} is {job.status} with attempt {job.attempt}: {law}")
        key = (job.status, job.object_type, job.action, job.priority, job.queue)
        counted[key] = counted.get(key, 0) + 1
    told = {(status, *rest): n for status, *rest, n in look.figures(0, 0).counts}
    if told != counted:
        yield Finding("counts_differ", "counts", "the numbers that metrics are made of are not those of the jobs")


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
    jobs: dict[str, dict[str, Json]] = {}
    events = 0

    def rows() -> Iterator[Row]:
        nonlocal events
        for row in _rows(look):
            events += 1
            yield row
            _tell(jobs, row)

    found += [Finding("trail_broken", f"event {one.n}", one.problem) for one in audit.verify(rows())]
    if not found:
        found += _compared(look, jobs)
    return Replayed(events, len(jobs), tuple(found))


def _tell(jobs: dict[str, dict[str, Json]], row: Row) -> None:
    if row.event_type != audit.JOB_EVENT:
        return
    event: Any = decode(row.body.encode())
    jobs.setdefault(row.object_id, {}).update(event["after"])


def _compared(look: Reader, told: Mapping[str, Mapping[str, Json]]) -> Iterator[Finding]:
    left = set(told)
    for job in _jobs(look):
        left.discard(job.job_id)
        trail = told.get(job.job_id)
        if trail is None:
            yield Finding("job_without_trail", job.job_id, f"no event tells of {job.job_id}")
            continue
        present = shown(job, TOLD)
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
