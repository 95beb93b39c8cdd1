"""Runs over HTTP: create, pause, resume, stop, restart, continue; details and artifacts."""

from collections.abc import Awaitable, Callable
from pathlib import Path as FilePath
from typing import Any

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import FileResponse, Response

from pendula.credit.commands import Pause, Resume, SetIntensity
from pendula.credit.engine import Run
from pendula.credit.money import text
from pendula.credit.runs.artifacts import BUNDLE, NAMES
from pendula.credit.settings import setting_texts
from pendula.credit.state.counters import Demand
from pendula.credit.tick.draft import ratio
from pendula.kernel.canonical import encode
from pendula.kernel.engine import Reason
from pendula.kernel.errors import PendulaError
from pendula.server import views
from pendula.server.api.openapi import CHANGE_ERRORS, READ_ERRORS, WRITE_ERRORS, Responses, answers, refusals, takes
from pendula.server.api.requests import read_body, supervisor_of
from pendula.server.errors import HttpRefused, json_response
from pendula.server.schedulers.credit import what_if as comparison
from pendula.server.schedulers.credit.errors import PREFIX, ArtifactNotFound
from pendula.server.schedulers.credit.output import CONTENT_TYPES
from pendula.server.schedulers.credit.owners import COOKIE
from pendula.server.schedulers.credit.records import ENDED, RunConflict, Verb
from pendula.server.schedulers.credit.routes.caller import Caller, OperatorCaller, ViewerCaller, answer
from pendula.server.schedulers.credit.run import ServedRun, StopRequest
from pendula.server.schedulers.credit.shapes import (
    ArtifactIndex,
    DemandView,
    Intensity,
    NewRun,
    OwnerView,
    RunDetails,
    RunList,
    RunName,
    RunStatusView,
    StoppedRuns,
    WhatIf,
    WhatIfView,
    status_view,
)

RUN = "/runs/{run_id}"
TEXT_MOST = 200

router = APIRouter(prefix=PREFIX, tags=["credit"])


# Control


@router.post(
    "/runs", responses=answers(RunName, CHANGE_ERRORS), openapi_extra=takes(NewRun), operation_id="credit_create_run"
)
async def create(request: Request, caller: OperatorCaller) -> Response:
    """Create and start a run."""
    record = await caller.service.create(caller.owner, await read_body(request, NewRun))
    return answer(RunName(run_id=record.run_id))


@router.get("/runs/active", responses=answers(RunName), operation_id="credit_active_run")
async def active(caller: ViewerCaller) -> Response:
    """The caller's active run, else the demo, else null."""
    record = caller.service.active(caller.owner)
    return answer(RunName(run_id=None if record is None else record.run_id))


@router.get(RUN, responses=answers(RunStatusView), operation_id="credit_run")
async def status(run_id: str, caller: ViewerCaller) -> Response:
    """The status of a run."""
    return _status(await caller.run(run_id))


Control = Callable[[ServedRun, Caller, Request], Awaitable[None]]


def _route(name: str, **extra: Any) -> Callable[[Control], Control]:
    """The route of a control, described by its docstring; answers with the status of the run."""

    def add(control: Control) -> Control:
        @router.post(
            f"{RUN}/{name}",
            description=control.__doc__,
            responses=answers(RunStatusView, CHANGE_ERRORS),
            operation_id=f"credit_{name}_run",
            **extra,
        )
        async def handle(run_id: str, request: Request, caller: OperatorCaller) -> Response:
            await control(await caller.run(run_id), caller, request)
            return _status(await caller.run(run_id))

        return control

    return add


@_route("pause")
async def _pause(run: ServedRun, caller: Caller, _: Request) -> None:
    """Stop the ticks of a run until it is resumed; no effect unless it is running."""
    await run.pause_or_resume(Verb.PAUSE, Pause(), caller.by, caller.request_id)


