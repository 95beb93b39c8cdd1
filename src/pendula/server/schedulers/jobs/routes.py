"""The scheduler `jobs` over HTTP, at the paths of its contract: `/scheduler/…`.

Routes only pass bodies to the calls of `pendula.jobs` and return their answers.
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
from pendula.jobs.upkeep.background_services import Learning, UnhandledJobs
from pendula.jobs.upkeep.recurring import Recurrences
from pendula.jobs.upkeep.retention import RetentionService, free_key
from pendula.server.api.requests import Admin, Operator, Viewer
from pendula.server.errors import json_response
from pendula.server.runtime.scheduler_spec import SchedulerSpec
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
# Path segments at the position of a job id.
CALLS = frozenset({"pull", "batch", "ack-batch", "cancel-batch", "requeue-batch"})
METHODS = ["GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"]
JOB_ID = shapes.in_path("job_id", "The id of a job")

router = APIRouter(prefix=PREFIX, tags=["jobs"])
# `router` must be last: it ends with a catch-all route.
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
    """Store a job: 201 with the job, or 200 with the existing one under the same key."""
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
    """Store many jobs, each with its own answer; with `atomic` all or none."""
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
    """Pull due jobs, each with a lease; with `wait_ms`, wait for one."""
    body = await read_object(request)
    return response_of(await service_of(request).pull(body, caller_of(request, who), request.receive))


@router.post(
    f"{JOBS}/ack-batch",
    responses=shapes.gives("AckResults", *shapes.FAULTS, body=True),
    **documented("ack_batch", "AckBatch"),
)
async def ack_batch(request: Request, who: Operator) -> Response:
    """Finish many jobs, each with its own answer."""
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
    "Finish a job and set the next time of its object.",
    Calls.ack,
    "Acked",
    [*shapes.HELD, Code.INVALID_RESULT, Code.NEXT_ACTION_AT_IN_PAST, Code.AUDIT_EVENT_UNKNOWN],
)
_on_a_job("fail", "Report an error: the job is retried or becomes a dead letter.", Calls.fail, "Failed", shapes.HELD)
_on_a_job("renew", "Extend a lease.", Calls.renew, "Renewed", shapes.HELD)
_on_a_job("release", "Return a job that was not started.", Calls.release, "OneJob", shapes.HELD)
_on_a_job(
    "cancel",
    "Cancel a queued job; for a running one, store a cancel request that its worker reads with its next renewal.",
    Calls.cancel,
    "OneJob",
    [Code.JOB_NOT_FOUND, Code.JOB_NOT_QUEUED, *shapes.FAULTS],
)
_on_a_job(
    "requeue",
    "Requeue a dead letter, or a job that failed or was cancelled.",
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
    """Cancel the newest jobs that match a filter, at most 1000; `next_cursor` continues."""
    return response_of(await changed(request, who, Calls.cancel_batch))


@router.post(
    f"{JOBS}/requeue-batch",
    responses=shapes.gives("Operated", *shapes.FAULTS, Code.INVALID_LIMIT, Code.RUN_AT_IN_PAST, body=True),
    **documented("requeue_batch", "RequeueBatch"),
)
async def requeue_batch(request: Request, who: Operator) -> Response:
    """Requeue the newest dead letters or failed jobs that match a filter, at most 1000; `next_cursor` continues."""
    return response_of(await changed(request, who, Calls.requeue_batch))


@router.post(
    "/time",
    responses=shapes.gives("TimeSet", *shapes.FAULTS, body=True),
    **documented("set_time", "SetTime"),
)
async def set_time(request: Request, who: Admin) -> Response:
    """Set the time of the store to this server's clock, also backwards.

    Leases and delays written with the wrong clock count from now; `kept_jobs` are those with a time set by a caller.
    """
    return response_of(await changed(request, who, Calls.set_time))


@router.post(
    "/keys/free",
    responses=shapes.gives("Freed", Code.IDEMPOTENCY_KEY_CONFLICT, *shapes.FAULTS, body=True),
    **documented("free_key", "FreeKey"),
)
async def free(request: Request, who: Admin) -> Response:
    """Free the key of a deleted job."""
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
    """The number of jobs that match the filters of a list."""
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
    """All errors and audit events of a job."""
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
    """Metrics of the queue as JSON or, by the Accept header, in the Prometheus text format."""
    service = service_of(request)
    query = query_of(request)
    window = query.refusal() if isinstance(query, Faults) else queries.window_of(query)
    if isinstance(window, Refused):
        return response_of(service.counted(window))
    if prometheus.prefers_text(request.headers.get("accept")):
        text, media_type = await service.read(lambda calls: prometheus.text(calls, service.counters, window))
        return Response(text, headers={"content-type": media_type})
    body = await service.read(lambda calls: queries.metrics(calls.store, calls.policy, calls.clock(), window))
    return json_response(encode_view(body))


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
    return {method for part in ROUTERS for route in part.routes for method in _methods(route, scope)}


def _methods(route: object, scope: Scope) -> set[str]:
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
        routers=ROUTERS,
        schemas={name: shape for part in SHAPES for name, shape in part.items()} | dict(shapes.schemas(chosen)),
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
