"""Runs over HTTP: created, steered, stopped, started again, gone on with; what is known of them and what they left."""

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
from pendula.credit.served.artifacts import CONTENT_TYPES
from pendula.credit.served.lifecycle import ENDED, RunConflict, Verb
from pendula.credit.settings import effective
from pendula.credit.state.counters import Demand
from pendula.credit.tick.metrics import ratio
from pendula.kernel.canonical import encode
from pendula.kernel.engine import Reason
from pendula.kernel.errors import PendulaError
from pendula.server import views
from pendula.server.errors import HttpRefused, json_response
from pendula.server.routes.bodies import read_body
from pendula.server.routes.openapi import CHANGE_ERRORS, READ_ERRORS, WRITE_ERRORS, Responses, answers, refusals, takes
from pendula.server.schedulers.credit.errors import PREFIX, ArtifactNotFound
from pendula.server.schedulers.credit.owners import COOKIE
from pendula.server.schedulers.credit.routes.calling import Caller, Looking, Steering, answer
from pendula.server.schedulers.credit.running import what_if as comparing
from pendula.server.schedulers.credit.running.served_run import ServedRun, StopRequest
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


# Runs come and go


@router.post(
    "/runs", responses=answers(RunName, CHANGE_ERRORS), openapi_extra=takes("NewRun"), operation_id="credit_create_run"
)
async def create(request: Request, caller: Steering) -> Response:
    """Create a run; it is running when this answers."""
    record = await caller.service.create(caller.owner, await read_body(request, NewRun))
    return answer(RunName(run_id=record.run_id))


@router.get("/runs/active", responses=answers(RunName), operation_id="credit_active_run")
async def active(caller: Looking) -> Response:
    """The caller's active run, or the living example where there is one; null otherwise."""
    record = caller.service.active(caller.owner)
    return answer(RunName(run_id=None if record is None else record.run_id))


@router.get(RUN, responses=answers(RunStatusView), operation_id="credit_run")
async def status(run_id: str, caller: Looking) -> Response:
    """Where a run stands."""
    return _status(await caller.run(run_id))


def _steers(
    path: str, sentence: str, steer: Callable[[ServedRun, Caller, Request], Awaitable[None]], **extra: Any
) -> None:
    @router.post(
        f"{RUN}/{path}",
        description=sentence,
        responses=answers(RunStatusView, CHANGE_ERRORS),
        operation_id=f"credit_{path}_run",
        **extra,
    )
    async def steered(run_id: str, request: Request, caller: Steering) -> Response:
        run = await caller.run(run_id)
        await steer(run, caller, request)
        return _status(await caller.run(run_id))


async def _pause(run: ServedRun, caller: Caller, _: Request) -> None:
    await run.steer(Verb.PAUSE, Pause(), caller.by, caller.request_id)


async def _resume(run: ServedRun, caller: Caller, _: Request) -> None:
    await run.steer(Verb.RESUME, Resume(), caller.by, caller.request_id)


async def _stop(run: ServedRun, caller: Caller, request: Request) -> None:
    given = request.query_params
    client = request.headers.get("user-agent", "")[:TEXT_MOST] or None
    source, reason = (given[name][:TEXT_MOST] if name in given else None for name in ("source", "reason"))
    await run.stop(StopRequest(source or "api", reason, client), caller.by, caller.request_id)


async def _restart(run: ServedRun, caller: Caller, _: Request) -> None:
    await caller.service.restart(run, caller.by, caller.request_id)


async def _intensity(run: ServedRun, caller: Caller, request: Request) -> None:
    wish = await read_body(request, Intensity)
    if run.record.state in ENDED:
        raise RunConflict(f"The run is {run.record.state}; its intensity cannot change", conflict_kind="run_ended")
    await run.do(SetIntensity(wish.intensity_percent), caller.by, caller.request_id)


_steers("pause", "Let no tick pass until the run is resumed; a run that is not running stays as it is.", _pause)
_steers("resume", "Let time go on; a run that is not paused stays as it is.", _resume)
_steers("stop", "End a run; when this answers, nothing of it goes on any more. `source` and `reason` are kept.", _stop)
_steers("restart", "Begin a run again at tick 0, with the same seed and the ledger of its scenario.", _restart)
_steers(
    "intensity",
    "How much is paid, in per cent, from the next tick on.",
    _intensity,
    openapi_extra=takes("Intensity"),
)


@router.post(f"{RUN}/continue", responses=answers(RunName, CHANGE_ERRORS), operation_id="credit_continue_run")
async def go_on(run_id: str, caller: Steering) -> Response:
    """A new run that goes on where this one has ended: by stop, by an error, or because the server was killed."""
    record = (await caller.run(run_id)).record
    fresh = await caller.service.go_on(caller.owner, record)
    return answer(RunName(run_id=fresh.run_id))


