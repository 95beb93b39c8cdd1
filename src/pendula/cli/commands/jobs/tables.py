"""Jobs, alerts, events and metrics as text and tables."""

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
    """All members of a job that are set."""
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
        ("cancel requested", "cancel_requested_at"),
        ("scheduled for", "scheduled_for"),
        ("created", "created_at"),
        ("updated", "updated_at"),
    )
    pairs += [(name, job[member]) for name, member in rest if job[member] is not None]
    if job["progress"] is not None:
        pairs.append(("progress", _progress(job["progress"])))
    json_members = (("payload", "payload"), ("result", "outcome_result"))
    pairs += [(name, encode(job[member]).decode()) for name, member in json_members if job[member] is not None]
    return facts(pairs)


def _progress(progress: Mapping[str, Any]) -> str:
    return _percent(progress["fraction"]) + (f", {progress['note']}" if progress["note"] else "")


def jobs(reply: Mapping[str, Any]) -> "RenderableType":
    if not reply["jobs"]:
        return "No jobs match."
    rows = [
        (
            row["job_id"],
            row["status"],
            second(row["run_at"]),
            f"{row['attempt']}/{row['max_attempts']}",
            f"{row['action']} {row['object_type']} {row['object_id']}",
            short(_doing(row) or row["last_error"] or ""),
        )
        for row in reply["jobs"]
    ]
    drawn = table(("job", "status", "due", "attempts", "action", "worker or last error"), rows)
    if reply["next_cursor"] is None:
        return drawn
    return Group(drawn, Text(f"Next page: --cursor {reply['next_cursor']}"))


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
    return Group(drawn, Text(f"Next page: --cursor {reply['next_cursor']}"))


def _doing(row: Mapping[str, Any]) -> str:
    """The worker of a running job and its progress."""
    if row["worker_id"] is None:
        return ""
    cancel = " (cancel requested)" if row["cancel_requested_at"] is not None else ""
    return str(row["worker_id"]) + (f" {_progress(row['progress'])}" if row["progress"] is not None else "") + cancel


def enqueued(reply: Mapping[str, Any]) -> "RenderableType":
    row = reply["job"]
    if reply["deduplicated"]:
        return f"{row['job_id']} already exists and is {row['status']}."
    return f"{row['job_id']} is queued: {row['action']} {row['object_type']} {row['object_id']} at {row['run_at']}."


def batch(results: Sequence[Mapping[str, Any]]) -> "RenderableType":
    """The number of stored jobs, and every rejected entry."""
    refused = [(number, row["error"]) for number, row in enumerate(results) if "error" in row]
    known = sum(row.get("deduplicated", False) for row in results)
    summary = f"{len(results) - known - len(refused)} stored, {known} already existed, {len(refused)} rejected."
    if not refused:
        return summary
    rows = [(str(number), error["code"], error["message"]) for number, error in refused]
    return Group(Text(summary), table(("entry", "code", "problem"), rows))


def pulled(reply: Mapping[str, Any]) -> "RenderableType":
    if not reply["jobs"]:
        return "Nothing is due."
    # Not a table, which would truncate the tokens.
    return Group(*(part for row in reply["jobs"] for part in (job(row), "")))


def acked(reply: Mapping[str, Any]) -> "RenderableType":
    again = " It had ended already." if reply["already_acked"] else ""
    follow = f" Next: {reply['followup_job_id']}." if reply["followup_job_id"] else ""
    return f"{reply['job']['job_id']} is {reply['job']['status']}.{again}{follow}"


def failed(reply: Mapping[str, Any]) -> "RenderableType":
    row = reply["job"]
    if reply["retry"]:
        return (
            f"{row['job_id']} is retried at {row['run_at']} (attempt {row['attempt']} of {row['max_attempts']} failed)."
        )
    return f"{row['job_id']} is {row['status']} after {row['attempt']} of {row['max_attempts']} attempts."


def history(reply: Mapping[str, Any]) -> "RenderableType":
    errors = [(str(row["attempt"]), row["at"], row["worker_id"] or "", short(row["error"])) for row in reply["errors"]]
    parts: list[RenderableType] = [_events(reply["events"])]
    if errors:
        parts.insert(0, table(("attempt", "at", "worker", "error"), errors))
    return Group(*parts)


