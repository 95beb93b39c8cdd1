"""Locks: acquired all at once or not at all, in one total order, without overtaking.

A waiting action is in the queues of all its locks, and of the resources it waits for. It starts when every lock is
free, its resources are available, and it is first in every queue. All queues have the same order, (rank, admission
number), so the smallest waiting action is first everywhere: there is no deadlock and no hold-and-wait.
"""

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from enum import IntEnum
from heapq import heappop, heappush
from typing import Any, TypeAlias

from msgspec import Struct

from pendula.actions.model import ActionDef, Instance

# A queue key is one integer: rank of a preempting action * RANK_STRIDE + admission number.
RANK_STRIDE = 1 << 48

# The key and the action: keys are unique, so that comparing two entries never reaches the actions.
Entry: TypeAlias = "tuple[int, Action]"


class Stage(IntEnum):
    WAITING = 0
    RUNNING = 1
    HELD = 2  # interrupted; joins the queues again after its hold
    SUSPENDED = 3  # interrupted, until it is resumed
    OVER = 4


# A module constant: the enum lookup costs as much as the comparison.
WAITING = Stage.WAITING


class Action(Struct, eq=False):
    """An admitted instance. Times are minutes of the run."""

    instance: Instance
    plan: Any  # the Plan of its verb; untyped, because plans import locks
    admission: int
    key: int  # its place in every queue
    minutes: int
    remaining: int
    locks: "tuple[Lock, ...]"
    joined: int
    stage: Stage = WAITING
    segment: int = 0
    t_end: int = 0
    ending: int = -1  # the handle of its end in the event queue, while it runs
    seen: bool = False  # by the player character
    meta: dict[str, Any] | None = None  # facts for the first start
    lines: "tuple[Lock, ...]" = ()  # queues of the resources it waits for; empty once they are reserved
    cause: "Action | None" = None  # the preempting action that holds it until it ends
    hold_min: int = 0  # minutes that the hold continues after that

    @property
    def definition(self) -> ActionDef:
        definition: ActionDef = self.plan.definition
        return definition

    @property
    def priority(self) -> int:
        return priority_of(self.instance, self.plan.definition)


def priority_of(instance: Instance, definition: ActionDef) -> int:
    return definition.priority if instance.priority is None else instance.priority


def key_of(instance: Instance, definition: ActionDef, admission: int) -> int:
    """By descending priority if the verb preempts, else as with priority 0; then by admission (ACT-LOCK-3)."""
    return admission - RANK_STRIDE * priority_of(instance, definition) if definition.preempts else admission


class Lock:
    """One lock with its holders and its queue.

    `holder` is None while a place is free. An exclusive lock has no `seats`; a lock with a greater capacity has its
    holders there, by admission. Nearly every key is greater than all before and goes into `line`; `ahead` is a heap of
    the others, of preempting and resumed actions.
    """

    __slots__ = ("ahead", "capacity", "holder", "line", "name", "seats")

    def __init__(self, name: str, capacity: int = 1) -> None:
        self.name = name
        self.capacity = capacity
        self.holder: Action | None = None
        self.seats: dict[int, Action] | None = None if capacity == 1 else {}
        self.line: deque[Entry] = deque()
        self.ahead: list[Entry] = []

    def take(self, action: Action) -> None:
        if self.seats is None:
            self.holder = action
            return
        self.seats[action.admission] = action
        self.holder = action if len(self.seats) >= self.capacity else None

    def release(self, action: Action) -> None:
        self.holder = None
        if self.seats is not None:
            del self.seats[action.admission]

    def is_held_by(self, action: Action) -> bool:
        return self.holder is action if self.seats is None else action.admission in self.seats

    def holders(self) -> list[Action]:
        """The holders, by admission."""
        if self.seats is not None:
            return [self.seats[admission] for admission in sorted(self.seats)]
        return [] if self.holder is None else [self.holder]

    def first(self) -> Action | None:
        """The first action in the queue. Actions that left are removed here, lazily."""
        line, ahead = self.line, self.ahead
        while line and line[0][1].stage is not WAITING:
            line.popleft()
        while ahead and ahead[0][1].stage is not WAITING:
            heappop(ahead)
        if ahead and not (line and line[0][0] < ahead[0][0]):
            return ahead[0][1]
        return line[0][1] if line else None

    def remove_first(self, action: Action) -> None:
        """Remove the action, which is first, from the queue."""
        line = self.line
        if line and line[0][1] is action:
            line.popleft()
        else:
            heappop(self.ahead)

    def waiting(self) -> list[Action]:
        """The queue in its order."""
        return [action for _, action in sorted([*self.line, *self.ahead]) if action.stage is WAITING]


class LockTable:
    """All locks, created when first named."""

    def __init__(self, capacities: Mapping[str, int]) -> None:
        self.by_name: dict[str, Lock] = {}
        self._capacities = capacities

    def of(self, names: Iterable[str]) -> tuple[Lock, ...]:
        """The locks of these names, each once, in the global order, by code point."""
        return tuple(self.by_name.get(name) or self._make(name) for name in sorted(set(names)))

    def _make(self, name: str) -> Lock:
        lock = self.by_name[name] = Lock(name, self._capacities.get(name, 1))
        return lock

    def rows(self) -> dict[str, dict[str, Any]]:
        """Holder and queue of every lock, by name."""
        return {name: _row(lock) for name, lock in sorted(self.by_name.items())}


def _row(lock: Lock) -> dict[str, Any]:
    """One lock; with a capacity above 1 `held_by` is a list."""
    queue = [action.instance.id for action in lock.waiting()]
    held = [action.instance.id for action in lock.holders()]
    if lock.seats is None:
        return {"held_by": held[0] if held else None, "queue": queue}
    return {"held_by": held, "queue": queue, "capacity": lock.capacity}


def join(action: Action, minute: int) -> bool:
    """Join all queues; True if all locks are free, so that the action may start."""
    action.stage = WAITING
    action.joined = minute
    entry = (action.key, action)
    are_free = True
    for lock in (*action.locks, *action.lines) if action.lines else action.locks:
        line = lock.line
        if line and entry[0] < line[-1][0]:
            heappush(lock.ahead, entry)
        else:
            line.append(entry)
        if lock.holder is not None:
            are_free = False
    return are_free


def can_start(action: Action) -> bool:
    """Whether every lock is free and the action is first in every queue."""
    for lock in (*action.locks, *action.lines) if action.lines else action.locks:
        if lock.holder is not None:
            return False
        # Fast path: with an empty `ahead`, the head of the line is the first of the queue.
        if (lock.ahead or lock.line[0][1] is not action) and lock.first() is not action:
            return False
    return True


def is_first_everywhere(action: Action) -> bool:
    return all(lock.first() is action for lock in action.locks)


def blocking_holders(action: Action, strength: Callable[[Action], Any]) -> list[Action]:
    """The holders that must yield for the action to start, each once, by admission: the holder of each exclusive lock,
    and the weakest holder of each full lock, unless one of its holders already must yield."""
    full = [lock for lock in action.locks if lock.holder is not None]
    victims = {lock.holder.admission: lock.holder for lock in full if lock.seats is None and lock.holder is not None}
    for lock in full:
        if lock.seats is not None and victims.keys().isdisjoint(lock.seats):
            weakest = min(lock.seats.values(), key=lambda holder: (strength(holder), -holder.admission))
            victims[weakest.admission] = weakest
    return [victims[admission] for admission in sorted(victims)]


def queued_before(action: Action, lock: Lock) -> Iterator[Action]:
    """The actions before this one in the queue of a lock."""
    for other in lock.waiting():
        if other is action:
            return
        yield other
