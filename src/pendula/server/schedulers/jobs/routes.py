"""The scheduler `jobs` over HTTP, at the paths of its contract: `/scheduler/…`.

No rule of the scheduler is here: a body goes in, what the calls of `pendula.jobs` answer comes out.
"""

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from fastapi import APIRouter
from fastapi.routing import APIRoute
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Match
from starlette.types import Scope

from pendula.jobs import settings_file
from pendula.jobs.calls import Answer, Body, Caller, Calls, Reply, queries
from pendula.jobs.model import Code, Policy, Refused
from pendula.jobs.reaper import Reaper
from pendula.jobs.request_reading import Faults
from pendula.jobs.requests import OBJECT_ID_MOST
from pendula.jobs.settings_file import Configured
from pendula.jobs.upkeep.alerts import Alerts, Sink, Webhook, to_log, to_log_quietly
from pendula.jobs.upkeep.learning import Learning
from pendula.jobs.upkeep.recurring import Recurrences
from pendula.jobs.upkeep.retention import RetentionService, free_key
from pendula.jobs.upkeep.unhandled import UnhandledJobs
from pendula.server.errors import json_response
from pendula.server.hosting.scheduler_spec import SchedulerSpec
from pendula.server.routes.dependencies import Admin, Operator, Viewer
from pendula.server.schedulers.jobs import governed, plan_routes, plan_shapes, reply_shapes, shapes
from pendula.server.schedulers.jobs import metrics as prometheus
from pendula.server.schedulers.jobs.answering import (
    BATCH_BODY_MOST,
    NAME,
    caller_of,
    changed,
    documented,
    listed,
    query_of,
    read_object,
    response_of,
    service_in,
    service_of,
)
from pendula.server.schedulers.jobs.errors import PREFIX, RouteNotFound, SchedulerErrors, method_refused
from pendula.server.schedulers.jobs.service import JobService, OpenStore, Upkeep, open_sqlite
from pendula.server.settings import Settings
from pendula.server.views import encode_view

JOBS = "/jobs"
JOB = "/jobs/{job_id}"
# What stands where an id of a job could stand.
CALLS = frozenset({"pull", "batch", "ack-batch", "cancel-batch", "requeue-batch"})
METHODS = ["GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"]
JOB_ID = shapes.in_path("job_id", "The id of a job")

router = APIRouter(prefix=PREFIX, tags=["jobs"])
# This one is the last: it ends with a route for every path.
SHAPES = (reply_shapes.schemas(), plan_shapes.schemas(), governed.schemas())
ROUTERS = (plan_routes.router, *governed.ROUTERS, router)


# Into the queue


@router.post(
    JOBS,
    status_code=201,
    responses=shapes.gives(
        "Enqueued",
        Code.IDEMPOTENCY_KEY_CONFLICT,
        Code.ONTIC_VERIFICATION_CLOSED,
        *shapes.FAULTS,
        Code.RUN_AT_IN_PAST,
        body=True,
        status=201,
        headers=shapes.LOCATION,
    )
    | {200: shapes.answer("Enqueued")},
    **documented("enqueue", "Enqueue"),
)
async def enqueue(request: Request, who: Operator) -> Response:
    """Store a job: 201 with the job, or 200 with the one that was there before under the same key."""
    answer = await changed(request, who, Calls.enqueue)
    response = response_of(answer)
    if response.status_code == 201 and isinstance(answer, Reply):
        job: Any = answer.body["job"]
        response.headers["location"] = f"{PREFIX}/jobs/{job['job_id']}"
    return response


@router.post(
    f"{JOBS}/batch",
    responses=shapes.gives("BatchResults", *shapes.FAULTS, Code.BATCH_REJECTED, body=True),
    **documented("enqueue_batch", "Batch"),
)
async def enqueue_batch(request: Request, who: Operator) -> Response:
    """Store many jobs at once, each with its own answer; with `atomic` all or none."""
    return response_of(await changed(request, who, Calls.enqueue_batch, BATCH_BODY_MOST))


