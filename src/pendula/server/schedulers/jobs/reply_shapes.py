"""OpenAPI schemas of the replies of `/scheduler`."""

from collections.abc import Mapping

from pendula.jobs.calls.queries import WINDOW_LEAST, WINDOW_MOST
from pendula.jobs.model import Status
from pendula.server.schedulers.jobs.shapes import (
    ANY_TEXT,
    ANY_TIME,
    ANYTHING,
    COUNT,
    FLAG,
    FRACTION,
    NAME,
    OBJECT,
    TEXT,
    TIME,
    Shape,
    integer,
    listed,
    or_null,
    record,
    ref,
)


def schemas() -> Mapping[str, Shape]:
    """All schemas by name."""
    return {NAME.format(name=name): shape for name, shape in _replies().items()}


def _job() -> Shape:
    return record(
        {
            "job_id": {"type": "string", "pattern": "^job_[0-9A-Za-z]{8,40}$"},
            "object_type": TEXT,
            "object_id": TEXT,
            "action": TEXT,
            "run_at": TIME,
            "priority": ref("Priority"),
            "attempt": COUNT,
            "max_attempts": COUNT,
            "idempotency_key": TEXT,
            "status": ref("Status"),
            "last_error": ANY_TEXT,
            "created_at": TIME,
            "updated_at": TIME,
            "scheduled_for": TIME,
            "worker_id": ANY_TEXT,
            "lease_token": ANY_TEXT,
            "lease_expires_at": ANY_TIME,
            "delivery_count": COUNT,
            "correlation_id": ANY_TEXT,
            "audit_event_id": ANY_TEXT,
            "outcome": ANY_TEXT,
            "queue": TEXT,
            "payload": ANYTHING,
            "cancel_requested_at": ANY_TIME,
            "progress": or_null(record({"fraction": FRACTION, "note": ANY_TEXT})),
            "outcome_result": ANYTHING,
        }
    )


def _replies() -> dict[str, Shape]:
    job = ref("Job")
    known: Shape = {"object_type": TEXT, "object_id": TEXT, "next_action_at": ANY_TIME}
    acked: Shape = {"already_acked": FLAG, "job": job, "object": record(known), "followup_job_id": ANY_TEXT}
    enqueued: Shape = {"deduplicated": FLAG, "job": job}
    refused = record({"status": {"type": "integer"}, "error": ref("ErrorFacts")})
    page: Shape = {"next_cursor": ANY_TEXT}
    rate: Shape = {"type": ["number", "null"], "minimum": 0, "maximum": 1}
    return {
        "Job": _job(),
        "ErrorFacts": record({"code": TEXT, "message": TEXT, "details": OBJECT}),
        "Enqueued": record(enqueued),
        "BatchResults": record(
            {"results": listed({"anyOf": [record({"status": {"enum": [200, 201]}, **enqueued}), refused]})}
        ),
        "Pulled": record({"now": TIME, "count": COUNT, "reclaimed": COUNT, "jobs": listed(job)}),
        "Acked": record(acked),
        "AckResults": record({"results": listed({"anyOf": [record({"status": {"const": 200}, **acked}), refused]})}),
        "Failed": record({"already_failed": FLAG, "retry": FLAG, "job": job}),
        "Renewed": record({"lease_expires_at": TIME, "cancel_requested_at": ANY_TIME}),
        "Operated": record({"matched": COUNT, "changed": COUNT, "next_cursor": ANY_TEXT}),
        "Count": record({"count": COUNT}),
        "OneJob": record({"job": job}),
        "JobList": record({"jobs": listed(job), **page}),
        "Event": _event(),
        "History": record({"job_id": TEXT, "errors": listed(_error()), "events": listed(ref("Event"))}),
        "Trail": record({"events": listed(ref("Event")), **page}),
        "Alerts": record({"alerts": listed(_alert()), **page}),
        "Object": record({**known, "version": COUNT, "state": ANY_TEXT}),
        "Metrics": record(
            {
                "now": TIME,
                "window_sec": integer(WINDOW_LEAST, WINDOW_MOST),
                "jobs_due_count": COUNT,
                "jobs_lag_seconds": {"type": "number", "minimum": 0},
                "job_success_rate": rate,
                "job_retry_rate": rate,
                "dead_letter_count": COUNT,
                "jobs": record({status.value: COUNT for status in Status}),
                "alerts_waiting": COUNT,
                "unhandled": listed(
                    record({"object_type": TEXT, "action": TEXT, "count": COUNT, "since": TIME, "job_id": TEXT})
                ),
                "workers": listed(ref("Worker")),
            }
        ),
        "Past": record(
            {
                "at": ANY_TEXT,
                "first": ANY_TEXT,
                "last": ANY_TEXT,
                "now": ANY_TIME,
                "event": or_null(ref("Event")),
                "jobs": record({status.value: COUNT for status in Status}),
                "waiting": listed(job),
                "places": listed(record({"object_type": TEXT, "place": TEXT, "objects": COUNT})),
            }
        ),
        "TimeSet": record(
            {
                "before": TIME,
                "now": TIME,
                **dict.fromkeys(("due", "leases", "kept", "plans"), COUNT),
                "kept_jobs": {"type": "array", "items": TEXT},
            }
        ),
        "Freed": record({"freed": FLAG, "idempotency_key": TEXT}),
    }


def _error() -> Shape:
    return record({"attempt": COUNT, "worker_id": ANY_TEXT, "at": TIME, "error": TEXT})


def _alert() -> Shape:
    """The common members of alerts; the others depend on the kind."""
    severity = {"enum": ["warning", "critical"]}
    common = {"alert": TEXT, "alert_id": TEXT, "severity": severity, "at": TIME, "delivered_at": ANY_TIME}
    return {**record(common), "additionalProperties": True}


def _event() -> Shape:
    actor = record({"type": {"enum": ["system", "user", "worker", "service"]}, "id": TEXT})
    return record(
        {
            "id": {"type": "string", "pattern": "^aud_"},
            "event_type": ref("EventType"),
            "actor": actor,
            "object_type": TEXT,
            "object_id": TEXT,
            "before": {"type": ["object", "null"]},
            "after": OBJECT,
            "reason": TEXT,
            "code": TEXT,
            "facts": OBJECT,
            "evidence_refs": listed(TEXT, 1),
            "timestamp": TIME,
            "job_id": ANY_TEXT,
            "correlation_id": ANY_TEXT,
            "metadata": OBJECT,
            "risk_tier": TEXT,
            "decision_trace_id": TEXT,
        },
        optional=("risk_tier", "decision_trace_id"),
    )
