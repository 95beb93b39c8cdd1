"""Every call that only reads: one job, lists, the trail, objects, metrics. None takes the write lock."""

from collections.abc import Mapping
from decimal import Decimal
from typing import Any

from pendula.jobs.audit import Row, event_id, number_of
from pendula.jobs.calls import heartbeats
from pendula.jobs.calls.filters import LIST_DEFAULT, LIST_MOST, read_count, read_listing
from pendula.jobs.model import SECOND, Code, Policy, Priority, Refused, Status, exact, seq_of
from pendula.jobs.request_reading import BodyReader, Faults
from pendula.jobs.requests import OBJECT_ID_MOST
from pendula.jobs.sentences import shown_reason
from pendula.jobs.store.protocol import AuditListing, Figures, Store, StoreUnusable, Unhandled
from pendula.jobs.transaction.replies import Answer, Reply, not_found, shown_job, utc_or_null
from pendula.kernel.canonical import Json, decode
from pendula.kernel.errors import InputRefused
from pendula.kernel.time import format_utc

WORKERS_SHOWN = 100  # with the latest heartbeats
WINDOW_DEFAULT, WINDOW_LEAST, WINDOW_MOST = 3600, 60, 604_800
EVENT_TYPES = ("scheduler_job", "state_transition", "decision_gate", "rollback", "investigation", "policy_override")

CURSOR_MOST = 18
ALERTS = frozenset(["cursor", "limit"])
AUDIT = frozenset(["object_type", "object_id", "job_id", "event_type", "after", "limit"])


def show(store: Store, job_id: str) -> Answer:
    job = store.read(lambda look: look.job(job_id))
    return not_found(job_id) if job is None else Reply(200, {"job": shown_job(job)})


def listed(store: Store, policy: Policy, query: Mapping[str, Any]) -> Answer:
    """Jobs, newest first; `next_cursor` is null on the last page."""
    listing = read_listing(query, policy)
    if isinstance(listing, Faults):
        return listing.refusal()
    jobs = store.read(lambda look: look.jobs(listing))
    page = jobs[: listing.limit - 1]
    cursor_after = page[-1].job_id if len(jobs) == listing.limit else None
    return Reply(200, {"jobs": [shown_job(job) for job in page], "next_cursor": cursor_after})


def counted(store: Store, policy: Policy, query: Mapping[str, Any]) -> Answer:
    """How many jobs a list with the same filters has."""
    listing = read_count(query, policy)
    if isinstance(listing, Faults):
        return listing.refusal()
    return Reply(200, {"count": store.read(lambda look: look.count(listing))})


def history(store: Store, job_id: str) -> Answer:
    """Every error of a job, oldest first, and its whole trail."""
    seq = seq_of(job_id)

    def look(reader: Any) -> tuple[bool, list[dict[str, Any]]]:
        exists = reader.job(job_id) is not None
        return exists, [shown_event(row) for row in reader.events(AuditListing(100_000, job_seq=seq))] if exists else []

    exists, events = store.read(look)
    if not exists:
        return not_found(job_id)
    errors: list[Json] = [
        {
            "attempt": event["after"]["attempt"],
            "worker_id": (event["before"] or {}).get("worker_id"),
            "at": event["timestamp"],
            "error": event["after"]["last_error"],
        }
        for event in events
        if "attempt" in event["after"] and event["after"].get("last_error") and event["before"]
    ]
    return Reply(200, {"job_id": job_id, "errors": errors, "events": events})


def trail(store: Store, policy: Policy, query: Mapping[str, Any]) -> Answer:
    """Events in order; `next_cursor` goes into `after`."""
    body = BodyReader(query, AUDIT)
    limit = body.integer("limit", 1, LIST_MOST, Code.INVALID_LIMIT) or LIST_DEFAULT
    after = query.get("after")
    number = 0 if after is None else number_of(after) if isinstance(after, str) else None
    if number is None:
        body.bad("after", allowed="the id of an event")
    job_id = query.get("job_id")
    seq = seq_of(job_id) if isinstance(job_id, str) else None
    kinds = (*policy.vocabulary.object_types, "decision", "scheduler_job", "persona")
    listing = AuditListing(
        limit=limit + 1,
        after=number or 0,
        object_type=body.word("object_type", kinds),
        object_id=body.text("object_id", OBJECT_ID_MOST),
        job_seq=seq,
        event_type=body.word("event_type", EVENT_TYPES),
    )
    if body.faults.entries:
        return body.faults.refusal()
    if job_id is not None and seq is None:
        return Reply(200, {"events": [], "next_cursor": None})
    rows = store.read(lambda look: look.events(listing))
    events: list[Json] = [shown_event(row) for row in rows[:limit]]
    cursor = events[-1]["id"] if len(rows) > limit else None  # type: ignore[index,call-overload]
    return Reply(200, {"events": events, "next_cursor": cursor})


