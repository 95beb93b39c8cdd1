"""Request bodies and replies as the requirement document states them: times, members, faults, rejections, jobs.

Part of the model in `oracle`; it shares nothing with the package.
"""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

Members = Mapping[str, Any]
Answer = tuple[int, dict[str, Any]]
Fault = tuple[str, str]

SECOND = 1_000_000
TYPES = ("memory", "experience", "cognition")
ACTIONS = ("verify", "revalidate", "decay", "archive", "reinstate-check")
PRIORITIES = ("high", "medium", "low")
MEMBERS = {
    "enqueue": "object_type object_id action run_at priority max_attempts idempotency_key correlation_id queue payload "
    "unique",
    "pull": "now limit worker_id lease_sec object_types actions wait_ms queues pairs",
    "ack": "result audit_event_id next_action_at next_action outcome outcome_result worker_id lease_token",
    "fail": "error retry_delay_sec retryable cancelled worker_id lease_token",
    "renew": "worker_id lease_token lease_sec progress progress_note",
    "release": "worker_id lease_token",
    "cancel": "reason",
    "requeue": "run_at reason",
}
_TIMESTAMP = re.compile(r"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(?:\.(\d+))?(Z|[+-]\d\d:\d\d)?", re.ASCII)
_1970 = datetime(1970, 1, 1, tzinfo=UTC)


def text(at: int) -> str:
    """An instant as replies show it (OBJ-10)."""
    moment = _1970 + timedelta(microseconds=at)
    return moment.strftime("%Y-%m-%dT%H:%M:%S") + (f".{moment.microsecond:06}" if moment.microsecond else "") + "Z"


def instant(given: Any) -> int | str:
    """Microseconds since 1970, or the code of the rejection (OBJ-11)."""
    match = _TIMESTAMP.fullmatch(given) if isinstance(given, str) else None
    if match is None:
        return "invalid_timestamp"
    try:
        moment = datetime.strptime(match[1], "%Y-%m-%dT%H:%M:%S").replace(tzinfo=UTC)
    except ValueError:
        return "invalid_timestamp"
    if match[3] is None:
        return "naive_timestamp"
    at = (moment - _1970) // timedelta(microseconds=1) + int(((match[2] or "") + "000000")[:6])
    if match[3] != "Z":
        sign = -1 if match[3][0] == "+" else 1
        at += sign * (int(match[3][1:3]) * 60 + int(match[3][4:])) * 60 * SECOND
    return at if 0 <= at < 253_402_300_800 * SECOND else "timestamp_out_of_range"


@dataclass(frozen=True)
class Settings:
    """The specified parameters that change an answer, with their defaults."""

    default_priority: str = "medium"
    default_max_attempts: int = 3
    pull_default_limit: int = 100
    pull_max_limit: int = 1000
    lease_sec: int = 900
    lease_expiry_retry_delay_sec: int = 0
    min_retry_gap_sec: int = 5
    retry_jitter: bool = True
    retry_base: str = "run_at"
    pull_clock: str = "request"
    max_clock_step_sec: int = 300
    pull_order: str = "run_at"
    head_start_sec: tuple[int, int, int] = (300, 60, 0)
    audit_event_check: str = "link"
    auto_followup: bool = True
    one_running_per_object: bool = False


