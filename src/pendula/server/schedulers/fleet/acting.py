"""Commands to a fleet over HTTP: operator actions, tasks, stock, and simulated faults.

Each waits for the next tick, which answers it.
"""

import secrets
from collections.abc import Sequence
from decimal import Decimal

from fastapi import APIRouter
from msgspec import UNSET
from msgspec.structs import replace
from starlette.requests import Request
from starlette.responses import Response

from pendula.documents import read_bytes
from pendula.fleet.contracts import AnchorPlace, OperatorAction, OperatorAnswer
from pendula.fleet.engine import FleetEngine
from pendula.fleet.model import CONTRACT_VERSION
from pendula.fleet.scenarios.reading import read_drill
from pendula.fleet.tasks.model import (
    GoodsReported,
    PriorityChanged,
    RoomReported,
    StreamEnded,
    StreamSet,
    TaskEvent,
    TaskOrder,
    TaskStream,
    TaskSubmitted,
)
from pendula.kernel import canonical
from pendula.kernel.wording import suggestion
from pendula.server.api.openapi import CHANGE_ERRORS, TAKEN, answers, refusals, takes
from pendula.server.api.requests import Operator, Supervised, read_body, read_body_with
from pendula.server.errors import HttpRefused, json_response
from pendula.server.schedulers.fleet.bodies import (
    ActionBody,
    PriorityBody,
    StockBody,
    StreamBody,
    StreamEndBody,
    TaskAccepted,
    TaskBody,
)
from pendula.server.schedulers.fleet.fleets import FLEET, FleetName, loop_of
from pendula.server.schedulers.fleet.life.loop import FleetLoop
from pendula.server.views import encode_view

router = APIRouter(tags=["fleet"])


class TaskRefused(HttpRefused):
    """A request about a task or a node was rejected. Facts: `reason`, a code of the contract."""

    code = "task_refused"
    status = 409


class UnknownRobot(HttpRefused):
    """The fleet has no truck of this name. Facts: `robotId`."""

    code = "unknown_robot"
    status = 409


@router.post(
    FLEET + "/actions",
    responses=answers(OperatorAnswer, CHANGE_ERRORS),
    openapi_extra=takes("ActionBody"),
    operation_id="fleet_act",
)
async def act(fleet: FleetName, request: Request, supervisor: Supervised, caller: Operator) -> Response:
    """Submit an operator action on a truck, a task or the fleet; the answer says whether it was accepted."""
    loop = loop_of(supervisor, fleet)
    body = await read_body(request, ActionBody)
    action = OperatorAction(
        contractVersion=CONTRACT_VERSION,
        actionId=f"op-{secrets.token_hex(8)}" if body.actionId is UNSET else body.actionId,
        ts=loop.engine.now(),
        operatorId=caller.name,
        type=body.type,
        reason=body.reason,
        robotId=body.robotId,
        taskId=body.taskId,
        anchor=UNSET if body.anchor is UNSET else AnchorPlace(body.anchor.edgeKey, Decimal(body.anchor.sM)),
        resources=body.resources,
        physicallySecured=body.physicallySecured,
        confirmationOf=body.confirmationOf,
        force=body.force,
        role=caller.role.value,
    )
    return json_response(canonical.encode(await loop.act(action)))


@router.post(
    FLEET + "/tasks",
    status_code=201,
    responses=answers(TaskAccepted, CHANGE_ERRORS, 201),
    openapi_extra=takes("TaskBody"),
    operation_id="fleet_task",
)
async def submit_task(fleet: FleetName, request: Request, supervisor: Supervised, _: Operator) -> Response:
    """Submit a task; the nearest truck does it. With a `taskId` the request may be repeated: the same task has the same
    answer, and keeps its current priority; a different task with that id is rejected."""
    loop = loop_of(supervisor, fleet)
    body = await read_body(request, TaskBody)
    order = TaskOrder(
        task_id=f"T-{secrets.token_hex(6)}" if body.taskId is UNSET else body.taskId,
        pick_node_id=body.pickNodeId,
        drop_node_id=body.dropNodeId,
        at_ms=loop.engine.now(),
        robot_ids=body.robotIds,
        pick_ms=body.pickDurationMs,
        drop_ms=body.dropDurationMs,
        priority=body.priority,
        stream_id=body.streamId,
    )
    try:
        await _submit(loop, TaskSubmitted(order))
    except TaskRefused:
        # A repeated request, after a lost answer, succeeds.
        if not await loop.host.ask(lambda _: _is_known(loop.engine, order)):
            raise
    return json_response(encode_view(TaskAccepted(order.task_id)), 201)


@router.post(
    FLEET + "/priority",
    status_code=204,
    response_class=Response,
    openapi_extra=takes("PriorityBody"),
    responses=TAKEN | refusals(CHANGE_ERRORS),
    operation_id="fleet_priority",
)
async def change_priority(fleet: FleetName, request: Request, supervisor: Supervised, _: Operator) -> Response:
    """Change the priority of an open task; an assigned truck keeps it."""
    loop = loop_of(supervisor, fleet)
    body = await read_body(request, PriorityBody)
    await _submit(loop, PriorityChanged(body.taskId, body.priority))
    return Response(status_code=204)


