"""Goods and room as they were reported, node by node, and who claims them: the oldest claim is the first served."""

from dataclasses import dataclass, field

from pendula.fleet.tasks.model import TaskOrder


@dataclass(slots=True)
class Stock:
    """`goods` and `room` are counts of nodes; a node of which nothing was reported has none. Claims are ids of tasks in
    the order in which they came. `limits`: how many tasks at most may be under way to a node at a time."""

    goods: dict[str, int] = field(default_factory=dict)
    room: dict[str, int] = field(default_factory=dict)
    picks: dict[str, list[str]] = field(default_factory=dict)
    drops: dict[str, list[str]] = field(default_factory=dict)
    limits: dict[str, int] = field(default_factory=dict)

    def has_goods(self, node: str) -> bool:
        """Whether there are goods that nobody claimed."""
        return self.goods.get(node, 0) > len(self.picks.get(node, ()))

    def has_room(self, node: str) -> bool:
        return self.room.get(node, 0) > len(self.drops.get(node, ()))

    def has_goods_for(self, order: TaskOrder) -> bool:
        """Whether there are goods for a task that claimed them: for it and for all that were before it."""
        return self.goods.get(order.pick_node_id, 0) > self.picks[order.pick_node_id].index(order.task_id)

    def has_room_for(self, order: TaskOrder) -> bool:
        return self.room.get(order.drop_node_id, 0) > self.drops[order.drop_node_id].index(order.task_id)

    def claim(self, order: TaskOrder) -> None:
        self.picks.setdefault(order.pick_node_id, []).append(order.task_id)
        self.drops.setdefault(order.drop_node_id, []).append(order.task_id)

    def picked(self, order: TaskOrder) -> None:
        """The goods are gone: what was claimed is no longer there to be counted."""
        _taken(self.picks, self.goods, order.pick_node_id, order.task_id)

    def settle(self, order: TaskOrder, dropped: bool) -> None:
        """A task is over: what it claimed and did not use is free again; where it was dropped, its room is full."""
        claims = self.picks.get(order.pick_node_id, [])
        if order.task_id in claims:
            claims.remove(order.task_id)
        if dropped:
            _taken(self.drops, self.room, order.drop_node_id, order.task_id)
        else:
            self.drops[order.drop_node_id].remove(order.task_id)


def _taken(claims: dict[str, list[str]], counts: dict[str, int], node: str, task_id: str) -> None:
    claims[node].remove(task_id)
    if node in counts:
        counts[node] = max(0, counts[node] - 1)
