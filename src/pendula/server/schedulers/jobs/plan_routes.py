"""Time plans over HTTP, at `/scheduler/plans`; workers, alerts, why a job waits, and past states."""

from collections.abc import Callable

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import Response

from pendula.jobs.calls import Answer, Body, Caller, Calls, heartbeats, plans, queries
from pendula.jobs.calls import why as reasons
from pendula.jobs.calls.past import past
from pendula.jobs.model import Code
from pendula.server.api.requests import Operator, Viewer
from pendula.server.schedulers.jobs import shapes
from pendula.server.schedulers.jobs.answering import changed, documented, listed, response_of, service_of
from pendula.server.schedulers.jobs.errors import PREFIX

PLAN = "/plans/{name}"
NAME = shapes.in_path("name", "The name of a plan")

router = APIRouter(prefix=PREFIX, tags=["jobs"])


@router.get("/plans", responses=shapes.gives("Plans"), **documented("plans"))
async def list_plans(request: Request, _: Viewer) -> Response:
    """All time plans, by name."""
    return response_of(await service_of(request).look(lambda calls: plans.listed(calls.store, calls.clock())))


@router.put(
    PLAN,
    responses=shapes.gives("OnePlan", Code.PLAN_IN_SETTINGS, Code.TOO_MANY_PLANS, *shapes.FAULTS, body=True)
    | {201: shapes.answer("OnePlan")},
    **documented("put_plan", "Plan", [NAME]),
)
async def put_plan(request: Request, who: Operator) -> Response:
    """Create or replace a time plan; its next occurrence is stored with it."""
    return response_of(await _on(request, who, Calls.put_plan))


# A name with a slash is an invalid name (422), not an unknown path (404).
router.put("/plans/{name:path}", include_in_schema=False)(put_plan)


def _on_a_plan(
    name: str, sentence: str, call: Callable[[Calls, str, Body, Caller], Answer], gives: str, *codes: Code
) -> None:
    """A route for a call on one plan whose body has only a reason."""

    @router.post(
        f"{PLAN}/{name}",
        description=sentence,
        responses=shapes.gives(gives, Code.PLAN_NOT_FOUND, *codes, *shapes.FAULTS, body=True)
        | ({201: shapes.answer("Enqueued")} if gives == "Enqueued" else {}),
        **documented(f"{name.replace('-', '_')}_plan", "Reason", [NAME]),
    )
    async def on_a_plan(request: Request, who: Operator) -> Response:
        return response_of(await _on(request, who, call))


async def _on(request: Request, who: Operator, call: Callable[[Calls, str, Body, Caller], Answer]) -> Answer:
    name = request.path_params["name"]
    return await changed(request, who, lambda calls, body, caller: call(calls, name, body, caller))


_on_a_plan(
    "pause",
    "Pause a plan: its waiting occurrence is cancelled, and none follows until it is resumed.",
    Calls.pause_plan,
    "OnePlan",
)
_on_a_plan("resume", "Resume a plan; missed occurrences are skipped.", Calls.resume_plan, "OnePlan")
_on_a_plan(
    "run-now",
    "Enqueue one job of the plan now: 201 with the job, or 200 with an earlier one that still waits.",
    Calls.run_now,
    "Enqueued",
)
_on_a_plan(
    "remove", "Remove a plan that is in no settings file.", Calls.remove_plan, "PlanRemoved", Code.PLAN_IN_SETTINGS
)


@router.get("/workers", responses=shapes.gives("Workers"), **documented("workers"))
async def list_workers(request: Request, _: Viewer) -> Response:
    """Known workers, the most recent heartbeat first."""
    return response_of(await service_of(request).look(lambda calls: heartbeats.listed(calls.store, calls.clock())))


@router.get(
    "/alerts",
    responses=shapes.gives("Alerts", *shapes.FAULTS, Code.INVALID_LIMIT),
    **documented(
        "alerts",
        parameters=[shapes.in_query("cursor", shapes.TEXT, "The next_cursor of the page before"), shapes.LIMIT],
    ),
)
async def list_alerts(request: Request, _: Viewer) -> Response:
    """Alerts, newest first; `delivered_at` is null until every sink has taken one."""
    return await listed(request, lambda calls, query: queries.alerts(calls.store, query))


@router.get(
    "/jobs/{job_id}/why",
    responses=shapes.gives("Why", Code.JOB_NOT_FOUND),
    **documented("why", parameters=[shapes.in_path("job_id", "The id of a job")]),
)
async def why(request: Request, _: Viewer) -> Response:
    """Why a job has not run, where it runs, or how it ended, in one sentence."""
    job_id = request.path_params["job_id"]
    return response_of(
        await service_of(request).look(lambda calls: reasons.why(calls.store, calls.policy, calls.clock(), job_id))
    )


@router.get(
    "/past",
    responses=shapes.gives("Past", *shapes.FAULTS),
    **documented("past", parameters=[shapes.in_query("at", shapes.TEXT, "The id of an event; without one, now")]),
)
async def moment(request: Request, _: Viewer) -> Response:
    """The queue and the governed objects after an event, one of the last 10 000."""
    return await listed(request, lambda calls, query: past(calls.store, query))