@dataclass
class Job:
    number: int
    job_id: str
    object_type: str
    object_id: str
    action: str
    run_at: int
    priority: str
    max_attempts: int
    key: str
    created_at: int
    updated_at: int
    scheduled_for: int
    correlation_id: str | None
    queue: str
    status: str = "queued"
    attempt: int = 0
    last_error: str | None = None
    worker_id: str | None = None
    token: str | None = None
    lease_end: int | None = None
    deliveries: int = 0
    audit_event_id: str | None = None
    outcome: str | None = None
    last_token: str | None = None
    last_end: str | None = None
    ever_expired: bool = False
    payload: Any = None
    cancel_requested_at: int | None = None
    progress: dict[str, Any] | None = None
    outcome_result: Any = None

    def shown(self, token: str | None = None) -> dict[str, Any]:
        return {
            "job_id": self.job_id,
            "object_type": self.object_type,
            "object_id": self.object_id,
            "action": self.action,
            "run_at": text(self.run_at),
            "priority": self.priority,
            "attempt": self.attempt,
            "max_attempts": self.max_attempts,
            "idempotency_key": self.key,
            "status": self.status,
            "last_error": self.last_error,
            "created_at": text(self.created_at),
            "updated_at": text(self.updated_at),
            "scheduled_for": text(self.scheduled_for),
            "worker_id": self.worker_id,
            "lease_token": token,
            "lease_expires_at": None if self.lease_end is None else text(self.lease_end),
            "delivery_count": self.deliveries,
            "correlation_id": self.correlation_id,
            "audit_event_id": self.audit_event_id,
            "outcome": self.outcome,
            "queue": self.queue,
            "payload": self.payload,
            "cancel_requested_at": None if self.cancel_requested_at is None else text(self.cancel_requested_at),
            "progress": self.progress,
            "outcome_result": self.outcome_result,
        }


def refused(status: int, code: str, /, **details: Any) -> Answer:
    return status, {"error": {"code": code, "details": details}}


def refused_for(faults: Sequence[Fault], **details: Any) -> Answer:
    """ENQ-7: all faults at once; a single fault gives its code to the rejection."""
    code = faults[0][1] if len(faults) == 1 else "validation_failed"
    return refused(422, code, **details, fields=[{"field": name, "code": what} for name, what in faults])


def at_of(body: Members, name: str) -> int | None:
    at = instant(body[name]) if body.get(name) is not None else None
    assert not isinstance(at, str)
    return at


def _unknown(body: Members, call: str) -> list[Fault]:
    return [(name, "unknown_field") for name in body if name not in MEMBERS[call].split()]


def _word(body: Members, name: str, legal: Sequence[str], *, required: bool = False) -> list[Fault]:
    if name not in body:
        return [(name, "missing_field")] if required else []
    if body[name] is None and not required:
        return []
    return [] if isinstance(body[name], str) and body[name] in legal else [(name, "invalid_enum")]


def _text(body: Members, name: str, most: int, *, required: bool = False, trimmed: bool = False) -> list[Fault]:
    if name not in body:
        return [(name, "missing_field")] if required else []
    given = body[name]
    if given is None and not required:
        return []
    fits = isinstance(given, str) and 1 <= len(given) <= most and not any(_is_control(character) for character in given)
    return [] if fits and not (trimmed and given != given.strip()) else [(name, "invalid_field")]


def _is_control(character: str) -> bool:
    return ord(character) < 32 or 127 <= ord(character) < 160


def _integer(body: Members, name: str, least: int, most: int, code: str = "invalid_field") -> list[Fault]:
    given = body.get(name)
    fits = given is None or (type(given) is int and least <= given <= most)
    return [] if fits else [(name, code)]


def _time(body: Members, name: str) -> list[Fault]:
    at = instant(body[name]) if body.get(name) is not None else None
    return [(name, at)] if isinstance(at, str) else []


def _proof_faults(body: Members) -> list[Fault]:
    return [(name, "missing_field") for name in ("worker_id", "lease_token") if name not in body]


def fail_faults(body: Members) -> list[Fault]:
    faults = _unknown(body, "fail")
    error = body.get("error")
    if not isinstance(error, str) or not error.strip():
        faults.append(("error", "invalid_field"))
    delay = body.get("retry_delay_sec", 0)
    if isinstance(delay, bool) or not isinstance(delay, int | float) or not 0 <= delay <= 2_592_000:
        faults.append(("retry_delay_sec", "invalid_field"))
    for name in ("retryable", "cancelled"):
        if not isinstance(body.get(name, True), bool):
            faults.append((name, "invalid_field"))
    return faults


def batch_faults(body: Members, name: str) -> list[Fault]:
    if name not in body:
        return [(name, "missing_field")]
    entries = body[name]
    return [] if isinstance(entries, list) and 1 <= len(entries) <= 1000 else [(name, "invalid_field")]


