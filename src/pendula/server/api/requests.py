"""What a route takes from a request: the caller, the supervisor, query parameters, a typed body.

Every route that is not public declares the role it needs; a test checks all routes. Unknown query parameters are
refused with a suggestion, since a misspelt `before` would otherwise silently return the present. Bodies are JSON read
with `pendula.documents`: all faults, of syntax and of types, are reported in one `DocumentRefused` with their places.
"""

import asyncio
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from typing import Annotated, Any, TypeVar, overload

import msgspec
from fastapi import Depends
from fastapi.dependencies.models import Dependant
from fastapi.routing import APIRoute
from starlette.requests import Request

from pendula.documents import (
    CONTENT_TYPES,
    Document,
    DocumentLimits,
    Format,
    read_bytes,
    typed,
)
from pendula.kernel.limits import BODY_BYTES, BODY_DIGITS, BODY_VALUES, DOCUMENT_DEPTH, DOCUMENT_FAULTS
from pendula.kernel.wording import shown, suggestion
from pendula.server.data_directory import NAME, NAMES_ALLOWED
from pendula.server.errors import InvalidRequest, NotIdentified, RoleTooLow, WrongContentType
from pendula.server.runtime.supervisor import Supervisor
from pendula.server.security.gates import Slot, principal_of
from pendula.server.security.identity import Principal, Role, Via
from pendula.server.settings import Settings

MOST_TOLD = 10
LONGEST_NAME = 64
# Smaller bodies are read faster than a thread starts.
QUICK_BYTES = 64 * 1024

T = TypeVar("T")


class Needs:
    """A dependency that returns the caller if the role suffices; raises `RoleTooLow` or `NotIdentified`."""

    def __init__(self, role: Role) -> None:
        self.role = role

    # A coroutine: FastAPI would run a plain function in a thread, which takes longer than the check.
    async def __call__(self, request: Request) -> Principal:
        principal = principal_of(request.scope)
        if principal is None:
            raise NotIdentified("Sign in: send a bearer token or a session cookie")
        if not principal.role.covers(self.role):
            how = "; without a token this machine is operator at most: make one with pendula token new"
            raise RoleTooLow(
                f"This needs the role {self.role}; {principal.name} is {principal.role}"
                + (how if principal.via is Via.LOCAL else ""),
                needed=self.role,
                role=principal.role,
            )
        return principal


Viewer = Annotated[Principal, Depends(Needs(Role.VIEWER))]
Operator = Annotated[Principal, Depends(Needs(Role.OPERATOR))]
Admin = Annotated[Principal, Depends(Needs(Role.ADMIN))]


def supervisor_of(request: Request) -> Supervisor:
    """The supervisor of the app."""
    supervisor: Supervisor = request.app.state.supervisor
    return supervisor


def request_id_of(request: Request) -> str:
    found: str = request.state.request_id
    return found


def slot_of(request: Request) -> Slot:
    """The request's slot; a stream releases it when it begins."""
    found: Slot = request.state.slot
    return found


Supervised = Annotated[Supervisor, Depends(supervisor_of)]
RequestId = Annotated[str, Depends(request_id_of)]


async def only_known_names(request: Request) -> None:
    """A dependency for routes that declare all their parameters; raises `InvalidRequest`."""
    if not request.query_params:
        return
    route = request.scope["route"]
    assert isinstance(route, APIRoute)
    if not route.include_in_schema:
        # The page handles its own query.
        return
    known = query_names(route)
    unknown = [name for name in dict.fromkeys(request.query_params) if name not in known]
    if unknown:
        faults = [{"place": "query", "name": name[:64], "problem": _problem(name, known)} for name in unknown]
        problems = "; ".join(f"{fault['name']} (query): {fault['problem']}" for fault in faults[:MOST_TOLD])
        raise InvalidRequest(f"The request is invalid: {problems}", faults=faults[:MOST_TOLD])


def query_names(route: APIRoute) -> tuple[str, ...]:
    """The query parameters of a route, in documented order."""
    return tuple(dict.fromkeys(_names(route.dependant)))


