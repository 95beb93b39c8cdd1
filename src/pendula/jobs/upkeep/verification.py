"""Whether a store is what it should be: its invariants, its trail, and whether the trail tells the present state."""

from collections.abc import Callable, Iterator
from typing import Any, TypeVar

from msgspec import Struct
from msgspec.structs import replace

from pendula.jobs import audit, audit_chain
from pendula.jobs.audit import Row
from pendula.jobs.model import SECOND, Job, Policy, Status
from pendula.jobs.objects.governed import Governed
from pendula.jobs.store.protocol import AuditListing, Listing, Reader, Store
from pendula.jobs.upkeep import job_trail
from pendula.jobs.upkeep.findings import Finding
from pendula.jobs.upkeep.governed_trail import GovernedStory, stored_objects
from pendula.kernel.canonical import decode
from pendula.kernel.errors import WorldBroken
from pendula.kernel.time import format_utc

T = TypeVar("T")
PAGE = 5000
DAMAGED = "damaged_file"
TIME_AHEAD = "time_ahead"
FORGOTTEN = "object_forgotten"
AWAITED = (Status.QUEUED, Status.RUNNING)
# Only a member of an event is written like this: a quotation mark inside of a text has a backslash before it.
ENQUEUED = '"before":null'
TRACED = '"decision_trace_id"'


class Replayed(Struct, frozen=True):
    """What following the trail from its beginning gave."""

    events: int
    jobs: int
    findings: tuple[Finding, ...]


def damaged(sentence: str) -> Finding:
    """The file as a whole is not what was written."""
    return Finding(DAMAGED, "file", sentence)


def check(
    store: Store,
    now: int | None = None,
    step_sec: int = Policy().max_clock_step_sec,
    *,
    followups: bool = True,
) -> list[Finding]:
    """Everything that is wrong; nothing when the store is sound.

    With `now`, what a right clock says, a store whose time is ahead of it by more than `step_sec` is not. Where jobs
    follow by themselves (`followups`, the setting `auto_followup`), a governed object whose date has passed has one.
    """
    found = [damaged(line) for line in store.integrity()]
    if now is not None:
        found += _looked(store, "time", lambda look: _time_ahead(look.latest_time(), now, step_sec))
    found += _looked(store, "jobs", lambda look: list(_invariants(look)))
    if followups:
        found += _looked(store, "objects", lambda look: list(_forgotten(look, now)))
    found += _looked(store, "audit", lambda look: list(_replay(look).findings))
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


def _forgotten(look: Reader, now: int | None) -> Iterator[Finding]:
    """Governed objects with something left to do, whose date has passed and for which no job waits or runs."""
    latest = look.latest_time() if now is None else max(now, look.latest_time())
    for stored in stored_objects(look):
        subject = stored.subject
        if subject is None or subject.next_action is None or (subject.next_action_at or 0) > latest:
            continue
        if not any(look.jobs(replace(_one_job(subject), status=status)) for status in AWAITED):
            where = f"{subject.object_type} {subject.object_id}"
            since = "for ever" if subject.next_action_at is None else f"since {format_utc(subject.next_action_at)}"
            sentence = (
                f"{subject.next_action} of {where} has been due {since} and no job waits for it; new evidence, an "
                "amendment or a decision gives it one: pendula jobs objects"
            )
            yield Finding(FORGOTTEN, where, sentence)


def _one_job(subject: Governed) -> Listing:
    return Listing(1, object_type=subject.object_type, object_id=subject.object_id)


def _looked(store: Store, where: str, look: Callable[[Reader], list[Finding]]) -> list[Finding]:
    """What a look finds; that it cannot be finished is a finding, and no reason to leave out the others."""
    try:
        return _read(store, look)
    except WorldBroken as broken:
        return [Finding(DAMAGED, where, broken.message)]


def replay(store: Store) -> Replayed:
    """Whether the chain holds, and whether the trail tells what the store holds."""
    return _read(store, _replay)


def _read(store: Store, look: Callable[[Reader], T]) -> T:
    """What a look finds. Where a text is none, all is read again as what it is, which takes longer for every text."""
    try:
        return store.read(look)
    except WorldBroken:
        return store.read(look, damaged=True)


def _invariants(look: Reader) -> Iterator[Finding]:
    counted: dict[tuple[str, str, str, int, str], int] = {}
    for job in job_trail.jobs_of(look):
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
    for one in audit_chain.verify(story.read(_rows(look))):
        found.append(Finding("trail_broken", f"event {one.n}", one.problem))
        story.doubt()
    if not found:
        found += job_trail.compared(look)
        found += story.governed.compared(look)
    return Replayed(story.events, story.jobs, tuple(found))


class _Story:
    """What goes by while the chain is looked at: how much it is, and what it tells of governed objects."""

    def __init__(self) -> None:
        self.events = 0
        self.jobs = 0
        self.governed = GovernedStory()
        self._doubted = False

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
        if row.event_type == audit.JOB_EVENT:
            self.jobs += ENQUEUED in row.body
            if TRACED not in row.body:
                return  # most events; what they tell is asked for later
        event: Any = decode(row.body.encode())
        if isinstance(event.get("after"), dict):
            self.governed.hear(row, event)


def _rows(look: Reader) -> Iterator[Row]:
    after = 0
    while True:
        page = look.events(AuditListing(PAGE, after))
        yield from page
        if len(page) < PAGE:
            return
        after = page[-1].n
