"""Every call that only reads: jobs, the trail, objects, metrics, workers, a past moment. None takes the write lock.

The queue and the governed objects after a past event are computed backwards from the present: each later change is
undone with the `before` of its event, so the cost grows with the number of events since, which is limited. What the
trail does not record (renewals, progress) is as it is now, and removed jobs are not counted.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal
from typing import Any

from msgspec import UNSET, ValidationError, convert
from msgspec.structs import asdict

from pendula.jobs.audit import JOB_EVENT, STATE_EVENT, Row
from pendula.jobs.hooks import governance
from pendula.jobs.messages import (
    LIST_DEFAULT,
    WINDOW_DEFAULT,
    Alerts,
    ByStatus,
    Chosen,
    Counted,
    Event,
    Filter,
    History,
    Job,
    JobError,
    JobList,
    ListAlerts,
    ListJobs,
    Metrics,
    OneJob,
    Past,
    Place,
    ReadMetrics,
    ReadPast,
    ReadTrail,
    StoredObject,
    Trail,
    UnhandledWork,
    Worker,
    Workers,
    utc_or_null,
)
from pendula.jobs.model import SECOND, Code, Policy, Priority, Refused, Status, event_id, exact, number_of, seq_of
from pendula.jobs.request_reading import Faults, read
from pendula.jobs.sentences import shown_reason
from pendula.jobs.store.protocol import (
    AuditListing,
    Figures,
    Listing,
    Reader,
    Store,
    StoreUnusable,
    Unhandled,
    WorkerRow,
    Writer,
)
from pendula.jobs.transaction import not_found, shown_job
from pendula.kernel.canonical import Json, decode
from pendula.kernel.errors import InputRefused
from pendula.kernel.time import format_utc

WORKERS_SHOWN = 100  # with the latest heartbeats
EVENTS_MOST = 100_000


def show(store: Store, job_id: str) -> OneJob | Refused:
    job = store.read(lambda look: look.job(job_id))
    return not_found(job_id) if job is None else OneJob(shown_job(job))


def listed(store: Store, policy: Policy, query: Mapping[str, Any]) -> JobList | Refused:
    """Jobs, newest first; `next_cursor` is null on the last page."""
    request = read(ListJobs, query, policy)
    if isinstance(request, Faults):
        return request.refusal()
    listing = page_of(request)
    jobs = store.read(lambda look: look.jobs(listing))
    page = jobs[: listing.limit - 1]
    cursor_after = page[-1].job_id if len(jobs) == listing.limit else None
    return JobList([shown_job(job) for job in page], cursor_after)


def counted(store: Store, policy: Policy, query: Mapping[str, Any]) -> Counted | Refused:
    """How many jobs a list with the same filters has."""
    request = read(Filter, query, policy)
    if isinstance(request, Faults):
        return request.refusal()
    return Counted(store.read(lambda look: look.count(all_of(request))))


def history(store: Store, job_id: str) -> History | Refused:
    """Every error of a job, oldest first, and its whole trail."""
    seq = seq_of(job_id)

    def look(reader: Reader) -> list[Event] | None:
        if reader.job(job_id) is None:
            return None
        return [shown_event(row) for row in reader.events(AuditListing(EVENTS_MOST, job_seq=seq))]

    events = store.read(look)
    if events is None:
        return not_found(job_id)
    errors = [
        JobError(event.after["attempt"], event.before.get("worker_id"), event.timestamp, str(event.after["last_error"]))
        for event in events
        if "attempt" in event.after and event.after.get("last_error") and event.before
    ]
    return History(job_id, errors, events)


def trail(store: Store, policy: Policy, query: Mapping[str, Any]) -> Trail | Refused:
    """Events in order; `next_cursor` goes into `after`."""
    request = read(ReadTrail, query, policy)
    if isinstance(request, Faults):
        return request.refusal()
    limit = request.limit or LIST_DEFAULT
    seq = seq_of(request.job_id) if isinstance(request.job_id, str) else None
    if request.job_id is not None and seq is None:
        return Trail([], None)
    listing = AuditListing(
        limit=limit + 1,
        after=request.after or 0,
        object_type=request.object_type or None,
        object_id=request.object_id or None,
        job_seq=seq,
        event_type=request.event_type or None,
    )
    rows = store.read(lambda look: look.events(listing))
    events = [shown_event(row) for row in rows[:limit]]
    return Trail(events, events[-1].id if len(rows) > limit else None)


def alerts(store: Store, policy: Policy, query: Mapping[str, Any]) -> Alerts | Refused:
    """Alerts, newest first, delivered or not; `next_cursor` goes into `cursor`."""
    request = read(ListAlerts, query, policy)
    if isinstance(request, Faults):
        return request.refusal()
    limit = request.limit or LIST_DEFAULT
    before = None if request.cursor is None else int(request.cursor)
    rows = store.read(lambda look: look.alerts(before, limit + 1))
    page = [{**shown_alert(alert), "delivered_at": utc_or_null(at)} for _, alert, at in rows[:limit]]
    return Alerts(page, str(rows[limit - 1][0]) if len(rows) > limit else None)


def shown_object(store: Store, object_type: str, object_id: str) -> StoredObject | Refused:
    row = store.read(lambda look: look.object(object_type, object_id))
    if row is None:
        details: dict[str, Json] = {"object_type": object_type, "object_id": object_id}
        return Refused(Code.OBJECT_NOT_FOUND, f"unknown object {object_type} {object_id}", details)
    return StoredObject(object_type, object_id, utc_or_null(row.next_action_at), row.version, row.state)


def window_of(query: Mapping[str, Any], policy: Policy) -> int | Refused:
    """The window of the metrics, in seconds."""
    request = read(ReadMetrics, query, policy)
    if isinstance(request, Faults):
        return request.refusal()
    return request.window_sec or WINDOW_DEFAULT


def figures(store: Store, now: int, window_sec: int) -> Figures:
    return store.read(lambda look: look.figures(now, now - window_sec * SECOND))


def unhandled(store: Store, policy: Policy, now: int) -> list[Unhandled]:
    """Kinds of jobs that are due while none of them is delivered."""
    return store.read(lambda look: look.unhandled(now - policy.unhandled_alert_sec * SECOND))


def unhandled_work(kind: Unhandled) -> UnhandledWork:
    return UnhandledWork(kind.object_type, kind.action, kind.count, format_utc(kind.since), kind.job_id)


def metrics(store: Store, policy: Policy, now: int, window_sec: int) -> Metrics:
    """The five metrics, jobs per status, unhandled kinds, and heartbeats of workers."""
    numbers = figures(store, now, window_sec)
    ended = numbers.succeeded + numbers.failed + numbers.dead_letter
    by_status: dict[str, int] = {status.value: 0 for status in Status}
    for status, *_, n in numbers.counts:
        by_status[status] += n
    return Metrics(
        now=format_utc(now),
        window_sec=window_sec,
        jobs_due_count=numbers.due,
        jobs_lag_seconds=_ratio(now - numbers.first_due, SECOND) if numbers.first_due is not None else 0,
        job_success_rate=_ratio(numbers.succeeded, ended) if ended else None,
        job_retry_rate=_ratio(numbers.requeues, numbers.attempts) if numbers.attempts else None,
        dead_letter_count=by_status[Status.DEAD_LETTER],
        jobs=ByStatus(**by_status),
        alerts_waiting=numbers.alerts_waiting,
        unhandled=[unhandled_work(kind) for kind in unhandled(store, policy, now)],
        workers=shown_workers(store.read(lambda look: look.workers())[:WORKERS_SHOWN], now),
    )


def labelled(numbers: Figures) -> list[tuple[dict[str, str], int]]:
    """Jobs by status, type, action, priority and queue, as labels and numbers; never by object."""
    names = ("status", "object_type", "action", "priority", "queue")
    return [
        (dict(zip(names, (status, kind, action, Priority(priority).word, queue), strict=True)), n)
        for status, kind, action, priority, queue, n in numbers.counts
    ]


def event_in(row: Row) -> dict[str, Any]:
    """The event in a row; raises `StoreUnusable` where it cannot be read."""
    try:
        event = decode(row.body.encode())
    except (InputRefused, UnicodeError) as trouble:
        raise _unreadable(row) from trouble
    if not isinstance(event, dict) or event.get("id") != event_id(row.n) or not isinstance(event.get("after"), dict):
        raise _unreadable(row)
    return event


def shown_event(row: Row) -> Event:
    """The event of a row with its reason as a sentence; raises `StoreUnusable` as `event_in` does."""
    event = event_in(row)
    try:
        return convert({**event, **shown_reason(event["reason"])}, Event)
    except (LookupError, TypeError, AttributeError, ValidationError) as trouble:
        raise _unreadable(row) from trouble


def shown_alert(alert: dict[str, Any]) -> dict[str, Any]:
    """An alert with its reason, where it has one, as a sentence."""
    return {**alert, **shown_reason(alert["reason"])} if "reason" in alert else alert


def _unreadable(row: Row) -> StoreUnusable:
    return StoreUnusable(f"The event {event_id(row.n)} cannot be read; `pendula jobs check` says what is wrong")


def _ratio(part: int, whole: int) -> int | Decimal:
    return exact((Decimal(part) / Decimal(whole)).quantize(Decimal("0.000000001")))


WORKERS_MOST = 1000
FORGOTTEN_US = 7 * 86_400 * SECOND
WORKS_MOST = 200


def record_heartbeats(tx: Writer, rows: Sequence[WorkerRow]) -> None:
    """Store heartbeats; workers without one for a week, and those beyond 1000, are dropped."""
    for row in rows:
        tx.put_worker(row, forget_before=row.seen_at - FORGOTTEN_US, most=WORKERS_MOST)


def fitting(works: Sequence[tuple[str, str]]) -> tuple[tuple[str, str], ...]:
    """What a worker handles, as it is stored: nothing, which means everything, where the list is too long."""
    return tuple(works) if len(works) <= WORKS_MOST else ()


def workers(store: Store, now: int) -> Workers:
    return Workers(shown_workers(store.read(lambda look: look.workers()), now))


def shown_workers(rows: Sequence[WorkerRow], now: int) -> list[Worker]:
    """The last heartbeat of each worker, with its age."""
    return [
        Worker(
            worker_id=worker.worker_id,
            started_at=format_utc(worker.started_at),
            seen_at=format_utc(worker.seen_at),
            age_sec=max(0, now - worker.seen_at) // SECOND,
            ended_at=utc_or_null(worker.ended_at),
            concurrency=worker.concurrency,
            running=worker.running,
            taken=worker.taken,
            succeeded=worker.succeeded,
            failed=worker.failed,
            dropped=worker.dropped,
            released=worker.released,
            handles=[f"{object_type} {action}" for object_type, action in worker.works],
            queues=list(worker.queues),
        )
        for worker in rows
    ]


EVENTS_BACK = 10_000  # limit of the events to undo, which takes some tenths of a second
WAITING_MOST = 500
WAITING = (Status.QUEUED.value, Status.RUNNING.value)

# By job or object: its members before the first later change; None for what did not exist yet.
Undone = dict[Any, dict[str, Json] | None]


def past(store: Store, policy: Policy, query: Mapping[str, Any]) -> Past | Refused:
    """The moment after the event `at`; without one, now."""
    given = query.get("at")
    number = number_of(given) if isinstance(given, str) else None

    def look(reader: Reader) -> Past | Refused:
        request = read(ReadPast, query, policy)
        faults = request if isinstance(request, Faults) else Faults()
        last = reader.last_event()
        first = max(min(1, last), last - EVENTS_BACK)
        at = last if given is None else number
        if at is None or not first <= at <= last:
            allowed = f"the id of an event from {event_id(first)} to {event_id(last)}"
            faults.add("at", Code.INVALID_FIELD, allowed=allowed)
        if at is None or faults.entries:
            return faults.refusal()
        return _moment(reader, at, first, last) if at else NOTHING_YET

    return store.read(look)


def _moment(look: Reader, at: int, first: int, last: int) -> Past:
    [row] = look.events(AuditListing(limit=1, after=at - 1))
    event = shown_event(row)
    jobs, objects = _undone(look.events(AuditListing(limit=EVENTS_BACK + 1, after=at)))
    tallies, waiting = _jobs(look, jobs)
    return Past(
        at=event_id(at),
        first=event_id(first),
        last=event_id(last),
        now=event.timestamp,
        event=event,
        jobs=ByStatus(**{status.value: tallies[status.value] for status in Status}),
        waiting=waiting,
        places=convert(governance().past_places(look, objects), list[Place]) if look.any_governed() else [],
    )


NOTHING_YET = Past(
    at=None,
    first=None,
    last=None,
    now=None,
    event=None,
    jobs=ByStatus(queued=0, running=0, succeeded=0, failed=0, dead_letter=0),
    waiting=[],
    places=[],
)


def _undone(rows: Iterable[Row]) -> tuple[Undone, Undone]:
    """The members of every changed job and object before the changes."""
    jobs: Undone = {}
    objects: Undone = {}
    for row in rows:
        if row.event_type == JOB_EVENT and seq_of(row.object_id) is not None:
            _before(jobs, row.object_id, event_in(row)["before"])
        elif row.event_type == STATE_EVENT:
            _before(objects, (row.object_type, row.object_id), event_in(row)["before"])
    return jobs, objects


def _before(undone: Undone, about: Any, before: Mapping[str, Json] | None) -> None:
    """The first later event that changes a member has its value."""
    if about not in undone:
        undone[about] = None if before is None else dict(before)
    elif (undone_fields := undone[about]) is not None and before is not None:
        undone[about] = {**before, **undone_fields}


def _jobs(look: Reader, undone: Undone) -> tuple[Counter[str], list[Job]]:
    """How many jobs were in each state, and those that were queued or running, by their time."""
    tallies: Counter[str] = Counter()
    for status, *_, n in look.figures(0, 0).counts:
        tallies[status] += n
    waiting = [
        shown_job(job)
        for status in WAITING
        for job in look.jobs(Listing(status=status, limit=WAITING_MOST))
        if job.job_id not in undone
    ]
    for job_id, before in undone.items():
        job = look.job(job_id)
        if job is None:
            continue
        tallies[job.status] -= 1
        if before is not None:
            then = _as_it_was(shown_job(job), before)
            tallies[then.status] += 1
            waiting += [then] if then.status in WAITING else []
    waiting.sort(key=lambda job: (job.run_at, job.job_id))
    return tallies, waiting[:WAITING_MOST]


def _as_it_was(job: Job, before: Mapping[str, Json]) -> Job:
    """The job with the members that the events since have changed."""
    known = {name: value for name, value in before.items() if name in Job.__struct_fields__}
    return convert({**asdict(job), **known}, Job)


def page_of(request: ListJobs) -> Listing:
    """The page of a query, with room for one more job, which says whether there is another page."""
    return listing_of(request, (request.limit or LIST_DEFAULT) + 1, request.cursor)


def all_of(request: Filter) -> Listing:
    return listing_of(request, 1, None)


def listing_of(chosen: Chosen, limit: int, before: int | None) -> Listing:
    """Jobs that match a filter, with numbers below `before`."""
    given = {name: getattr(chosen, name) for name in Filter.__struct_fields__}
    return Listing(limit=limit, before=before, **{name: value for name, value in given.items() if value is not UNSET})
