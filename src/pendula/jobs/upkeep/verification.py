"""Check a store: its file, its invariants, and whether its audit trail leads to the present state."""

from collections.abc import Callable, Iterator
from typing import Any, TypeVar

from msgspec import Struct

from pendula.jobs import audit, audit_chain
from pendula.jobs.audit import Row
from pendula.jobs.hooks import governance
from pendula.jobs.model import SECOND, Finding, Job, Policy, Status
from pendula.jobs.store.protocol import AuditListing, Reader, Store
from pendula.jobs.upkeep import job_trail
from pendula.kernel.canonical import decode
from pendula.kernel.errors import WorldBroken
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
    for job in job_trail.jobs_of(look):
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
    for broken in audit_chain.verify(summary.read(_rows(look))):
        findings.append(Finding("trail_broken", f"event {broken.n}", broken.problem))
        summary.stop_comparing()
    if not findings:
        findings += job_trail.compare(look)
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
                return  # most events; `job_trail` reads them later
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
