"""Reported goods and room by node, and the tasks that claim them: the oldest claim is served first."""

from collections.abc import Iterable, Iterator, Set
from dataclasses import dataclass, field
from itertools import islice

from pendula.fleet.tasks.model import TaskOrder


class Claims:
    """Ids of tasks that claim what a node has, in order of arrival."""

    def __init__(self, task_ids: Iterable[str] = ()) -> None:
        self._ids = dict.fromkeys(task_ids)
        # Thousands of tasks ask this in every step, so the first ones are cached until claims or counts change.
        self._first: Set[str] = frozenset()
        self._counted: int | None = None

    def __len__(self) -> int:
        return len(self._ids)

    def __iter__(self) -> Iterator[str]:
        return iter(self._ids)

    def __contains__(self, task_id: object) -> bool:
        return task_id in self._ids

    def add(self, task_id: str) -> None:
        self._ids[task_id] = None
        self._counted = None

    def remove(self, task_id: str) -> None:
        del self._ids[task_id]
        self._counted = None

    def is_among_first(self, task_id: str, count: int) -> bool:
        if self._counted != count:
            self._first, self._counted = frozenset(islice(self._ids, count)), count
        return task_id in self._first


@dataclass(slots=True)
class Stock:
    """`goods` and `room` are counts of nodes; a node of which nothing was reported has none. `limits`: how
    many tasks at most may be under way to a node at a time."""

    goods: dict[str, int] = field(default_factory=dict)
    room: dict[str, int] = field(default_factory=dict)
    picks: dict[str, Claims] = field(default_factory=dict)
    drops: dict[str, Claims] = field(default_factory=dict)
    limits: dict[str, int] = field(default_factory=dict)

    def has_goods(self, node: str) -> bool:
        """Whether there are unclaimed goods."""
        return self.goods.get(node, 0) > len(self.picks.get(node, ()))

    def has_room(self, node: str) -> bool:
        return self.room.get(node, 0) > len(self.drops.get(node, ()))

    def has_goods_for(self, order: TaskOrder) -> bool:
        """Whether there are goods for a task and for all claims before it."""
        node = order.pick_node_id
        return self.picks[node].is_among_first(order.task_id, self.goods.get(node, 0))

    def has_room_for(self, order: TaskOrder) -> bool:
        node = order.drop_node_id
        return self.drops[node].is_among_first(order.task_id, self.room.get(node, 0))

    def claim(self, order: TaskOrder) -> None:
        self.picks.setdefault(order.pick_node_id, Claims()).add(order.task_id)
        self.drops.setdefault(order.drop_node_id, Claims()).add(order.task_id)

    def picked(self, order: TaskOrder) -> None:
        """The goods of a task were picked up and are no longer counted."""
        _taken(self.picks, self.goods, order.pick_node_id, order.task_id)

    def settle(self, order: TaskOrder, dropped: bool) -> None:
        """A task is over: its unused claims are free; if it was dropped, its room is used up."""
        claims = self.picks.get(order.pick_node_id)
        if claims is not None and order.task_id in claims:
            claims.remove(order.task_id)
        if dropped:
            _taken(self.drops, self.room, order.drop_node_id, order.task_id)
        else:
            self.drops[order.drop_node_id].remove(order.task_id)


def _taken(claims: dict[str, Claims], counts: dict[str, int], node: str, task_id: str) -> None:
    claims[node].remove(task_id)
    if node in counts:
        counts[node] = max(0, counts[node] - 1)
