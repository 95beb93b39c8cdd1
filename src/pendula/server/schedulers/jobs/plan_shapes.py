"""OpenAPI schemas of time plans, workers and reasons."""

from collections.abc import Mapping

from pendula.jobs.calls.why import REASONS
from pendula.jobs.model import ATTEMPTS_MOST
from pendula.jobs.plans import CRON_MOST, NAME, ZONE_MOST, Source
from pendula.jobs.requests import OBJECT_ID_MOST, REASON_MOST
from pendula.server.schedulers.jobs import shapes
from pendula.server.schedulers.jobs.shapes import ANY_TEXT, ANY_TIME, COUNT, FLAG, OBJECT, TEXT, TIME, Shape

# Known only for workers that write their own heartbeats.
OWN_NUMBERS = ("concurrency", "running", "succeeded", "failed", "dropped", "released")


def schemas() -> Mapping[str, Shape]:
    """All schemas by name."""
    plan, worker = shapes.ref("Planned"), shapes.ref("Worker")
    found = {
        "Reason": shapes.request({"reason": shapes.or_null(shapes.text(REASON_MOST))}),
        "Plan": _plan_request(),
        "Planned": _plan(),
        "OnePlan": shapes.record({"plan": plan}),
        "Plans": shapes.record({"plans": shapes.listed(plan)}),
        "PlanRemoved": shapes.record({"removed": FLAG, "name": TEXT}),
        "Worker": _worker(),
        "Workers": shapes.record({"workers": shapes.listed(worker)}),
        "Why": shapes.record({"job_id": TEXT, "reason": {"enum": list(REASONS)}, "sentence": TEXT, "facts": OBJECT}),
    }
    return {shapes.NAME.format(name=name): shape for name, shape in found.items()}


def _plan_request() -> Shape:
    """The members of a plan in a request."""
    members: Shape = {
        "cron": shapes.text(CRON_MOST),
        "zone": shapes.or_null(shapes.text(ZONE_MOST)),
        "object_type": shapes.ref("ObjectType"),
        "object_id": shapes.text(OBJECT_ID_MOST),
        "action": shapes.ref("Action"),
        "priority": shapes.or_null(shapes.ref("Priority")),
        "max_attempts": shapes.or_null(shapes.integer(1, ATTEMPTS_MOST)),
        "queue": shapes.or_null(shapes.QUEUE_NAME),
        "payload": shapes.ANYTHING,
    }
    return shapes.request(members, "cron", "object_type", "object_id", "action")


def _plan() -> Shape:
    return shapes.record(
        {
            "name": {"type": "string", "pattern": f"^{NAME.pattern}$"},
            "cron": TEXT,
            "zone": TEXT,
            "object_type": TEXT,
            "object_id": TEXT,
            "action": TEXT,
            "priority": shapes.or_null(shapes.ref("Priority")),
            "max_attempts": shapes.or_null(COUNT),
            "queue": TEXT,
            "payload": shapes.ANYTHING,
            "source": {"enum": [source.value for source in Source]},
            "paused_at": ANY_TIME,
            "paused_by": ANY_TEXT,
            "next_at": ANY_TIME,
            "job_id": ANY_TEXT,
        }
    )


def _worker() -> Shape:
    return shapes.record(
        {
            "worker_id": TEXT,
            "started_at": TIME,
            "seen_at": TIME,
            "ended_at": ANY_TIME,
            "age_sec": COUNT,
            "taken": COUNT,
            **dict.fromkeys(OWN_NUMBERS, shapes.or_null(COUNT)),
            "handles": shapes.listed(TEXT),
            "queues": shapes.listed(TEXT),
        }
    )
