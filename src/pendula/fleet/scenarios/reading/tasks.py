"""Reader of the streams, tasks, goods and dispatch parameters of a scenario."""

from pendula.documents import Cursor, Members
from pendula.fleet.reading.values import drop_of, name
from pendula.fleet.scenarios.model import ScenarioTaskEvent, StockKind
from pendula.fleet.tasks.model import Conditions, DispatchParams, TaskOrder, TaskStream

DISPATCH = ("patienceMs", "oppositionMilli", "oneWayMilli", "operationTimeoutMs", "overtakeMs", "nodeLimits")


def stream(at: Cursor) -> TaskStream:
    it = at.object(
        required=("streamId", "pickNodeIds", "dropNodeIds"),
        optional=("pickDurationMs", "dropDurationMs", "priority", "maxConcurrent", "lastMs", "robotIds", "conditions"),
    )
    stream_id, picks = name(it["streamId"]), it["pickNodeIds"].list_of(name, min=1)
    return TaskStream(
        stream_id=stream_id,
        pick_node_ids=picks,
        drop_node_ids=it["dropNodeIds"].list_of(lambda drop: drop_of(drop, picks, f"stream {stream_id!r}"), min=1),
        pick_ms=it["pickDurationMs"].integer(min=0, default=12_000),
        drop_ms=it["dropDurationMs"].integer(min=0, default=8_000),
        priority=it["priority"].integer(default=10),
        max_concurrent=it["maxConcurrent"].integer(min=1, default=None),
        last_ms=it["lastMs"].integer(min=0, default=None),
        robot_ids=it["robotIds"].list_of(name, min=1) if "robotIds" in it else (),
        conditions=_conditions(it["conditions"]),
    )


def _conditions(at: Cursor) -> Conditions:
    if not at.unless_null().given:
        return Conditions()
    it = at.object(optional=("pickHasGoods", "dropHasRoom"))
    return Conditions(it["pickHasGoods"].boolean(default=False), it["dropHasRoom"].boolean(default=False))


def task(at: Cursor) -> TaskOrder:
    it = at.object(
        required=("taskId", "pickNodeId", "dropNodeId"),
        optional=("atMs", "robotId", "pickDurationMs", "dropDurationMs", "priority", "streamId"),
    )
    task_id, pick = name(it["taskId"]), name(it["pickNodeId"])
    return TaskOrder(
        task_id=task_id,
        pick_node_id=pick,
        drop_node_id=drop_of(it["dropNodeId"], (pick,), f"task {task_id!r}"),
        at_ms=it["atMs"].integer(min=0, default=0),
        robot_ids=(name(it["robotId"]),) if "robotId" in it else (),
        pick_ms=it["pickDurationMs"].integer(min=0, default=12_000),
        drop_ms=it["dropDurationMs"].integer(min=0, default=8_000),
        priority=it["priority"].integer(default=10),
        stream_id=it["streamId"].text(min=1, default=None),
    )


def task_event(at: Cursor) -> ScenarioTaskEvent:
    it = at.object(required=("atMs", "type", "nodeId", "count"))
    return ScenarioTaskEvent(
        at_ms=it["atMs"].integer(min=0),
        type=it["type"].choice(StockKind),
        node_id=name(it["nodeId"]),
        count=it["count"].integer(min=0),
    )


def dispatch(it: Members) -> DispatchParams:
    usual = DispatchParams()
    return DispatchParams(
        patience_ms=it["patienceMs"].integer(min=0, default=usual.patience_ms),
        opposition_milli=it["oppositionMilli"].integer(min=0, default=usual.opposition_milli),
        one_way_milli=it["oneWayMilli"].integer(min=0, default=usual.one_way_milli),
        operation_timeout_ms=it["operationTimeoutMs"].integer(min=1, default=usual.operation_timeout_ms),
        overtake_ms=it["overtakeMs"].integer(min=0, default=usual.overtake_ms),
        node_limits=dict(it["nodeLimits"].list_of(_limit, default=())),
    )


def _limit(at: Cursor) -> tuple[str, int]:
    it = at.object(required=("nodeId", "atMost"))
    return name(it["nodeId"]), it["atMost"].integer(min=1)
