"""Reader of the streams, tasks, goods and dispatch parameters of a scenario."""

from pendula.documents import Cursor, Members
from pendula.fleet.reading.values import drop_of, name
from pendula.fleet.scenarios.model import ScenarioTaskEvent, StockKind
from pendula.fleet.tasks.model import Conditions, DispatchParams, TaskOrder, TaskStream

DISPATCH = ("patienceMs", "oppositionMilli", "oneWayMilli", "operationTimeoutMs", "overtakeMs", "nodeLimits")


def stream(at: Cursor) -> TaskStream:
    members = at.object(
        required=("streamId", "pickNodeIds", "dropNodeIds"),
        optional=("pickDurationMs", "dropDurationMs", "priority", "maxConcurrent", "lastMs", "robotIds", "conditions"),
    )
    stream_id, picks = name(members["streamId"]), members["pickNodeIds"].list_of(name, min=1)
    return TaskStream(
        stream_id=stream_id,
        pick_node_ids=picks,
        drop_node_ids=members["dropNodeIds"].list_of(lambda drop: drop_of(drop, picks, f"stream {stream_id!r}"), min=1),
        pick_ms=members["pickDurationMs"].integer(min=0, default=12_000),
        drop_ms=members["dropDurationMs"].integer(min=0, default=8_000),
        priority=members["priority"].integer(default=10),
        max_concurrent=members["maxConcurrent"].integer(min=1, default=None),
        last_ms=members["lastMs"].integer(min=0, default=None),
        robot_ids=members["robotIds"].list_of(name, min=1) if "robotIds" in members else (),
        conditions=_conditions(members["conditions"]),
    )


def _conditions(at: Cursor) -> Conditions:
    if not at.unless_null().given:
        return Conditions()
    members = at.object(optional=("pickHasGoods", "dropHasRoom"))
    return Conditions(members["pickHasGoods"].boolean(default=False), members["dropHasRoom"].boolean(default=False))


def task(at: Cursor) -> TaskOrder:
    members = at.object(
        required=("taskId", "pickNodeId", "dropNodeId"),
        optional=("atMs", "robotId", "pickDurationMs", "dropDurationMs", "priority", "streamId"),
    )
    task_id, pick = name(members["taskId"]), name(members["pickNodeId"])
    return TaskOrder(
        task_id=task_id,
        pick_node_id=pick,
        drop_node_id=drop_of(members["dropNodeId"], (pick,), f"task {task_id!r}"),
        at_ms=members["atMs"].integer(min=0, default=0),
        robot_ids=(name(members["robotId"]),) if "robotId" in members else (),
        pick_ms=members["pickDurationMs"].integer(min=0, default=12_000),
        drop_ms=members["dropDurationMs"].integer(min=0, default=8_000),
        priority=members["priority"].integer(default=10),
        stream_id=members["streamId"].text(min=1, default=None),
    )


def task_event(at: Cursor) -> ScenarioTaskEvent:
    members = at.object(required=("atMs", "type", "nodeId", "count"))
    return ScenarioTaskEvent(
        at_ms=members["atMs"].integer(min=0),
        type=members["type"].choice(StockKind),
        node_id=name(members["nodeId"]),
        count=members["count"].integer(min=0),
    )


def dispatch(members: Members) -> DispatchParams:
    usual = DispatchParams()
    return DispatchParams(
        patience_ms=members["patienceMs"].integer(min=0, default=usual.patience_ms),
        opposition_milli=members["oppositionMilli"].integer(min=0, default=usual.opposition_milli),
        one_way_milli=members["oneWayMilli"].integer(min=0, default=usual.one_way_milli),
        operation_timeout_ms=members["operationTimeoutMs"].integer(min=1, default=usual.operation_timeout_ms),
        overtake_ms=members["overtakeMs"].integer(min=0, default=usual.overtake_ms),
        node_limits=dict(members["nodeLimits"].list_of(_limit, default=())),
    )


def _limit(at: Cursor) -> tuple[str, int]:
    members = at.object(required=("nodeId", "atMost"))
    return name(members["nodeId"]), members["atMost"].integer(min=1)
