"""Routes to list, create, close, reopen and remove engines, the same for every scheduler.

The `Lifecycle` of a scheduler defines the names and how a new engine is read from a request.
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
from pendula.server.hosting.scheduler_spec import Lifecycle, New, SchedulerSpec
from pendula.server.hosting.supervisor import Supervisor
from pendula.server.routes.dependencies import Admin, Operator, RequestId, Supervised, Viewer
from pendula.server.routes.openapi import CHANGE_ERRORS, WRITE_ERRORS, Responses, answers, refusals
from pendula.server.views import EngineSummary, encode_view

PATTERN = f"^{NAME.pattern}$"
CLOSED = "closed"

Change = Callable[[Supervisor, SchedulerSpec, str], Awaitable[None]]


class InvalidName(HttpRefused):
    """An invalid engine name. Facts: `name`, `allowed`."""

    code = "invalid_name"
    status = 422


class ReservedName(HttpRefused):
    """The name is a path segment of the scheduler itself. Facts: `name`."""

    code = "reserved_name"
    status = 422


def check_name(name: str, noun: str, reserved: Collection[str] = ()) -> None:
    """Check a name from a body; raises `InvalidName` or `ReservedName`."""
    if not NAME.fullmatch(name):
        shown = name[:100]
        raise InvalidName(
            f"{shown!r} is not a name for a {noun}; a name has {NAMES_ALLOWED}", name=shown, allowed=NAMES_ALLOWED
        )
    if name in reserved:
        raise ReservedName(f"{name!r} cannot be the name of a {noun}: the scheduler uses that path itself", name=name)


def lifecycle_router(scheduler: SchedulerSpec, lifecycle: Lifecycle) -> APIRouter:
    """The lifecycle routes of a scheduler, below its prefix."""
    router = APIRouter(prefix=scheduler.prefix, tags=[scheduler.name])
    _listing(router, scheduler, lifecycle)
    _making(router, scheduler, lifecycle)
    _removing(router, scheduler, lifecycle)
    _closing(router, scheduler, lifecycle)
    return router


def _listing(router: APIRouter, scheduler: SchedulerSpec, lifecycle: Lifecycle) -> None:
    @router.get(
        "",
        summary=f"List {lifecycle.plural.title()}",
        description=f"All {lifecycle.plural}, open and closed.",
        responses=answers(lifecycle.listing),
        operation_id=f"{scheduler.name}_{lifecycle.plural}",
    )
    async def list_engines(supervisor: Supervised, _: Viewer) -> Response:
        return _listed(supervisor, scheduler, lifecycle)


def _making(router: APIRouter, scheduler: SchedulerSpec, lifecycle: Lifecycle) -> None:
    @router.post(
        "",
        status_code=201,
        description=lifecycle.sentences.make,
        responses=answers(lifecycle.made or lifecycle.summary, CHANGE_ERRORS, 201),
        openapi_extra=dict(lifecycle.takes),
        operation_id=f"{scheduler.name}_create",
    )
    async def create(
        supervisor: Supervised, caller: Operator, request_id: RequestId, new: Annotated[New, Depends(lifecycle.begin)]
    ) -> Response:
        wall_time = format_utc(supervisor.clock.now())
        beginning = Beginning(new.config, new.commands, caller.name, request_id, wall_time, new.files)
        try:
            outcomes = await supervisor.make(scheduler, new.name, beginning)
        except InputRefused as refused:
            # The message is enough; the details would repeat the whole configuration.
            refused.details.pop("config", None)
            raise
        if lifecycle.made is not None:
            return json_response(encode_view(lifecycle.made.of(new.name, outcomes)), 201)
        summary = _summary(new.name, supervisor.host(scheduler.name, new.name), lifecycle)
        return json_response(encode_view(summary), 201)


def _removing(router: APIRouter, scheduler: SchedulerSpec, lifecycle: Lifecycle) -> None:
    gone: Responses = {204: {"description": f"The {lifecycle.noun} is removed"}}

    @router.delete(
        f"/{{{lifecycle.noun}}}",
        status_code=204,
        response_class=Response,
        description=lifecycle.sentences.remove,
        responses=gone | refusals(WRITE_ERRORS),
        operation_id=f"{scheduler.name}_delete",
    )
    async def delete(
        supervisor: Supervised, _: Admin, name: Annotated[str, Path(alias=lifecycle.noun, pattern=PATTERN)]
    ) -> Response:
        await supervisor.remove(scheduler, name)
        return Response(status_code=204)


def _closing(router: APIRouter, scheduler: SchedulerSpec, lifecycle: Lifecycle) -> None:
    def add(verb: str, summary: str, sentence: str, change: Change) -> None:
        @router.post(
            f"/{{{lifecycle.noun}}}/{verb}",
            summary=summary,
            description=sentence,
            responses=answers(lifecycle.listing, WRITE_ERRORS),
            operation_id=f"{scheduler.name}_{verb}",
        )
        async def changed(
            supervisor: Supervised, _: Operator, name: Annotated[str, Path(alias=lifecycle.noun, pattern=PATTERN)]
        ) -> Response:
            await change(supervisor, scheduler, name)
            return _listed(supervisor, scheduler, lifecycle)

    add("close", "Close", lifecycle.sentences.close, Supervisor.shut)
    add("open", "Open Again", lifecycle.sentences.open, Supervisor.reopen)


def _listed(supervisor: Supervisor, scheduler: SchedulerSpec, lifecycle: Lifecycle) -> Response:
    hosts = {host.name: host for host in supervisor.hosts() if host.scheduler == scheduler.name}
    found = [_summary(name, hosts.get(name), lifecycle) for name in supervisor.known(scheduler.name)]
    return json_response(encode_view(lifecycle.listing(found)))


def _summary(name: str, host: EngineHost | None, lifecycle: Lifecycle) -> EngineSummary:
    if host is None:
        return lifecycle.summary(name, CLOSED, None, None)
    view = host.view()
    return lifecycle.summary(name, host.state, view.now, view.broken)
