"""Intake of task events; invalid ones are refused with a code and change nothing."""

from collections.abc import Callable, Mapping, Sequence
from typing import assert_never

from msgspec import UNSET, UnsetType
from msgspec.structs import replace

from pendula.fleet.site.compiled_map import CompiledMap
from pendula.fleet.tasks.book import TaskBook
from pendula.fleet.tasks.model import (
    DispatchParams,
    GoodsReported,
    OperationDone,
    OperationFailed,
    PriorityChanged,
    RefusedEvent,
    RoomReported,
    StreamEnded,
    StreamSet,
    TaskEvent,
    TaskOrder,
    TaskStream,
    TaskSubmitted,
)
from pendula.kernel.canonical import Json
from pendula.kernel.engine import Refusal

# Each is checked when a truck is free, and is part of every checkpoint.
MOST_OPEN = 10_000
# Each is asked in every step for a new task.
MOST_STREAMS = 500


def stream_faults(site: CompiledMap, stream: TaskStream, params: DispatchParams) -> list[Refusal]:
    """What is wrong with a stream."""
    name = stream.stream_id
    missing = [node for node in (*stream.pick_node_ids, *stream.drop_node_ids) if node not in site.node_number]
    faults = [Refusal("MISSING_PICK_DROP_NODE", {"streamId": name, "nodeId": node}) for node in missing]
    both = [node for node in stream.drop_node_ids if node in stream.pick_node_ids]
    faults += [Refusal("PICK_IS_DROP", {"streamId": name, "nodeId": node}) for node in both]
    timeout_ms = params.operation_timeout_ms
    if max(stream.pick_ms, stream.drop_ms) >= timeout_ms:
        faults.append(Refusal("OPERATION_TOO_LONG", {"streamId": name, "timeoutMs": timeout_ms}))
    return faults


class Intake:
    """The events of one step. `operated`: trucks that have loaded or unloaded; `failed`: those that could not, and
    why."""

    def __init__(
        self,
        site: CompiledMap,
        book: TaskBook,
        robots: Mapping[str, int],
        params: DispatchParams,
        *,
        undoable: Callable[[TaskStream], list[Refusal]],
        under_way: Mapping[str, str],
    ) -> None:
        """`undoable`: why no truck can serve a stream; `under_way`: the operation id of each truck."""
        self._site = site
        self._book = book
        self._robots = robots
        self._params = params
        self._undoable = undoable
        self._under_way = under_way
        self.operated: set[str] = set()
        self.failed: dict[str, str] = {}
        self.refused: list[RefusedEvent] = []

    def take(self, events: Sequence[TaskEvent], now_ms: int) -> None:
        for event in events:
            wrong = self._take(event, now_ms)
            if wrong is not None:
                self.refused.append(RefusedEvent(event, wrong.code, wrong.facts))

    def _take(self, event: TaskEvent, now_ms: int) -> Refusal | None:
        match event:
            case GoodsReported(node, count):
                return self._count(self._book.stock.goods, node, count)
            case RoomReported(node, count):
                return self._count(self._book.stock.room, node, count)
            case TaskSubmitted(order):
                return self._submit(order, now_ms)
            case PriorityChanged(task_id, priority):
                return self._book.reprioritise(task_id, priority)
            case StreamSet(stream):
                return self._set(stream)
            case StreamEnded(stream_id):
                return self._end(stream_id, now_ms)
            case OperationDone(robot_id, operation_id):
                wrong = self._not_about(robot_id, operation_id)
                if wrong is None:
                    self.operated.add(robot_id)
                return wrong
            case OperationFailed(robot_id, reason, operation_id):
                wrong = self._not_about(robot_id, operation_id)
                if wrong is None:
                    self.failed[robot_id] = reason
                return wrong
            case _:
                assert_never(event)

    def _count(self, counts: dict[str, int], node: str, count: int) -> Refusal | None:
        if node not in self._site.node_number:
            return Refusal("MISSING_PICK_DROP_NODE", {"nodeId": node})
        if count < 0:
            return Refusal("COUNT_NEGATIVE", {"nodeId": node, "count": count})
        counts[node] = count
        return None

    def _submit(self, order: TaskOrder, now_ms: int) -> Refusal | None:
        name = order.task_id
        for node in (order.pick_node_id, order.drop_node_id):
            if node not in self._site.node_number:
                return Refusal("MISSING_PICK_DROP_NODE", {"taskId": name, "nodeId": node})
        if order.pick_node_id == order.drop_node_id:
            return Refusal("PICK_IS_DROP", {"taskId": name, "nodeId": order.pick_node_id})
        if self._book.find(name) is not None:
            return Refusal("TASK_KNOWN", {"taskId": name})
        if len(self._book.open) >= MOST_OPEN:
            return Refusal("TOO_MANY_TASKS", {"open": len(self._book.open), "allowed": MOST_OPEN})
        if order.stream_id is not None and self._book.flow(order) is None:
            return Refusal("STREAM_UNKNOWN", {"taskId": name, "streamId": order.stream_id})
        timeout_ms = self._params.operation_timeout_ms
        if max(order.pick_ms, order.drop_ms) >= timeout_ms:
            return Refusal("OPERATION_TOO_LONG", {"taskId": name, "timeoutMs": timeout_ms})
        unknown = [robot for robot in order.robot_ids if robot not in self._robots]
        if unknown:
            return Refusal("UNKNOWN_ROBOT", {"taskId": name, "robotId": unknown[0]})
        self._book.add(order, now_ms, "SUBMITTED")
        return None

    def _set(self, stream: TaskStream) -> Refusal | None:
        name, flows = stream.stream_id, self._book.flows
        if not stream.pick_node_ids or not stream.drop_node_ids:
            return Refusal("MISSING_PICK_DROP_NODE", {"streamId": name})
        faults = stream_faults(self._site, stream, self._params)
        if faults:
            return faults[0]
        unknown = [robot for robot in stream.robot_ids if robot not in self._robots]
        if unknown:
            return Refusal("UNKNOWN_ROBOT", {"streamId": name, "robotId": unknown[0]})
        if name not in flows and len(flows) >= MOST_STREAMS:
            return Refusal("TOO_MANY_STREAMS", {"streams": len(flows), "allowed": MOST_STREAMS})
        undoable = self._undoable(stream)
        if undoable:
            return undoable[0]
        self._book.set_stream(stream, len(self._robots))
        return None

    def _end(self, stream_id: str, now_ms: int) -> Refusal | None:
        flow = self._book.flows.get(stream_id)
        if flow is None:
            return Refusal("STREAM_UNKNOWN", {"streamId": stream_id})
        # Not in this tick either: the first tick has the time 0, and there is none before it.
        self._book.set_stream(replace(flow.stream, last_ms=now_ms - 1), len(self._robots))
        return None

    def _not_about(self, robot_id: str, operation_id: str | UnsetType) -> Refusal | None:
        """A repeated completion must not complete the next operation."""
        if robot_id not in self._robots:
            return Refusal("UNKNOWN_ROBOT", {"robotId": robot_id})
        now = self._under_way.get(robot_id)
        if operation_id is UNSET or operation_id == now:
            return None
        facts: dict[str, Json] = {"robotId": robot_id, "underWay": now, "operationId": operation_id}
        return Refusal("OPERATION_NOT_UNDER_WAY", facts)
