"""The scheduler `jobs` over HTTP, at the paths of its contract: `/scheduler/…`.

Routes only pass bodies to the calls of `pendula.jobs` and return their answers.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from inspect import getdoc
from pathlib import Path
from typing import Any

from fastapi import APIRouter
from fastapi.routing import APIRoute
from msgspec import structs
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Match
from starlette.types import Scope

from pendula.governance import messages as governance
from pendula.governance.calls import Governance
from pendula.governance.messages import CREATE
from pendula.jobs import messages, settings_file
from pendula.jobs.calls import Answer, Calls, queries
from pendula.jobs.messages import CALLS, Call, Role
from pendula.jobs.model import Policy, Refused
from pendula.jobs.reaper import Reaper
from pendula.jobs.request_reading import Faults
from pendula.jobs.scheduler_calls import SchedulerCalls
from pendula.jobs.settings_file import Configured
from pendula.jobs.upkeep.alerts import Alerts, Sink, Webhook, to_log, to_log_quietly
from pendula.jobs.upkeep.background_services import Learning, UnhandledJobs
from pendula.jobs.upkeep.recurring import Recurrences
from pendula.jobs.upkeep.retention import RetentionService
from pendula.server.api.requests import Admin, Operator, Viewer
from pendula.server.runtime.scheduler_spec import SchedulerSpec
from pendula.server.schedulers.jobs import metrics as prometheus
from pendula.server.schedulers.jobs import shapes
from pendula.server.schedulers.jobs.answering import (
    BATCH_BODY_MOST,
    BODY_MOST,
    NAME,
    caller_of,
    changed,
    listed,
    query_of,
    read_object,
    response_of,
    service_in,
    service_of,
)
from pendula.server.schedulers.jobs.errors import PREFIX, RouteNotFound, SchedulerErrors, method_refused
from pendula.server.schedulers.jobs.service import JobService, OpenStore, Upkeep, open_sqlite
from pendula.server.security.identity import Principal
from pendula.server.settings import Settings

# Path segments at the position of a job id.
CALLS_ON_JOBS = frozenset({"pull", "batch", "ack-batch", "cancel-batch", "requeue-batch"})
METHODS = ["GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"]
ROLES: Mapping[Role, Any] = {Role.VIEWER: Viewer, Role.OPERATOR: Operator, Role.ADMIN: Admin}
MANY = (messages.ENQUEUE_BATCH, messages.ACK_BATCH)
# Answered from the index; all other reading calls can be large, and run in threads of their own.
QUICK = (
    *(messages.SHOW, messages.WHY, messages.PLANS, messages.WORKERS, messages.OBJECT),
    *(governance.SHOW, governance.WHY, governance.FIGURES, governance.MACHINES),
)
# Operations in OpenAPI that have another name than their call.
OPERATIONS: Mapping[Call[Any], str] = {
    messages.RUN_NOW: "run_now_plan",
    governance.CREATE: "create_object",
    governance.LIST: "list_objects",
    governance.SHOW: "show_object",
    governance.WHY: "why_object",
    governance.ATTACH_EVIDENCE: "evidence_object",
    governance.DECIDE: "decide_object",
    governance.AMEND: "amend_object",
    governance.REFILL: "refill_object",
    governance.ROLLBACK_FINISHED: "rollback_finished_object",
    governance.FIGURES: "governance",
}
Answering = Callable[[Request, Principal], Awaitable[Response]]

router = APIRouter(prefix=PREFIX, tags=["jobs"])


def _add(call: Call[Any], answer: Answering, *, shown: bool = True) -> None:
    """The route of a call."""

    async def endpoint(request: Request, who: Principal) -> Response:
        return await answer(request, who)

    endpoint.__annotations__["who"] = ROLES[call.role]
    router.add_api_route(
        call.path.replace("{object_id}", "{object_id:path}"),  # an id may contain slashes
        endpoint,
        methods=[call.method],
        status_code=201 if call in (messages.ENQUEUE, CREATE) else 200,
        description=call.sentence or getdoc(getattr(SchedulerCalls, call.name)),
        responses=shapes.answers_of(call),
        operation_id=f"jobs_{OPERATIONS.get(call, call.name)}",
        openapi_extra=shapes.described(call),
        include_in_schema=shown,
    )


def _method(call: Call[Any]) -> Callable[..., Answer]:
    """The call of a store, or of the governed objects in it."""
    if call in governance.CALLS:
        return lambda calls, *given: getattr(Governance(calls), call.name)(*given)
    method: Callable[..., Answer] = getattr(Calls, call.name)
    return method


def _changing(call: Call[Any]) -> Answering:
    most = BATCH_BODY_MOST if call in MANY else BODY_MOST

    async def answer(request: Request, who: Principal) -> Response:
        path = request.path_params.values()
        work = _method(call)
        return response_of(await changed(request, who, lambda calls, *given: work(calls, *path, *given), most))

    return answer


def _reading(call: Call[Any]) -> Answering:
    async def answer(request: Request, _: Principal) -> Response:
        path = request.path_params.values()
        work = _method(call)
        service = service_of(request)
        if call in QUICK:
            return response_of(await service.look(lambda calls: work(calls, *path)))
        if call.request is not None:
            return await listed(request, work)
        return response_of(service.counted(await service.read(lambda calls: work(calls, *path))))

    return answer


async def enqueue(request: Request, who: Principal) -> Response:
    answer = await changed(request, who, Calls.enqueue)
    response = response_of(answer)
    if response.status_code == 201 and isinstance(answer, messages.Enqueued):
        response.headers["location"] = f"{PREFIX}/jobs/{answer.job.job_id}"
    return response


async def pull(request: Request, who: Principal) -> Response:
    body = await read_object(request)
    return response_of(await service_of(request).pull(body, caller_of(request, who), request.receive))


async def show(request: Request, who: Principal) -> Response:
    if request.path_params["job_id"] in CALLS_ON_JOBS:
        return _method_refused(request, ["POST"])
    return await _reading(messages.SHOW)(request, who)


async def metrics(request: Request, _: Principal) -> Response:
    service = service_of(request)
    query = query_of(request)
    window = query.refusal() if isinstance(query, Faults) else queries.window_of(query, service.policy)
    if isinstance(window, Refused):
        return response_of(service.counted(window))
    if prometheus.prefers_text(request.headers.get("accept")):
        text, media_type = await service.read(lambda calls: prometheus.text(calls, service.counters, window))
        return Response(text, headers={"content-type": media_type})
    return response_of(await service.read(lambda calls: calls.metrics({"window_sec": window})))


ANSWERS = {messages.ENQUEUE: enqueue, messages.PULL: pull, messages.SHOW: show, messages.METRICS: metrics}
# The verbs of governed objects come before `/objects/{object_type}/{object_id}`, which matches their paths, too.
for _call in (*governance.CALLS, *CALLS):
    _add(_call, ANSWERS.get(_call) or (_reading(_call) if _call.reads else _changing(_call)))
# A name with a slash is an invalid name (422), not an unknown path (404).
_add(structs.replace(messages.PUT_PLAN, path="/plans/{name:path}"), _changing(messages.PUT_PLAN), shown=False)


@router.api_route("", methods=METHODS, include_in_schema=False)
@router.api_route("/{rest:path}", methods=METHODS, include_in_schema=False)
async def nothing_here(request: Request, _: Viewer) -> Response:
    """The catch-all route: an unknown path (404), or a method that is not allowed (405)."""
    allowed = methods_at(request.scope)
    if allowed:
        return _method_refused(request, sorted(allowed))
    path = request.url.path[:256]
    raise RouteNotFound(f"No route at {path}", path=path)


# The scheduler


def methods_at(scope: Scope) -> set[str]:
    """The methods allowed at the path of a request."""
    return {method for route in router.routes for method in _methods(route, scope)}


def _methods(route: object, scope: Scope) -> set[str]:
    if not isinstance(route, APIRoute) or not route.include_in_schema or route.matches(scope)[0] is Match.NONE:
        return set()
    if route.path == f"{PREFIX}{messages.SHOW.path}" and scope["path"].rpartition("/")[2] in CALLS_ON_JOBS:
        return set()
    methods = set(route.methods or ())
    return methods | ({"HEAD"} if "GET" in methods else set())


def _method_refused(request: Request, allowed: list[str]) -> Response:
    service_of(request).counters.refused("method_not_allowed")
    return method_refused(request.method, request.url.path[:256], allowed)


def scheduler_for(settings: Settings) -> SchedulerSpec:
    """The scheduler with the server's settings. Raises `DocumentRefused` for a faulty settings file."""
    configured = Configured() if settings.jobs.settings is None else settings_file.load(settings.jobs.settings)
    database = None if settings.jobs.database is None else Path(settings.jobs.database)
    if not settings.demo:
        return jobs_scheduler(
            configured.policy, database=database, upkeep=partial(_upkeep, configured, to_log), record_workers=True
        )
    from pendula.demo.jobs import DemoDriver, with_fast_clock

    return jobs_scheduler(
        with_fast_clock(configured.policy),
        database=database,
        upkeep=lambda calls: [*_upkeep(configured, to_log_quietly, calls), DemoDriver(calls)],
        record_workers=True,
    )


