"""Engines come and go over HTTP: listed, made, closed, opened again, removed; the same routes for every room.

What engines of a room are called, and what a new one begins with, the room says in its `Lifecycle`.
"""

from collections.abc import Awaitable, Callable, Collection
from typing import Annotated

from fastapi import APIRouter, Depends, Path
from starlette.responses import Response

from pendula.kernel.errors import InputRefused
from pendula.kernel.time import format_utc
from pendula.server.data_directory import NAME, NAMES_ALLOWED
from pendula.server.errors import HttpRefused, json_response
from pendula.server.hosting.creation import Beginning
from pendula.server.hosting.engine_host import EngineHost
from pendula.server.hosting.room_spec import Lifecycle, New, RoomSpec
from pendula.server.hosting.supervisor import Supervisor
from pendula.server.routes.dependencies import Admin, Operator, RequestId, Supervised, Viewer
from pendula.server.routes.openapi import CHANGE_ERRORS, WRITE_ERRORS, Responses, answers, refusals
from pendula.server.views import EngineSummary, encode_view

PATTERN = f"^{NAME.pattern}$"
CLOSED = "closed"

Change = Callable[[Supervisor, RoomSpec, str], Awaitable[None]]


class InvalidName(HttpRefused):
    """No engine can have the name. Facts: `name`, `allowed`."""

    code = "invalid_name"
    status = 422


class ReservedName(HttpRefused):
    """The name is a path of the room itself. Facts: `name`."""

    code = "reserved_name"
    status = 422


def check_name(name: str, noun: str, reserved: Collection[str] = ()) -> None:
    """For names that come in a body; raises `InvalidName` or `ReservedName`."""
    if not NAME.fullmatch(name):
        told = name[:100]
        raise InvalidName(
            f"No {noun} can be called {told!r}; a name has {NAMES_ALLOWED}", name=told, allowed=NAMES_ALLOWED
        )
    if name in reserved:
        raise ReservedName(f"No {noun} can be called {name!r}: the room uses that path itself", name=name)


def lifecycle_router(room: RoomSpec, lifecycle: Lifecycle) -> APIRouter:
    """The routes by which engines of a room come and go, below its prefix."""
    router = APIRouter(prefix=room.prefix, tags=[room.name])
    _listing(router, room, lifecycle)
    _making(router, room, lifecycle)
    _removing(router, room, lifecycle)
    _closing(router, room, lifecycle)
    return router


def _listing(router: APIRouter, room: RoomSpec, lifecycle: Lifecycle) -> None:
    @router.get(
        "",
        summary=f"List {lifecycle.plural.title()}",
        description=f"All {lifecycle.plural}, open and closed.",
        responses=answers(lifecycle.listing),
        operation_id=f"{room.name}_{lifecycle.plural}",
    )
    async def list_engines(supervisor: Supervised, _: Viewer) -> Response:
        return _listed(supervisor, room, lifecycle)


def _making(router: APIRouter, room: RoomSpec, lifecycle: Lifecycle) -> None:
    @router.post(
        "",
        status_code=201,
        description=lifecycle.sentences.make,
        responses=answers(lifecycle.made or lifecycle.summary, CHANGE_ERRORS, 201),
        openapi_extra=dict(lifecycle.takes),
        operation_id=f"{room.name}_create",
    )
    async def create(
        supervisor: Supervised, caller: Operator, request_id: RequestId, new: Annotated[New, Depends(lifecycle.begin)]
    ) -> Response:
        wall_time = format_utc(supervisor.clock.now())
        beginning = Beginning(new.config, new.commands, caller.name, request_id, wall_time, new.files)
        try:
            outcomes = await supervisor.make(room, new.name, beginning)
        except InputRefused as refused:
            # The message says what is wrong; the whole configuration would be no help.
            refused.details.pop("config", None)
            raise
        if lifecycle.made is not None:
            return json_response(encode_view(lifecycle.made.of(new.name, outcomes)), 201)
        summary = _summary(new.name, supervisor.host(room.name, new.name), lifecycle)
        return json_response(encode_view(summary), 201)


def _removing(router: APIRouter, room: RoomSpec, lifecycle: Lifecycle) -> None:
    gone: Responses = {204: {"description": f"There is no such {lifecycle.noun} any more"}}

    @router.delete(
        f"/{{{lifecycle.noun}}}",
        status_code=204,
        response_class=Response,
        description=lifecycle.sentences.remove,
        responses=gone | refusals(WRITE_ERRORS),
        operation_id=f"{room.name}_delete",
    )
    async def delete(
        supervisor: Supervised, _: Admin, name: Annotated[str, Path(alias=lifecycle.noun, pattern=PATTERN)]
    ) -> Response:
        await supervisor.remove(room, name)
        return Response(status_code=204)


def _closing(router: APIRouter, room: RoomSpec, lifecycle: Lifecycle) -> None:
    def add(verb: str, summary: str, sentence: str, change: Change) -> None:
        @router.post(
            f"/{{{lifecycle.noun}}}/{verb}",
            summary=summary,
            description=sentence,
            responses=answers(lifecycle.listing, WRITE_ERRORS),
            operation_id=f"{room.name}_{verb}",
        )
        async def changed(
            supervisor: Supervised, _: Operator, name: Annotated[str, Path(alias=lifecycle.noun, pattern=PATTERN)]
        ) -> Response:
            await change(supervisor, room, name)
            return _listed(supervisor, room, lifecycle)

    add("close", "Close", lifecycle.sentences.close, Supervisor.shut)
    add("open", "Open Again", lifecycle.sentences.open, Supervisor.reopen)


def _listed(supervisor: Supervisor, room: RoomSpec, lifecycle: Lifecycle) -> Response:
    hosts = {host.name: host for host in supervisor.hosts() if host.room == room.name}
    found = [_summary(name, hosts.get(name), lifecycle) for name in supervisor.known(room.name)]
    return json_response(encode_view(lifecycle.listing(found)))


def _summary(name: str, host: EngineHost | None, lifecycle: Lifecycle) -> EngineSummary:
    if host is None:
        return lifecycle.summary(name, CLOSED, None, None)
    view = host.view()
    return lifecycle.summary(name, host.state, view.now, view.broken)
