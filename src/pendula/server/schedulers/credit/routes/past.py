"""A run as it was at any moment of its journal, open or ended, and what a time slider asks for.

Not part of the protocol: pages of others do not need it, and never see it.
"""

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import Response

from pendula.credit.engine import Run
from pendula.credit.runs.artifacts import moment as wall_time
from pendula.credit.served.pictures import Snapshot, picture
from pendula.kernel import canonical
from pendula.server.errors import json_response
from pendula.server.hosting.engine_host import EngineHost
from pendula.server.routes.dependencies import supervisor_of
from pendula.server.routes.moments import MOST_POINTS, found_incident, found_moment
from pendula.server.routes.openapi import CHANGE_ERRORS, answers
from pendula.server.schedulers.credit.errors import PREFIX, BadRequest
from pendula.server.schedulers.credit.routes.calling import Caller, Looking, equivalent_of, whole
from pendula.server.schedulers.credit.running.ended_run import EndedRun
from pendula.server.schedulers.credit.shapes import Control
from pendula.server.views import IncidentView, MomentsView, MomentView, encode_view

RUN = "/runs/{run_id}"
BIG = 10**15

router = APIRouter(prefix=PREFIX, tags=["credit"])


class PastRun(Control, frozen=True, kw_only=True):
    """A run as it was after record `n` of its journal, and the network of one equivalent then."""

    n: int
    tick_index: int
    sim_time_ms: int
    attempts_total: int
    committed_total: int
    rejected_total: int
    graph: Snapshot


@router.get(f"{RUN}/past", responses=answers(PastRun, CHANGE_ERRORS), operation_id="credit_past")
async def past(run_id: str, request: Request, caller: Looking) -> Response:
    """The run and its network as they were after record `at` of its journal."""
    asked, at = await _past_of(run_id, caller), whole(request, "at", None, 0, BIG)
    now = wall_time(caller.service.context.clock())
    journal = asked.journal
    if not journal.first_n <= at <= journal.durable_n:
        raise BadRequest(f"There is no record {at}; the journal holds {journal.first_n} to {journal.durable_n}")

    def look() -> bytes:
        with asked.past.at(at) as run:
            assert isinstance(run, Run)
            return encode_view(_then(run, request, at, now))

    return json_response(await supervisor_of(request).replayed(look))


@router.get(f"{RUN}/moments", responses=answers(MomentsView, CHANGE_ERRORS), operation_id="credit_moments")
async def moments(run_id: str, request: Request, caller: Looking) -> Response:
    """The first moment of the journal, the last, and others evenly between them."""
    index, points = (await _past_of(run_id, caller)).moments, whole(request, "points", 5, 2, MOST_POINTS)
    return json_response(
        await supervisor_of(request).replayed(lambda: canonical.encode(MomentsView(index.spread(points))))
    )


@router.get(f"{RUN}/moment", responses=answers(MomentView, CHANGE_ERRORS), operation_id="credit_moment")
async def moment(run_id: str, request: Request, caller: Looking) -> Response:
    """The moment of the record `n`, or the last one not after the time `t` or `utc_ms`; and the one that follows it."""
    index = (await _past_of(run_id, caller)).moments
    n, t, utc_ms = (_maybe(request, name) for name in ("n", "t", "utc_ms"))
    return json_response(
        await supervisor_of(request).replayed(lambda: canonical.encode(found_moment(index, n, t, utc_ms)))
    )


@router.get(f"{RUN}/incident", responses=answers(IncidentView, CHANGE_ERRORS), operation_id="credit_incident")
async def incident(run_id: str, request: Request, caller: Looking) -> Response:
    """What was refused first, or next after a record, or last before one."""
    index = (await _past_of(run_id, caller)).moments
    after, before = _maybe(request, "after"), _maybe(request, "before")
    return json_response(
        await supervisor_of(request).replayed(lambda: canonical.encode(found_incident(index, after, before)))
    )


def _then(run: Run, request: Request, at: int, now: str) -> PastRun:
    status = run.status()
    return PastRun(
        n=at,
        tick_index=status.tick_index,
        sim_time_ms=status.sim_time_ms,
        attempts_total=status.attempts_total,
        committed_total=status.committed_total,
        rejected_total=status.rejected_total,
        graph=picture(run.network.ledgers[equivalent_of(request, run.network)].book, now),
    )


def _maybe(request: Request, name: str) -> int | None:
    return whole(request, name, None, 0, BIG) if name in request.query_params else None


async def _past_of(run_id: str, caller: Caller) -> EngineHost | EndedRun:
    """The past of a run; raises what is wrong with the journal of one that has ended."""
    run = await caller.run(run_id)
    if run.host is not None:
        return run.host
    service = caller.service
    return await service.ended.look(service.context.journal(run_id), run.record.stopped_at, service.reading)