@router.post(
    FLEET + "/streams",
    status_code=204,
    response_class=Response,
    openapi_extra=takes("StreamBody"),
    responses=TAKEN | refusals(CHANGE_ERRORS),
    operation_id="fleet_set_stream",
)
async def set_stream(fleet: FleetName, request: Request, supervisor: Supervised, _: Operator) -> Response:
    """Add or replace a stream; its open tasks continue. Repeating the request changes nothing."""
    loop = loop_of(supervisor, fleet)
    body = await read_body(request, StreamBody)
    stream = TaskStream(
        stream_id=body.streamId,
        pick_node_ids=body.pickNodeIds,
        drop_node_ids=body.dropNodeIds,
        pick_ms=body.pickDurationMs,
        drop_ms=body.dropDurationMs,
        priority=body.priority,
        max_concurrent=body.maxConcurrent,
        last_ms=body.lastMs,
        robot_ids=body.robotIds,
        conditions=body.conditions,
    )
    await _submit(loop, StreamSet(stream))
    return Response(status_code=204)


@router.post(
    FLEET + "/streams/end",
    status_code=204,
    response_class=Response,
    openapi_extra=takes("StreamEndBody"),
    responses=TAKEN | refusals(CHANGE_ERRORS),
    operation_id="fleet_end_stream",
)
async def end_stream(fleet: FleetName, request: Request, supervisor: Supervised, _: Operator) -> Response:
    """End a stream: it creates no more tasks; its open tasks continue."""
    loop = loop_of(supervisor, fleet)
    body = await read_body(request, StreamEndBody)
    await _submit(loop, StreamEnded(body.streamId))
    return Response(status_code=204)


@router.post(
    FLEET + "/stock",
    status_code=204,
    response_class=Response,
    openapi_extra=takes("StockBody"),
    responses=TAKEN | refusals(CHANGE_ERRORS),
    operation_id="fleet_stock",
)
async def report_stock(fleet: FleetName, request: Request, supervisor: Supervised, _: Operator) -> Response:
    """Counted goods or free places of a node; streams with conditions wait for them."""
    loop = loop_of(supervisor, fleet)
    body = await read_body(request, StockBody)
    if body.goods is not None:
        await _submit(loop, GoodsReported(body.nodeId, body.goods))
    if body.room is not None:
        await _submit(loop, RoomReported(body.nodeId, body.room))
    return Response(status_code=204)


@router.post(
    FLEET + "/faults",
    status_code=204,
    response_class=Response,
    openapi_extra=takes("FaultBody"),
    responses=TAKEN | refusals(CHANGE_ERRORS),
    operation_id="fleet_fault",
)
async def cause_fault(fleet: FleetName, request: Request, supervisor: Supervised, _: Operator) -> Response:
    """Simulate a fault of a simulated truck."""
    loop = loop_of(supervisor, fleet)
    robot_id, fault = await read_body_with(request, lambda data, limits: read_drill(read_bytes(data, limits=limits)))
    if robot_id not in loop.engine.traffic.robot_ids:
        near = suggestion(robot_id, tuple(loop.engine.traffic.robot_ids))
        raise UnknownRobot(f"There is no truck {robot_id!r}{near}", robotId=robot_id)
    loop.trucks.cause_fault(robot_id, fault)
    return Response(status_code=204)


async def _submit(loop: FleetLoop, event: TaskEvent) -> None:
    refused = await loop.report_task_event(event)
    if refused is not None:
        near = _suggest(loop.engine, event, refused.code)
        raise TaskRefused(f"Nothing was changed: {refused.message}{near}", reason=refused.code)


def _suggest(engine: FleetEngine, event: TaskEvent, code: str) -> str:
    """A similar name for an unknown node, stream or truck."""
    nodes, robots = engine.site.node_number, engine.traffic.robot_ids
    match code, event:
        case "MISSING_PICK_DROP_NODE", TaskSubmitted(order=order):
            unknown = [name for name in (order.pick_node_id, order.drop_node_id) if name not in nodes]
        case "MISSING_PICK_DROP_NODE", GoodsReported(node_id=node) | RoomReported(node_id=node):
            unknown = [node]
        case "MISSING_PICK_DROP_NODE", StreamSet(stream=stream):
            unknown = [name for name in (*stream.pick_node_ids, *stream.drop_node_ids) if name not in nodes]
        case "STREAM_UNKNOWN", StreamEnded(stream_id=stream_id):
            return _near([stream_id], tuple(engine.dispatch.book.flows))
        case "UNKNOWN_ROBOT", TaskSubmitted(order=order):
            return _near([name for name in order.robot_ids if name not in robots], tuple(robots))
        case "UNKNOWN_ROBOT", StreamSet(stream=stream):
            return _near([name for name in stream.robot_ids if name not in robots], tuple(robots))
        case _:
            return ""
    return _near(unknown, tuple(nodes))


def _near(unknown: Sequence[str], known: Sequence[str]) -> str:
    return suggestion(unknown[0], known) if unknown else ""


def _is_known(engine: FleetEngine, order: TaskOrder) -> bool:
    """Whether the fleet has, or recently had, this task. Its priority may have changed, so that is not compared."""
    task = engine.dispatch.book.find(order.task_id)
    return task is not None and replace(task.order, at_ms=order.at_ms, priority=order.priority) == order
