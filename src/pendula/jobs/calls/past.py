"""The queue and the governed objects after a past event, computed backwards from the present.

Each later change is undone with the `before` of its event, so the cost grows with the number of events since, which is
limited. What the trail does not record (renewals, progress) is as it is now, and removed jobs are not counted.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

from pendula.jobs.audit import JOB_EVENT, STATE_EVENT, Row, event_id, number_of
from pendula.jobs.calls.queries import event_in, shown_event
from pendula.jobs.hooks import governance
from pendula.jobs.model import Status, seq_of
from pendula.jobs.request_reading import BodyReader
from pendula.jobs.store.protocol import AuditListing, Listing, Reader, Store
from pendula.jobs.transaction.replies import Answer, Reply, shown_job
from pendula.kernel.canonical import Json

EVENTS_BACK = 10_000  # limit of the events to undo, which takes some tenths of a second
WAITING_MOST = 500
WAITING = (Status.QUEUED.value, Status.RUNNING.value)

# By job or object: its members before the first later change; None for what did not exist yet.
Undone = dict[Any, dict[str, Json] | None]


def past(store: Store, query: Mapping[str, Any]) -> Answer:
    """The moment after the event `at`; without one, now."""
    body = BodyReader(query, frozenset({"at"}))
    given = query.get("at")
    number = number_of(given) if isinstance(given, str) else None

    def look(reader: Reader) -> Answer:
        last = reader.last_event()
        first = max(min(1, last), last - EVENTS_BACK)
        at = last if given is None else number
        if at is None or not first <= at <= last:
            body.bad("at", allowed=f"the id of an event from {event_id(first)} to {event_id(last)}")
        if at is None or body.faults.entries:
            return body.faults.refusal()
        moment = _moment(reader, at) if at else _nothing_yet()
        ends: dict[str, Json] = {"first": event_id(first) if at else None, "last": event_id(last) if at else None}
        return Reply(200, {**ends, **moment})

    return store.read(look)


def _moment(look: Reader, at: int) -> dict[str, Json]:
    [row] = look.events(AuditListing(limit=1, after=at - 1))
    event = shown_event(row)
    jobs, objects = _undone(look.events(AuditListing(limit=EVENTS_BACK + 1, after=at)))
    tallies, waiting = _jobs(look, jobs)
    return {
        "at": event_id(at),
        "now": event["timestamp"],
        "event": event,
        "jobs": {status.value: tallies[status.value] for status in Status},
        "waiting": waiting,
        "places": governance().past_places(look, objects) if look.any_governed() else [],
    }


def _nothing_yet() -> dict[str, Json]:
    none: dict[str, Json] = {"at": None, "now": None, "event": None, "waiting": [], "places": []}
    return {**none, "jobs": {status.value: 0 for status in Status}}


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


def _jobs(look: Reader, undone: Undone) -> tuple[Counter[str], list[Json]]:
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
            then = {name: before.get(name, value) for name, value in shown_job(job).items()}
            tallies[str(then["status"])] += 1
            waiting += [then] if then["status"] in WAITING else []
    waiting.sort(key=lambda job: (str(job["run_at"]), str(job["job_id"])))
    return tallies, [*waiting[:WAITING_MOST]]
