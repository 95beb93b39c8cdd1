"""HTTP requests to calls of the scheduler, and their answers to HTTP responses.

A body is one JSON object of limited size, read by the document reader.
"""

import asyncio
from collections.abc import Callable
from re import compile as regex
from typing import Any
from urllib.parse import unquote

from starlette.requests import Request
from starlette.responses import Response

from pendula.documents import DocumentLimits, read_bytes
from pendula.governance.messages import Created
from pendula.jobs import messages
from pendula.jobs.calls import Answer, Body, Caller, Calls
from pendula.jobs.messages import Enqueued, NewPlan
from pendula.jobs.model import Actor, Code, Refused
from pendula.jobs.request_reading import Faults
from pendula.kernel.limits import MIB
from pendula.server.api.requests import QUICK_BYTES, limits_of, request_id_of
from pendula.server.errors import BodyTooLarge, error_body, json_response
from pendula.server.runtime.scheduler_spec import Host
from pendula.server.schedulers.jobs.errors import BodyNotObject, Forbidden
from pendula.server.schedulers.jobs.service import JobService
from pendula.server.security.identity import Principal, Via
from pendula.server.views import encode_view

NAME = "jobs"
USER_HEADER = "X-Pendula-User"
BODY_MOST = MIB
BATCH_BODY_MOST = 8 * MIB
INTEGERS = frozenset({"limit", "window_sec"})
_INTEGER = regex(r"-?[0-9]{1,18}")


def service_of(request: Request) -> JobService:
    """The scheduler of the app that answers."""
    return service_in(request.app.state.supervisor)


def service_in(host: Host) -> JobService:
    service = host.service(NAME)
    assert isinstance(service, JobService)
    return service


async def changed(
    request: Request, who: Principal, call: Callable[[Calls, Body, Caller], Answer], most: int = BODY_MOST
) -> Answer:
    body = await read_object(request, most)
    caller = caller_of(request, who)
    return await service_of(request).call(lambda calls: call(calls, body, caller))


async def listed(request: Request, look: Callable[[Calls, dict[str, Any]], Answer]) -> Response:
    query = query_of(request)
    service = service_of(request)
    if isinstance(query, Faults):
        return response_of(service.counted(query.refusal()))
    return response_of(service.counted(await service.read(lambda calls: look(calls, query))))


def caller_of(request: Request, who: Principal) -> Caller:
    """The actor for the audit trail: the name of the token or, on a local server without tokens, of the header.

    Raises `Forbidden` if the header is not a valid name or differs from the token.
    """
    header = request.headers.get(USER_HEADER)
    if header is None:
        actor = Actor("service", who.name) if who.via is Via.LOCAL else Actor("user", who.name)
        return Caller(actor, request_id_of(request))
    name = unquote(header, errors="replace")
    if who.via is not Via.LOCAL and name != who.name:
        raise Forbidden(f"The token belongs to {who.name}; leave {USER_HEADER} out")
    if not messages.is_user(name):
        raise Forbidden(f"{USER_HEADER} must be a name of 1 to {messages.USER_MOST} printable characters")
    return Caller(Actor("user", name), request_id_of(request))


def response_of(answer: Answer) -> Response:
    if isinstance(answer, Refused):
        return json_response(error_body(answer.code.value, answer.message, answer.details), status_of(answer))
    return json_response(encode_view(answer), status_of(answer))


def status_of(answer: Answer) -> int:
    if isinstance(answer, Refused):
        return messages.status_of(answer)
    is_new = isinstance(answer, NewPlan | Created) or (isinstance(answer, Enqueued) and not answer.deduplicated)
    return 201 if is_new else 200


async def read_object(request: Request, most: int = BODY_MOST) -> dict[str, Any]:
    """The object in the body; raises `BodyTooLarge`, `BodyNotObject` or `DocumentRefused`."""
    declared = request.headers.get("content-length", "0")
    if declared.isascii() and declared.isdigit():
        _check(int(declared[:20]), most)
    data = bytearray()
    async for part in request.stream():
        data += part
        _check(len(data), most)
    limits = limits_of(request)
    if len(data) <= QUICK_BYTES:
        return _object(bytes(data), limits)
    return await asyncio.to_thread(_object, bytes(data), limits)


def _check(size: int, most: int) -> None:
    if size > most:
        raise BodyTooLarge(f"The body has at least {size} bytes; the limit is {most}", value=size, allowed=most)


def _object(data: bytes, limits: DocumentLimits) -> dict[str, Any]:
    value: Any = read_bytes(data, limits=limits).value
    if not isinstance(value, dict):
        raise BodyNotObject("The body must be one JSON object")
    return value


def query_of(request: Request) -> dict[str, Any] | Faults:
    """The query parameters, integers parsed; a repeated parameter is a fault.

    A value that is not an integer stays text, so that the reader of the parameter can report what is allowed.
    """
    faults = Faults()
    query: dict[str, Any] = {}
    for name, value in request.query_params.multi_items():
        if name in query:
            faults.add(name, Code.INVALID_FIELD, allowed="given once")
        query[name] = int(value) if name in INTEGERS and _INTEGER.fullmatch(value) else value
    return faults if faults.entries else query
