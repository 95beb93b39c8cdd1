"""Time plans: jobs that recur by a cron expression, with pauses. Pure.

A plan is stored under its name. Its next occurrence is a job whose key follows from plan and time, so that any number
of processes may maintain the same plans.
"""

from collections.abc import Callable, Mapping
from enum import StrEnum
from hashlib import sha256
from re import compile as regex
from typing import Any

from msgspec import Struct

from pendula.jobs.cron import Cron
from pendula.jobs.model import ATTEMPTS_MOST, PAYLOAD_MOST_BYTES, PRIORITIES, SECOND, Policy, Priority
from pendula.jobs.request_reading import BodyReader, Faults
from pendula.jobs.requests import OBJECT_ID_MOST, QUEUE
from pendula.jobs.zones import PLAIN, zone_of
from pendula.kernel.canonical import Json, decode
from pendula.kernel.errors import InputRefused
from pendula.kernel.time import format_utc

NAME = regex(r"[a-z0-9-]{1,64}")
NAME_FORM = "1 to 64 of a-z, 0-9 and -"
PLANS_MOST = 1000
ID_IN_KEY_MOST = 200
ZONE_MOST = 64
CRON_MOST = 200
# A process renews the declaration of its plans after the first; after the second a plan counts as removed.
DECLARED_US = 600 * SECOND
FORGOTTEN_US = 3 * DECLARED_US

ALLOWED = {
    "cron": "a cron expression that occurs, such as 0 3 * * *",
    "zone": "UTC, or an IANA time zone such as Europe/Berlin",
}
MEMBERS = frozenset(
    ["cron", "zone", "object_type", "object_id", "action", "priority", "max_attempts", "queue", "payload"]
)


class Source(StrEnum):
    """The source of a plan: a call, or the settings file of a process."""

    CALL = "call"
    SETTINGS = "settings"


class Recurring(Struct, frozen=True):
    """A job that recurs at the times of a cron expression in a time zone.

    `payload` is canonical JSON.
    """

    name: str
    cron: str
    object_type: str
    object_id: str
    action: str
    priority: Priority | None = None
    max_attempts: int | None = None
    queue: str = "default"
    zone: str = PLAIN
    payload: str | None = None


class Plan(Struct, frozen=True):
    """A recurring job and its state.

    `turn` is part of the keys of its occurrences, so that a cancelled one can be stored again. `job_id` and `occurs_at`
    are those of the newest occurrence, `asked_job_id` is the newest job of a `run_now`.
    """

    entry: Recurring
    source: str
    changed_at: int
    declared_at: int
    turn: int = 0
    paused_at: int | None = None
    paused_by: str | None = None
    job_id: str | None = None
    occurs_at: int | None = None
    asked_job_id: str | None = None

    @property
    def name(self) -> str:
        return self.entry.name

    def is_kept(self, now: int) -> bool:
        """Whether it is maintained: a plan of a settings file is gone when no process declares it."""
        return self.source == Source.CALL or now - self.declared_at < FORGOTTEN_US

    def next_after(self, instant: int) -> int | None:
        """The next occurrence, paused or not."""
        return Cron.parse(self.entry.cron).after(instant, zone_of(self.entry.zone))


def plan_json(plan: Plan, now: int) -> dict[str, Json]:
    """The public form; `next_at` is null while it is paused or not maintained."""
    running = plan.paused_at is None and plan.is_kept(now)
    coming = plan.next_after(now) if running else None
    return {
        **entry_json(plan.entry),
        "payload": payload_of(plan.entry),
        "source": plan.source,
        "paused_at": None if plan.paused_at is None else format_utc(plan.paused_at),
        "paused_by": plan.paused_by,
        "next_at": None if coming is None else format_utc(coming),
        "job_id": plan.job_id,
    }


def payload_of(entry: Recurring) -> Json:
    return None if entry.payload is None else decode(entry.payload.encode())


def trail_json(entry: Recurring) -> dict[str, Json]:
    """A plan as in the trail, with the digest of its payload, if any."""
    if entry.payload is None:
        return entry_json(entry)
    return {**entry_json(entry), "payload_sha256": sha256(entry.payload.encode()).hexdigest()}


