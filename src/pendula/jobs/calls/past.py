"""The queue and the governed objects after a past event, computed backwards from the present.

Each later change is undone with the `before` of its event, so the cost grows with the number of events since, which is
limited. What the trail does not record (renewals, progress) is as it is now, and removed jobs are not counted.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

from msgspec import convert
from msgspec.structs import asdict

from pendula.jobs.audit import JOB_EVENT, STATE_EVENT, Row
from pendula.jobs.calls.queries import event_in, shown_event
from pendula.jobs.hooks import governance
from pendula.jobs.messages import ByStatus, Job, Past, Place, ReadPast
from pendula.jobs.model import Code, Policy, Refused, Status, event_id, number_of, seq_of
from pendula.jobs.request_reading import Faults, read
from pendula.jobs.store.protocol import AuditListing, Listing, Reader, Store
from pendula.jobs.transaction.replies import shown_job
from pendula.kernel.canonical import Json

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