# Out of the queue


@router.post(
    f"{JOBS}/pull",
    responses=shapes.gives(
        "Pulled", *shapes.FAULTS, Code.INVALID_LIMIT, Code.INVALID_WORKER_ID, Code.NOW_IN_FUTURE, body=True
    ),
    **documented("pull", "Pull"),
)
async def pull(request: Request, who: Operator) -> Response:
    """Take due jobs, each with a lease; with `wait_ms`, as soon as there is one."""
    body = await read_object(request)
    return response_of(await service_of(request).pull(body, caller_of(request, who), request.receive))


@router.post(
    f"{JOBS}/ack-batch",
    responses=shapes.gives("AckResults", *shapes.FAULTS, body=True),
    **documented("ack_batch", "AckBatch"),
)
async def ack_batch(request: Request, who: Operator) -> Response:
    """Finish many jobs at once, each with its own answer."""
    return response_of(await changed(request, who, Calls.ack_batch, BATCH_BODY_MOST))


def _on_a_job(
    name: str,
    sentence: str,
    call: Callable[[Calls, str, Body, Caller], Answer],
    gives: str,
    codes: Sequence[Code],
) -> None:
    """A route for a call on one job."""

    @router.post(
        f"{JOB}/{name}",
        description=sentence,
        responses=shapes.gives(gives, *codes, body=True),
        **documented(name, name.title(), [JOB_ID]),
    )
    async def on_a_job(request: Request, who: Operator) -> Response:
        job_id = request.path_params["job_id"]
        answer = await changed(request, who, lambda calls, body, caller: call(calls, job_id, body, caller))
        return response_of(answer)


_on_a_job(
    "ack",
    "Finish a job, and say when its object is due next.",
    Calls.ack,
    "Acked",
    [*shapes.HELD, Code.INVALID_RESULT, Code.NEXT_ACTION_AT_IN_PAST, Code.AUDIT_EVENT_UNKNOWN],
)
_on_a_job("fail", "Tell of an error: the job is tried again, or set aside.", Calls.fail, "Failed", shapes.HELD)
_on_a_job("renew", "Extend a lease.", Calls.renew, "Renewed", shapes.HELD)
_on_a_job("release", "Hand a job back that was not begun.", Calls.release, "OneJob", shapes.HELD)
_on_a_job(
    "cancel",
    "Cancel a queued job; for a running one, note the wish, which its worker hears of with its next renewal.",
    Calls.cancel,
    "OneJob",
    [Code.JOB_NOT_FOUND, Code.JOB_NOT_QUEUED, *shapes.FAULTS],
)
_on_a_job(
    "requeue",
    "Revive a dead letter, or a job that failed or was cancelled.",
    Calls.requeue,
    "OneJob",
    [Code.JOB_NOT_FOUND, Code.JOB_NOT_DEAD_LETTER, *shapes.FAULTS, Code.RUN_AT_IN_PAST],
)


@router.post(
    f"{JOBS}/cancel-batch",
    responses=shapes.gives("Operated", *shapes.FAULTS, Code.INVALID_LIMIT, body=True),
    **documented("cancel_batch", "CancelBatch"),
)
async def cancel_batch(request: Request, who: Operator) -> Response:
    """Cancel the newest jobs that fit a filter, at most 1000; `next_cursor` leads to the next step."""
    return response_of(await changed(request, who, Calls.cancel_batch))


@router.post(
    f"{JOBS}/requeue-batch",
    responses=shapes.gives("Operated", *shapes.FAULTS, Code.INVALID_LIMIT, Code.RUN_AT_IN_PAST, body=True),
    **documented("requeue_batch", "RequeueBatch"),
)
async def requeue_batch(request: Request, who: Operator) -> Response:
    """Requeue the newest dead letters or failed jobs that fit a filter, at most 1000; `next_cursor` leads on."""
    return response_of(await changed(request, who, Calls.requeue_batch))


