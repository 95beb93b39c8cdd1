"""Time plans: jobs that recur by a cron expression, with pauses. Pure.

A plan is stored under its name. Its next occurrence is a job whose key follows from plan and time, so that any number
of processes may maintain the same plans.
"""

from enum import StrEnum
from hashlib import sha256
from typing import Any

from msgspec import Struct

from pendula.jobs.cron import Cron, zone_of
from pendula.jobs.messages import Planned, Recurring, utc_or_null
from pendula.jobs.model import SECOND, WORDS
from pendula.kernel.canonical import Json, decode
from pendula.kernel.time import format_utc

PLANS_MOST = 1000
ID_IN_KEY_MOST = 200
# A process renews the declaration of its plans after the first; after the second a plan counts as removed.
DECLARED_US = 600 * SECOND
FORGOTTEN_US = 3 * DECLARED_US


class Source(StrEnum):
    """The source of a plan: a call, or the settings file of a process."""

    CALL = "call"
    SETTINGS = "settings"


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


def planned(plan: Plan, now: int) -> Planned:
    """The public form; `next_at` is null while it is paused or not maintained."""
    entry = plan.entry
    running = plan.paused_at is None and plan.is_kept(now)
    return Planned(
        name=entry.name,
        cron=entry.cron,
        zone=entry.zone,
        object_type=entry.object_type,
        object_id=entry.object_id,
        action=entry.action,
        priority=None if entry.priority is None else WORDS[entry.priority],
        max_attempts=entry.max_attempts,
        queue=entry.queue,
        payload=payload_of(entry),
        source=Source(plan.source).value,
        paused_at=utc_or_null(plan.paused_at),
        paused_by=plan.paused_by,
        next_at=utc_or_null(plan.next_after(now) if running else None),
        job_id=plan.job_id,
    )


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
        "priority": None if entry.priority is None else WORDS[entry.priority],
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
        body["priority"] = WORDS[entry.priority]
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
