"""What is reported about tasks, taken in; what cannot be is refused with a code, and changes nothing."""

from collections.abc import Callable, Mapping, Sequence
from typing import assert_never

from msgspec import UNSET, UnsetType
from msgspec.structs import replace

from pendula.fleet.model import pick_is_drop
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

# Every one of them is looked at when a truck is free, and is part of every checkpoint.
MOST_OPEN = 10_000
# Every one of them is asked in every step whether it makes a task.
MOST_STREAMS = 500


def stream_faults(site: CompiledMap, stream: TaskStream, params: DispatchParams) -> list[tuple[str, str]]:
    """What is wrong with a stream: codes and sentences."""
    name = f"stream {stream.stream_id!r}"
    missing = [one for one in (*stream.pick_node_ids, *stream.drop_node_ids) if one not in site.node_number]
    found = [("MISSING_PICK_DROP_NODE", f"{name}: there is no node {one!r}") for one in missing]
    both = [one for one in stream.drop_node_ids if one in stream.pick_node_ids]
    found += [("PICK_IS_DROP", pick_is_drop(name, one)) for one in both]
    limit = params.operation_timeout_ms
    if max(stream.pick_ms, stream.drop_ms) >= limit:
        sentence = f"{name}: an operation takes as long as its timeout of {limit} ms, or longer"
        found.append(("OPERATION_TOO_LONG", sentence))
    return found


class Intake:
    """The events of one step. `under_way`: the operations that trucks are about; `operated`: trucks that have loaded or
    unloaded; `failed`: those that could not, and why."""

    def __init__(
        self,
        site: CompiledMap,
        book: TaskBook,
        robots: Mapping[str, int],
        params: DispatchParams,
        *,
        undoable: Callable[[TaskStream], list[str]],
        under_way: Mapping[str, str],
    ) -> None:
        """`undoable`: why no truck can serve a stream; `under_way`: the operation that each truck is about."""
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
                self.refused.append(RefusedEvent(event, *wrong))

    def _take(self, event: TaskEvent, now_ms: int) -> tuple[str, str] | None:
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

    def _count(self, counts: dict[str, int], node: str, count: int) -> tuple[str, str] | None:
        if node not in self._site.node_number:
            return "MISSING_PICK_DROP_NODE", f"there is no node {node!r}"
        if count < 0:
            return "COUNT_NEGATIVE", f"{node!r} cannot have {count} of anything"
        counts[node] = count
        return None

    def _submit(self, order: TaskOrder, now_ms: int) -> tuple[str, str] | None:
        for node in (order.pick_node_id, order.drop_node_id):
            if node not in self._site.node_number:
                return "MISSING_PICK_DROP_NODE", f"task {order.task_id!r}: there is no node {node!r}"
        if order.pick_node_id == order.drop_node_id:
            return "PICK_IS_DROP", pick_is_drop(f"task {order.task_id!r}", order.pick_node_id)
        if self._book.find(order.task_id) is not None:
            return "TASK_KNOWN", f"there is a task {order.task_id!r} already"
        if len(self._book.open) >= MOST_OPEN:
            return "TOO_MANY_TASKS", f"{len(self._book.open)} tasks are open, which is all that may be"
        if order.stream_id is not None and self._book.flow(order) is None:
            return "STREAM_UNKNOWN", f"task {order.task_id!r}: there is no stream {order.stream_id!r}"
        longest_ms = self._params.operation_timeout_ms
        if max(order.pick_ms, order.drop_ms) >= longest_ms:
            return "OPERATION_TOO_LONG", f"task {order.task_id!r}: an operation takes {longest_ms} ms or longer"
        unknown = [one for one in order.robot_ids if one not in self._robots]
        if unknown:
            return "UNKNOWN_ROBOT", f"task {order.task_id!r}: there is no truck {unknown[0]!r}"
        self._book.add(order, now_ms, "SUBMITTED")
        return None

    def _set(self, stream: TaskStream) -> tuple[str, str] | None:
        name, flows = f"stream {stream.stream_id!r}", self._book.flows
        if not stream.pick_node_ids or not stream.drop_node_ids:
            return "MISSING_PICK_DROP_NODE", f"{name} has no picks, or no drops"
        faults = stream_faults(self._site, stream, self._params)
        if faults:
            return faults[0]
        unknown = [one for one in stream.robot_ids if one not in self._robots]
        if unknown:
            return "UNKNOWN_ROBOT", f"{name}: there is no truck {unknown[0]!r}"
        if stream.stream_id not in flows and len(flows) >= MOST_STREAMS:
            return "TOO_MANY_STREAMS", f"there are {len(flows)} streams, which is all that may be"
        undoable = self._undoable(stream)
        if undoable:
            return "NOBODY_REACHES_IT", undoable[0]
        self._book.set_stream(stream, len(self._robots))
        return None

    def _end(self, stream_id: str, now_ms: int) -> tuple[str, str] | None:
        flow = self._book.flows.get(stream_id)
        if flow is None:
            return "STREAM_UNKNOWN", f"there is no stream {stream_id!r}"
        # The first tick has the time 0, and no time is before it: nothing is made in the tick that ends it either.
        self._book.set_stream(replace(flow.told, last_ms=now_ms - 1), len(self._robots))
        return None

    def _not_about(self, robot_id: str, operation_id: str | UnsetType) -> tuple[str, str] | None:
        """Whoever says twice that something is over does not end what came after it."""
        if robot_id not in self._robots:
            return "UNKNOWN_ROBOT", f"there is no truck {robot_id!r}"
        now = self._under_way.get(robot_id)
        if operation_id is UNSET or operation_id == now:
            return None
        about = f"{robot_id} neither loads nor unloads" if now is None else f"{robot_id} is about {now!r}"
        return "OPERATION_NOT_UNDER_WAY", f"{about}, not about {operation_id!r}" if operation_id else about
