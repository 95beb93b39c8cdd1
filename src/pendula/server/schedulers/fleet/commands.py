"""What callers send to a fleet: operator actions, tasks, stock, simulated faults; reports of real trucks.

Each waits for the next tick, which answers it. The gateway of real trucks posts reports and fetches orders. Bodies have
the names of the contract.
"""

import secrets
from collections.abc import Awaitable, Callable, Sequence
from decimal import Decimal
from typing import Annotated, Any

from fastapi import APIRouter
from msgspec import UNSET, Meta, Struct, UnsetType, field
from msgspec.structs import asdict, replace
from starlette.requests import Request
from starlette.responses import Response

from pendula.documents import Document, DocumentLimits, DocumentRefused, Fault, Format, path_text, read_bytes
from pendula.fleet.contracts import AnchorPlace, OperatorAction, OperatorAnswer, RobotState, RollingTargetCommand
from pendula.fleet.engine import FleetEngine
from pendula.fleet.gateway import converted, faults_of
from pendula.fleet.map.reading import Number
from pendula.fleet.model import CONTRACT_VERSION, NAME_MOST, pick_is_drop
from pendula.fleet.scenarios.reading import read_drill
from pendula.fleet.simulator.truck import LONGEST_MS, FaultKind
from pendula.fleet.tasks import OperationDone, OperationFailed
from pendula.fleet.tasks.model import (
    Conditions,
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
from pendula.fleet.tasks.operators import LONGEST_EDGE_M, MOST_REASON, MOST_RESOURCES, anchor_problem, too_many
from pendula.fleet.tick.observing import TruckReport
from pendula.kernel import canonical
from pendula.kernel.wording import suggestion
from pendula.server.api.openapi import CHANGE_ERRORS, READ_ERRORS, TAKEN, answers, refusals, takes
from pendula.server.api.requests import Operator, Supervised, as_kind, read_body, read_body_with
from pendula.server.errors import HttpRefused, json_response
from pendula.server.schedulers.fleet.fleets import FLEET, FleetName, loop_of
from pendula.server.schedulers.fleet.loop import FleetLoop, FleetStopped
from pendula.server.schedulers.fleet.trucks import RemoteTrucks
from pendula.server.views import encode_view

# Limited because the journal stores all of it, and the last thousand answers are kept with their actions.
Name = Annotated[str, Meta(min_length=1, max_length=NAME_MOST)]
Resource = Annotated[str, Meta(min_length=1, max_length=300)]
Count = Annotated[int, Meta(ge=0, le=1_000_000_000)]


class AnchorBody(Struct, frozen=True, forbid_unknown_fields=True):
    """A position on a directed edge, `sM` metres from its start."""

    edgeKey: Annotated[str, Meta(min_length=1, max_length=300)]
    sM: Annotated[Any, Meta(extra_json_schema={"type": "number", "minimum": 0, "maximum": LONGEST_EDGE_M})]

    def __post_init__(self) -> None:
        # Numbers may be given as text, and text can be NaN.
        wrong = anchor_problem(AnchorPlace(self.edgeKey, self.sM))
        if wrong is not None:
            raise ValueError(wrong)


class ActionBody(Struct, frozen=True, forbid_unknown_fields=True):
    """An operator action (FLT-13.11). The operator comes from the token; with an `actionId` it may be repeated."""

    type: Name
    reason: Annotated[str, Meta(max_length=MOST_REASON)]
    actionId: Name | UnsetType = UNSET
    robotId: Name | UnsetType = UNSET
    taskId: Name | UnsetType = UNSET
    anchor: AnchorBody | UnsetType = UNSET
    resources: Annotated[tuple[Resource, ...], Meta(max_length=MOST_RESOURCES)] | UnsetType = UNSET
    physicallySecured: bool | UnsetType = UNSET
    confirmationOf: Name | UnsetType = UNSET
    force: bool | UnsetType = UNSET

    def __post_init__(self) -> None:
        excess = None if self.resources is UNSET else too_many(self.resources)
        if excess is not None:
            raise ValueError(excess)


Priority = Annotated[int, Meta(ge=-1000, le=1000)]
Duration = Annotated[int, Meta(ge=0, le=3_600_000)]


class TaskBody(Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    """A task; without an id it gets one. `streamId`: the stream whose conditions and limit apply."""

    pick_node_id: Name
    drop_node_id: Name
    task_id: Name | UnsetType = UNSET
    priority: Priority = 10
    robot_ids: Annotated[tuple[Name, ...], Meta(max_length=500)] = ()
    pick_ms: Duration = field(name="pickDurationMs", default=12_000)
    drop_ms: Duration = field(name="dropDurationMs", default=8_000)
    stream_id: Name | None = None

    def __post_init__(self) -> None:
        if self.pick_node_id == self.drop_node_id:
            raise ValueError(f"dropNodeId: {pick_is_drop('the task', self.drop_node_id)}")


Nodes = Annotated[tuple[Name, ...], Meta(min_length=1, max_length=500)]


class StreamBody(Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    """A stream of goods from some nodes to others, as in scenario files; after `lastMs`, a time of the fleet, it
    creates no task."""

    stream_id: Name
    pick_node_ids: Nodes
    drop_node_ids: Nodes
    pick_ms: Duration = field(name="pickDurationMs", default=12_000)
    drop_ms: Duration = field(name="dropDurationMs", default=8_000)
    priority: Priority = 10
    max_concurrent: Annotated[int, Meta(ge=1, le=10_000)] | None = None
    last_ms: Count | None = None
    robot_ids: Annotated[tuple[Name, ...], Meta(max_length=500)] = ()
    conditions: Conditions = Conditions()

    def __post_init__(self) -> None:
        both = next((node for node in self.drop_node_ids if node in self.pick_node_ids), None)
        if both is not None:
            raise ValueError(f"dropNodeIds: {pick_is_drop('the stream', both)}")


class StreamEndBody(Struct, frozen=True, forbid_unknown_fields=True):
    """The stream to end."""

    streamId: Name


class PriorityBody(Struct, frozen=True, forbid_unknown_fields=True):
    """The new priority of an open task; the highest is served first."""

    taskId: Name
    priority: Priority


class StockBody(Struct, frozen=True, forbid_unknown_fields=True):
    """The number of goods in a node, or of goods it has room for."""

    nodeId: Name
    goods: Count | None = None
    room: Count | None = None


class FaultBody(Struct, frozen=True, forbid_unknown_fields=True):
    """A fault of a simulated truck, starting now. docs/reference/fleet-scenarios.md lists the members of each type."""

    robotId: Name
    type: FaultKind
    forMs: Annotated[int, Meta(ge=1, le=LONGEST_MS)] | UnsetType = UNSET
    dxM: Number | UnsetType = UNSET
    dyM: Number | UnsetType = UNSET
    byM: Number | UnsetType = UNSET
    byMs: Annotated[int, Meta(ge=1, le=LONGEST_MS)] | UnsetType = UNSET


# Reports in one body.
MOST_REPORTS = 500
Trouble = Annotated[str, Meta(max_length=500)]
# The id of a task and the kind of operation.
OperationName = Annotated[str, Meta(min_length=1, max_length=300)]


class DoneBody(Struct, frozen=True, forbid_unknown_fields=True):
    """A completed operation; `operationId` is `operation_id` of the orders."""

    robotId: Name
    operationId: OperationName


class FailedBody(Struct, frozen=True, forbid_unknown_fields=True):
    """A failed operation."""

    robotId: Name
    operationId: OperationName
    reason: Trouble


class ReportsBody(Struct, frozen=True, forbid_unknown_fields=True):
    """Reports of trucks, in metres and radians. A single `RobotState`, or a list, is also a body. In `done` and
    `failed` the name of a truck alone means its operation in the orders fetched last."""

    reports: Annotated[tuple[RobotState, ...], Meta(max_length=MOST_REPORTS)] = ()
    done: Annotated[tuple[Name | DoneBody, ...], Meta(max_length=500)] = ()
    failed: (
        Annotated[tuple[FailedBody, ...], Meta(max_length=500)] | Annotated[dict[Name, Trouble], Meta(max_length=500)]
    ) = ()


class OperationView(Struct, frozen=True):
    """An operation of a truck in its current node; a repeated operation has a new `operation_id`."""

    robot_id: str
    kind: str
    node_id: str
    duration_ms: int
    operation_id: str


class OrdersView(Struct, frozen=True):
    """The newest command of each truck, and its operation."""

    tick: int
    now: int
    commands: list[RollingTargetCommand]
    operations: list[OperationView]


class TaskAccepted(Struct, frozen=True):
    task_id: str


router = APIRouter(tags=["fleet"])
Handler = Callable[..., Awaitable[None]]


def _takes(path: str, body: type, operation: str, *, json5: bool = False) -> Callable[[Handler], Handler]:
    """A route that accepts a body and answers with none."""
    return router.post(
        FLEET + path,
        status_code=204,
        response_class=Response,
        openapi_extra=takes(body, json5=json5),
        responses=TAKEN | refusals(CHANGE_ERRORS),
        operation_id=operation,
    )


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
    openapi_extra=takes(ActionBody),
    operation_id="fleet_act",
)
async def act(fleet: FleetName, request: Request, supervisor: Supervised, caller: Operator) -> Response:
    """Submit an operator action on a truck, a task or the fleet; the answer says whether it was accepted."""
    loop = loop_of(supervisor, fleet)
    body = await read_body(request, ActionBody)
    known = {
        "contractVersion": CONTRACT_VERSION,
        "actionId": f"op-{secrets.token_hex(8)}" if body.actionId is UNSET else body.actionId,
        "ts": loop.engine.now(),
        "operatorId": caller.name,
        "role": caller.role.value,
        "anchor": UNSET if body.anchor is UNSET else AnchorPlace(body.anchor.edgeKey, Decimal(body.anchor.sM)),
    }
    action = OperatorAction(**{**asdict(body), **known})
    return json_response(canonical.encode(await loop.act(action)))


@router.post(
    FLEET + "/tasks",
    status_code=201,
    responses=answers(TaskAccepted, CHANGE_ERRORS, 201),
    openapi_extra=takes(TaskBody),
    operation_id="fleet_task",
)
async def submit_task(fleet: FleetName, request: Request, supervisor: Supervised, _: Operator) -> Response:
    """Submit a task; the nearest truck does it. With a `taskId` the request may be repeated: the same task has the same
    answer, and keeps its current priority; a different task with that id is rejected."""
    loop = loop_of(supervisor, fleet)
    body = await read_body(request, TaskBody)
    task_id = f"T-{secrets.token_hex(6)}" if body.task_id is UNSET else body.task_id
    order = TaskOrder(**{**asdict(body), "task_id": task_id, "at_ms": loop.engine.now()})
    try:
        await _submit(loop, TaskSubmitted(order))
    except TaskRefused:
        # A repeated request, after a lost answer, succeeds.
        if not await loop.host.ask(lambda _: _is_known(loop.engine, order)):
            raise
    return json_response(encode_view(TaskAccepted(order.task_id)), 201)


@_takes("/priority", PriorityBody, "fleet_priority")
async def change_priority(fleet: FleetName, request: Request, supervisor: Supervised, _: Operator) -> None:
    """Change the priority of an open task; an assigned truck keeps it."""
    loop = loop_of(supervisor, fleet)
    body = await read_body(request, PriorityBody)
    await _submit(loop, PriorityChanged(body.taskId, body.priority))


@_takes("/streams", StreamBody, "fleet_set_stream")
async def set_stream(fleet: FleetName, request: Request, supervisor: Supervised, _: Operator) -> None:
    """Add or replace a stream; its open tasks continue. Repeating the request changes nothing."""
    loop = loop_of(supervisor, fleet)
    body = await read_body(request, StreamBody)
    await _submit(loop, StreamSet(TaskStream(**asdict(body))))


@_takes("/streams/end", StreamEndBody, "fleet_end_stream")
async def end_stream(fleet: FleetName, request: Request, supervisor: Supervised, _: Operator) -> None:
    """End a stream: it creates no more tasks; its open tasks continue."""
    loop = loop_of(supervisor, fleet)
    body = await read_body(request, StreamEndBody)
    await _submit(loop, StreamEnded(body.streamId))


@_takes("/stock", StockBody, "fleet_stock")
async def report_stock(fleet: FleetName, request: Request, supervisor: Supervised, _: Operator) -> None:
    """Counted goods or free places of a node; streams with conditions wait for them."""
    loop = loop_of(supervisor, fleet)
    body = await read_body(request, StockBody)
    if body.goods is not None:
        await _submit(loop, GoodsReported(body.nodeId, body.goods))
    if body.room is not None:
        await _submit(loop, RoomReported(body.nodeId, body.room))


@_takes("/faults", FaultBody, "fleet_fault")
async def cause_fault(fleet: FleetName, request: Request, supervisor: Supervised, _: Operator) -> None:
    """Simulate a fault of a simulated truck."""
    loop = loop_of(supervisor, fleet)
    robot_id, fault = await read_body_with(request, lambda data, limits: read_drill(read_bytes(data, limits=limits)))
    if robot_id not in loop.engine.traffic.robot_ids:
        near = suggestion(robot_id, tuple(loop.engine.traffic.robot_ids))
        raise UnknownRobot(f"There is no truck {robot_id!r}{near}", robotId=robot_id)
    loop.trucks.cause_fault(robot_id, fault)


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


class NotLive(HttpRefused):
    """The fleet has simulated trucks; a gateway needs a fleet created with `live=true`."""

    code = "not_live"
    status = 409


@_takes("/reports", ReportsBody, "fleet_report", json5=True)
async def receive_reports(fleet: FleetName, request: Request, supervisor: Supervised, _: Operator) -> None:
    """Post reports of trucks, in metres and radians: one report, a list, or reports and ended operations, as JSON or
    JSON5. The next tick applies them. With ended operations the answer waits until that tick is written, so that a
    crash does not start them again."""
    loop = loop_of(supervisor, fleet)
    trucks = _remote(loop)
    loop.require_running()
    body, reports = await read_body_with(request, _read)
    if body.done or body.failed:
        # Checked first: a rejected post is repeated, and must not count twice.
        loop.require_space()
    trucks.receive(reports, _done(body), _failed(body))
    if body.done or body.failed:
        await loop.wait_until_written()


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


def _read(data: bytes, limits: DocumentLimits) -> tuple[ReportsBody, list[TruckReport]]:
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
    return body, list(map(converted, body.reports))


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
