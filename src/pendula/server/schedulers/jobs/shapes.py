"""The bodies of `/scheduler` in OpenAPI: shapes by name, those with words of the vocabulary made from the policy."""

from collections.abc import Mapping
from typing import Any

from pendula.jobs.calls.filters import CANCELLABLE, ERROR_CODE_MOST, LIST_MOST, REVIVABLE
from pendula.jobs.calls.queries import EVENT_TYPES
from pendula.jobs.model import (
    ATTEMPTS_MOST,
    BATCH_MOST,
    LEASE_MOST_SEC,
    PRIORITIES,
    RETRY_DELAY_MOST_SEC,
    STATUS_OF,
    UNPROCESSABLE,
    Code,
    Policy,
    Status,
)
from pendula.jobs.requests import (
    KEY_MOST,
    NOTE_MOST,
    OBJECT_ID_MOST,
    OUTCOME_MOST,
    PAIRS_MOST,
    QUEUE,
    REASON_MOST,
    WAIT_MOST_MS,
    WAITING,
    WORKER_ID,
)
from pendula.server.api.openapi import REF, Responses

Shape = dict[str, Any]

NAME = "Scheduler{name}"
TIME: Shape = {"type": "string", "format": "date-time"}
ANY_TIME: Shape = {"type": ["string", "null"], "format": "date-time"}
TEXT: Shape = {"type": "string"}
ANY_TEXT: Shape = {"type": ["string", "null"]}
COUNT: Shape = {"type": "integer", "minimum": 0}
FLAG: Shape = {"type": "boolean"}
OBJECT: Shape = {"type": "object"}
ANYTHING: Shape = {"description": "Any JSON value of at most 65536 bytes in canonical form; null when absent"}
FRACTION: Shape = {"type": "number", "minimum": 0, "maximum": 1}
WORKER: Shape = {"type": "string", "pattern": f"^{WORKER_ID.pattern}$"}
QUEUE_NAME: Shape = {"type": "string", "pattern": f"^{QUEUE.pattern}$"}
REQUEST_ID: Shape = {"X-Request-Id": {"description": "The request id in the server log", "schema": TEXT}}
PRIORITY = "Decides among jobs due at the same moment; with the setting pull_order = weighted in a backlog, too"
RETRY_AFTER: Shape = {"Retry-After": {"description": "Seconds to wait", "schema": {"type": "integer"}}}
LOCATION: Shape = {"Location": {"description": "Where the job can be read", "schema": TEXT}}

FAULTS = (
    Code.VALIDATION_FAILED,
    Code.MISSING_FIELD,
    Code.UNKNOWN_FIELD,
    Code.INVALID_FIELD,
    Code.INVALID_ENUM,
    Code.INVALID_TIMESTAMP,
    Code.NAIVE_TIMESTAMP,
    Code.TIMESTAMP_OUT_OF_RANGE,
)
HELD = (
    Code.JOB_NOT_FOUND,
    Code.JOB_NOT_RUNNING,
    Code.LEASE_LOST,
    Code.LEASE_EXPIRED,
    Code.LEASE_TOKEN_REQUIRED,
    *FAULTS,
)
# Errors of the server before a call reaches the scheduler, by status.
ANY_CALL: Mapping[int, tuple[str, ...]] = {
    400: ("invalid_http",),
    401: ("unauthenticated",),
    403: ("forbidden",),
    421: ("host_not_allowed",),
    429: ("rate_limited",),
    500: ("internal",),
    503: ("clock_ahead", "read_too_long", "storage_busy", "shutting_down", "store_unusable", "tokens_unreadable"),
}
WITH_BODY: Mapping[int, tuple[str, ...]] = {
    400: ("malformed_json", "body_not_object", "duplicate_member"),
    408: ("slow_request",),
    413: ("body_too_large",),
    415: ("unsupported_media_type",),
}
DESCRIPTIONS = {
    400: "The head or the body of the request is not well formed",
    401: "The caller is not signed in",
    403: "The caller's role is too low, or the call comes from a foreign page",
    404: "Not found",
    408: "The body stopped arriving",
    409: "The state of the job, or its key, does not allow it; nothing was changed",
    413: "The body is too large",
    415: "The body is not application/json",
    421: "The Host header does not name this server",
    422: "Values are not allowed; nothing was changed",
    429: "Too many requests at once",
    500: "Internal error",
    503: "Nothing was changed; retry after a moment",
}


