"""What is reported about tasks, taken in; what cannot be is refused with a code, and changes nothing."""

from collections.abc import Container, Mapping, Sequence
from typing import assert_never

from msgspec import UNSET, UnsetType

from pendula.fleet.site.compiled_map import CompiledMap
from pendula.fleet.tasks.book import TaskBook
from pendula.fleet.tasks.model import (
    GoodsReported,
    OperationDone,
    OperationFailed,
    PriorityChanged,
    RefusedEvent,
    RoomReported,
    TaskEvent,
    TaskOrder,
    TaskSubmitted,
)

# Every one of them is looked at when a truck is free, and is part of every checkpoint.
MOST_OPEN = 10_000


class Intake:
    """The events of one step. `under_way`: the operations that trucks are about; `operated`: trucks that have loaded or
    unloaded; `failed`: those that could not, and why."""

    def __init__(
        self,
        site: CompiledMap,
        book: TaskBook,
        robots: Container[str],
        longest_ms: int,
        under_way: Mapping[str, str],
    ) -> None:
        self._site = site
        self._book = book
        self._robots = robots
        self._longest_ms = longest_ms
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
        if self._book.find(order.task_id) is not None:
            return "TASK_KNOWN", f"there is a task {order.task_id!r} already"
        if len(self._book.open) >= MOST_OPEN:
            return "TOO_MANY_TASKS", f"{len(self._book.open)} tasks are open, which is all that may be"
        if order.stream_id is not None and self._book.flow(order) is None:
            return "STREAM_UNKNOWN", f"task {order.task_id!r}: there is no stream {order.stream_id!r}"
        if max(order.pick_ms, order.drop_ms) >= self._longest_ms:
            return "OPERATION_TOO_LONG", f"task {order.task_id!r}: an operation takes {self._longest_ms} ms or longer"
        unknown = [one for one in order.robot_ids if one not in self._robots]
        if unknown:
            return "UNKNOWN_ROBOT", f"task {order.task_id!r}: there is no truck {unknown[0]!r}"
        self._book.add(order, now_ms, "SUBMITTED")
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
