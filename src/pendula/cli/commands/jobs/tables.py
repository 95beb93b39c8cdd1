"""What people see of jobs: facts of one, tables of many, numbers of all."""

from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from rich.console import Group
from rich.text import Text

from pendula.cli.output import facts, table
from pendula.kernel.canonical import encode

if TYPE_CHECKING:
    from rich.console import RenderableType

LONGEST_ERROR = 60


def job(job: Mapping[str, Any]) -> "RenderableType":
    """All that is known of a job; what is not there is left out."""
    pairs = [
        ("job", job["job_id"]),
        ("status", job["status"]),
        ("object", f"{job['object_type']} {job['object_id']}"),
        ("action", job["action"]),
        ("due", job["run_at"]),
        ("priority", job["priority"]),
        ("attempts", f"{job['attempt']} of {job['max_attempts']}"),
        ("deliveries", str(job["delivery_count"])),
        ("key", job["idempotency_key"]),
        ("queue", job["queue"]),
    ]
    rest = (
        ("worker", "worker_id"),
        ("lease token", "lease_token"),
        ("lease ends", "lease_expires_at"),
        ("last error", "last_error"),
        ("outcome", "outcome"),
        ("audit event", "audit_event_id"),
        ("correlation", "correlation_id"),
        ("cancellation asked", "cancel_requested_at"),
        ("scheduled for", "scheduled_for"),
        ("created", "created_at"),
        ("updated", "updated_at"),
    )
    pairs += [(name, job[member]) for name, member in rest if job[member] is not None]
    if job["progress"] is not None:
        pairs.append(("progress", _progress(job["progress"])))
    written = (("payload", "payload"), ("result", "outcome_result"))
    pairs += [(name, encode(job[member]).decode()) for name, member in written if job[member] is not None]
    return facts(pairs)


def _progress(told: Mapping[str, Any]) -> str:
    return _percent(told["fraction"]) + (f", {told['note']}" if told["note"] else "")


def jobs(reply: Mapping[str, Any]) -> "RenderableType":
    if not reply["jobs"]:
        return "There are no such jobs."
    rows = [
        (
            one["job_id"],
            one["status"],
            second(one["run_at"]),
            f"{one['attempt']}/{one['max_attempts']}",
            f"{one['action']} {one['object_type']} {one['object_id']}",
            short(_doing(one) or one["last_error"] or ""),
        )
        for one in reply["jobs"]
    ]
    drawn = table(("job", "status", "due", "tried", "what", "worker or last error"), rows)
    if reply["next_cursor"] is None:
        return drawn
    return Group(drawn, Text(f"There are more: --cursor {reply['next_cursor']}"))


def alerts(reply: Mapping[str, Any]) -> "RenderableType":
    if not reply["alerts"]:
        return "There are no alerts."
    rows = [
        (
            second(alert["at"]),
            alert["severity"],
            alert["alert"],
            " ".join(str(alert[name]) for name in ("action", "object_type", "object_id", "job_id") if alert.get(name)),
            short(alert.get("last_error") or ""),
            "not yet" if alert["delivered_at"] is None else second(alert["delivered_at"]),
        )
        for alert in reply["alerts"]
    ]
    drawn = table(("at", "severity", "alert", "about", "last error", "delivered"), rows)
    if reply["next_cursor"] is None:
        return drawn
    return Group(drawn, Text(f"There are more: --cursor {reply['next_cursor']}"))


def _doing(one: Mapping[str, Any]) -> str:
    """Who has it and how far it is."""
    if one["worker_id"] is None:
        return ""
    asked = " (asked to stop)" if one["cancel_requested_at"] is not None else ""
    return str(one["worker_id"]) + (f" {_progress(one['progress'])}" if one["progress"] is not None else "") + asked


def enqueued(reply: Mapping[str, Any]) -> "RenderableType":
    one = reply["job"]
    if reply["deduplicated"]:
        return f"{one['job_id']} already exists and is {one['status']}."
    return f"{one['job_id']} is queued: {one['action']} {one['object_type']} {one['object_id']} at {one['run_at']}."