def ref(name: str) -> Shape:
    return {"$ref": REF.format(name=NAME.format(name=name))}


def record(members: Shape, optional: tuple[str, ...] = ()) -> Shape:
    """An object with these members and no others."""
    return {
        "type": "object",
        "properties": members,
        "required": [name for name in members if name not in optional],
        "additionalProperties": False,
    }


def request(members: Shape, *required: str) -> Shape:
    return {"type": "object", "properties": members, "required": list(required), "additionalProperties": False}


def text(most: int) -> Shape:
    return {"type": "string", "minLength": 1, "maxLength": most}


def integer(least: int, most: int) -> Shape:
    return {"type": "integer", "minimum": least, "maximum": most}


def listed(entry: Shape, least: int = 0, most: int | None = None) -> Shape:
    return {"type": "array", "items": entry, "minItems": least} | ({} if most is None else {"maxItems": most})


def or_null(shape: Shape) -> Shape:
    return {"anyOf": [shape, {"type": "null"}]}


def schemas(policy: Policy) -> Mapping[str, Shape]:
    """All schemas of the scheduler by name."""
    found = {**_words(policy), **_enqueuing(), **_working(policy), **_governing()}
    return {NAME.format(name=name): shape for name, shape in found.items()}


def _words(policy: Policy) -> dict[str, Shape]:
    words = policy.vocabulary
    return {
        "ObjectType": {"enum": list(words.object_types)},
        "Action": {"enum": list(words.actions)},
        "Priority": {"enum": list(PRIORITIES)},
        "Status": {"enum": [status.value for status in Status]},
        "EventType": {"enum": list(EVENT_TYPES)},
    }


def _enqueuing() -> dict[str, Shape]:
    """Requests that enqueue."""
    return {
        "Enqueue": request(
            {
                "object_type": ref("ObjectType"),
                "object_id": text(OBJECT_ID_MOST),
                "action": ref("Action"),
                "run_at": ANY_TIME,
                "priority": or_null(ref("Priority")) | {"description": PRIORITY},
                "max_attempts": or_null(integer(1, ATTEMPTS_MOST)),
                "idempotency_key": or_null(text(KEY_MOST)),
                "correlation_id": or_null(text(OBJECT_ID_MOST)),
                "queue": or_null(QUEUE_NAME),
                "payload": ANYTHING,
                "unique": or_null({"enum": [WAITING]}),
            },
            "object_type",
            "object_id",
            "action",
        ),
        "Batch": request({"jobs": listed(ref("Enqueue"), 1, BATCH_MOST), "atomic": FLAG}, "jobs"),
    }


def _working(policy: Policy) -> dict[str, Shape]:
    """Requests of workers."""
    lease_sec = integer(1, LEASE_MOST_SEC)
    pair = {"type": "array", "items": TEXT, "minItems": 2, "maxItems": 2}
    proof: Shape = {"worker_id": or_null(text(128)), "lease_token": or_null(text(200))}
    ack: Shape = {
        "result": {"enum": ["succeeded"]},
        "audit_event_id": or_null(text(OBJECT_ID_MOST)),
        "next_action_at": ANY_TIME,
        "next_action": or_null(ref("Action")),
        "outcome": or_null(text(OUTCOME_MOST)),
        "outcome_result": ANYTHING,
        **proof,
    }
    return {
        "Pull": request(
            {
                "worker_id": WORKER,
                "now": ANY_TIME,
                "limit": or_null(integer(1, policy.pull_max_limit)),
                "lease_sec": or_null(lease_sec),
                "object_types": or_null(listed(ref("ObjectType"), 1)),
                "actions": or_null(listed(ref("Action"), 1)),
                "wait_ms": or_null(integer(0, WAIT_MOST_MS)),
                "queues": or_null(listed(QUEUE_NAME, 1) | {"uniqueItems": True}),
                "pairs": or_null(listed(pair, 1, PAIRS_MOST)),
            },
            "worker_id",
        ),
        "Ack": request(ack, "result"),
        "AckBatch": request(
            {"acks": listed(request({"job_id": TEXT, **ack}, "job_id", "result"), 1, BATCH_MOST)}, "acks"
        ),
        "Fail": request(
            {
                "error": {"type": "string", "pattern": r"\S"},
                "retry_delay_sec": {"type": "number", "minimum": 0, "maximum": RETRY_DELAY_MOST_SEC},
                "retryable": FLAG,
                "cancelled": FLAG,
                **proof,
            },
            "error",
        ),
        "Renew": request(
            {
                "worker_id": text(128),
                "lease_token": text(200),
                "lease_sec": or_null(lease_sec),
                "progress": or_null(FRACTION),
                "progress_note": or_null(text(NOTE_MOST)),
            },
            "worker_id",
            "lease_token",
        ),
        "Release": request({"worker_id": text(128), "lease_token": text(200)}, "worker_id", "lease_token"),
    }