def alerts(store: Store, query: Mapping[str, Any]) -> Answer:
    """Alerts, newest first, delivered or not; `next_cursor` goes into `cursor`."""
    body = BodyReader(query, ALERTS)
    limit = body.integer("limit", 1, LIST_MOST, Code.INVALID_LIMIT) or LIST_DEFAULT
    cursor = body.text("cursor", CURSOR_MOST) if body.has("cursor") else None
    if cursor is not None and not (cursor.isascii() and cursor.isdecimal()):
        body.bad("cursor", allowed="the next_cursor of the page before")
    if body.faults.entries:
        return body.faults.refusal()
    before = None if cursor is None else int(cursor)
    rows = store.read(lambda look: look.alerts(before, limit + 1))
    page: list[Json] = [{**shown_alert(alert), "delivered_at": utc_or_null(at)} for _, alert, at in rows[:limit]]
    return Reply(200, {"alerts": page, "next_cursor": str(rows[limit - 1][0]) if len(rows) > limit else None})


def shown_object(store: Store, object_type: str, object_id: str) -> Answer:
    row = store.read(lambda look: look.object(object_type, object_id))
    if row is None:
        details: dict[str, Json] = {"object_type": object_type, "object_id": object_id}
        return Refused(Code.OBJECT_NOT_FOUND, f"unknown object {object_type} {object_id}", details)
    at = utc_or_null(row.next_action_at)
    return Reply(
        200,
        {
            "object_type": object_type,
            "object_id": object_id,
            "next_action_at": at,
            "version": row.version,
            "state": row.state,
        },
    )


def window_of(query: Mapping[str, Any]) -> int | Refused:
    """The window of the metrics, in seconds."""
    body = BodyReader(query, frozenset(["window_sec"]))
    window = body.integer("window_sec", WINDOW_LEAST, WINDOW_MOST)
    if body.faults.entries:
        return body.faults.refusal()
    return WINDOW_DEFAULT if window is None else window


def figures(store: Store, now: int, window_sec: int) -> Figures:
    return store.read(lambda look: look.figures(now, now - window_sec * SECOND))


def unhandled(store: Store, policy: Policy, now: int) -> list[Unhandled]:
    """Kinds of jobs that are due while none of them is delivered."""
    return store.read(lambda look: look.unhandled(now - policy.unhandled_alert_sec * SECOND))


def unhandled_json(kind: Unhandled) -> dict[str, Json]:
    return {
        "object_type": kind.object_type,
        "action": kind.action,
        "count": kind.count,
        "since": format_utc(kind.since),
        "job_id": kind.job_id,
    }


def metrics(store: Store, policy: Policy, now: int, window_sec: int) -> dict[str, Json]:
    """The five metrics, jobs per status, unhandled kinds, and heartbeats of workers."""
    numbers = figures(store, now, window_sec)
    ended = numbers.succeeded + numbers.failed + numbers.dead_letter
    by_status: dict[str, int] = {status.value: 0 for status in Status}
    for status, *_, n in numbers.counts:
        by_status[status] += n
    return {
        "now": format_utc(now),
        "window_sec": window_sec,
        "jobs_due_count": numbers.due,
        "jobs_lag_seconds": _ratio(now - numbers.first_due, SECOND) if numbers.first_due is not None else 0,
        "job_success_rate": _ratio(numbers.succeeded, ended) if ended else None,
        "job_retry_rate": _ratio(numbers.requeues, numbers.attempts) if numbers.attempts else None,
        "dead_letter_count": by_status[Status.DEAD_LETTER],
        "jobs": by_status,
        "alerts_waiting": numbers.alerts_waiting,
        "unhandled": [unhandled_json(kind) for kind in unhandled(store, policy, now)],
        "workers": heartbeats.workers_json(store.read(lambda look: look.workers())[:WORKERS_SHOWN], now),
    }


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


def shown_event(row: Row) -> dict[str, Any]:
    """The event of a row with its reason as a sentence; raises `StoreUnusable` as `event_in` does."""
    event = event_in(row)
    try:
        return {**event, **shown_reason(event["reason"])}
    except (LookupError, TypeError, AttributeError) as trouble:
        raise _unreadable(row) from trouble


def shown_alert(alert: dict[str, Any]) -> dict[str, Any]:
    """An alert with its reason, where it has one, as a sentence."""
    return {**alert, **shown_reason(alert["reason"])} if "reason" in alert else alert


def _unreadable(row: Row) -> StoreUnusable:
    return StoreUnusable(f"The event {event_id(row.n)} cannot be read; `pendula jobs check` says what is wrong")


def _ratio(part: int, whole: int) -> int | Decimal:
    return exact((Decimal(part) / Decimal(whole)).quantize(Decimal("0.000000001")))