def entry_json(entry: Recurring) -> dict[str, Json]:
    """All members but the payload."""
    return {
        "name": entry.name,
        "cron": entry.cron,
        "zone": entry.zone,
        "object_type": entry.object_type,
        "object_id": entry.object_id,
        "action": entry.action,
        "priority": None if entry.priority is None else entry.priority.word,
        "max_attempts": entry.max_attempts,
        "queue": entry.queue,
    }


def body_of(entry: Recurring, key: str, run_at: str | None) -> dict[str, Any]:
    """The body of an enqueue for one job of the plan; without a time it is due now."""
    body: dict[str, Any] = {
        "object_type": entry.object_type,
        "object_id": entry.object_id,
        "action": entry.action,
        "queue": entry.queue,
        "idempotency_key": key,
    }
    if run_at is not None:
        body["run_at"] = run_at
    if entry.priority is not None:
        body["priority"] = entry.priority.word
    if entry.max_attempts is not None:
        body["max_attempts"] = entry.max_attempts
    if entry.payload is not None:
        body["payload"] = payload_of(entry)
    return body


def occurrence(plan: Plan, at: int) -> dict[str, Any]:
    """The body of an enqueue for the occurrence at that time."""
    entry, run_at = plan.entry, format_utc(at)
    # A long id would make the key longer than a key may be.
    about = entry.object_id if len(entry.object_id) <= ID_IN_KEY_MOST else sha256(entry.object_id.encode()).hexdigest()
    key = f"recurring:{entry.name}:{entry.object_type}:{about}:{entry.action}:{run_at}"
    return body_of(entry, f"{key}:{plan.turn}" if plan.turn else key, run_at)


def asked_for(plan: Plan, now: int) -> dict[str, Any]:
    """The body of an enqueue for an extra job of the plan, due now."""
    return body_of(plan.entry, f"recurring:{plan.name}:now:{format_utc(now)}", None)


def read_plan(name: str, given: Mapping[str, Any], policy: Policy) -> Recurring | Faults:
    """The plan in a body, or every fault of it."""
    body = BodyReader(given, MEMBERS)
    if NAME.fullmatch(name) is None:
        body.bad("name", allowed=NAME_FORM)
    words = policy.vocabulary
    cron = _read(body, "cron", CRON_MOST, Cron.parse) if body.required("cron") else None
    zone = _read(body, "zone", ZONE_MOST, zone_of) if body.has("zone") else PLAIN
    object_type = body.word("object_type", words.object_types) if body.required("object_type") else None
    object_id = body.text("object_id", OBJECT_ID_MOST, trimmed=True) if body.required("object_id") else None
    action = body.word("action", words.actions) if body.required("action") else None
    priority = body.word("priority", PRIORITIES) if body.has("priority") else None
    attempts = body.integer("max_attempts", 1, ATTEMPTS_MOST)
    queue = body.text("queue", ZONE_MOST) if body.has("queue") else "default"
    if queue is not None and QUEUE.fullmatch(queue) is None:
        body.bad("queue", allowed="1 to 64 of a-z, 0-9, _ and -")
    payload = body.json("payload", PAYLOAD_MOST_BYTES)
    if body.faults.entries:
        return body.faults
    assert cron is not None
    assert zone is not None
    assert object_type is not None
    assert object_id is not None
    assert action is not None
    assert queue is not None
    return Recurring(
        name=name,
        cron=cron,
        object_type=object_type,
        object_id=object_id,
        action=action,
        priority=None if priority is None else PRIORITIES[priority],
        max_attempts=attempts,
        queue=queue,
        zone=zone,
        payload=payload,
    )


def _read(body: BodyReader, name: str, most: int, parse: Callable[[str], object]) -> str | None:
    """A text that `parse` accepts, unchanged."""
    text = body.text(name, most)
    if text is not None:
        try:
            parse(text)
        except InputRefused as wrong:
            body.bad(name, allowed=ALLOWED[name], problem=wrong.message)
            return None
    return text
