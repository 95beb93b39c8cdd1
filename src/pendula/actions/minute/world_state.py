"""The state of a world: actions, locks, resources, knowledge, and the event queue.

Only the engine, the phases of a minute and a restore change it.
"""

from collections.abc import Callable, Iterable, Sequence
from operator import attrgetter
from typing import Any

from pendula.actions.configuration import Setting
from pendula.actions.messages import EpochBegan, Event
from pendula.actions.minute.event_writer import Clock, EventWriter
from pendula.actions.model import ActionDef, Code, Effort, Instance, KnowledgeItem, Need, Wait
from pendula.actions.rules.conditions import Ended, ProcessWait
from pendula.actions.rules.duration import Timing
from pendula.actions.rules.locks import Action, Lock, LockTable, Stage
from pendula.actions.rules.validation import FOLLOW_UPS, INSTANCES, LOCKS, LOCKS_EACH, RESOURCES_EACH, Fault, Verb
from pendula.kernel.canonical import Json
from pendula.kernel.engine import Outside
from pendula.kernel.limits import Limit
from pendula.kernel.queue import EventQueue

FIRST = 1 << 56

REQUESTED = FIRST  # interrupts, cancellations, resumptions
WAKING = FIRST + 1  # no event: candidates start in this minute
JOINING = FIRST + 2  # ends of holds
LATE = FIRST + 3  # submissions for the past, by their exact time
SUBMITTED = FIRST + 4
FOLLOWING = FIRST + 5  # follow-ups of ends and rejections
EXPIRING = FIRST + 6  # expiries of knowledge items


class Plan:
    """What admission needs of a definition, looked up once."""

    def __init__(self, verb: Verb, locks: tuple[Lock, ...]) -> None:
        definition = verb.definition
        self.verb = verb
        self.definition = definition
        self.locks = locks
        self.needs = definition.resources
        self.preempts = definition.preempts
        self.fails = definition.wait is Wait.FAIL
        self.triggers = definition.may_trigger_event
        self.follows = definition.followups
        self.waits = verb.waits_for_resources and any(not need.produce for need in definition.resources)
        self.place = definition.place
        # If set, admission only checks resources, and actors without listed skills take this long.
        self.ordinary: Timing | None = None
        self.minutes: dict[str | None, Timing | Fault] = {}  # by actor, if nothing else matters
        # Faults in the order of the checks: definition, locks, limits.
        self.fault: Fault | None = None
        self.unknown_lock: Fault | None = None
        self.limit: Fault | None = None


class Plans:
    """The plans of a world, made when a verb is first used."""

    def __init__(self, setting: Setting, locks: LockTable) -> None:
        self._setting = setting
        self._locks = locks
        self._by_verb: dict[str, Plan] = {}
        self.get = self._by_verb.get

    def make(self, name: str) -> Plan:
        """The plan of a verb; its fault rejects every instance."""
        verb = self._setting.verbs.get(name)
        if verb is None:
            return _rejecting(name, Fault(Code.UNKNOWN_VERB, "unknown_verb", {"verb": name}))
        plan = self._by_verb[name] = _rejecting(name, verb) if isinstance(verb, Fault) else self._plan(verb)
        return plan

    def _plan(self, verb: Verb) -> Plan:
        allowed = self._setting.options.strict_locks
        unknown = [] if allowed is None else sorted(set(verb.locks).difference(allowed))
        limit = self._fault_above(LOCKS_EACH, len(verb.locks))
        limit = limit or self._fault_above(RESOURCES_EACH, len(verb.definition.resources))
        new = sum(name not in self._locks.by_name for name in verb.locks)
        limit = limit or self._fault_above(LOCKS, len(self._locks.by_name) + new)
        # A rejected verb creates no locks.
        plan = Plan(verb, () if unknown or limit else self._locks.of(verb.locks))
        if unknown:
            plan.unknown_lock = Fault(Code.UNKNOWN_LOCK, "unknown_locks", {"locks": [*unknown]})
        plan.limit = limit
        if self._setting.durations.is_plain and not (unknown or limit or plan.waits):
            timing = self._setting.durations.plain(verb, None)
            plan.ordinary = None if isinstance(timing, Fault) else timing
        return plan

    def too_many_locks(self, names: tuple[str, ...]) -> Fault | None:
        """The fault of too many locks of one instance (with the lock of its actor) or of the world; None if allowed."""
        new = sum(name not in self._locks.by_name for name in names)
        fault = self._fault_above(LOCKS, len(self._locks.by_name) + new) if new else None
        return self._fault_above(LOCKS_EACH, len(names)) or fault

    def _fault_above(self, limit: Limit, value: int) -> Fault | None:
        allowed = self._setting.allowed(limit)
        if value <= allowed:
            return None
        facts: dict[str, Json] = {"limit": limit.name, "count": value, "allowed": allowed}
        return Fault(Code.LIMIT_EXCEEDED, "too_many", facts)

    def of_definition(self, name: str, definition: ActionDef, locks: tuple[Lock, ...]) -> Plan:
        """The plan of a saved action, whose definition may differ from the current one."""
        present = self._by_verb.get(name) or self.make(name)
        if present.fault is None and present.definition == definition and present.locks == locks:
            return present
        return Plan(_verb(name, definition), locks)


