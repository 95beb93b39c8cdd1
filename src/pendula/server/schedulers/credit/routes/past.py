"""Earlier states of a run, active or ended, and the moments of its journal, for the time slider.

Not part of the protocol.
"""

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import Response

from pendula.credit.engine import Run
from pendula.credit.runs.artifacts import moment as wall_time
from pendula.credit.views import Snapshot, picture
from pendula.kernel import canonical
from pendula.server.api.engines import MOST_POINTS, found_incident, found_moment
from pendula.server.api.openapi import CHANGE_ERRORS, answers
from pendula.server.api.requests import supervisor_of
from pendula.server.errors import json_response
from pendula.server.runtime.engine_host import EngineHost
from pendula.server.schedulers.credit.errors import PREFIX, BadRequest
from pendula.server.schedulers.credit.recovery import EndedRun
from pendula.server.schedulers.credit.routes.caller import Caller, ViewerCaller, read_integer, requested_equivalent
from pendula.server.schedulers.credit.shapes import Control
from pendula.server.views import IncidentView, MomentsView, MomentView, encode_view

RUN = "/runs/{run_id}"
BIG = 10**15

router = APIRouter(prefix=PREFIX, tags=["credit"])


class PastRun(Control, frozen=True, kw_only=True):
    """A run after record `n` of its journal, and the network of one equivalent."""

    n: int
    tick_index: int
    sim_time_ms: int
    attempts_total: int
    committed_total: int
    rejected_total: int
    graph: Snapshot


@router.get(f"{RUN}/past", responses=answers(PastRun, CHANGE_ERRORS), operation_id="credit_past")
async def past(run_id: str, request: Request, caller: ViewerCaller) -> Response:
    """The run and its network after record `at` of its journal."""
    source, at = await _find_past(run_id, caller), read_integer(request, "at", None, 0, BIG)
    now = wall_time(caller.service.context.clock())
    journal = source.journal
    if not journal.first_n <= at <= journal.durable_n:
        raise BadRequest(f"There is no record {at}; the journal has records {journal.first_n} to {journal.durable_n}")

    def look() -> bytes:
        with source.past.at(at) as run:
            assert isinstance(run, Run)
            return encode_view(_past_run(run, request, at, now))

    return json_response(await supervisor_of(request).replayed(look))


@router.get(f"{RUN}/moments", responses=answers(MomentsView, CHANGE_ERRORS), operation_id="credit_moments")
async def moments(run_id: str, request: Request, caller: ViewerCaller) -> Response:
    """The first and the last moment of the journal, and others spread evenly between them."""
    index, points = (await _find_past(run_id, caller)).moments, read_integer(request, "points", 5, 2, MOST_POINTS)
    return json_response(
        await supervisor_of(request).replayed(lambda: canonical.encode(MomentsView(index.spread(points))))
    )


@router.get(f"{RUN}/moment", responses=answers(MomentView, CHANGE_ERRORS), operation_id="credit_moment")
async def moment(run_id: str, request: Request, caller: ViewerCaller) -> Response:
    """The moment of record `n`, or the last one not after time `t` or `utc_ms`, and its successor."""
    index = (await _find_past(run_id, caller)).moments
    n, t, utc_ms = (_optional_integer(request, name) for name in ("n", "t", "utc_ms"))
    return json_response(
        await supervisor_of(request).replayed(lambda: canonical.encode(found_moment(index, n, t, utc_ms)))
    )


@router.get(f"{RUN}/incident", responses=answers(IncidentView, CHANGE_ERRORS), operation_id="credit_incident")
async def incident(run_id: str, request: Request, caller: ViewerCaller) -> Response:
    """The first refusal, or the next one after a record, or the last one before it."""
    index = (await _find_past(run_id, caller)).moments
    after, before = _optional_integer(request, "after"), _optional_integer(request, "before")
    return json_response(
        await supervisor_of(request).replayed(lambda: canonical.encode(found_incident(index, after, before)))
    )


def _past_run(run: Run, request: Request, at: int, now: str) -> PastRun:
    status = run.status()
    return PastRun(
        n=at,
        tick_index=status.tick_index,
        sim_time_ms=status.sim_time_ms,
        attempts_total=status.attempts_total,
        committed_total=status.committed_total,
        rejected_total=status.rejected_total,
        graph=picture(run.network.ledgers[requested_equivalent(request, run.network)].book, now),
    )


def _optional_integer(request: Request, name: str) -> int | None:
    return read_integer(request, name, None, 0, BIG) if name in request.query_params else None


async def _find_past(run_id: str, caller: Caller) -> EngineHost | EndedRun:
    """The history of a run; raises if the journal of an ended run is damaged."""
    run = await caller.run(run_id)
    if run.host is not None:
        return run.host
    return await caller.service.ended(run.record)