@_route("resume")
async def _resume(run: ServedRun, caller: Caller, _: Request) -> None:
    """Resume a paused run; no effect unless it is paused."""
    await run.pause_or_resume(Verb.RESUME, Resume(), caller.by, caller.request_id)


@_route("stop")
async def _stop(run: ServedRun, caller: Caller, request: Request) -> None:
    """End a run; it has stopped when this returns. `source` and `reason` are stored."""
    query = request.query_params
    client = request.headers.get("user-agent", "")[:TEXT_MOST] or None
    source, reason = (query[name][:TEXT_MOST] if name in query else None for name in ("source", "reason"))
    await run.stop(StopRequest(source or "api", reason, client), caller.by, caller.request_id)


@_route("restart")
async def _restart(run: ServedRun, caller: Caller, _: Request) -> None:
    """Restart a run at tick 0, with the same seed and the ledger of its scenario."""
    await caller.service.restart(run, caller.by, caller.request_id)


@_route("intensity", openapi_extra=takes(Intensity))
async def _intensity(run: ServedRun, caller: Caller, request: Request) -> None:
    """Set the intensity in per cent, from the next tick on."""
    body = await read_body(request, Intensity)
    if run.record.state in ENDED:
        raise RunConflict(f"The run is {run.record.state}; its intensity cannot change", conflict_kind="run_ended")
    await run.submit(SetIntensity(body.intensity_percent), caller.by, caller.request_id)


@router.post(f"{RUN}/continue", responses=answers(RunName, CHANGE_ERRORS), operation_id="credit_continue_run")
async def continue_run(run_id: str, caller: OperatorCaller) -> Response:
    """Start a new run from the last state of this one, which was stopped, failed, or lost its server."""
    record = (await caller.run(run_id)).record
    continuation = await caller.service.continue_run(caller.owner, record)
    return answer(RunName(run_id=continuation.run_id))


@router.post(
    f"{RUN}/what-if",
    responses=answers(WhatIfView, CHANGE_ERRORS),
    openapi_extra=takes(WhatIf),
    operation_id="credit_what_if",
)
async def what_if(run_id: str, request: Request, caller: ViewerCaller) -> Response:
    """Fork the current state of a run, with its own and with other settings, and compare; the run does not change."""
    run = await caller.run(run_id)
    body = await read_body(request, WhatIf)
    return answer(
        await supervisor_of(request).supposed(
            lambda: caller.service.ask(run, comparison.serialize_active_run),
            lambda serialized: comparison.what_if(run_id, serialized, body),
        )
    )


# Details


@router.get(f"{RUN}/details", responses=answers(RunDetails), operation_id="credit_run_details")
async def details(run_id: str, caller: ViewerCaller) -> Response:
    """Details beyond the protocol: seed, tick, digests, settings, late ticks."""
    run = await caller.run(run_id)
    record = run.record
    try:
        engine_facts = await caller.service.ask(run, _engine_facts)
    except HttpRefused:
        # Too many reads are waiting, or this one takes too long.
        raise
    except PendulaError:
        engine_facts = {"digests": None, "settings": None, "clearing": None, "demand": None}
    return answer(
        RunDetails(
            run_id=record.run_id,
            owner=record.owner.id,
            seed=record.seed,
            seed_from=record.seed_from,
            deterministic=record.deterministic,
            engine=record.engine,
            tick_index=record.tick_index,
            dropped_total=record.dropped_total,
            error_details=record.last_error_details,
            late_beats=run.late_beats,
            dropped_lines=run.output.dropped_lines,
            journal_bytes=run.journal_bytes,
            followers=run.followers,
            continued_from=record.continued_from,
            **engine_facts,
        )
    )


@router.post(
    f"{RUN}/why",
    responses=answers(Reason, WRITE_ERRORS),
    openapi_extra=takes(views.Question),
    operation_id="credit_why",
)
async def why(run_id: str, request: Request, caller: ViewerCaller) -> Response:
    """Explain a payment, a line, or the last decision about clearing."""
    run = await caller.run(run_id)
    body = await read_body(request, views.Question)
    return json_response(encode(await caller.service.ask(run, lambda engine: engine.why(body.question))))