def _governing() -> dict[str, Shape]:
    """Requests of operators."""
    return {
        "Cancel": request({"reason": or_null(text(REASON_MOST))}),
        "Requeue": request({"run_at": ANY_TIME, "reason": or_null(text(REASON_MOST))}),
        "CancelBatch": request(_operation([status.value for status in CANCELLABLE]), "filter"),
        "RequeueBatch": request({**_operation([status.value for status in REVIVABLE]), "run_at": ANY_TIME}, "filter"),
        "SetTime": request({"reason": text(REASON_MOST)}, "reason"),
        "FreeKey": request(
            {"idempotency_key": text(KEY_MOST), "reason": text(REASON_MOST)}, "idempotency_key", "reason"
        ),
    }


def _operation(statuses: list[str]) -> Shape:
    """A call on many jobs; without a status it is for the first of these."""
    filters = {one["name"]: one["schema"] for one in FILTERS} | {"status": {"enum": statuses}}
    return {
        "filter": request(filters) | {"minProperties": 1},
        "reason": or_null(text(REASON_MOST)),
        "limit": or_null(integer(1, BATCH_MOST)),
        "cursor": ANY_TEXT,
    }


# Documentation of routes


def gives(
    name: str,
    *codes: Code,
    body: bool = False,
    status: int = 200,
    headers: Shape | None = None,
    also: Mapping[int, tuple[str, ...]] | None = None,
) -> Responses:
    """The documented answers of a route: one shape on success, and by status every code it can be refused with."""
    good: Responses = {status: answer(name, headers)}
    by_status: dict[int, list[str]] = {}
    for found in (ANY_CALL, WITH_BODY if body else {}, also or {}):
        for number, words in found.items():
            by_status.setdefault(number, []).extend(words)
    for code in codes:
        by_status.setdefault(STATUS_OF.get(code, UNPROCESSABLE), []).append(code.value)
    return good | {number: _refusal(number, words) for number, words in sorted(by_status.items())}


def answer(name: str, headers: Shape | None = None) -> dict[str, Any]:
    content = {"application/json": {"schema": ref(name)}}
    return {"description": name, "content": content, "headers": REQUEST_ID | (headers or {})}


def _refusal(status: int, codes: list[str]) -> dict[str, Any]:
    facts = record({"code": {"enum": codes}, "message": TEXT, "details": OBJECT})
    headers = REQUEST_ID | (RETRY_AFTER if status in (429, 503) else {})
    content = {"application/json": {"schema": record({"error": facts})}}
    return {"description": DESCRIPTIONS[status], "content": content, "headers": headers}


def takes(name: str) -> dict[str, Any]:
    return {"required": True, "content": {"application/json": {"schema": ref(name)}}}


def in_path(name: str, sentence: str) -> Shape:
    return {"name": name, "in": "path", "required": True, "description": sentence, "schema": TEXT}


def in_query(name: str, shape: Shape, sentence: str = "") -> Shape:
    return {"name": name, "in": "query", "required": False, "description": sentence, "schema": shape}


FILTERS = (
    in_query("status", ref("Status")),
    in_query("object_type", ref("ObjectType")),
    in_query("object_id", text(OBJECT_ID_MOST)),
    in_query("action", ref("Action")),
    in_query("queue", QUEUE_NAME),
    in_query("correlation_id", text(OBJECT_ID_MOST)),
    in_query("error_code", text(ERROR_CODE_MOST), "The part of last_error before the first colon"),
    in_query("created_after", TIME, "Stored then or later"),
    in_query("created_before", TIME, "Stored before then"),
)
LIMIT = in_query("limit", integer(1, LIST_MOST), "The maximum number of results")