@router.post(
    f"{RUN}/what-if",
    responses=answers(WhatIfView, CHANGE_ERRORS),
    openapi_extra=takes("WhatIf"),
    operation_id="credit_what_if",
)
async def what_if(run_id: str, request: Request, caller: Looking) -> Response:
    """Let a run go on from where it stands twice, as it is and with other settings, and compare; it is left alone."""
    run = await caller.run(run_id)
    wish = await read_body(request, WhatIf)
    # One at a time: each takes as long as so many ticks of two runs.
    return answer(
        await caller.service.comparing.look_at(
            lambda: caller.service.ask(run, comparing.standing),
            lambda standing: comparing.what_if(run_id, standing, wish),
        )
    )


# What is known of a run


@router.get(f"{RUN}/details", responses=answers(RunDetails), operation_id="credit_run_details")
async def details(run_id: str, caller: Looking) -> Response:
    """What we know of a run beyond the forms of the protocol: seed, tick, digests, settings, lateness."""
    run = await caller.run(run_id)
    record = run.record
    try:
        known = await caller.service.ask(run, _known)
    except HttpRefused:
        # Not of the run: too many ask, or it takes too long.
        raise
    except PendulaError:
        known = {"digests": None, "settings": None, "clearing": None, "demand": None}
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
            dropped_lines=run.writer.dropped_lines,
            journal_bytes=run.journal_bytes,
            followers=run.followers,
            continued_from=record.continued_from,
            **known,
        )
    )


@router.post(
    f"{RUN}/why", responses=answers(Reason, WRITE_ERRORS), openapi_extra=takes("Question"), operation_id="credit_why"
)
async def why(run_id: str, request: Request, caller: Looking) -> Response:
    """Why a payment fails, where a line stands, why clearing was tried or not."""
    run = await caller.run(run_id)
    asked = await read_body(request, views.Question)
    return json_response(encode(await caller.service.ask(run, lambda engine: engine.why(asked.question))))


# What a run leaves


@router.get(f"{RUN}/artifacts", responses=answers(ArtifactIndex), operation_id="credit_artifacts")
async def artifacts(run_id: str, caller: Looking) -> Response:
    """The files of a run, with their sizes and checksums."""
    run = await caller.run(run_id)
    found = await caller.service.looking.look(lambda: caller.service.context.index(run.record.run_id))
    bundles = [one.url for one in found if one.name == BUNDLE]
    items = [one for one in found if one.name != BUNDLE or run.record.state in ENDED]
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
async def artifact(run_id: str, name: str, caller: Looking) -> Response:
    """One file of a run."""
    run = await caller.run(run_id)
    path = caller.service.context.artifacts(run.record.run_id) / name
    # Only names that we write ourselves: nothing out of an address is ever a path.
    if name not in NAMES or not path.is_file():
        raise ArtifactNotFound(f"The run has no artifact {name[:100]!r}", name=name[:100])
    return FileResponse(path, media_type=CONTENT_TYPES[FilePath(name).suffix])


# Owners


@router.post("/session/ensure", responses=answers(OwnerView, WRITE_ERRORS), operation_id="credit_session")
async def ensure_session(request: Request, caller: Steering) -> Response:
    """Who the caller is; a visitor of this machine without a token gets a cookie that says so from now on."""
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
async def all_runs(caller: Looking) -> Response:
    """All runs that the caller may see, the newest first: for an admin, those of everybody."""
    return answer(RunList(items=[status_view(one) for one in caller.service.all(caller.owner)]))


@router.post("/admin/runs/stop-all", responses=answers(StoppedRuns, WRITE_ERRORS), operation_id="credit_stop_all")
async def stop_all(request: Request, caller: Steering) -> Response:
    """Stop all active runs that the caller may see."""
    stopped = [one.run_id for one in caller.service.all(caller.owner) if one.active]
    for run_id in stopped:
        await _stop(await caller.run(run_id), caller, request)
    return answer(StoppedRuns(stopped=stopped))


def _status(run: ServedRun) -> Response:
    response: Response = answer(status_view(run.record, run.phase))
    return response


def _demand(one: Demand) -> DemandView:
    share = ratio(100 * one.served, one.wanted)
    return DemandView(text(one.wanted), text(one.served), text(one.volume), share)


def _known(run: Run) -> dict[str, Any]:
    return {
        "digests": run.digests(),
        "settings": effective(run.settings),
        "clearing": dict(run.last_clearing),
        "demand": {code: _demand(one) for code, one in run.demand.items()},
    }
