"""Between HTTP and the calls of the scheduler: a body goes in, what a call answers comes out."""

from collections.abc import Callable, Sequence
from typing import Any
from urllib.parse import unquote

from starlette.requests import Request
from starlette.responses import Response

from pendula.jobs.calls import Answer, Body, Caller, Calls
from pendula.jobs.model import Actor, Refused
from pendula.jobs.request_reading import Faults
from pendula.server.errors import error_body, json_response
from pendula.server.hosting.room_spec import Host
from pendula.server.rooms.jobs import shapes
from pendula.server.rooms.jobs.bodies import BODY_MOST, query_of, read_object
from pendula.server.rooms.jobs.errors import Forbidden
from pendula.server.rooms.jobs.service import JobService
from pendula.server.routes.dependencies import request_id_of
from pendula.server.security.identity import Principal, Via
from pendula.server.views import encode_view

NAME = "jobs"
USER_HEADER = "X-Pendula-User"
USER_MOST = 128


def documented(name: str, takes: str | None = None, parameters: Sequence[shapes.Shape] = ()) -> dict[str, Any]:
    extra: dict[str, Any] = {"parameters": list(parameters)} if parameters else {}
    if takes is not None:
        extra["requestBody"] = shapes.takes(takes)
    return {"operation_id": f"jobs_{name}", "openapi_extra": extra}


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
    return response_of(await service.look(lambda calls: look(calls, query)))


def caller_of(request: Request, who: Principal) -> Caller:
    """Who stands in the trail: the name of the token; on this machine without tokens, whom the header names.

    Raises `Forbidden` where the header names somebody else than the token, or nobody.
    """
    named = request.headers.get(USER_HEADER)
    if named is None:
        actor = Actor("service", who.name) if who.via is Via.LOCAL else Actor("user", who.name)
        return Caller(actor, request_id_of(request))
    name = unquote(named, errors="replace")
    if who.via is not Via.LOCAL and name != who.name:
        raise Forbidden(f"The token says who calls, which is {who.name}; leave {USER_HEADER} out")
    if not 1 <= len(name) <= USER_MOST or not name.isprintable() or name != name.strip():
        raise Forbidden(f"{USER_HEADER} is a name of 1 to {USER_MOST} printable characters")
    return Caller(Actor("user", name), request_id_of(request))


def response_of(answer: Answer) -> Response:
    if isinstance(answer, Refused):
        return json_response(error_body(answer.code.value, answer.message, answer.details), answer.status)
    return json_response(encode_view(answer.body), answer.status)