@router.post(
    "/time",
    responses=shapes.gives("TimeSet", *shapes.FAULTS, body=True),
    **documented("set_time", "SetTime"),
)
async def set_time(request: Request, who: Admin) -> Response:
    """Say that this server's clock is right: the store's time follows it, also back.

    Leases and delays that a wrong clock wrote count from now; `kept_jobs` are those whose caller named a time then.
    """
    return response_of(await changed(request, who, Calls.set_time))


@router.post(
    "/keys/free",
    responses=shapes.gives("Freed", Code.IDEMPOTENCY_KEY_CONFLICT, *shapes.FAULTS, body=True),
    **documented("free_key", "FreeKey"),
)
async def free(request: Request, who: Admin) -> Response:
    """Let the key of a removed job be used again."""
    return response_of(await changed(request, who, free_key))


# Looking


@router.get(
    JOBS,
    responses=shapes.gives("JobList", *shapes.FAULTS, Code.INVALID_LIMIT),
    **documented(
        "list",
        parameters=[
            *shapes.FILTERS,
            shapes.in_query("cursor", shapes.TEXT, "The next_cursor of the page before"),
            shapes.LIMIT,
        ],
    ),
)
async def list_jobs(request: Request, _: Viewer) -> Response:
    """Jobs, newest first."""
    return await listed(request, lambda calls, query: queries.listed(calls.store, calls.policy, query))


@router.get(
    f"{JOBS}/count",
    responses=shapes.gives("Count", *shapes.FAULTS),
    **documented("count", parameters=[*shapes.FILTERS]),
)
async def count_jobs(request: Request, _: Viewer) -> Response:
    """How many jobs there are of those that a list with the same filters would show."""
    return await listed(request, lambda calls, query: queries.counted(calls.store, calls.policy, query))


@router.get(JOB, responses=shapes.gives("OneJob", Code.JOB_NOT_FOUND), **documented("show", parameters=[JOB_ID]))
async def show(request: Request, _: Viewer) -> Response:
    """One job."""
    job_id = request.path_params["job_id"]
    if job_id in CALLS:
        return _method_refused(request, ["POST"])
    return response_of(await service_of(request).look(lambda calls: queries.show(calls.store, job_id)))


@router.get(
    f"{JOB}/history",
    responses=shapes.gives("History", Code.JOB_NOT_FOUND),
    **documented("history", parameters=[JOB_ID]),
)
async def history(request: Request, _: Viewer) -> Response:
    """Every error a job had, and its whole trail."""
    job_id = request.path_params["job_id"]
    service = service_of(request)
    return response_of(service.counted(await service.read(lambda calls: queries.history(calls.store, job_id))))


@router.get(
    "/audit",
    responses=shapes.gives("Trail", *shapes.FAULTS, Code.INVALID_LIMIT),
    **documented(
        "audit",
        parameters=[
            shapes.in_query("object_type", shapes.TEXT),
            shapes.in_query("object_id", shapes.text(OBJECT_ID_MOST)),
            shapes.in_query("job_id", shapes.TEXT),
            shapes.in_query("event_type", shapes.ref("EventType")),
            shapes.in_query("after", shapes.TEXT, "The next_cursor of the page before"),
            shapes.LIMIT,
        ],
    ),
)
async def audit(request: Request, _: Viewer) -> Response:
    """The trail, in order."""
    return await listed(request, lambda calls, query: queries.trail(calls.store, calls.policy, query))


_METRICS = shapes.gives("Metrics", *shapes.FAULTS)
_METRICS[200]["content"]["text/plain"] = {"schema": shapes.TEXT}


