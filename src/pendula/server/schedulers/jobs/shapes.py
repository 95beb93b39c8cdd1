"""The messages of `/scheduler` in OpenAPI, and the documented answers of its routes."""

from collections.abc import Iterable, Mapping
from re import compile as regex
from typing import Any, get_args

from msgspec.json import schema_components

from pendula.governance import messages as governance
from pendula.jobs.client import USER_HEADER
from pendula.jobs.messages import (
    CALLS,
    CRON_MOST,
    ENQUEUE,
    LIST_MOST,
    METRICS,
    PAUSE_PLAN,
    PRINTABLE,
    RESUME_PLAN,
    STATUS_OF,
    UNPROCESSABLE,
    ZONE_MOST,
    Call,
    Enqueued,
    EventType,
    OnePlan,
)
from pendula.jobs.messages import HELD as HELD_CODES
from pendula.jobs.model import PRIORITIES, RETRY_DELAY_MOST_SEC, Code, Policy
from pendula.server.api.openapi import REF, Responses
from pendula.server.schedulers.jobs.errors import RouteNotFound

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
REQUEST_ID: Shape = {"X-Request-Id": {"description": "The request id in the server log", "schema": TEXT}}
RETRY_AFTER: Shape = {"Retry-After": {"description": "Seconds to wait", "schema": {"type": "integer"}}}
LOCATION: Shape = {"Location": {"description": "Where the job can be read", "schema": TEXT}}

# Structs whose name in OpenAPI is another.
NAMES = {
    "Counted": "Count",
    "StoredObject": "Object",
    "Stated": "Reason",
    "Recurring": "Plan",
    "GovernedObject": "Governed",
    "ShownGate": "Gate",
    "ShownRollback": "Rollback",
    "ShownMachine": "Machine",
    "GatePage": "Gates",
    "Figures": "Governance",
    "Begin": "Proof",
    "Created": "Kept",
}
IN_PATH = {
    "job_id": "The id of a job",
    "name": "The name of a plan",
    "object_type": "The type of the object",
    "object_id": "The id of the object",
}
# The common members of alerts; the others depend on the kind.
ALERT: Shape = {
    "type": "object",
    "properties": {
        "alert": TEXT,
        "alert_id": TEXT,
        "severity": {"enum": ["warning", "critical"]},
        "at": TIME,
        "delivered_at": ANY_TIME,
    },
    "required": ["alert", "alert_id", "severity", "at", "delivered_at"],
    "additionalProperties": True,
}
NO_ROUTE = {404: (RouteNotFound.code,)}  # a line break in a path is part of no route
USER: Shape = {
    "name": USER_HEADER,
    "in": "header",
    "required": False,
    "description": "The acting user, percent-encoded; only on a server without tokens, since a token has a name",
    "schema": {"type": "string", "pattern": "^[A-Za-z0-9._@-]{1,128}$"},
}
# Calls on a plan that exists.
ALWAYS_THERE = (PAUSE_PLAN.path, RESUME_PLAN.path)
OWN_TYPES: Mapping[str, Shape] = {
    "Instant": TIME,
    "Delay": {"type": "number", "minimum": 0, "maximum": RETRY_DELAY_MOST_SEC},
    "Fraction": {"type": "number", "minimum": 0, "maximum": 1},
    "Rank": {
        "named": "Priority",
        "description": "Decides among jobs due at the same moment; with the setting pull_order = weighted in a "
        "backlog, too",
    },
    "JobCursor": TEXT,
    "EventCursor": TEXT,
    "JsonText": ANYTHING,
    "ErrorText": {"type": "string", "pattern": r"\S"},
    "CronText": {"type": "string", "minLength": 1, "maxLength": CRON_MOST},
    "ZoneName": {"type": "string", "minLength": 1, "maxLength": ZONE_MOST},
    "Refs": {
        "type": "array",
        "items": {"type": "string", "minLength": 1, "maxLength": governance.REF_MOST},
        "minItems": 0,
        "maxItems": governance.REFS_MOST,
    },
    "Length": {"type": "string", "pattern": "^P[0-9DHMSTW.]+$", "description": "Such as P7D or PT12H"},
    "Weight": {"type": "number", "minimum": 0, "maximum": 100},
}

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
HELD = (*HELD_CODES, *FAULTS)
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
    """All schemas by name: the messages of the scheduler, and the words of this policy."""
    kinds = [kind for call in (*governance.CALLS, *CALLS) for kind in (call.request, call.reply) if kind is not None]
    (_, found) = schema_components(kinds, schema_hook=_own_type, ref_template="{name}")
    shapes = {_named(name): _finished(shape) for name, shape in found.items()}
    plan = shapes[_named("Recurring")]
    del plan["properties"]["name"]
    plan["required"].remove("name")
    for name in ("Ack", "AckEntry"):
        shapes[_named(name)]["required"].append("result")
    for name in ("CancelFilter", "RequeueFilter"):
        shapes[_named(name)]["minProperties"] = 1
    limit = shapes[_named("Pull")]["properties"]["limit"]["anyOf"][0]
    limit["maximum"] = policy.pull_max_limit
    words = policy.vocabulary
    listed_words: dict[str, Iterable[str]] = {
        "ObjectType": words.object_types,
        "Action": words.actions,
        "Priority": PRIORITIES,
        "EventType": get_args(EventType),
    }
    words_by_name = {_named(name): {"enum": list(values)} for name, values in listed_words.items()}
    return {**shapes, **words_by_name, _named("Alert"): ALERT}