def batch(results: Sequence[Mapping[str, Any]]) -> "RenderableType":
    """How many were stored, and every entry that was not."""
    refused = [(number, one["error"]) for number, one in enumerate(results) if "error" in one]
    known = sum(one.get("deduplicated", False) for one in results)
    said = f"{len(results) - known - len(refused)} stored, {known} already there, {len(refused)} refused."
    if not refused:
        return said
    rows = [(str(number), error["code"], error["message"]) for number, error in refused]
    return Group(Text(said), table(("entry", "code", "what is wrong"), rows))


def pulled(reply: Mapping[str, Any]) -> "RenderableType":
    if not reply["jobs"]:
        return "Nothing is due."
    # Tokens are there to be copied: a table would cut them.
    return Group(*(part for one in reply["jobs"] for part in (job(one), "")))


def acked(reply: Mapping[str, Any]) -> "RenderableType":
    again = " It was already." if reply["already_acked"] else ""
    follow = f" Next: {reply['followup_job_id']}." if reply["followup_job_id"] else ""
    return f"{reply['job']['job_id']} is {reply['job']['status']}.{again}{follow}"


def failed(reply: Mapping[str, Any]) -> "RenderableType":
    one = reply["job"]
    if reply["retry"]:
        return f"{one['job_id']} is tried again at {one['run_at']} ({one['attempt']} of {one['max_attempts']} tried)."
    return f"{one['job_id']} is {one['status']} after {one['attempt']} of {one['max_attempts']} attempts."


def history(reply: Mapping[str, Any]) -> "RenderableType":
    errors = [(str(one["attempt"]), one["at"], one["worker_id"] or "", short(one["error"])) for one in reply["errors"]]
    parts: list[RenderableType] = [_events(reply["events"])]
    if errors:
        parts.insert(0, table(("attempt", "at", "worker", "error"), errors))
    return Group(*parts)


def trail(reply: Mapping[str, Any]) -> "RenderableType":
    if not reply["events"]:
        return "There are no such events."
    drawn = _events(reply["events"])
    if reply["next_cursor"] is None:
        return drawn
    return Group(drawn, Text(f"There are more: --after {reply['next_cursor']}"))


def _events(events: Sequence[Mapping[str, Any]]) -> "RenderableType":
    rows = [
        (
            event["id"],
            second(event["timestamp"]),
            event["job_id"]
            if event["event_type"] == "scheduler_job"
            else f"{event['object_type']} {event['object_id']}",
            f"{event['actor']['type']} {event['actor']['id']}",
            short(event["reason"]),
        )
        for event in events
    ]
    return table(("event", "at", "about", "who", "what happened"), rows)


def findings(found: Sequence[Mapping[str, str]]) -> "RenderableType":
    return table(("code", "where", "what is wrong"), [(one["code"], one["where"], one["sentence"]) for one in found])


def stats(reply: Mapping[str, Any], before: Mapping[str, Any] | None = None) -> "RenderableType":
    """The numbers of the scheduler and, where there was a look before, how they moved since."""
    was = before["jobs"] if before is not None else reply["jobs"]
    rows = [
        (status, str(number), f"{number - was[status]:+d}" if number != was[status] else "")
        for status, number in reply["jobs"].items()
    ]
    numbers = facts(
        [
            ("now", reply["now"]),
            ("due", str(reply["jobs_due_count"])),
            ("lag", _seconds(reply["jobs_lag_seconds"])),
            ("success rate", _percent(reply["job_success_rate"])),
            ("retry rate", _percent(reply["job_retry_rate"])),
            ("window", _seconds(reply["window_sec"])),
            ("dead letters", str(reply["dead_letter_count"])),
            ("alerts waiting", str(reply["alerts_waiting"])),
        ]
    )
    parts = [numbers, "", table(("status", "jobs", "since the last look" if before is not None else ""), rows)]
    if reply["unhandled"]:
        kinds = [
            (f"{one['action']} {one['object_type']}", str(one["count"]), second(one["since"]), one["job_id"])
            for one in reply["unhandled"]
        ]
        parts.append(table(("nobody takes", "jobs", "due since", "first"), kinds))
    if reply["workers"]:
        parts += ["", workers(reply["workers"])]
    if (governance := reply.get("governance")) is not None and governance["places"]:
        parts += ["", governed(governance)]
    return Group(*parts)


