"""Locks: taken all at once or not at all, in one total order, without overtaking.

Every waiting action stands in the queues of all its locks, and of the resources it waits for. It starts when every lock
is free, what it needs is there, and it is first in every queue. All queues have the same order, (rank, admission
number), so the smallest waiting action is first everywhere: nobody waits in a circle, and nobody holds one lock while
waiting for another.
"""

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from enum import IntEnum
from heapq import heappop, heappush
from typing import Any, TypeAlias

from msgspec import Struct

from pendula.actions.model import ActionDef, Instance

# Queue keys are one integer: the rank of a preempting action above the admission number.
KEY_OF_RANK = 1 << 48

# The key and the action: keys are unique, so that comparing two entries never reaches the actions.
Entry: TypeAlias = "tuple[int, Action]"


class Stage(IntEnum):
    WAITING = 0
    RUNNING = 1
    HELD = 2  # interrupted, joins the queues again when its hold or its cause is over
    SUSPENDED = 3  # interrupted, until somebody resumes it
    OVER = 4


# Looking a member up in its class costs as much as the comparison it is for.
WAITING = Stage.WAITING


class Action(Struct, eq=False):
    """An admitted instance and where it stands. Times are minutes of the run."""

    instance: Instance
    plan: Any  # the Plan of its verb; not named here, because plans are made of locks
    admission: int
    key: int  # its place in every queue
    minutes: int
    remaining: int
    locks: "tuple[Lock, ...]"
    joined: int
    stage: Stage = WAITING
    segment: int = 0
    t_end: int = 0
    ending: int = -1  # the handle of its end in the queue of events, while it runs
    seen: bool = False  # by the player character
    meta: dict[str, Any] | None = None  # facts for the first start
    lines: "tuple[Lock, ...]" = ()  # queues of the resources it waits for; none where they are reserved
    cause: "Action | None" = None  # the action that interrupted it and holds it until it ends
    hold_min: int = 0  # minutes that the hold goes on after that

    @property
    def definition(self) -> ActionDef:
        found: ActionDef = self.plan.definition
        return found

    @property
    def priority(self) -> int:
        return priority_of(self.instance, self.plan.definition)


def priority_of(instance: Instance, definition: ActionDef) -> int:
    return definition.priority if instance.priority is None else instance.priority


def key_of(instance: Instance, definition: ActionDef, admission: int) -> int:
    """First come first; preempting ones before all others, the most important first."""
    return admission - KEY_OF_RANK * priority_of(instance, definition) if definition.preempts else admission


class Lock:
    """One lock: who holds it, and who waits, first come first.

    `holder` is not None when nobody else can have it. An exclusive lock has no `seats`; one with a greater capacity has
    all its holders there, by admission. Nearly everybody comes with a greater key than all before: they stand in
    `line`. `ahead` is a heap of those who come later and go before, preempting and resumed ones.
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
        """Everybody who has it, by admission."""
        if self.seats is not None:
            return [self.seats[admission] for admission in sorted(self.seats)]
        return [] if self.holder is None else [self.holder]

    def first(self) -> Action | None:
        """Who is first in the queue; those who left it are forgotten here, not searched for when they leave."""
        line, ahead = self.line, self.ahead
        while line and line[0][1].stage is not WAITING:
            line.popleft()
        while ahead and ahead[0][1].stage is not WAITING:
            heappop(ahead)
        if ahead and not (line and line[0][0] < ahead[0][0]):
            return ahead[0][1]
        return line[0][1] if line else None

    def leave(self, action: Action) -> None:
        """Who is first leaves the queue."""
        line = self.line
        if line and line[0][1] is action:
            line.popleft()
        else:
            heappop(self.ahead)

    def waiting(self) -> list[Action]:
        """Everybody in the queue, in its order."""
        return [action for _, action in sorted([*self.line, *self.ahead]) if action.stage is WAITING]


class LockTable:
    """All locks, made when they are first named."""

    def __init__(self, capacities: Mapping[str, int]) -> None:
        self.by_name: dict[str, Lock] = {}
        self._capacities = capacities

    def of(self, names: Iterable[str]) -> tuple[Lock, ...]:
        """The locks of these names, each once, in the global order (by code point)."""
        return tuple(self.by_name.get(name) or self._make(name) for name in sorted(set(names)))

    def _make(self, name: str) -> Lock:
        lock = self.by_name[name] = Lock(name, self._capacities.get(name, 1))
        return lock

    def rows(self) -> dict[str, dict[str, Any]]:
        """Every lock that was ever named: its holder and its queue."""
        return {name: _row(lock) for name, lock in sorted(self.by_name.items())}


def _row(lock: Lock) -> dict[str, Any]:
    """Of a lock with room for several, all holders and how many there may be."""
    queue = [action.instance.id for action in lock.waiting()]
    held = [action.instance.id for action in lock.holders()]
    if lock.seats is None:
        return {"held_by": held[0] if held else None, "queue": queue}
    return {"held_by": held, "queue": queue, "capacity": lock.capacity}


def join(action: Action, minute: int) -> bool:
    """Stand in all queues at once; tells whether all locks are free, so that its turn may have come."""
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
        # Mostly nobody left or pushed in; only then the head of the line may be taken for the first of the queue.
        if (lock.ahead or lock.line[0][1] is not action) and lock.first() is not action:
            return False
    return True


def is_first_everywhere(action: Action) -> bool:
    return all(lock.first() is action for lock in action.locks)


def in_the_way(action: Action, strength: Callable[[Action], Any]) -> list[Action]:
    """Who has to go for the action to start, each once, by admission: the holder of every exclusive lock it needs, and
    the weakest holder of every lock that is full, unless somebody goes who has a place there."""
    full = [lock for lock in action.locks if lock.holder is not None]
    found = {lock.holder.admission: lock.holder for lock in full if lock.seats is None and lock.holder is not None}
    for lock in full:
        if lock.seats is not None and found.keys().isdisjoint(lock.seats):
            weakest = min(lock.seats.values(), key=lambda one: (strength(one), -one.admission))
            found[weakest.admission] = weakest
    return [found[admission] for admission in sorted(found)]


def before(action: Action, lock: Lock) -> Iterator[Action]:
    """Who stands before the action in the queue of a lock."""
    for other in lock.waiting():
        if other is action:
            return
        yield other
