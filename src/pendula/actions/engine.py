"""The world: actors' wishes in, what happens in which minute out. Tickless: time jumps from event to event.

Within a minute the order is fixed: ends, interrupts, visibility changes, admissions, starts. Minutes are counted from
the start of the run; epochs are a way of counting them, so that k epochs in a row are one long epoch. At the last
minute of an epoch only ends happen; everything else of that minute is the first minute of the next.
"""

from bisect import insort
from collections.abc import Iterable
from operator import attrgetter
from typing import Any, ClassVar, Self

import msgspec

from pendula.actions.configuration import Setting
from pendula.actions.events import Advance, Command, EpochBegan, Event, Request, Submit
from pendula.actions.explain import why
from pendula.actions.minute.interrupting import grant, preempt
from pendula.actions.model import Code, Instance, KnowledgeItem, Resume, Reveal
from pendula.actions.questions import NoAnswers, asked_modifiers
from pendula.actions.requests import Wish, read_wishes
from pendula.actions.rules import locks
from pendula.actions.rules.locks import Action, Lock, Stage, can_start
from pendula.actions.rules.resources import Shortage, plain
from pendula.actions.rules.validation import FOLLOW_UPS, INSTANCES, Fault, Timing, field_of, id_of, read_instance
from pendula.actions.rules.visibility import knows, revealed
from pendula.actions.state.event_writer import Telling
from pendula.actions.state.plans import Plan, Plans
from pendula.actions.state.ranks import FOLLOWING, JOINING, LATE, REQUESTED, SUBMITTED, WAKING
from pendula.kernel.canonical import Json
from pendula.kernel.engine import Outcome, Outside, Reason
from pendula.kernel.queue import BucketQueue, EventQueue, HeapQueue

# Looking a member up in its class costs as much as the comparison it is for.
WAITING, RUNNING, OVER = Stage.WAITING, Stage.RUNNING, Stage.OVER
by_admission = attrgetter("admission")


