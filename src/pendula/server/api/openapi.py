"""The OpenAPI 3.1 document: routes from FastAPI, schemas from the structs of the bodies."""

from collections.abc import Iterable
from typing import Any

import msgspec
from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi

from pendula.kernel.engine import Reason
from pendula.server import views
from pendula.server.runtime.scheduler_spec import ChoicesView, SchedulerSpec

REF = "#/components/schemas/{name}"
VIEWS = (
    views.SchedulerList,
    views.Health,
    views.Readiness,
    views.SessionView,
    views.SignIn,
    views.Question,
    views.StateView,
    views.JournalView,
    views.MomentView,
    views.MomentsView,
    views.IncidentView,
    views.CommandResult,
    ChoicesView,
    views.ErrorView,
    Reason,
)
Responses = dict[int | str, dict[str, Any]]

_DESCRIPTIONS = {
    400: "The head or the body of the request is not well formed",
    401: "The caller is not signed in",
    403: "The caller's role is too low, or the call comes from a foreign page",
    404: "Not found",
    408: "The body stopped arriving",
    409: "The engine refuses the command",
    413: "The body is too large",
    415: "The body is not application/json",
    421: "The Host header does not name this server",
    422: "A value is not allowed",
    429: "Too many wrong tokens from this address, or too many open streams for this token",
    500: "Internal error",
    503: "A disk or database fails, or the server is overloaded",
}
READ_ERRORS = (400, 401, 403, 404, 421, 422, 429, 500, 503)
WRITE_ERRORS = (400, 401, 403, 404, 408, 413, 415, 421, 422, 429, 500, 503)
CHANGE_ERRORS = (*WRITE_ERRORS, 409)
PUBLIC_ERRORS = (400, 401, 421, 429, 500, 503)
TAKEN: Responses = {204: {"description": "Accepted; the response has no body"}}


def answers(view: type, errors: Iterable[int] = READ_ERRORS, status: int = 200) -> Responses:
    """The documented responses of a route: `view` on success, the error form otherwise."""
    good: Responses = {status: {"description": view.__name__, "content": _json(view.__name__)}}
    return good | refusals(errors)


def refusals(errors: Iterable[int]) -> Responses:
    return {status: {"description": _DESCRIPTIONS[status], "content": _json("ErrorView")} for status in errors}


def takes(name: str, *, json5: bool = False) -> dict[str, Any]:
    """The documented body of a route: a component by name, optionally also as JSON5."""
    content = _json(name)
    if json5:
        content["application/json5"] = content["application/json"]
    return {"requestBody": {"required": True, "content": content}}


def command_name(scheduler: str) -> str:
    """The component that describes the commands of a scheduler."""
    return f"{scheduler.title().replace('-', '')}Command"


def document(app: FastAPI, schedulers: Iterable[SchedulerSpec]) -> dict[str, Any]:
    """The whole document; the app caches it."""
    if app.openapi_schema is None:
        found = get_openapi(title=app.title, version=app.version, routes=app.routes, summary=app.summary)
        found["components"] = {
            "schemas": _components(schedulers),
            "securitySchemes": {
                "bearer": {"type": "http", "scheme": "bearer"},
                "session": {"type": "apiKey", "in": "cookie", "name": "pendula_session"},
            },
        }
        # The empty requirement: local callers need no token while none is configured.
        found["security"] = [{"bearer": []}, {"session": []}, {}]
        app.openapi_schema = found
    return app.openapi_schema


def _components(schedulers: Iterable[SchedulerSpec]) -> dict[str, Any]:
    schedulers = tuple(schedulers)
    _, shapes = msgspec.json.schema_components(
        (*VIEWS, *(view for scheduler in schedulers for view in scheduler.views)), ref_template=REF
    )
    for scheduler in schedulers:
        shapes.update(scheduler.schemas)
        # Commands that callers cannot send are internal.
        if scheduler.engine is None or not scheduler.commanded:
            continue
        # Prefixed, since two schedulers may have commands of the same name.
        prefix = command_name(scheduler.name)
        (commands,), parts = msgspec.json.schema_components(
            [scheduler.engine.commands], ref_template=REF.replace("{name}", prefix + "{name}")
        )
        shapes[prefix] = commands | {"description": f"A command of the scheduler {scheduler.name}"}
        shapes.update({prefix + name: part for name, part in parts.items()})
    found: dict[str, Any] = _with_numbers(shapes)
    return found


def _with_numbers(shape: Any) -> Any:
    """Declare exact numbers as numbers; msgspec would declare strings."""
    match shape:
        case {"format": "decimal"}:
            return {name: value for name, value in shape.items() if name != "format"} | {"type": "number"}
        case dict():
            return {name: _with_numbers(value) for name, value in shape.items()}
        case list() | tuple():
            return [_with_numbers(one) for one in shape]
        case _:
            return shape


def _json(name: str) -> dict[str, Any]:
    return {"application/json": {"schema": {"$ref": REF.format(name=name)}}}
