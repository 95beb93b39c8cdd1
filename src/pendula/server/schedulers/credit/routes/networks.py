"""Scenarios, and the network of a run: snapshots, metrics, bottlenecks, payment targets, participants and lines.

Earlier states of a run, active or ended, and the moments of its journal are for the time slider; not part of the
protocol.
"""

import asyncio
from collections.abc import Callable
from decimal import Decimal, InvalidOperation

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import Response

from pendula.credit.engine import Run
from pendula.credit.ledger.book import Book
from pendula.credit.model import LineStatus
from pendula.credit.money import text
from pendula.credit.runs.artifacts import moment as wall_time
from pendula.credit.settings import Settings as RunSettings
from pendula.credit.state.network import Network
from pendula.credit.views import Series, Snapshot, Span, neighbourhood, picture, targets, usual_step, worst
from pendula.documents import Document, from_value, read_bytes
from pendula.kernel import canonical
from pendula.server.api.engines import MOST_POINTS, found_incident, found_moment
from pendula.server.api.openapi import CHANGE_ERRORS, READ_ERRORS, answers
from pendula.server.api.requests import Supervised, limits_of, supervisor_of
from pendula.server.errors import json_response
from pendula.server.runtime.engine_host import EngineHost
from pendula.server.schedulers.credit import scenarios
from pendula.server.schedulers.credit.errors import PREFIX, BadRequest, RunNotFound, UnknownParticipant
from pendula.server.schedulers.credit.recovery import EndedRun
from pendula.server.schedulers.credit.routes.caller import (
    Caller,
    OperatorCaller,
    ViewerCaller,
    answer,
    read_flag,
    read_integer,
    requested_equivalent,
    resolve_equivalent,
)
from pendula.server.schedulers.credit.run import ServedRun
from pendula.server.schedulers.credit.scenarios import StoredScenario, Summary
from pendula.server.schedulers.credit.shapes import (
    API_VERSION,
    BottlenecksView,
    BottleneckView,
    Control,
    MetricsView,
    ParticipantList,
    ParticipantView,
    ScenarioList,
    TargetList,
    TrustlineList,
    TrustlineView,
)
from pendula.server.schedulers.credit.what_if import SerializedRun, serialize_run
from pendula.server.views import IncidentView, MomentsView, MomentView, encode_view

SCENARIOS = "/scenarios"
RUN = "/runs/{run_id}"
MAX_TIME_MS = 10**15
MAX_HOPS = 64

router = APIRouter(prefix=PREFIX, tags=["credit"])

_BODY = {"requestBody": {"required": True, "content": {"application/json": {"schema": {"type": "object"}}}}}


# Scenarios


@router.get(SCENARIOS, responses=answers(ScenarioList), operation_id="credit_scenarios")
async def listed(caller: ViewerCaller) -> Response:
    """All scenarios, bundled and uploaded."""
    return answer(ScenarioList(items=[stored.summary(API_VERSION) for stored in caller.service.scenarios.all()]))


@router.post(
    SCENARIOS, responses=answers(Summary, CHANGE_ERRORS), openapi_extra=_BODY, operation_id="credit_upload_scenario"
)
async def upload(request: Request, supervisor: Supervised, caller: OperatorCaller) -> Response:
    """Upload a scenario: `{"scenario": {…}, "scenario_id": …}`, or the document alone."""
    data = await request.body()
    uploaded_at = wall_time(supervisor.clock.now())
    limits = limits_of(request)
    stored = await asyncio.to_thread(lambda: _read_scenario(read_bytes(data, limits=limits), uploaded_at))
    scenarios.require_addressable(stored.scenario.id)
    await caller.service.add_scenario(stored)
    return answer(stored.summary(API_VERSION))


@router.get(SCENARIOS + "/{scenario_id}", responses=answers(Summary), operation_id="credit_scenario")
async def scenario(scenario_id: str, caller: ViewerCaller) -> Response:
    """One scenario."""
    return answer(caller.service.scenarios.get(scenario_id).summary(API_VERSION))


@router.get(SCENARIOS + "/{scenario_id}/graph/preview", responses=answers(Snapshot), operation_id="credit_preview")
async def preview(scenario_id: str, request: Request, supervisor: Supervised, caller: ViewerCaller) -> Response:
    """The network of a scenario, without debts."""
    stored = caller.service.scenarios.get(scenario_id)
    code = resolve_equivalent(request.query_params.get("equivalent"), stored.scenario.equivalents)
    now = wall_time(supervisor.clock.now())
    service = caller.service
    return answer(await service.large_reads.look(lambda: _preview(stored, service.defaults, code, now)))


def _preview(stored: StoredScenario, settings: RunSettings, code: str, now: str) -> Snapshot:
    return picture(Network(stored.scenario, settings).ledgers[code].book, now)