def trail(reply: Mapping[str, Any]) -> "RenderableType":
    if not reply["events"]:
        return "No events match."
    drawn = _events(reply["events"])
    if reply["next_cursor"] is None:
        return drawn
    return Group(drawn, Text(f"Next page: --after {reply['next_cursor']}"))


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
    return table(("event", "at", "subject", "actor", "reason"), rows)


def findings(entries: Sequence[Mapping[str, str]]) -> "RenderableType":
    return table(
        ("code", "where", "problem"), [(entry["code"], entry["where"], entry["sentence"]) for entry in entries]
    )


def stats(reply: Mapping[str, Any], before: Mapping[str, Any] | None = None) -> "RenderableType":
    """The metrics and, with an earlier reply, the changes since."""
    previous = before["jobs"] if before is not None else reply["jobs"]
    rows = [
        (status, str(number), f"{number - previous[status]:+d}" if number != previous[status] else "")
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
    parts = [numbers, "", table(("status", "jobs", "change" if before is not None else ""), rows)]
    if reply["unhandled"]:
        kinds = [
            (f"{row['action']} {row['object_type']}", str(row["count"]), second(row["since"]), row["job_id"])
            for row in reply["unhandled"]
        ]
        parts.append(table(("unhandled", "jobs", "due since", "first"), kinds))
    if reply["workers"]:
        parts += ["", workers(reply["workers"])]
    if (governance := reply.get("governance")) is not None and governance["places"]:
        parts += ["", governed(governance)]
    return Group(*parts)


def past(reply: Mapping[str, Any]) -> "RenderableType":
    """A past state: its event, jobs by status, waiting jobs, governed objects by place."""
    if reply["event"] is None:
        return "Nothing has happened yet."
    event = reply["event"]
    moment = facts(
        [
            ("at", reply["at"]),
            ("time", reply["now"]),
            ("actor", f"{event['actor']['type']} {event['actor']['id']}"),
            ("change", f"{event['object_type']} {event['object_id']}: {event['reason']}"),
            ("events", f"{reply['first']} to {reply['last']}"),
        ]
    )
    parts = [moment, "", table(("status", "jobs"), [(word, str(count)) for word, count in reply["jobs"].items()])]
    if reply["waiting"]:
        parts.append(jobs({"jobs": reply["waiting"], "next_cursor": None}))
    if reply["places"]:
        parts.append(governed({"places": reply["places"], "counts": []}))
    return Group(*parts)


def governed(reply: Mapping[str, Any]) -> "RenderableType":
    """Objects by place, and the counters of governance."""
    places = [(row["object_type"], row["place"], str(row["objects"])) for row in reply["places"]]
    counts = [(row["kind"].replace("_", " "), row["word"], str(row["count"])) for row in reply["counts"]]
    parts: list[RenderableType] = [table(("governed", "state", "objects"), places)]
    if counts:
        parts.append(table(("counter", "of", "count"), counts))
    if waiting := reply.get("for_a_person", {}).get("count"):
        parts.append(f"{waiting} {'object needs' if waiting == 1 else 'objects need'} a decision by a person.")
    return Group(*parts)


def workers(rows: Sequence[Mapping[str, Any]]) -> "RenderableType":
    """Workers with the age of their heartbeat; unknown values are a dash."""
    if not rows:
        return "No worker has reported yet."
    names = ("running", "taken", "succeeded", "failed", "dropped", "released")
    drawn = [
        (
            row["worker_id"],
            "ended" if row["ended_at"] is not None else f"{row['age_sec']} s ago",
            *("-" if row[name] is None else str(row[name]) for name in names),
        )
        for row in rows
    ]
    return table(("worker", "last heartbeat", *names), drawn)


def plans(reply: Mapping[str, Any]) -> "RenderableType":
    if not reply["plans"]:
        return "There are no time plans."
    rows = [
        (
            row["name"],
            row["cron"],
            row["zone"],
            f"paused by {row['paused_by']}" if row["paused_at"] is not None else row["next_at"] or "no process runs it",
            f"{row['action']} {row['object_type']} {row['object_id']}",
            row["source"],
        )
        for row in reply["plans"]
    ]
    return table(("plan", "cron", "zone", "next", "action", "source"), rows)


def line(reply: Mapping[str, Any]) -> str:
    """The metrics as one log line."""
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
