"""A gateway of real trucks calls us: it says what it heard of them, and fetches what they are to do."""

from collections.abc import Sequence
from typing import Annotated

from fastapi import APIRouter
from msgspec import UNSET, Meta
from starlette.requests import Request
from starlette.responses import Response

from pendula.documents import Document, DocumentLimits, DocumentRefused, Fault, Format, path_text, read_bytes
from pendula.fleet.contracts.traffic import RobotState
from pendula.fleet.gateway import report_of
from pendula.fleet.gateway.reports import faults_of
from pendula.fleet.tasks import OperationDone, OperationFailed
from pendula.kernel import canonical
from pendula.server.errors import HttpRefused, json_response
from pendula.server.routes.bodies import as_kind, read_body_with
from pendula.server.routes.dependencies import Operator, Supervised
from pendula.server.routes.openapi import CHANGE_ERRORS, READ_ERRORS, TAKEN, answers, refusals, takes
from pendula.server.schedulers.fleet.bodies import MOST_REPORTS, OperationView, OrdersView, ReportsBody
from pendula.server.schedulers.fleet.fleets import FLEET, FleetName, loop_of
from pendula.server.schedulers.fleet.life.loop import FleetLoop, FleetStands
from pendula.server.schedulers.fleet.life.trucks import RemoteTrucks

router = APIRouter(tags=["fleet"])


class NotLive(HttpRefused):
    """The fleet has simulated trucks: nobody reports for them, and nobody fetches their orders."""

    code = "not_live"
    status = 409


@router.post(
    FLEET + "/reports",
    status_code=204,
    response_class=Response,
    openapi_extra=takes("ReportsBody", json5=True),
    responses=TAKEN | refusals(CHANGE_ERRORS),
    operation_id="fleet_report",
)
async def hear(fleet: FleetName, request: Request, supervisor: Supervised, _: Operator) -> Response:
    """What a gateway heard of its trucks, in metres and radians: one report, a list of them, or reports and operations
    that are over, as JSON or JSON5. It counts from the next tick on. That an operation is over is answered when that
    tick is written down: nobody is told to do it again after a crash."""
    loop = loop_of(supervisor, fleet)
    trucks = _remote(loop)
    loop.require_life()
    body = await read_body_with(request, _read)
    if body.done or body.failed:
        # Before it counts: what is refused is posted again, and would be said twice.
        loop.require_place()
    trucks.hear([report_of(state) for state in body.reports], _done(body), _failed(body))
    if body.done or body.failed:
        await loop.written()
    return Response(status_code=204)


@router.get(FLEET + "/orders", responses=answers(OrdersView, READ_ERRORS), operation_id="fleet_orders")
async def orders(fleet: FleetName, supervisor: Supervised, _: Operator) -> Response:
    """The newest command of every truck, and what each is to load or unload: for a gateway, once a tick. A command that
    is older than it is good for is not given: the next tick is waited for, and where that is late it is 503."""
    loop = loop_of(supervisor, fleet)
    trucks = _remote(loop)
    # What was said last is no command of a fleet that stands, or whose ticks are late.
    loop.require_life()
    if not trucks.are_fresh():
        await loop.written()
    if not trucks.are_fresh():
        raise FleetStands("The ticks of the fleet are late, and no truck is told anything; try again in a moment")
    view = OrdersView(
        tick=loop.engine.traffic.tick_number,
        now=loop.engine.now(),
        commands=[trucks.commands[name] for name in sorted(trucks.commands)],
        operations=[
            OperationView(one.robot_id, one.kind, one.node_id, one.duration_ms, one.operation_id)
            for one in trucks.tell_operations()
        ],
    )
    return json_response(canonical.encode(view))


_States = Annotated[tuple[RobotState, ...], Meta(max_length=MOST_REPORTS)]


def _read(data: bytes, limits: DocumentLimits) -> ReportsBody:
    """Raises `DocumentRefused` with the place of every number that no truck can mean."""
    document = read_bytes(data, Format.JSON5, limits=limits)
    paths: list[tuple[str | int, ...]]
    match document.value:
        case list():
            body = ReportsBody(as_kind(document, _States))
            paths = [(number,) for number in range(len(body.reports))]
        case {"robotId": _}:
            body = ReportsBody((as_kind(document, RobotState),))
            paths = [()]
        case _:
            body = as_kind(document, ReportsBody)
            paths = [("reports", number) for number in range(len(body.reports))]
    _refuse_absurd(document, list(zip(paths, body.reports, strict=True)))
    return body


def _refuse_absurd(document: Document, states: Sequence[tuple[tuple[str | int, ...], RobotState]]) -> None:
    wrong = [((*path, *fault.path), fault) for path, state in states for fault in faults_of(state)]
    places = document.places([path for path, _ in wrong])
    faults = [
        Fault(
            code="invalid_field",
            path=path_text(path),
            line=place.line,
            column=place.column,
            value=UNSET,
            message=fault.message,
            allowed=(fault.allowed,),
        )
        for (path, fault), place in zip(wrong, places, strict=True)
    ]
    if faults:
        raise DocumentRefused(faults, document.source_name)


def _done(body: ReportsBody) -> list[OperationDone]:
    return [
        OperationDone(one) if isinstance(one, str) else OperationDone(one.robotId, one.operationId) for one in body.done
    ]


def _failed(body: ReportsBody) -> list[OperationFailed]:
    if isinstance(body.failed, dict):
        return [OperationFailed(robot_id, reason) for robot_id, reason in sorted(body.failed.items())]
    return [OperationFailed(one.robotId, one.reason, one.operationId) for one in body.failed]


def _remote(loop: FleetLoop) -> RemoteTrucks:
    if not isinstance(loop.trucks, RemoteTrucks):
        raise NotLive("This fleet has simulated trucks; make one with live=true for a gateway")
    return loop.trucks
