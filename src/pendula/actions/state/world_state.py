"""All that a world is: who does what, who waits, what there is, what is still to come. It decides nothing.

Only the engine, the functions of `pendula.actions.minute` and a restore change it; everybody else looks.
"""

from collections.abc import Iterable
from operator import attrgetter
from typing import Any

from pendula.actions.configuration import Setting
from pendula.actions.events import EpochBegan
from pendula.actions.model import Instance, KnowledgeItem
from pendula.actions.rules.locks import Action, LockTable, Stage
from pendula.actions.rules.validation import FOLLOW_UPS, INSTANCES
from pendula.actions.state.clock import Clock
from pendula.actions.state.event_writer import EventWriter
from pendula.actions.state.plans import Plans
from pendula.actions.state.ranks import REQUESTED
from pendula.kernel.canonical import Json
from pendula.kernel.engine import Outside
from pendula.kernel.queue import BucketQueue, EventQueue, HeapQueue

by_admission = attrgetter("admission")


class WorldState:
    """A world between two commands, and while one is carried out. Times are minutes of the run."""

    __slots__ = (
        "actions",
        "candidates",
        "clock",
        "extras",
        "following",
        "full_at",
        "has_hook",
        "has_pc",
        "in_order",
        "is_exclusive",
        "knowledge",
        "locks",
        "most_following",
        "next_admission",
        "outside",
        "plan_of",
        "plans",
        "queue",
        "reported",
        "resources",
        "setting",
        "skilled",
        "started",
        "used_ids",
        "writer",
    )

    def __init__(self, setting: Setting, outside: Outside) -> None:
        self.setting = setting
        self.outside = outside
        self.clock = Clock(setting.horizon)
        self.writer = EventWriter(setting, self.clock)
        self.locks = LockTable()
        self.plans = Plans(setting, self.locks)
        self.resources = setting.resources()
        self.knowledge: dict[str, KnowledgeItem] = setting.knowledge()
        self.actions: dict[str, Action] = {}
        self.used_ids: set[str] = set()
        self.queue: EventQueue[Any] = BucketQueue() if setting.options.queue == "buckets" else HeapQueue()
        self.next_admission = 0
        self.full_at = setting.allowed(INSTANCES)  # no more admissions than this in the present epoch
        self.extras: dict[str, dict[str, Json]] = {}  # fields nobody knows, until the first start tells of them
        self.reported: set[str] = set()  # names of such fields
        # Looked up once, because every admission asks.
        self.plan_of = self.plans.get
        self.skilled = setting.durations.skilled
        self.has_hook = setting.options.follow_ups
        self.has_pc = setting.circle.pc is not None
        self.is_exclusive = setting.options.actor_exclusive
        self.most_following = setting.allowed(FOLLOW_UPS)
        # Without preempting verbs admissions come in the order of the queues: who can start may start at once.
        self.in_order = not setting.has_preempting
        # Of the minute that is lived through: whose turn it may be, what follows, who started.
        self.candidates: list[tuple[int, Action]] = []
        self.following: list[Instance] = []
        self.started: list[Action] = []

    def running(self) -> list[Action]:
        """Who runs, by admission."""
        return sorted((action for action in self.actions.values() if action.stage is Stage.RUNNING), key=by_admission)

    def header(self) -> EpochBegan:
        """What the chunk of the present epoch begins with: who runs on from before."""
        return self.writer.header(self.running())

    def next_due(self) -> int | None:
        """The earliest minute up to which something would happen."""
        entry = self.queue.peek()
        if entry is None:
            return None
        if entry[0] == self.clock.boundary and entry[1] >= REQUESTED:
            # No end: it happens in the second half of the minute, which is of the next epoch.
            return self.clock.boundary + 1
        return max(entry[0], self.clock.minute)

    def broken(self) -> Iterable[str]:
        """Invariants that do not hold, by name."""
        yield from self.resources.broken()
        for lock in self.locks.by_name.values():
            holder = lock.holder
            if holder is not None and (holder.stage is not Stage.RUNNING or lock not in holder.locks):
                yield f"a_holder_runs:{lock.name}"
        for action in self.running():
            if any(lock.holder is not action for lock in action.locks):
                yield f"a_running_action_holds_its_locks:{action.instance.id}"