def _read_scenario(document: Document, uploaded_at: str) -> StoredScenario:
    value = document.value
    if not isinstance(value, dict):
        raise BadRequest("A scenario is a JSON object", errors=[{"path": "$", "message": "must be an object"}])
    if "scenario" not in value:
        return scenarios.read(document, uploaded_at)
    if unknown := sorted(set(value) - {"scenario", "scenario_id"}):
        errors = [{"path": name, "message": "unknown field"} for name in unknown]
        raise BadRequest("Only `scenario_id` may stand beside `scenario`", errors=errors)
    scenario_id = value.get("scenario_id")
    inner = from_value(value["scenario"], "scenario")
    return scenarios.read(
        scenarios.with_scenario_id(inner, scenario_id if isinstance(scenario_id, str) else None), uploaded_at
    )


# The network of a run


@router.get(f"{RUN}/graph/snapshot", responses=answers(Snapshot), operation_id="credit_snapshot")
async def snapshot(run_id: str, request: Request, caller: ViewerCaller) -> Response:
    """The current network, with visual hints."""
    return await _snapshot(await caller.run(run_id), request, caller)


@router.get("/graph/snapshot", responses=answers(Snapshot), operation_id="credit_own_snapshot")
async def own_snapshot(request: Request, caller: ViewerCaller) -> Response:
    """The current network of the caller's active run."""
    return await _snapshot(await active_run(caller), request, caller)


@router.get("/graph/ego", responses=answers(Snapshot), operation_id="credit_ego")
async def ego(request: Request, caller: ViewerCaller) -> Response:
    """A participant of the caller's active run and the network around it, 1 or 2 hops deep."""
    run, depth = await active_run(caller), read_integer(request, "depth", 1, 1, 2)
    pid, now = request.query_params.get("pid", ""), wall_time(caller.service.context.clock())

    def look(engine: Run) -> Snapshot:
        book = engine.network.ledgers[requested_equivalent(request, engine.network)].book
        return picture(book, now, neighbourhood(book, _participant(book, pid), depth))

    return await _read_engine(run, caller, look)


async def _read_engine(run: ServedRun, caller: Caller, look: Callable[[Run], object]) -> Response:
    """Read from the engine of a run; the response is encoded in a thread of large reads."""
    service = caller.service
    return json_response(await service.large_reads.look_at(lambda: service.ask(run, look), encode_view))


async def active_run(caller: Caller) -> ServedRun:
    """Raises `RunNotFound`."""
    record = caller.service.active(caller.owner)
    if record is None:
        raise RunNotFound("There is no active run")
    return await caller.run(record.run_id)


async def _snapshot(run: ServedRun, request: Request, caller: Caller) -> Response:
    now = wall_time(caller.service.context.clock())

    def look(engine: Run) -> Snapshot:
        return picture(engine.network.ledgers[requested_equivalent(request, engine.network)].book, now)

    return await _read_engine(run, caller, look)


@router.get(f"{RUN}/metrics", responses=answers(MetricsView), operation_id="credit_metrics")
async def metrics(run_id: str, request: Request, caller: ViewerCaller) -> Response:
    """Metrics at even steps of virtual time; 503 if they cannot be read.

    `extended=true` adds `wanted`, `served`, `served_share` and `volume`, which are not part of the protocol.
    """
    run = await caller.run(run_id)
    last = run.record.sim_time_ms
    from_ms = read_integer(request, "from_ms", 0, 0, MAX_TIME_MS)
    to_ms = read_integer(request, "to_ms", last, 0, MAX_TIME_MS)
    span = Span(from_ms, to_ms, read_integer(request, "step_ms", usual_step(from_ms, to_ms), 0, MAX_TIME_MS))
    times = span.points()
    extended = read_flag(request, "extended")
    code = _code(run, request)
    service, run_id = caller.service, run.record.run_id

    async def measured() -> list[Series]:
        await run.flush_measured()
        return await service.query_store(run_id, lambda store: store.series(run_id, code, times, extended=extended))

    # The store has one thread: the lane limits how many of these reads wait for it.
    series = await service.large_reads.look_at(measured, lambda series: series)
    return answer(
        MetricsView(
            run_id=run.record.run_id,
            equivalent=code,
            from_ms=span.from_ms,
            to_ms=span.to_ms,
            step_ms=span.step_ms,
            series=series,
        )
    )


@router.get(f"{RUN}/bottlenecks", responses=answers(BottlenecksView), operation_id="credit_bottlenecks")
async def bottlenecks(run_id: str, request: Request, caller: ViewerCaller) -> Response:
    """The lines over which most payments fail, worst first."""
    run = await caller.run(run_id)
    limit, min_score = read_integer(request, "limit", 20, 1, 200), _score(request.query_params.get("min_score", "0"))
    code = _code(run, request)

    def look(engine: Run) -> BottlenecksView:
        items = list(map(BottleneckView.of, worst(engine.network.ledgers[code], limit, min_score)))
        return BottlenecksView(run_id=run.record.run_id, equivalent=code, items=items)

    return await _read_engine(run, caller, look)


