"""Scenarios over HTTP: list, upload, preview."""

import asyncio

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import Response

from pendula.credit.runs.artifacts import moment
from pendula.credit.served import scenarios
from pendula.credit.served.pictures import Snapshot, picture
from pendula.credit.served.scenarios import StoredScenario, Summary
from pendula.credit.settings import Settings as RunSettings
from pendula.credit.state.network import Network
from pendula.documents import Document, from_value, read_bytes
from pendula.server.api.openapi import CHANGE_ERRORS, answers
from pendula.server.api.requests import Supervised, document_limits
from pendula.server.schedulers.credit.errors import PREFIX, BadRequest
from pendula.server.schedulers.credit.routes.caller import OperatorCaller, ViewerCaller, answer, resolve_equivalent
from pendula.server.schedulers.credit.shapes import API_VERSION, ScenarioList

router = APIRouter(prefix=f"{PREFIX}/scenarios", tags=["credit"])

_BODY = {"requestBody": {"required": True, "content": {"application/json": {"schema": {"type": "object"}}}}}


@router.get("", responses=answers(ScenarioList), operation_id="credit_scenarios")
async def listed(caller: ViewerCaller) -> Response:
    """All scenarios, bundled and uploaded."""
    return answer(ScenarioList(items=[stored.summary(API_VERSION) for stored in caller.service.scenarios.all()]))


@router.post("", responses=answers(Summary, CHANGE_ERRORS), openapi_extra=_BODY, operation_id="credit_upload_scenario")
async def upload(request: Request, supervisor: Supervised, caller: OperatorCaller) -> Response:
    """Upload a scenario: `{"scenario": {…}, "scenario_id": …}`, or the document alone."""
    data = await request.body()
    uploaded_at = moment(supervisor.clock.now())
    limits = document_limits(supervisor.settings)
    stored = await asyncio.to_thread(lambda: _read(read_bytes(data, limits=limits), uploaded_at))
    scenarios.require_addressable(stored.scenario.id)
    await caller.service.add_scenario(stored)
    return answer(stored.summary(API_VERSION))


@router.get("/{scenario_id}", responses=answers(Summary), operation_id="credit_scenario")
async def scenario(scenario_id: str, caller: ViewerCaller) -> Response:
    """One scenario."""
    return answer(caller.service.scenarios.get(scenario_id).summary(API_VERSION))


@router.get("/{scenario_id}/graph/preview", responses=answers(Snapshot), operation_id="credit_preview")
async def preview(scenario_id: str, request: Request, supervisor: Supervised, caller: ViewerCaller) -> Response:
    """The network of a scenario, without debts."""
    stored = caller.service.scenarios.get(scenario_id)
    code = resolve_equivalent(request.query_params.get("equivalent"), stored.scenario.equivalents)
    now = moment(supervisor.clock.now())
    service = caller.service
    return answer(await service.large_reads.look(lambda: _preview(stored, service.defaults, code, now)))


def _preview(stored: StoredScenario, settings: RunSettings, code: str, now: str) -> Snapshot:
    return picture(Network(stored.scenario, settings).ledgers[code].book, now)


def _read(document: Document, uploaded_at: str) -> StoredScenario:
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