def enqueue_faults(body: Members, now: int) -> list[Fault]:
    faults = _unknown(body, "enqueue")
    faults += _word(body, "object_type", TYPES, required=True)
    faults += _text(body, "object_id", 200, required=True, trimmed=True)
    faults += _word(body, "action", ACTIONS, required=True)
    faults += _time(body, "run_at")
    faults += _word(body, "priority", PRIORITIES)
    faults += _integer(body, "max_attempts", 1, 100)
    faults += _text(body, "idempotency_key", 512)
    faults += _text(body, "correlation_id", 200)
    queue = body.get("queue")
    if queue is not None and not (isinstance(queue, str) and re.fullmatch(r"[a-z0-9_-]{1,64}", queue)):
        faults.append(("queue", "invalid_field"))
    faults += _json(body, "payload") + _word(body, "unique", ["waiting"])
    # A time in the past is allowed for a duplicate (ENQ-5); a body with other faults is not one, so it is reported.
    return faults + _past(body, "run_at", now, "run_at_in_past") if faults else []


def pull_faults(body: Members, now: int, settings: Settings) -> list[Fault]:
    faults = _unknown(body, "pull")
    worker = body.get("worker_id")
    if not isinstance(worker, str) or re.fullmatch(r"[A-Za-z0-9._:@-]{1,128}", worker) is None:
        faults.append(("worker_id", "invalid_worker_id"))
    faults += _integer(body, "limit", 1, settings.pull_max_limit, "invalid_limit")
    faults += _time(body, "now")
    requested = instant(body["now"]) if body.get("now") is not None else None
    ahead = 0 if settings.pull_clock == "server" else settings.max_clock_step_sec * 1_000_000
    if isinstance(requested, int) and requested > now + ahead:
        faults.append(("now", "now_in_future"))
    faults += _integer(body, "lease_sec", 1, 43_200)
    for name, legal in (("object_types", TYPES), ("actions", ACTIONS)):
        if body.get(name) is not None:
            if not isinstance(body[name], list) or not body[name]:
                faults.append((name, "invalid_field"))
            elif any(word not in legal for word in body[name]):
                faults.append((name, "invalid_enum"))
    pairs = body.get("pairs")
    if pairs is not None and not (isinstance(pairs, list) and pairs and all(len(pair) == 2 for pair in pairs)):
        faults.append(("pairs", "invalid_field"))
    return faults


def ack_faults(body: Members, now: int) -> list[Fault]:
    faults = _unknown(body, "ack")
    if body.get("result") != "succeeded":
        faults.append(("result", "invalid_result"))
    faults += _text(body, "audit_event_id", 200)
    faults += _time(body, "next_action_at") + _past(body, "next_action_at", now, "next_action_at_in_past")
    faults += _word(body, "next_action", ACTIONS)
    return faults + _text(body, "outcome", 64) + _json(body, "outcome_result")


def renew_faults(body: Members) -> list[Fault]:
    faults = _unknown(body, "renew") + _integer(body, "lease_sec", 1, 43_200) + _proof_faults(body)
    progress = body.get("progress")
    if progress is not None and (
        isinstance(progress, bool) or not isinstance(progress, int | float) or not 0 <= progress <= 1
    ):
        faults.append(("progress", "invalid_field"))
    return faults


def release_faults(body: Members) -> list[Fault]:
    return _unknown(body, "release") + _proof_faults(body)


def cancel_faults(body: Members) -> list[Fault]:
    return _unknown(body, "cancel") + _text(body, "reason", 1000)


def requeue_faults(body: Members, now: int) -> list[Fault]:
    faults = _unknown(body, "requeue") + _time(body, "run_at") + _past(body, "run_at", now, "run_at_in_past")
    return faults + _text(body, "reason", 1000)


def _json(body: Members, name: str) -> list[Fault]:
    """USE-1, USE-4: any JSON value of up to 64 KiB; the histories have no text that needs escapes."""
    size = len(json.dumps(body.get(name), separators=(",", ":"), ensure_ascii=False).encode())
    return [] if size <= 65_536 else [(name, "invalid_field")]


def _past(body: Members, name: str, now: int, code: str) -> list[Fault]:
    at = instant(body[name]) if body.get(name) is not None else None
    return [(name, code)] if isinstance(at, int) and at < now else []