def _verb(name: str, definition: ActionDef) -> Verb:
    return Verb(name, definition, tuple(sorted(set(definition.locks))), definition.skill or name)


def _rejecting(name: str, fault: Fault) -> Plan:
    nothing = ActionDef(base_duration_min=1, effort=Effort.MEDIUM, interruptible=False)
    plan = Plan(_verb(name, nothing), ())
    plan.fault = fault
    return plan


by_admission = attrgetter("admission")


class WorldState:
    """A world between two commands and during one. Times are minutes of the run."""

    def __init__(self, setting: Setting, outside: Outside) -> None:
        self.setting = setting
        self.outside = outside
        self.clock = Clock(setting.horizon)
        self.writer = EventWriter(setting, self.clock)
        self.locks = LockTable(setting.capacities)
        self.lines: dict[str, Lock] = {}  # queues for resources, by name
        self.plans = Plans(setting, self.locks)
        self.resources = setting.resources()
        self.knowledge: dict[str, KnowledgeItem] = setting.knowledge()
        self.places: dict[str, str] = setting.places()  # by actor
        # Receives the events of each minute, for logs; it must not change the world.
        self.listener: Callable[[Sequence[Event]], None] | None = None
        self.actions: dict[str, Action] = {}
        self.used_ids: set[str] = set()
        self.queue: EventQueue[Any] = EventQueue()
        # Pending submissions and their handles, by id; maintained from the first cancellation on.
        self.pending: dict[str, tuple[int, Instance]] | None = None
        # Submissions of this epoch for a later one, by handle; maintained for batch runs, which report them.
        self.deferred: dict[int, tuple[int, int, Instance]] | None = None
        # Ids of ended instances by epoch, if `remember_epochs` is set.
        self.ended: dict[int, list[str]] | None = {} if setting.options.remember_epochs is not None else None
        # Waits of processes: by number, by condition, and those that are satisfied.
        self.next_wait = 0
        self.waits: dict[int, ProcessWait] = {}
        self.awaited: dict[tuple[str, str], dict[int, ProcessWait]] = {}
        self.satisfied: dict[int, ProcessWait] = {}
        # Held actions by the id of the action that holds them until it ends.
        self.holding: dict[str, list[Action]] = {}
        self.next_admission = 0
        self.full_at = setting.allowed(INSTANCES)  # the first admission number that is too many for this epoch
        self.extras: dict[str, dict[str, Json]] = {}  # unknown fields, until the first start reports them
        self.reported: set[str] = set()  # their names, each reported once
        # Cached, because every admission needs them.
        self.plan_of = self.plans.get
        self.skilled = setting.durations.skilled
        self.has_hook = setting.options.follow_ups
        # A triggering action without `knowledge` reveals itself, unless there is a hook.
        self.makes_known = not setting.options.follow_ups
        self.has_pc = setting.audience.pc is not None
        self.is_exclusive = setting.options.actor_exclusive
        self.follow_up_limit = setting.allowed(FOLLOW_UPS)
        # How many more declared follow-ups this minute takes.
        self.declared_left = self.follow_up_limit
        self.declared_minute: int | None = None
        # Without preemption, shared locks and waits for resources, admission order is queue order, and an instance
        # that can start starts at once.
        self.admits_in_queue_order = not (setting.has_preempting or setting.capacities or setting.has_lines)
        # Running actions by verb and admission; maintained only if a definition lists verbs to interrupt.
        self.running_by_verb: dict[str, dict[int, Action]] | None = {} if setting.has_lists_of_victims else None
        # The first handle of the current pass: an action whose end has a greater one started in this pass.
        self.pass_start = 0
        # Of the current minute: queue entries, withdrawn submissions, candidates, follow-ups, started actions.
        self.entries: Sequence[Any] = ()
        self.withdrawn: set[str] = set()
        self.candidates: list[tuple[int, Action]] = []
        self.following: list[Instance] = []
        self.started: list[Action] = []

    def schedule(self, minute: int, rank: int, instance: Instance) -> None:
        """Queue an instance for its minute."""
        handle = self.queue.push(minute, rank, instance)
        if self.pending is not None:
            self.pending[instance.id] = (handle, instance)
        if self.deferred is not None and minute >= self.clock.boundary:
            self.deferred[handle] = (minute, rank, instance)

    def schedule_expiries(self, names: Iterable[str] | None = None) -> None:
        """Queue the expiries of these items, or of all items that have not expired."""
        for name in sorted(self.knowledge if names is None else names):
            expires = self.knowledge[name].expires
            if expires is not None and expires >= self.clock.minute:
                self.queue.push(expires, EXPIRING, name)

    def withdraw(self, action_id: str) -> Instance | None:
        """Remove a pending submission from the queue."""
        for instance in self.following:
            if instance.id == action_id:
                self.following.remove(instance)
                return instance
        handle, submission = self._pending().pop(action_id, (-1, None))
        if self.deferred is not None:
            self.deferred.pop(handle, None)
        if submission is not None and not self.queue.cancel(handle):
            self.withdrawn.add(action_id)  # it is in this minute's entries, to be skipped at its admission
        return submission

    def is_pending(self, action_id: str) -> bool:
        """Whether the submission of this id is not admitted yet."""
        if any(instance.id == action_id for instance in self.following):
            return True
        return action_id in self._pending() and action_id not in self.withdrawn

    def _pending(self) -> dict[str, tuple[int, Instance]]:
        if self.pending is None:
            waiting = (entry for entry in (*self.queue, *self.entries) if type(entry[3]) is Instance)
            self.pending = {item.id: (handle, item) for _, _, handle, item in waiting}
        return self.pending

    def record_end(self, action_id: str) -> None:
        """Record that an instance ended or was rejected: for `remember_epochs`, and for waits on its end."""
        if self.ended is not None:
            self.ended.setdefault(self.clock.epoch, []).append(action_id)
        for wait in list(self.awaited.get(("ended", action_id), {}).values()):
            for place, thing in enumerate(wait.things):
                if isinstance(thing, Ended) and thing.ended == action_id:
                    self.mark_true(wait, place)

    def mark_true(self, wait: ProcessWait, place: int) -> None:
        """Mark a condition of a wait as true; the process is notified at the end of the minute."""
        wait.satisfied.append(place)
        self.satisfied[wait.number] = wait

    def forget_old_ids(self) -> None:
        """Forget the ids of instances that ended more than `remember_epochs` epochs ago."""
        most = self.setting.options.remember_epochs
        if self.ended is None or most is None:
            return
        for epoch in [epoch for epoch in self.ended if epoch + most < self.clock.epoch]:
            self.used_ids.difference_update(self.ended.pop(epoch))

    def lines_of(self, needs: Iterable[Need]) -> tuple[Lock, ...]:
        """The queues of the needed resources, each once, by name."""
        names = sorted({need.name for need in needs if not need.produce})
        return tuple(self.lines.get(name) or self.lines.setdefault(name, Lock(name)) for name in names)

    def index_running(self, action: Action) -> None:
        """Add the action to the index by verb."""
        if self.running_by_verb is not None:
            self.running_by_verb.setdefault(action.instance.verb, {})[action.admission] = action

    def unindex_running(self, action: Action) -> None:
        if self.running_by_verb is not None:
            del self.running_by_verb[action.instance.verb][action.admission]

    def record_place(self, action: Action) -> None:
        """Record the place of its actor: `params.place`, else the place of the verb."""
        params = action.instance.params
        given = params.get("place") if isinstance(params, dict) else None
        place = given if isinstance(given, str) and given else action.plan.place
        if place is not None:
            self.places[action.instance.actor] = place

    def running(self) -> list[Action]:
        """The running actions, by admission."""
        return sorted((action for action in self.actions.values() if action.stage is Stage.RUNNING), key=by_admission)

    def header(self) -> EpochBegan:
        """The header of the current epoch, with the actions carried into it."""
        return self.writer.header(self.running())

    def next_due(self) -> int | None:
        """The next minute in which something happens; None if nothing is pending."""
        entry = self.queue.peek()
        if entry is None:
            return None
        if entry[0] == self.clock.boundary and entry[1] >= REQUESTED:
            # Not an end: it happens in the part of the minute that belongs to the next epoch.
            return self.clock.boundary + 1
        return max(entry[0], self.clock.minute)

    def broken(self) -> Iterable[str]:
        """Names of violated invariants."""
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