def _named(struct: str) -> str:
    return NAME.format(name=NAMES.get(struct, struct))


def _own_type(kind: type) -> Shape:
    """The shape of a type of fields that `messages` defines."""
    return OWN_TYPES[kind.__name__]


def _finished(shape: Any) -> Any:
    """Full references, patterns that other languages read, and no members beside those of the struct."""
    match shape:
        case {"named": str(name)}:
            return ref(name)
        case {"$ref": str(name)}:
            return {"$ref": REF.format(name=_named(name))}
        case dict():
            found = {name: _finished(value) for name, value in shape.items() if name not in ("title", "default")}
            if "pattern" in found and not isinstance(found["pattern"], dict):
                found["pattern"] = found["pattern"].replace(r"\Z", "$")
                if found["pattern"].startswith(PRINTABLE):
                    del found["pattern"]
            if "properties" in found and isinstance(found.get("type"), str):
                found["additionalProperties"] = False
            return found
        case list() | tuple():
            return [_finished(one) for one in shape]
        case _:
            return shape


def parameters(call: Call[Any]) -> list[Shape]:
    """The parameters of a call in its path and its query."""
    found = [in_path(name, IN_PATH[name]) for name in regex(r"{(\w+)}").findall(call.path)]
    if not call.reads or call.request is None:
        return found
    (_, shapes) = schema_components([call.request], schema_hook=_own_type, ref_template="{name}")
    for name, shape in shapes[call.request.__name__]["properties"].items():
        [given] = [part for part in shape.get("anyOf", [shape]) if part != {"type": "null"}]
        given = {**shape, **given}
        found.append(in_query(name, _finished(_without(given, "anyOf", "description")), given.get("description", "")))
    return found


def described(call: Call[Any]) -> dict[str, Any]:
    """The parameters and the body of a call."""
    given = parameters(call)
    if call in governance.CALLS and not call.reads and "{job_id}" not in call.path:
        given.append(USER)
    extra: dict[str, Any] = {"parameters": given} if given else {}
    if call.request is not None and not call.reads:
        extra["requestBody"] = takes(NAMES.get(call.request.__name__, call.request.__name__))
    return extra


def answers_of(call: Call[Any]) -> Responses:
    """The documented answers of a call."""
    name = NAMES.get(call.reply.__name__, call.reply.__name__)
    codes = (*call.refusals, *(() if call.request is None else FAULTS))
    also = NO_ROUTE if "{object_id}" in call.path else None
    found = gives(name, *codes, body=call.request is not None and not call.reads, also=also)
    if call is governance.CREATE:
        found[201] = found.pop(200)
    if call.reply in (Enqueued, OnePlan) and call.path not in ALWAYS_THERE:
        found[201] = answer(name, LOCATION if call is ENQUEUE else None)
    if call is METRICS:
        found[200]["content"]["text/plain"] = {"schema": TEXT}
    return found


def _without(shape: Shape, *names: str) -> Shape:
    return {name: value for name, value in shape.items() if name not in names}


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


LIMIT = in_query("limit", integer(1, LIST_MOST), "The maximum number of results")
