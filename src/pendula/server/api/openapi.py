"""The OpenAPI 3.1 document: routes from FastAPI, schemas from the structs of the bodies."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import msgspec
from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi

from pendula.server import views
from pendula.server.runtime.scheduler_spec import SchedulerSpec

REF = "#/components/schemas/{name}"
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


# The structs of documented bodies, by name; a document has those that its routes name.
_structs: dict[str, type] = {}


def answers(view: type, errors: Iterable[int] = READ_ERRORS, status: int = 200) -> Responses:
    """The documented responses of a route: `view` on success, the error form otherwise."""
    good: Responses = {status: {"description": view.__name__, "content": content_of(view)}}
    return good | refusals(errors)


def refusals(errors: Iterable[int]) -> Responses:
    return {status: {"description": _DESCRIPTIONS[status], "content": content_of(views.ErrorView)} for status in errors}


def takes(body: type | str, *, json5: bool = False) -> dict[str, Any]:
    """The documented body of a route: a struct, or a component by name; optionally also as JSON5."""
    content = content_of(body)
    if json5:
        content["application/json5"] = content["application/json"]
    return {"requestBody": {"required": True, "content": content}}


def content_of(body: type | str) -> dict[str, Any]:
    """The content of a documented body in JSON: a struct, or a component by name."""
    if isinstance(body, str):
        name = body
    else:
        name = body.__name__
        assert _structs.setdefault(name, body) is body, f"two structs of documented bodies are called {name}"
    return {"application/json": {"schema": {"$ref": REF.format(name=name)}}}


def command_name(scheduler: str) -> str:
    """The component that describes the commands of a scheduler."""
    return f"{scheduler.title().replace('-', '')}Command"


def document(app: FastAPI, schedulers: Iterable[SchedulerSpec]) -> dict[str, Any]:
    """The whole document; the app caches it."""
    if app.openapi_schema is None:
        found = get_openapi(title=app.title, version=app.version, routes=app.routes, summary=app.summary)
        found["components"] = {
            "schemas": _components(found["paths"], schedulers),
            "securitySchemes": {
                "bearer": {"type": "http", "scheme": "bearer"},
                "session": {"type": "apiKey", "in": "cookie", "name": "pendula_session"},
            },
        }
        # The empty requirement: local callers need no token while none is configured.
        found["security"] = [{"bearer": []}, {"session": []}, {}]
        app.openapi_schema = found
    return app.openapi_schema


def _components(paths: Mapping[str, Any], schedulers: Iterable[SchedulerSpec]) -> dict[str, Any]:
    named = [_structs[name] for name in sorted(set(_references(paths))) if name in _structs]
    _, shapes = msgspec.json.schema_components(named, ref_template=REF)
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


def _references(value: Any) -> Iterator[str]:
    """The names of the components that a part of a document refers to."""
    match value:
        case {"$ref": str(path)}:
            yield path.rpartition("/")[2]
        case dict():
            for inner in value.values():
                yield from _references(inner)
        case list():
            for inner in value:
                yield from _references(inner)
        case _:
            pass