# Artifacts


@router.get(f"{RUN}/artifacts", responses=answers(ArtifactIndex), operation_id="credit_artifacts")
async def artifacts(run_id: str, caller: ViewerCaller) -> Response:
    """The files of a run, with their sizes and checksums."""
    run = await caller.run(run_id)
    files = await caller.service.large_reads.look(lambda: caller.service.context.index(run.record.run_id))
    bundles = [file.url for file in files if file.name == BUNDLE]
    items = [file for file in files if file.name != BUNDLE or run.record.state in ENDED]
    path = f"runs/{run.record.run_id}/artifacts"
    return answer(
        ArtifactIndex(
            run_id=run.record.run_id, artifact_path=path, items=items, bundle_url=bundles[0] if bundles else None
        )
    )


_FILE: Responses = {200: {"description": "The file", "content": {"application/octet-stream": {}}}}


@router.get(
    f"{RUN}/artifacts/{{name}}",
    response_class=FileResponse,
    responses=_FILE | refusals(READ_ERRORS),
    operation_id="credit_artifact",
)
async def artifact(run_id: str, name: str, caller: ViewerCaller) -> Response:
    """One file of a run."""
    run = await caller.run(run_id)
    path = caller.service.context.artifacts(run.record.run_id) / name
    # Only known names: no part of a URL becomes a path.
    if name not in NAMES or not path.is_file():
        raise ArtifactNotFound(f"The run has no artifact {name[:100]!r}", name=name[:100])
    return FileResponse(path, media_type=CONTENT_TYPES[FilePath(name).suffix])


# Owners


@router.post("/session/ensure", responses=answers(OwnerView, WRITE_ERRORS), operation_id="credit_session")
async def ensure_session(request: Request, caller: OperatorCaller) -> Response:
    """The owner of this caller; a local visitor without a token gets a cookie."""
    owner, headers = caller.owner, {}
    if owner.id == "local":
        owner, value = caller.service.cookies.new()
        secure = "; Secure" if request.url.scheme == "https" else ""
        age = caller.service.cookies.ttl_seconds
        headers["set-cookie"] = f"{COOKIE}={value}; Path={PREFIX}; Max-Age={age}; HttpOnly; SameSite=Strict{secure}"
    response: Response = answer(OwnerView(owner.kind, owner.id))
    response.headers.update(headers)
    return response


@router.get("/admin/runs", responses=answers(RunList), operation_id="credit_all_runs")
async def all_runs(caller: ViewerCaller) -> Response:
    """All runs that the caller may see, newest first; for an admin, all runs."""
    return answer(RunList(items=[status_view(record) for record in caller.service.all(caller.owner)]))


@router.post("/admin/runs/stop-all", responses=answers(StoppedRuns, WRITE_ERRORS), operation_id="credit_stop_all")
async def stop_all(request: Request, caller: OperatorCaller) -> Response:
    """Stop all active runs that the caller may see."""
    stopped = [record.run_id for record in caller.service.all(caller.owner) if record.active]
    for run_id in stopped:
        await _stop(await caller.run(run_id), caller, request)
    return answer(StoppedRuns(stopped=stopped))


def _status(run: ServedRun) -> Response:
    response: Response = answer(status_view(run.record, run.phase))
    return response


def _demand(demand: Demand) -> DemandView:
    share = ratio(100 * demand.served, demand.wanted)
    return DemandView(text(demand.wanted), text(demand.served), text(demand.volume), share)


def _engine_facts(run: Run) -> dict[str, Any]:
    return {
        "digests": run.digests(),
        "settings": setting_texts(run.settings),
        "clearing": dict(run.last_clearing),
        "demand": {code: _demand(demand) for code, demand in run.demand.items()},
    }
