"""All that a world is: who does what, who waits, what there is, what is still to come. It decides nothing.

Only the engine, the functions of `pendula.actions.minute` and a restore change it; everybody else looks.
"""

from collections.abc import Callable, Iterable, Sequence
from operator import attrgetter
from typing import Any

from pendula.actions.configuration import Setting
from pendula.actions.events import EpochBegan, Event
from pendula.actions.model import Instance, KnowledgeItem, Need
from pendula.actions.rules.locks import Action, Lock, LockTable, Stage
from pendula.actions.rules.validation import FOLLOW_UPS, INSTANCES
from pendula.actions.rules.waiting import Ended, Wait
from pendula.actions.state.clock import Clock
from pendula.actions.state.event_writer import EventWriter
from pendula.actions.state.plans import Plans
from pendula.actions.state.ranks import EXPIRING, REQUESTED
from pendula.kernel.canonical import Json
from pendula.kernel.engine import Outside
from pendula.kernel.queue import BucketQueue, EventQueue, HeapQueue

by_admission = attrgetter("admission")


class WorldState:
    """A world between two commands, and while one is carried out. Times are minutes of the run."""

    __slots__ = (
        "actions",
        "awaited",
        "candidates",
        "clock",
        "coming",
        "declared_left",
        "declared_minute",
        "deferred",
        "entries",
        "extras",
        "following",
        "full_at",
        "has_hook",
        "has_pc",
        "holding",
        "in_order",
        "is_exclusive",
        "knowledge",
        "lines",
        "listener",
        "locks",
        "makes_known",
        "most_following",
        "next_admission",
        "next_wait",
        "outside",
        "over",
        "pass_start",
        "places",
        "plan_of",
        "plans",
        "queue",
        "reported",
        "resources",
        "running_by_verb",
        "satisfied",
        "setting",
        "skilled",
        "started",
        "used_ids",
        "waits",
        "withdrawn",
        "writer",
    )

    def __init__(self, setting: Setting, outside: Outside) -> None:
        self.setting = setting
        self.outside = outside
        self.clock = Clock(setting.horizon)
        self.writer = EventWriter(setting, self.clock)
        self.locks = LockTable(setting.capacities)
        self.lines: dict[str, Lock] = {}  # who waits for a resource, by its name
        self.plans = Plans(setting, self.locks)
        self.resources = setting.resources()
        self.knowledge: dict[str, KnowledgeItem] = setting.knowledge()
        self.places: dict[str, str] = setting.places()  # by actor
        # Told of events as they come, minute by minute, for logs; it may not touch the world.
        self.listener: Callable[[Sequence[Event]], None] | None = None
        self.actions: dict[str, Action] = {}
        self.used_ids: set[str] = set()
        self.queue: EventQueue[Any] = BucketQueue() if setting.options.queue == "buckets" else HeapQueue()
        # Submissions that are still to come and their handles, by id; kept from the first time that one is cancelled.
        self.coming: dict[str, tuple[int, Instance]] | None = None
        # Submissions that came in since the epoch began and are for a later one, with their handles, for whoever asks.
        self.deferred: dict[int, tuple[int, int, Instance]] | None = None
        # Ids of instances that are over, by epoch, where they are to be forgotten some day.
        self.over: dict[int, list[str]] | None = {} if setting.options.remember_epochs is not None else None
        # Processes that wait for the first of several things: all, by what they wait for, with something to be told.
        self.next_wait = 0
        self.waits: dict[int, Wait] = {}
        self.awaited: dict[tuple[str, str], dict[int, Wait]] = {}
        self.satisfied: dict[int, Wait] = {}
        # Who is held by an action until it ends, by the id of that one.
        self.holding: dict[str, list[Action]] = {}
        self.next_admission = 0
        self.full_at = setting.allowed(INSTANCES)  # no more admissions than this in the present epoch
        self.extras: dict[str, dict[str, Json]] = {}  # fields nobody knows, until the first start tells of them
        self.reported: set[str] = set()  # names of such fields
        # Looked up once, because every admission asks.
        self.plan_of = self.plans.get
        self.skilled = setting.durations.skilled
        self.has_hook = setting.options.follow_ups
        # What triggers something and says nothing else, makes itself known; a hook says something else.
        self.makes_known = not setting.options.follow_ups
        self.has_pc = setting.circle.pc is not None
        self.is_exclusive = setting.options.actor_exclusive
        self.most_following = setting.allowed(FOLLOW_UPS)
        # How many more follow-ups of definitions this minute takes.
        self.declared_left = self.most_following
        self.declared_minute: int | None = None
        # Without preempting verbs admissions come in the order of the queues: who can start may start at once.
        # So it is only with exclusive locks, and where nobody waits for resources.
        self.in_order = not (setting.has_preempting or setting.capacities or setting.has_lines)
        # Who runs, by verb and admission, where some verb has a list of those it interrupts; else nobody asks.
        self.running_by_verb: dict[str, dict[int, Action]] | None = {} if setting.has_lists_of_victims else None
        # The first handle of the present pass over a minute: whose end has a greater one began in this pass.
        self.pass_start = 0
        # Of the minute that is lived through: what was queued for it and what of that was taken back, whose turn it may
        # be, what follows, who started.
        self.entries: Sequence[Any] = ()
        self.withdrawn: set[str] = set()
        self.candidates: list[tuple[int, Action]] = []
        self.following: list[Instance] = []
        self.started: list[Action] = []

    def expect(self, minute: int, rank: int, instance: Instance) -> None:
        """Queue an instance for its minute."""
        handle = self.queue.push(minute, rank, instance)
        if self.coming is not None:
            self.coming[instance.id] = (handle, instance)
        if self.deferred is not None and minute >= self.clock.boundary:
            self.deferred[handle] = (minute, rank, instance)

    def expect_expiries(self, names: Iterable[str] | None = None) -> None:
        """Queue the minute in which items can be known no more: these items, or all for which it is still to come."""
        for name in sorted(self.knowledge if names is None else names):
            expires = self.knowledge[name].expires
            if expires is not None and expires >= self.clock.minute:
                self.queue.push(expires, EXPIRING, name)

    def take_from_coming(self, action_id: str) -> Instance | None:
        """Take a submission out of the queue that was not admitted yet."""
        for one in self.following:
            if one.id == action_id:
                self.following.remove(one)
                return one
        handle, found = self._coming().pop(action_id, (-1, None))
        if self.deferred is not None:
            self.deferred.pop(handle, None)
        if found is not None and not self.queue.cancel(handle):
            self.withdrawn.add(action_id)  # it is of this minute, and was to be admitted after the requests
        return found

    def is_coming(self, action_id: str) -> bool:
        """Whether a submission of this id was not admitted yet."""
        if any(one.id == action_id for one in self.following):
            return True
        return action_id in self._coming() and action_id not in self.withdrawn

    def _coming(self) -> dict[str, tuple[int, Instance]]:
        if self.coming is None:
            waiting = (entry for entry in (*self.queue, *self.entries) if type(entry[3]) is Instance)
            self.coming = {item.id: (handle, item) for _, _, handle, item in waiting}
        return self.coming

    def note_over(self, action_id: str) -> None:
        """An instance is over, or was never admitted: its id is remembered for so many epochs, or for ever."""
        if self.over is not None:
            self.over.setdefault(self.clock.epoch, []).append(action_id)
        for wait in list(self.awaited.get(("ended", action_id), {}).values()):
            for place, thing in enumerate(wait.things):
                if isinstance(thing, Ended) and thing.ended == action_id:
                    self.came_true(wait, place)

    def came_true(self, wait: Wait, place: int) -> None:
        """One of the things a process waits for; it is told at the end of the minute."""
        wait.came.append(place)
        self.satisfied[wait.number] = wait

    def forget(self) -> None:
        """When an epoch begins: ids of what was over for as many epochs as are remembered."""
        most = self.setting.options.remember_epochs
        if self.over is None or most is None:
            return
        for epoch in [epoch for epoch in self.over if epoch + most < self.clock.epoch]:
            self.used_ids.difference_update(self.over.pop(epoch))

    def lines_of(self, needs: Iterable[Need]) -> tuple[Lock, ...]:
        """The queues of the resources that are needed, each once, by name."""
        names = sorted({need.name for need in needs if not need.produce})
        return tuple(self.lines.get(name) or self.lines.setdefault(name, Lock(name)) for name in names)

    def note_running(self, action: Action) -> None:
        """Keep the index of who runs by verb."""
        if self.running_by_verb is not None:
            self.running_by_verb.setdefault(action.instance.verb, {})[action.admission] = action

    def note_stopped(self, action: Action) -> None:
        if self.running_by_verb is not None:
            del self.running_by_verb[action.instance.verb][action.admission]

    def note_place(self, action: Action) -> None:
        """Its actor is where the action says it is done: in its params, else by its verb."""
        params = action.instance.params
        said = params.get("place") if isinstance(params, dict) else None
        place = said if isinstance(said, str) and said else action.plan.place
        if place is not None:
            self.places[action.instance.actor] = place

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
            holders = lock.holders()
            if any(holder.stage is not Stage.RUNNING or lock not in holder.locks for holder in holders):
                yield f"a_holder_runs:{lock.name}"
            if len(holders) > lock.capacity:
                yield f"a_lock_has_no_more_holders_than_places:{lock.name}"
        for held_by, held in self.holding.items():
            if held_by not in self.actions and any(one.stage is Stage.HELD for one in held):
                yield f"an_action_is_held_by_one_that_is_there:{held_by}"
        for action in self.running():
            if any(not lock.is_held_by(action) for lock in action.locks):
                yield f"a_running_action_holds_its_locks:{action.instance.id}"
