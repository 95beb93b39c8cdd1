"""Routes for the gateway of real trucks: it posts reports and fetches orders."""

from collections.abc import Sequence
from typing import Annotated

from fastapi import APIRouter
from msgspec import UNSET, Meta
from starlette.requests import Request
from starlette.responses import Response

from pendula.documents import Document, DocumentLimits, DocumentRefused, Fault, Format, path_text, read_bytes
from pendula.fleet.contracts import RobotState
from pendula.fleet.gateway import report_of
from pendula.fleet.gateway.reports import faults_of
from pendula.fleet.tasks import OperationDone, OperationFailed
from pendula.kernel import canonical
from pendula.server.api.openapi import CHANGE_ERRORS, READ_ERRORS, TAKEN, answers, refusals, takes
from pendula.server.api.requests import Operator, Supervised, as_kind, read_body_with
from pendula.server.errors import HttpRefused, json_response
from pendula.server.schedulers.fleet.bodies import MOST_REPORTS, OperationView, OrdersView, ReportsBody
from pendula.server.schedulers.fleet.fleets import FLEET, FleetName, loop_of
from pendula.server.schedulers.fleet.life.loop import FleetLoop, FleetStopped
from pendula.server.schedulers.fleet.life.trucks import RemoteTrucks

router = APIRouter(tags=["fleet"])


class NotLive(HttpRefused):
    """The fleet has simulated trucks; a gateway needs a fleet created with `live=true`."""

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
async def receive_reports(fleet: FleetName, request: Request, supervisor: Supervised, _: Operator) -> Response:
    """Post reports of trucks, in metres and radians: one report, a list, or reports and ended operations, as JSON or
    JSON5. The next tick applies them. With ended operations the answer waits until that tick is written, so that a
    crash does not start them again."""
    loop = loop_of(supervisor, fleet)
    trucks = _remote(loop)
    loop.require_running()
    body = await read_body_with(request, _read)
    if body.done or body.failed:
        # Checked first: a rejected post is repeated, and must not count twice.
        loop.require_space()
    trucks.receive([report_of(state) for state in body.reports], _done(body), _failed(body))
    if body.done or body.failed:
        await loop.wait_until_written()
    return Response(status_code=204)


@router.get(FLEET + "/orders", responses=answers(OrdersView, READ_ERRORS), operation_id="fleet_orders")
async def orders(fleet: FleetName, supervisor: Supervised, _: Operator) -> Response:
    """The newest command of every truck, and its operation: for a gateway, once a tick. If the commands have expired
    the request waits for the next tick; if that is late too, the status is 503."""
    loop = loop_of(supervisor, fleet)
    trucks = _remote(loop)
    # The last commands of a fleet that has stopped, or is late, are not valid.
    loop.require_running()
    if not trucks.are_fresh():
        await loop.wait_until_written()
    if not trucks.are_fresh():
        raise FleetStopped("The ticks of the fleet are late, so there are no commands; try again in a moment")
    view = OrdersView(
        tick=loop.engine.traffic.tick_number,
        now=loop.engine.now(),
        commands=[trucks.commands[name] for name in sorted(trucks.commands)],
        operations=[
            OperationView(
                operation.robot_id, operation.kind, operation.node_id, operation.duration_ms, operation.operation_id
            )
            for operation in trucks.issue_operations()
        ],
    )
    return json_response(canonical.encode(view))


_States = Annotated[tuple[RobotState, ...], Meta(max_length=MOST_REPORTS)]


def _read(data: bytes, limits: DocumentLimits) -> ReportsBody:
    """Raises `DocumentRefused` with the place of every number out of range."""
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
    _check_ranges(document, list(zip(paths, body.reports, strict=True)))
    return body


def _check_ranges(document: Document, states: Sequence[tuple[tuple[str | int, ...], RobotState]]) -> None:
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
        OperationDone(done) if isinstance(done, str) else OperationDone(done.robotId, done.operationId)
        for done in body.done
    ]


def _failed(body: ReportsBody) -> list[OperationFailed]:
    if isinstance(body.failed, dict):
        return [OperationFailed(robot_id, reason) for robot_id, reason in sorted(body.failed.items())]
    return [OperationFailed(failure.robotId, failure.reason, failure.operationId) for failure in body.failed]


def _remote(loop: FleetLoop) -> RemoteTrucks:
    if not isinstance(loop.trucks, RemoteTrucks):
        raise NotLive("This fleet has simulated trucks; create one with live=true for a gateway")
    return loop.trucks