def _names(dependant: Dependant) -> Iterator[str]:
    yield from (parameter.alias for parameter in dependant.query_params)
    for deeper in dependant.dependencies:
        yield from _names(deeper)


def _problem(name: str, known: tuple[str, ...]) -> str:
    if not known:
        return "this path has no parameters"
    return f"unknown parameter{suggestion(name, known)}; allowed are {', '.join(known)}"


def problem_of(fault: Mapping[str, Any]) -> str:
    """Explain why the framework refuses a parameter."""
    if fault["type"] != "string_pattern_mismatch":
        return str(fault["msg"])
    given, pattern = fault["input"], fault["ctx"]["pattern"]
    if pattern != f"^{NAME.pattern}$":
        return f"{shown(given)} does not match {pattern}"
    return f"{shown(given)} is not a name; a name has {NAMES_ALLOWED} and does not begin with a hyphen{_near(given)}"


def _near(given: str) -> str:
    """The closest valid name, if there is one."""
    near = re.sub(r"[^a-z0-9]+", "-", given[:LONGEST_NAME].lower()).strip("-")
    return f", such as {near!r}" if NAME.fullmatch(near) else ""


@overload
async def read_body(request: Request, kind: type[T], *, yaml: bool = False) -> T: ...
@overload
async def read_body(request: Request, kind: Any, *, yaml: bool = False) -> Any: ...
async def read_body(request: Request, kind: Any, *, yaml: bool = False) -> Any:
    """The body as a value of `kind`; raises `DocumentRefused`, `BodyTooLarge`, `SlowRequest` or `WrongContentType`.

    With `yaml` the route also accepts YAML, by content type.
    """
    form = format_of(request, yaml=yaml)
    return await read_body_with(request, lambda data, limits: parse(data, kind, limits, form))


async def read_body_with(request: Request, read: Callable[[bytes, DocumentLimits], T]) -> T:
    """The result of `read` for the body, in a thread if large; raises as `read_body` does."""
    data = await request.body()
    limits = limits_of(request)
    if len(data) <= QUICK_BYTES:
        return read(data, limits)
    return await asyncio.to_thread(read, data, limits)


def format_of(request: Request, *, yaml: bool) -> Format:
    """The format of the body by its content type; raises `WrongContentType` for JSON5, which only routes with their own
    reader accept, and for YAML unless `yaml`."""
    given = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    form = CONTENT_TYPES.get(given, Format.JSON)
    if form is Format.JSON5 or (form is Format.YAML and not yaml):
        raise WrongContentType(f"The content type is {given}; this route accepts application/json", content_type=given)
    return form


def parse(data: bytes, kind: Any, limits: DocumentLimits, form: Format = Format.JSON) -> Any:
    """The text `data` as a value of `kind`."""
    return as_kind(read_bytes(data, form, limits=limits), kind)


def as_kind(document: Document, kind: Any) -> Any:
    """The value of a document as one of `kind`; raises `DocumentRefused` with every fault."""
    try:
        return msgspec.convert(document.value, kind)
    except msgspec.ValidationError as error:
        complaint = str(error)
    # Only a refused body is read member by member. The commands of an engine may have types that only msgspec reads.
    root = document.root()
    root.reading.text_numbers = True
    with suppress(TypeError):
        typed.read(document, kind)
    root.refuse(complaint)
    return document.done()


def limits_of(request: Request) -> DocumentLimits:
    """The limits of a body."""
    limits: DocumentLimits = request.app.state.body_limits
    return limits


def document_limits(settings: Settings) -> DocumentLimits:
    """Limits of a body: far below those of a file, since any caller with a token can send many."""
    return DocumentLimits(
        size=settings.allowed(BODY_BYTES),
        depth=settings.allowed(DOCUMENT_DEPTH),
        nodes=settings.allowed(BODY_VALUES),
        faults=settings.allowed(DOCUMENT_FAULTS),
        digits=settings.allowed(BODY_DIGITS),
    )
