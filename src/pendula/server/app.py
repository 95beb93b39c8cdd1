"""The application factory: a FastAPI application from settings and schedulers, with all security gates."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

from fastapi import Depends, FastAPI
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp

import pendula
from pendula.server.api import combined_stream, front, openapi
from pendula.server.api.engines import command_router, engine_router, lifecycle_router, moments_router
from pendula.server.api.requests import document_limits, only_known_names, problem_of
from pendula.server.data_directory import DataDirectory
from pendula.server.errors import (
    HttpRefused,
    InvalidHead,
    InvalidRequest,
    MethodNotAllowed,
    NotFound,
    error_response,
)
from pendula.server.http.envelope import Envelope, Forwarded
from pendula.server.http.page import Page
from pendula.server.runtime.engine_host import real_disk
from pendula.server.runtime.scheduler_spec import SchedulerSpec
from pendula.server.runtime.supervisor import MakeDisk, Supervisor
from pendula.server.security.gates import Gates
from pendula.server.settings import Settings


def create_app(
    settings: Settings,
    schedulers: Sequence[SchedulerSpec],
    *,
    data: DataDirectory | None = None,
    page: Page | None = None,
    disk: MakeDisk = real_disk,
) -> FastAPI:
    """The application. Its lifespan opens and closes the engines, and locks the data directory unless given `data`."""
    supervisor = Supervisor(settings, schedulers, data, disk)

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        await supervisor.open()
        try:
            yield
        finally:
            await supervisor.close()

    app = FastAPI(
        title="Pendula",
        summary="Schedules that come out the same every time.",
        version=pendula.__version__,
        docs_url=None,
        redoc_url=None,
        lifespan=lifespan,
        redirect_slashes=False,
    )
    app.state.supervisor = supervisor
    app.state.page = Page.packaged() if page is None else page
    app.state.body_limits = document_limits(settings)
    strict = [Depends(only_known_names)]
    app.include_router(front.router, dependencies=strict)
    app.include_router(combined_stream.router, dependencies=strict)
    for scheduler in supervisor.schedulers:
        # Own routes first: a path such as `channels` is not an engine name.
        for router in scheduler.routers:
            # A scheduler with its own error form checks its parameters itself.
            app.include_router(router, dependencies=strict if scheduler.errors is None else [])
        if scheduler.command_routes:
            app.include_router(command_router(scheduler), dependencies=strict)
        if scheduler.lifecycle is not None:
            app.include_router(lifecycle_router(scheduler, scheduler.lifecycle), dependencies=strict)
        if scheduler.engine is not None:
            app.include_router(engine_router(scheduler), dependencies=strict)
            app.include_router(moments_router(scheduler), dependencies=strict)
    app.add_exception_handler(HTTPException, _framework_error)
    app.add_exception_handler(RequestValidationError, _invalid_request)
    app.add_middleware(
        Envelope,
        gated=lambda inner: gated(inner, supervisor),
        metrics=supervisor.metrics,
        settings=settings,
        translators={
            scheduler.prefix: scheduler.errors(supervisor)
            for scheduler in supervisor.schedulers
            if scheduler.errors is not None
        },
    )
    app.openapi = lambda: openapi.document(app, supervisor.schedulers)  # type: ignore[method-assign]
    return app


def gated(app: ASGIApp, supervisor: Supervisor) -> ASGIApp:
    """The application behind its gates."""
    settings = supervisor.settings
    gates = Gates(app, settings, supervisor.tokens, supervisor.sessions, supervisor.wrong_tokens, supervisor.bodies)
    return Forwarded(gates) if settings.behind_proxy else gates


async def _framework_error(request: Request, error: Exception) -> Response:
    """Send an error of the framework in our form, with its headers."""
    assert isinstance(error, HTTPException)
    refusal = _refusal(request, error)
    if isinstance(refusal, NotFound):
        # Raised like all others, so that a scheduler can translate it.
        raise refusal
    response = error_response(refusal)
    for name, value in (error.headers or {}).items():
        response.headers[name] = value
    response.status_code = error.status_code
    return response


def _refusal(request: Request, error: HTTPException) -> HttpRefused:
    path = request.url.path[:256]
    match error.status_code:
        case 404:
            return NotFound(f"No route at {path}", path=path)
        case 405:
            return MethodNotAllowed(f"{request.method} is not allowed at {path}", path=path, method=request.method)
        case _:
            return InvalidHead(str(error.detail))


async def _invalid_request(_: Request, error: Exception) -> Response:
    """Report all invalid parameters of path, query and headers."""
    assert isinstance(error, RequestValidationError)
    faults: list[dict[str, Any]] = [
        {"place": str(fault["loc"][0]), "name": str(fault["loc"][-1]), "problem": problem_of(fault)}
        for fault in error.errors()
    ]
    problems = "; ".join(f"{fault['name']} ({fault['place']}): {fault['problem']}" for fault in faults)
    return error_response(InvalidRequest(f"The request is invalid: {problems}", faults=faults))