@router.get(f"{RUN}/payment-targets", responses=answers(TargetList), operation_id="credit_targets")
async def payment_targets(run_id: str, request: Request, caller: ViewerCaller) -> Response:
    """The receivers that `from_pid` can pay now, and the least number of hops to each.

    Routes to all receivers are searched in a copy of the run, so that its ticks need not wait.
    """
    run, query = await caller.run(run_id), request.query_params
    amounts = read_flag(request, "include_max_available")
    sender = query.get("from_pid", "")

    def find(engine: Run) -> TargetList:
        ledger = engine.network.ledgers[requested_equivalent(request, engine.network)]
        max_hops = read_integer(request, "max_hops", engine.settings.routing_max_hops, 1, MAX_HOPS)
        node = _participant(ledger.book, sender)
        return TargetList(targets(ledger.book, ledger.processor, node, max_hops, amounts=amounts))

    def begin(engine: Run) -> TargetList | SerializedRun:
        book = engine.network.ledgers[requested_equivalent(request, engine.network)].book
        _participant(book, sender)
        return serialize_run(engine) if amounts or book.has_blocked else find(engine)

    def end(result: TargetList | SerializedRun) -> TargetList:
        return result if isinstance(result, TargetList) else find(result.copy())

    return answer(await caller.service.large_reads.look_at(lambda: caller.service.ask(run, begin), end))


@router.get(
    f"{RUN}/actions/participants-list",
    responses=answers(ParticipantList, READ_ERRORS),
    operation_id="credit_participants",
)
async def participants(run_id: str, caller: ViewerCaller) -> Response:
    """All participants of the network."""
    run = await caller.run(run_id)
    return await _read_engine(run, caller, _participants)


@router.get(
    f"{RUN}/actions/trustlines-list", responses=answers(TrustlineList, READ_ERRORS), operation_id="credit_trustlines"
)
async def trustlines(run_id: str, request: Request, caller: ViewerCaller) -> Response:
    """The lines of an equivalent, all or those of one participant, without closed ones."""
    run, pid = await caller.run(run_id), request.query_params.get("participant_pid")

    def look(engine: Run) -> TrustlineList:
        book = engine.network.ledgers[requested_equivalent(request, engine.network)].book
        node = None if pid is None else _participant(book, pid)
        lines = [line for line in range(len(book)) if book.status[line] is not LineStatus.CLOSED]
        shown = [line for line in lines if node in (None, book.creditor[line], book.debtor[line])]
        return TrustlineList([_trustline(book, line) for line in shown])

    return await _read_engine(run, caller, look)


# Earlier states


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
    source, at = await _find_past(run_id, caller), read_integer(request, "at", None, 0, MAX_TIME_MS)
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
    return read_integer(request, name, None, 0, MAX_TIME_MS) if name in request.query_params else None


async def _find_past(run_id: str, caller: Caller) -> EngineHost | EndedRun:
    """The history of a run; raises if the journal of an ended run is damaged."""
    run = await caller.run(run_id)
    if run.host is not None:
        return run.host
    return await caller.service.ended(run.record)


def _code(run: ServedRun, request: Request) -> str:
    return resolve_equivalent(request.query_params.get("equivalent"), run.record.equivalents)


def _score(text: str) -> Decimal:
    try:
        score = Decimal(text)
    except InvalidOperation:
        score = Decimal("nan")
    if not score.is_finite() or not 0 <= score <= 1:
        raise BadRequest(
            f"min_score is {text[:100]!r}; it must be a number from 0 to 1",
            errors=[{"path": "min_score", "message": "must be a number from 0 to 1"}],
        )
    return score


def _participant(book: Book, pid: str) -> int:
    node = book.people.index.get(pid)
    if node is None:
        raise UnknownParticipant(f"Unknown participant {pid[:200]!r}", participant=pid[:200])
    return node


def _participants(run: Run) -> ParticipantList:
    return ParticipantList(
        [
            ParticipantView(person.id, person.name, person.type.value, person.status.value)
            for person in run.network.people.all
        ]
    )


def _trustline(book: Book, line: int) -> TrustlineView:
    creditor, debtor = book.people.all[book.creditor[line]], book.people.all[book.debtor[line]]
    used, limit = book.debt(line), book.limit[line]
    return TrustlineView(
        from_pid=creditor.id,
        from_name=creditor.name,
        to_pid=debtor.id,
        to_name=debtor.name,
        equivalent=book.code,
        limit=text(limit),
        used=text(used),
        reverse_used=text(max(0, -book.owed[line])),
        available=text(max(0, limit - used)),
        status=book.status[line].value,
    )