class World(Telling):
    """The engine of the room `actions`; satisfies `pendula.kernel.engine.Engine`."""

    room: ClassVar[str] = "actions"
    decisions: ClassVar[int] = 1
    time_unit: ClassVar[str] = "min"
    commands: ClassVar[Any] = Command
    events: ClassVar[Any] = Event

    __slots__ = (
        "_candidates",
        "_following",
        "_has_hook",
        "_has_pc",
        "_in_order",
        "_is_exclusive",
        "_most_following",
        "_plan_of",
        "_skilled",
        "_started",
        "actions",
        "boundary",
        "extras",
        "full_at",
        "knowledge",
        "locks",
        "next_admission",
        "outside",
        "plans",
        "queue",
        "reported",
        "resources",
        "used_ids",
    )

    def __init__(self, setting: Setting) -> None:
        super().__init__(setting)
        self.outside: Outside = NoAnswers()
        self.locks = locks.LockTable()
        self.plans = Plans(setting, self.locks)
        self._plan_of = self.plans.get
        self.resources = setting.resources()
        self.knowledge: dict[str, KnowledgeItem] = setting.knowledge()
        self.actions: dict[str, Action] = {}
        self.used_ids: set[str] = set()
        self.queue: EventQueue[Any] = BucketQueue() if setting.options.queue == "buckets" else HeapQueue()
        self.minute = 0
        self.boundary: int = setting.horizon
        self.next_admission = 0
        self.full_at = setting.allowed(INSTANCES)  # no more admissions than this in the present epoch
        self.extras: dict[str, dict[str, Json]] = {}
        self.reported: set[str] = set()
        # Without preempting verbs admissions come in the order of the queues: who can start may start at once.
        self._in_order = not setting.has_preempting
        self._has_hook = setting.options.follow_ups
        self._most_following = setting.allowed(FOLLOW_UPS)
        self._is_exclusive = setting.options.actor_exclusive
        self._has_pc = setting.circle.pc is not None
        self._skilled = setting.durations.skilled
        self._candidates: list[tuple[int, Action]] = []
        self._following: list[Instance] = []
        self._started: list[Action] = []

    @classmethod
    def create(cls, config: Json) -> Self:
        """A fresh world, or the continuation of a carry in the configuration; `InputRefused` for a bad one."""
        setting = Setting.read(config)
        world = cls(setting)
        if setting.carry is not None:
            from pendula.actions.saving import take_up

            take_up(world, setting.carry)
        return world

    @classmethod
    def from_state(cls, config: Json, state: bytes) -> Self:
        from pendula.actions.saving import restore

        world = cls(Setting.read(config))
        restore(world, state)
        return world

    def state(self) -> bytes:
        from pendula.actions.saving import save

        return save(self)

    def now(self) -> int:
        return self.minute

    def next_due(self) -> int | None:
        entry = self.queue.peek()
        if entry is None:
            return None
        if entry[0] == self.boundary and entry[1] >= REQUESTED:
            # No end: it happens in the second half of the minute, which is of the next epoch.
            return self.boundary + 1
        return max(entry[0], self.minute)

    def why(self, question: Json) -> Reason:
        """`{"action": id}` and `{"lock": name}`: where the action stands and what it waits for."""
        return why(self, question)

    def running(self) -> list[Action]:
        """Who runs, by admission."""
        return sorted((action for action in self.actions.values() if action.stage is RUNNING), key=by_admission)

    def broken(self) -> Iterable[str]:
        yield from self.resources.broken()
        for lock in self.locks.by_name.values():
            holder = lock.holder
            if holder is not None and (holder.stage is not RUNNING or lock not in holder.locks):
                yield f"a_holder_runs:{lock.name}"
        for action in self.running():
            if any(lock.holder is not action for lock in action.locks):
                yield f"a_running_action_holds_its_locks:{action.instance.id}"

    def apply(self, command: Command) -> Outcome[Event]:
        self.told = []
        answer: Json = None
        match command:
            case Submit(actions):
                answer = {"taken": self._submit(actions)}
            case Request(interrupts, commands):
                self._request(interrupts, commands)
            case Advance(to):
                if not self.minute <= to <= self.setting.latest:
                    return Outcome(refusal=self.setting.no_such_time(self.minute, to))
                self._advance(to)
                answer = {"now": self.minute}
        return Outcome(tuple(self.told), answer)

    # What comes in

    def _submit(self, raws: Iterable[object]) -> int:
        """Queue instances for their minute; returns how many were taken."""
        late: list[tuple[int, Instance]] = []
        taken = 0
        now, push, latest = self.minute, self.queue.push, self.setting.latest
        used = self.used_ids
        for raw in raws:
            if type(raw) is Instance and raw.params is None and raw.t is not None and raw.id not in used:
                # Made by hand and as it should be: nothing to read.
                used.add(raw.id)
                instance = raw
            else:
                read = self._read(raw, True)
                if isinstance(read, Fault):
                    self._turn_away(raw, read, now)
                    continue
                instance = read
            minute = instance.t
            if minute is None or not now <= minute <= latest:
                when = self.setting.submitted(instance)
                if isinstance(when, Fault):
                    self._turn_away(instance, when, now)
                    continue
                minute, micros = when
                if micros < self.setting.micros_of(now):
                    late.append((micros, instance))
                    continue
            push(minute, SUBMITTED, instance)
            taken += 1
        late.sort(key=lambda entry: entry[0])
        for _, instance in late:
            push(now, LATE, instance)
        self._queue_followers(now)
        return taken + len(late)

    def _queue_followers(self, minute: int) -> None:
        """What follows a rejection outside of a minute that is lived through waits for the rest of that minute."""
        for instance in self._following:
            self.queue.push(minute, FOLLOWING, instance)
        self._following.clear()

    def _read(self, raw: object, needs_time: bool) -> Instance | Fault:
        """An instance under a new id, or what is wrong with it."""
        extra = None
        if (
            type(raw) is Instance
            and raw.params is None
            and not (needs_time and raw.t is None and raw.submitted_at is None)
        ):
            instance = raw
        else:
            read = read_instance(raw, needs_time)
            if isinstance(read, Fault):
                self.used_ids.update(filter(None, (id_of(raw),)))
                return read
            instance, extra = read
        if instance.id in self.used_ids:
            return Fault(Code.DUPLICATE_ACTION_ID, f"The id {instance.id} is in use already")
        self.used_ids.add(instance.id)
        if extra:
            self._keep_extra(instance, extra)
        return instance

    def _keep_extra(self, instance: Instance, extra: dict[str, Json]) -> None:
        """Fields nobody knows go into the meta of the first start; each name is reported once."""
        self.extras[instance.id] = extra
        new = sorted(extra.keys() - self.reported)
        if new:
            self.reported.update(new)
            self.diagnose(Code.UNKNOWN_FIELDS, instance.id, f"Fields nobody knows: {', '.join(new)}")

    def _request(self, interrupts: Iterable[Json], commands: Iterable[Json]) -> None:
        for wish in read_wishes(interrupts, commands, self.setting):
            if isinstance(wish, Fault):
                self.diagnose(wish.code, None, wish.message)
            else:
                self.put_wish(msgspec.structs.replace(wish, minute=max(wish.minute, self.minute)))

    def put_wish(self, wish: Wish) -> None:
        self.queue.push(wish.minute, REQUESTED, wish)

    def put_submitted(self, minute: int, rank: int, instance: Instance) -> None:
        self.queue.push(minute, rank, instance)

    def put_action(self, action: Action) -> None:
        """Place an action that was saved: in its queues, in its hold, or running towards its end."""
        self.actions[action.instance.id] = action
        self._in_order = self._in_order and not action.plan.preempts
        action.seen = self.setting.shows(action.instance)
        match action.stage:
            case Stage.RUNNING:
                for lock in action.locks:
                    lock.holder = action
                action.ending = self.queue.push(action.t_end, action.admission, action)
            case Stage.WAITING:
                locks.join(action, action.joined)
            case Stage.HELD:
                self.queue.push(action.joined, JOINING, action)

    def wake_whoever_is_first(self) -> None:
        """After a restore in the middle of a minute: who is first in the queue of a free lock has its turn."""
        self.give_turn(self.locks.by_name.values())
        if self._candidates:
            self._wake(self.minute)

    # How time goes on

    def _advance(self, to: int) -> None:
        queue = self.queue
        while (minute := queue.first_time()) is not None and minute <= to:
            while self.boundary < minute:
                self._begin_epoch()
            self.minute = minute
            if minute < self.boundary:
                self._live_through(minute, queue.pop_instant())
                continue
            self._end_all_of(minute)
            if minute == to:
                break
            self._begin_epoch()
        while self.boundary < to:
            self._begin_epoch()
        self.minute = to

    def _end_all_of(self, minute: int) -> None:
        """The last minute of an epoch: ends and what they bring to light, nothing else."""
        while (entry := self.queue.peek()) is not None and entry[0] == minute and entry[1] < REQUESTED:
            self._end(self.queue.pop()[3], minute)
        self.tell_of_changes(minute)
        self._queue_followers(minute)
        if self._candidates:
            self._wake(minute)

    def _wake(self, minute: int) -> None:
        """See to it that whoever is first in a queue has its turn in this minute, though nothing else happens in it."""
        self.queue.push(minute, WAKING, None)

    def _live_through(self, minute: int, entries: list[Any]) -> None:
        """One minute, in the order of ranks: ends, interrupts, joinings, admissions; then the starts."""
        end, admit = self._end, self._admit
        wishes: list[Wish] = []
        for _, rank, _, item in entries:
            if rank < REQUESTED:
                end(item, minute)
                continue
            if rank == REQUESTED:
                wishes.append(item)
                continue
            if wishes:
                grant(self, wishes, minute)
                wishes = []
            if rank >= LATE:
                admit(item, minute, rank == LATE)
            elif rank == JOINING and item.stage is Stage.HELD:  # it may have been cancelled meanwhile
                self.join(item, minute)
        if wishes:
            grant(self, wishes, minute)
        depth = 0
        while self._following or self._candidates:
            # Who is turned away, here or in the pass, may be followed by another: then there is another round.
            following, self._following = self._following, []
            depth += 1
            for instance in following:
                if depth > self._most_following:
                    self.extras.pop(instance.id, None)
                    self.reject(instance.id, self._too_many("one upon another"))
                else:
                    admit(instance, minute, False)
            if self._candidates:
                self._give_turns(minute)
        if self._interrupts or self._reveals:
            self.tell_of_changes(minute)
        if self._started:
            self.tell_of_starts(self._started, minute)
            self._started.clear()

    def _begin_epoch(self) -> None:
        self.epoch += 1
        self.epoch_start = self.boundary
        self.boundary += self.setting.horizon
        self.full_at = self.next_admission + self.setting.allowed(INSTANCES)
        self.told.append(self.header())

    def header(self) -> EpochBegan:
        """What the chunk of the present epoch begins with: who runs on from before."""
        start = self.epoch_start
        carried: tuple[dict[str, Any], ...] = ()
        if self.actions:
            carried = tuple(
                {"action_id": action.instance.id, "remaining": action.t_end - start, "pc": action.seen}
                for action in self.running()
            )
        return EpochBegan(self.setting.first_epoch + self.epoch, self.setting.display(start), carried)

    # What happens to an action

    def _admit(self, instance: Instance, minute: int, late: bool) -> None:
        plan = self._plan_of(instance.verb) or self.plans.make(instance.verb)
        timing: Timing | None = plan.ordinary
        if timing is None or instance.actor in self._skilled or self.next_admission >= self.full_at:
            timing = self._checked(plan, instance, minute)
            if timing is None:
                return
        elif plan.needs and (shortages := self.resources.reserve(plan.needs)):
            self._turn_away(instance, _shortage(shortages), minute)
            return
        own_locks = plan.locks
        if self._is_exclusive:
            own_locks = self.locks.of((*plan.verb.locks, f"actor:{instance.actor}"))
        admission = self.next_admission
        key = locks.key_of(instance, plan.definition, admission) if plan.preempts else admission
        minutes = timing.minutes
        action = Action(instance, plan, admission, key, minutes, minutes, own_locks, minute)
        self.next_admission = admission + 1
        if timing.meta is not None or late or self.extras:
            action.meta = self._first_meta(instance.id, timing, late)
        if self._has_pc:
            action.seen = self.setting.shows(instance)
        self.actions[instance.id] = action
        if self._in_order:
            for lock in own_locks:
                if lock.holder is not None or ((lock.line or lock.ahead) and lock.first() is not None):
                    break
            else:
                for lock in own_locks:
                    lock.holder = action
                action.stage = RUNNING
                action.t_end = t_end = minute + minutes
                action.ending = self.queue.push(t_end, admission, action)
                if self.recording:
                    self._started.append(action)
                return
            if not plan.fails:
                # Somebody is before it who has not had its turn: its own comes when that one ends, not in this minute.
                entry = (admission, action)
                for lock in own_locks:
                    lock.line.append(entry)
                return
        self.join(action, minute)
        if plan.preempts:
            preempt(self, action, minute)

    def _checked(self, plan: Plan, instance: Instance, minute: int) -> Timing | None:
        """How long it takes, everything checked and reserved; None when it was turned away."""
        timing = plan.fault or self._timing(plan, instance, minute)
        fault = self._why_not(plan, timing)
        if fault is not None or isinstance(timing, Fault):
            assert fault is not None
            self._turn_away(instance, fault, minute)
            return None
        return timing

    def _why_not(self, plan: Plan, timing: Timing | Fault) -> Fault | None:
        """The first fault in the order of checking; resources are reserved when there is none."""
        if isinstance(timing, Fault):
            return timing
        if plan.unknown_lock is not None:
            return plan.unknown_lock
        if plan.needs and (shortages := self.resources.reserve(plan.needs)):
            return _shortage(shortages)
        if plan.limit is None and self.next_admission < self.full_at:
            return None
        self.resources.give_back(plan.needs)
        full = f"{INSTANCES.sentence}: more than {self.setting.allowed(INSTANCES)}"
        return plan.limit or Fault(Code.LIMIT_EXCEEDED, full)

    def _timing(self, plan: Plan, instance: Instance, minute: int) -> Timing | Fault:
        durations = self.setting.durations
        if durations.is_plain:
            actor = instance.actor if instance.actor in self._skilled else None
            timing = plan.minutes.get(actor)
            if timing is None:
                timing = plan.minutes[actor] = durations.plain(plan.verb, actor)
            return timing
        asked = asked_modifiers(self.outside, self.setting.options, instance, minute)
        return durations.timing(plan.verb, instance, minute, self.setting.first_epoch + self.epoch, asked)

    def _first_meta(self, action_id: str, timing: Timing, late: bool) -> dict[str, Any] | None:
        meta = dict(timing.meta or {})
        if late:
            meta["late"] = True
        if action_id in self.extras:
            meta["extra"] = self.extras.pop(action_id)
        return meta or None

    def join(self, action: Action, minute: int) -> None:
        """Stand in the queues; the turn may come in this very minute, or when those before it are gone."""
        if locks.join(action, minute) or action.plan.fails:
            self._candidates.append((action.key, action))

    def hold(self, action: Action, until: int) -> None:
        action.stage = Stage.HELD
        action.joined = until
        self.queue.push(until, JOINING, action)

    def give_turn(self, free: Iterable[Lock]) -> None:
        """Whoever is first in the queues of free locks may have its turn in this minute."""
        for lock in free:
            if lock.holder is None and (first := lock.first()) is not None:
                self._candidates.append((first.key, first))

    def _give_turns(self, minute: int) -> None:
        """One pass in queue order over everybody whose turn it may be."""
        candidates, self._candidates = self._candidates, []
        if len(candidates) > 1:
            candidates.sort()
        push, started, recording = self.queue.push, self._started, self.recording
        for _, action in candidates:
            if action.stage is not WAITING:
                continue
            if can_start(action):
                for lock in action.locks:
                    lock.holder = action
                    if lock.ahead:
                        lock.leave(action)
                    else:
                        lock.line.popleft()
                action.stage = RUNNING
                action.t_end = t_end = minute + action.remaining
                action.ending = push(t_end, action.admission, action)
                if recording:
                    started.append(action)
            elif action.plan.fails and action.segment == 0:
                self._give_up(action, minute, candidates)

    def _give_up(self, action: Action, minute: int, candidates: list[tuple[int, Action]]) -> None:
        taken = ", ".join(lock.name for lock in action.locks if lock.holder is not None or lock.first() is not action)
        self.leave(action)
        # Their turn comes after this one, whatever their keys: the list is being gone through.
        place = candidates.index((action.key, action)) + 1
        for lock in action.locks:
            if (first := lock.first()) is not None:
                insort(candidates, (first.key, first), place)
        fault = Fault(Code.CANNOT_ACQUIRE_LOCK, f"{action.instance.id} does not wait, and {taken} cannot be had now")
        self._turn_away(action.instance, fault, minute)

    def leave(self, action: Action) -> None:
        """Out of the world without an end: everything reserved goes back."""
        action.stage = OVER
        self.resources.give_back(action.plan.needs)
        del self.actions[action.instance.id]

    def _end(self, action: Action, minute: int) -> None:
        plan, instance = action.plan, action.instance
        action.stage = OVER
        for lock in action.locks:
            lock.holder = None
            line = lock.line
            if lock.ahead or (line and line[0][1].stage is not WAITING):
                self.give_turn((lock,))
            elif line:
                self._candidates.append(line[0])
        if plan.needs:
            self.resources.finish(plan.needs)
        del self.actions[instance.id]
        if self.recording:
            self.tell_of_end(action, minute)
        if plan.triggers:
            for reveal in instance.knowledge:
                self._bring_to_light(action, reveal if isinstance(reveal, Reveal) else Reveal(reveal), minute)
        if instance.process is not None or (plan.triggers and self._has_hook):
            self._follow(instance, {"ended": minute, "t": minute}, minute)

    def break_off(self, action: Action, minute: int, by: str, resume: Resume) -> None:
        """End a segment before its time; what becomes of the action is for the caller to say."""
        self.queue.cancel(action.ending)
        action.ending = -1
        action.remaining = action.t_end - minute
        self.note_interrupt(action, by, resume)
        action.segment += 1
        action.stage = Stage.SUSPENDED
        for lock in action.locks:
            lock.holder = None
        self.give_turn(action.locks)

    def _bring_to_light(self, action: Action, reveal: Reveal, minute: int) -> None:
        before = self.knowledge.get(reveal.id)
        after = self.knowledge[reveal.id] = revealed(before, reveal, action.instance.actor, minute)
        circle = self.setting.circle
        is_told = circle.pc is not None and (
            action.instance.actor == circle.pc or knows(after, circle.pc, minute, circle)
        )
        self.note_reveal(action, reveal, before, after, is_told)

    def tell_process(self, action: Action, outcome: dict[str, Json], minute: int) -> None:
        """A process hears of every end of its action, also of an untimely one; a hook of those that may trigger."""
        if action.instance.process is not None:
            self._follow(action.instance, outcome, minute)

    def _turn_away(self, raw: object, fault: Fault, minute: int) -> None:
        """Reject an instance, which may be anything as yet; its process hears of it."""
        own = id_of(raw)
        if own is not None and fault.code is not Code.DUPLICATE_ACTION_ID:
            self.extras.pop(own, None)
        self.reject(own, fault)
        if field_of(raw, "process") is not None:
            self._follow(raw, {"rejected": fault.code, "t": minute}, minute)

    def _follow(self, raw: object, outcome: dict[str, Json], minute: int) -> None:
        """Ask what follows; of an answer that cannot be taken the process hears at once, and may answer again."""
        faults = self._ask_what_follows(raw, outcome, minute)
        for _ in range(self._most_following):
            if not faults:
                return
            further, fault = faults.pop()
            self.reject(id_of(further), fault)
            if field_of(further, "process") is not None:
                faults += self._ask_what_follows(further, {"rejected": fault.code, "t": minute}, minute)
        for further, _ in faults:
            self.reject(id_of(further), self._too_many("one upon another"))

    def _ask_what_follows(self, asker: object, outcome: dict[str, Json], minute: int) -> list[tuple[object, Fault]]:
        """Take what follows; returns what could not be taken."""
        if type(asker) is Instance:
            question = {
                "action_id": asker.id,
                "actor": asker.actor,
                "verb": asker.verb,
                "process": asker.process,
                "outcome": outcome,
            }
        else:
            names = {"action_id": "id", "actor": "actor", "verb": "verb", "process": "process"}
            question = {name: field_of(asker, field) for name, field in names.items()}
            question["outcome"] = outcome
        answer = self.outside.ask("follow_up", question)
        faults: list[tuple[object, Fault]] = []
        if not isinstance(answer, list):  # anything else is taken as nothing
            return faults
        most, used = self._most_following, self.used_ids
        for number, raw in enumerate(answer):
            if (
                type(raw) is Instance
                and raw.params is None
                and raw.t is None
                and raw.submitted_at is None
                and number < most
                and raw.id not in used
            ):
                # Made by hand and as it should be; one that names no time is for now.
                used.add(raw.id)
                self._following.append(raw)
                continue
            further = self._read(raw, False) if number < most else self._too_many("in one answer")
            fault = further if isinstance(further, Fault) else self._queue_follow_up(further, minute)
            if fault is not None:
                faults.append((raw, fault))
        return faults

    def _too_many(self, how: str) -> Fault:
        most = self._most_following
        return Fault(Code.LIMIT_EXCEEDED, f"{FOLLOW_UPS.sentence}: more than {most}, {how}")

    def _queue_follow_up(self, instance: Instance, minute: int) -> Fault | None:
        if instance.t is None and instance.submitted_at is None:
            self._following.append(instance)
            return None
        when = self.setting.submitted(instance)
        if isinstance(when, Fault):
            self.extras.pop(instance.id, None)
            return when
        if when[0] <= minute:
            self._following.append(instance)
        else:
            self.queue.push(when[0], FOLLOWING, instance)
        return None


def _shortage(shortages: list[Shortage]) -> Fault:
    parts = (f"{one.name}: {plain(one.needed)} needed, {plain(one.available)} available" for one in shortages)
    return Fault(Code.INSUFFICIENT_RESOURCES, "; ".join(parts))