def past(reply: Mapping[str, Any]) -> "RenderableType":
    """A moment: the event after which it is, jobs by state, what waited, and where governed objects were."""
    if reply["event"] is None:
        return "Nothing has happened yet."
    event = reply["event"]
    told = facts(
        [
            ("at", reply["at"]),
            ("time", reply["now"]),
            ("who", f"{event['actor']['type']} {event['actor']['id']}"),
            ("what", f"{event['object_type']} {event['object_id']}: {event['reason']}"),
            ("range of moments", f"{reply['first']} to {reply['last']}"),
        ]
    )
    parts = [told, "", table(("status", "jobs"), [(word, str(count)) for word, count in reply["jobs"].items()])]
    if reply["waiting"]:
        parts.append(jobs({"jobs": reply["waiting"], "next_cursor": None}))
    if reply["places"]:
        parts.append(governed({"places": reply["places"], "counts": []}))
    return Group(*parts)


def governed(told: Mapping[str, Any]) -> "RenderableType":
    """Objects by place, and what governance did."""
    places = [(one["object_type"], one["place"], str(one["objects"])) for one in told["places"]]
    counts = [(one["kind"].replace("_", " "), one["word"], str(one["count"])) for one in told["counts"]]
    parts: list[RenderableType] = [table(("governed", "state", "objects"), places)]
    if counts:
        parts.append(table(("counted", "of", "times"), counts))
    if waiting := told.get("for_a_person", {}).get("count"):
        parts.append(f"{waiting} {'object waits' if waiting == 1 else 'objects wait'} for a person to decide.")
    return Group(*parts)


def workers(rows: Sequence[Mapping[str, Any]]) -> "RenderableType":
    """Workers with the age of what they told; what is not known of one is a dash."""
    if not rows:
        return "No worker has reported yet."
    names = ("running", "taken", "succeeded", "failed", "dropped", "released")
    drawn = [
        (
            one["worker_id"],
            "ended" if one["ended_at"] is not None else f"{one['age_sec']} s ago",
            *("-" if one[name] is None else str(one[name]) for name in names),
        )
        for one in rows
    ]
    return table(("worker", "heard of", *names), drawn)


def plans(reply: Mapping[str, Any]) -> "RenderableType":
    if not reply["plans"]:
        return "There are no time plans."
    rows = [
        (
            one["name"],
            one["cron"],
            one["zone"],
            f"paused by {one['paused_by']}" if one["paused_at"] is not None else one["next_at"] or "nobody keeps it",
            f"{one['action']} {one['object_type']} {one['object_id']}",
            one["source"],
        )
        for one in reply["plans"]
    ]
    return table(("plan", "cron", "zone", "next", "what", "from"), rows)


def line(reply: Mapping[str, Any]) -> str:
    """The numbers as one line of a log."""
    by_status = ", ".join(f"{number} {status}" for status, number in reply["jobs"].items())
    return f"{reply['now']}: {reply['jobs_due_count']} due, lag {_seconds(reply['jobs_lag_seconds'])}; {by_status}"


def second(time: str) -> str:
    """The time without its fraction."""
    return time if "." not in time else time[: time.index(".")] + "Z"


def _seconds(value: int | Decimal) -> str:
    return f"{Decimal(value).quantize(Decimal('0.1')).normalize():f} s"


def _percent(rate: int | Decimal | None) -> str:
    return "nothing ended" if rate is None else f"{(Decimal(rate) * 100).quantize(Decimal('0.01')).normalize():f} %"


def short(text: str) -> str:
    first = text.split("\n", 1)[0]
    return first if len(first) <= LONGEST_ERROR else first[: LONGEST_ERROR - 1] + "…"