@router.get(
    "/metrics",
    responses=_METRICS,
    **documented("metrics", parameters=[shapes.in_query("window_sec", shapes.integer(60, 604_800))]),
)
async def metrics(request: Request, _: Viewer) -> Response:
    """How the queue is, as JSON; where the Accept header wants it, in Prometheus' text form."""
    service = service_of(request)
    query = query_of(request)
    window = query.refusal() if isinstance(query, Faults) else queries.window_of(query)
    if isinstance(window, Refused):
        return response_of(service.counted(window))
    if prometheus.prefers_text(request.headers.get("accept")):
        text, media_type = await service.read(lambda calls: prometheus.text(calls, service.counters, window))
        return Response(text, headers={"content-type": media_type})
    found = await service.read(lambda calls: queries.metrics(calls.store, calls.policy, calls.clock(), window))
    return json_response(encode_view(found))


@router.api_route("", methods=METHODS, include_in_schema=False)
@router.api_route("/{rest:path}", methods=METHODS, include_in_schema=False)
async def nothing_here(request: Request, _: Viewer) -> Response:
    """What is left: a path that is not there, or one that is, for other methods."""
    allowed = methods_at(request.scope)
    if allowed:
        return _method_refused(request, sorted(allowed))
    path = request.url.path[:256]
    raise RouteNotFound(f"There is nothing at {path}", path=path)


# The scheduler


def methods_at(scope: Scope) -> set[str]:
    """What is possible at the path of a request, by any method."""
    return {method for one in ROUTERS for route in one.routes for method in _methods(route, scope)}


def _methods(route: object, scope: Scope) -> set[str]:
    """What a route of ours can do at the path of a request."""
    if not isinstance(route, APIRoute) or not route.include_in_schema or route.matches(scope)[0] is Match.NONE:
        return set()
    if route.path == f"{PREFIX}{JOB}" and scope["path"].rpartition("/")[2] in CALLS:
        return set()
    methods = set(route.methods or ())
    return methods | ({"HEAD"} if "GET" in methods else set())


def _method_refused(request: Request, allowed: list[str]) -> Response:
    service_of(request).counters.refused("method_not_allowed")
    return method_refused(request.method, request.url.path[:256], allowed)


def scheduler_for(settings: Settings) -> SchedulerSpec:
    """The scheduler with the server's settings; raises `DocumentRefused` for a file of parameters with faults."""
    told = Configured() if settings.jobs_settings is None else settings_file.load(settings.jobs_settings)
    database = None if settings.jobs_database is None else Path(settings.jobs_database)
    if not settings.demo:
        return jobs_scheduler(
            told.policy, database=database, upkeep=partial(_upkeep, told, to_log), tell_of_workers=True
        )
    from pendula.server.schedulers.jobs.demo import Keeper, quickened

    return jobs_scheduler(
        quickened(told.policy),
        database=database,
        upkeep=lambda calls: [*_upkeep(told, to_log_quietly, calls), Keeper(calls)],
        tell_of_workers=True,
    )


def _upkeep(told: Configured, first: Sink, calls: Calls) -> list[Upkeep]:
    """Alerts go out, recurring jobs come in, what has long been over is removed, and what nobody takes is told."""
    sinks = () if told.alert_webhook is None else (Webhook(told.alert_webhook),)
    return [
        Alerts(calls.store, calls.clock, sinks, first=first),
        Recurrences(calls, told.recurring),
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
    tell_of_workers: bool = False,
) -> SchedulerSpec:
    """The scheduler with these parameters, its store in the server's data directory unless `database` names a file.

    `upkeep` makes what goes on beside the calls, for whoever does not see to it elsewhere.
    """
    chosen = policy or Policy()
    return SchedulerSpec(
        name=NAME,
        title="Jobs",
        sentence="Work that is due: handed out when its time has come, tried again, set aside, never lost.",
        prefix=PREFIX,
        routers=ROUTERS,
        schemas={name: shape for part in SHAPES for name, shape in part.items()} | dict(shapes.schemas(chosen)),
        service=partial(
            JobService,
            policy=chosen,
            database=database,
            clock=clock,
            open_store=open_store,
            upkeep=upkeep,
            tell_of_workers=tell_of_workers,
        ),
        errors=lambda host: SchedulerErrors(service_in(host).counters.refused, methods_at),
    )