def _upkeep(configured: Configured, first: Sink, calls: Calls) -> list[Upkeep]:
    """The background services of a served store."""
    sinks = () if configured.alert_webhook is None else (Webhook(configured.alert_webhook),)
    return [
        Alerts(calls.store, calls.clock, sinks, first=first),
        Recurrences(calls, configured.recurring),
        RetentionService(calls),
        UnhandledJobs(calls),
        Learning(calls),
        Reaper(calls),
    ]


def jobs_scheduler(
    policy: Policy | None = None,
    *,
    database: Path | None = None,
    clock: Callable[[], int] | None = None,
    open_store: OpenStore = open_sqlite,
    upkeep: Callable[[Calls], Sequence[Upkeep]] = lambda _: (),
    record_workers: bool = False,
) -> SchedulerSpec:
    """The scheduler with these parameters. The store is in the server's data directory unless `database` is given.

    `upkeep` creates the background services.
    """
    chosen = policy or Policy()
    return SchedulerSpec(
        name=NAME,
        title="Jobs",
        sentence="Durable jobs: delivered when due, retried on failure, kept as dead letters, never lost.",
        prefix=PREFIX,
        routers=(router,),
        schemas=shapes.schemas(chosen),
        service=partial(
            JobService,
            policy=chosen,
            database=database,
            clock=clock,
            open_store=open_store,
            upkeep=upkeep,
            record_workers=record_workers,
        ),
        errors=lambda host: SchedulerErrors(service_in(host).counters.refused, methods_at),
    )
