"""The world: actors' wishes in, what happens in which minute out. Tickless: time jumps from event to event.

Within a minute the order is fixed: ends, interrupts, visibility changes, admissions, starts. Minutes are counted from
the start of the run; epochs are a way of counting them, so that k epochs in a row are one long epoch. At the last
minute of an epoch only ends happen; everything else of that minute is the first minute of the next.
"""

from collections.abc import Iterable
from heapq import heapify, heappop, heappush
from typing import Any, ClassVar, Self

import msgspec

from pendula.actions import locks
from pendula.actions.admission import (
    FOLLOW_UPS,
    INSTANCES,
    LOCKS,
    LOCKS_EACH,
    RESOURCES_EACH,
    Fault,
    Timing,
    Verb,
    read_instance,
)
from pendula.actions.asking import asked_follow_ups, asked_modifiers
from pendula.actions.events import (
    Advance,
    Command,
    Diagnostic,
    End,
    EpochBegan,
    Event,
    Interrupted,
    Rejection,
    Request,
    Start,
    Submit,
    VisibilityChange,
    WorldEvent,
)
from pendula.actions.explain import why
from pendula.actions.locks import Action, Lock, Stage
from pendula.actions.model import Code, Instance, Resume, Reveal, Wait
from pendula.actions.requests import Wish, read_wishes
from pendula.actions.setting import Setting
from pendula.actions.visibility import knows, revealed
from pendula.kernel.bodies import Nobody
from pendula.kernel.canonical import Json
from pendula.kernel.engine import Outcome, Outside, Reason
from pendula.kernel.queue import BucketQueue, EventQueue, HeapQueue

# Ranks in the queue of coming matters. An end has the admission number of its action: below all of these.
REQUESTED, WAKING, JOINING, LATE, SUBMITTED, FOLLOWING = ((1 << 56) + phase for phase in range(6))


class World:
    """The engine of the room `actions`; satisfies `pendula.kernel.engine.Engine`."""

    room: ClassVar[str] = "actions"
    decisions: ClassVar[int] = 1
    time_unit: ClassVar[str] = "min"
    commands: ClassVar[Any] = Command
    events: ClassVar[Any] = Event

    def __init__(self, setting: Setting) -> None:
        self.outside: Outside = Nobody()
        self.setting = setting
        self.recording = True
        self.locks = locks.LockTable()
        self.resources = setting.resources()
        self.knowledge = setting.knowledge()
        self.actions: dict[str, Action] = {}
        self.running: dict[int, Action] = {}
        self.used_ids: set[str] = set()
        self.queue: EventQueue[Any] = BucketQueue() if setting.options.queue == "buckets" else HeapQueue()
        self.minute = 0
        self.epoch = 0
        self.epoch_start = 0
        self.boundary = setting.horizon
        self.next_admission = 0
        self.next_event = 0
        self.admitted_in_epoch = 0
        self.extras: dict[str, dict[str, Json]] = {}
        self.reported: set[str] = set()
        self.follow_ups = (-1, 0)  # how many there were in which minute
        self._out: list[Event] = []
        self._at = (-1, "")
        self._locks_of: dict[str, tuple[Lock, ...]] = {}
        self._candidates: list[tuple[int, Action]] = []
        self._interrupted: list[tuple[int, int, Action, dict[str, Any]]] = []
        self._shown: list[tuple[int, int, Action, dict[str, Any]]] = []

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
        return None if entry is None else max(entry[0], self.minute)

    def why(self, question: Json) -> Reason:
        """`{"action": id}`: where the action stands and what it waits for."""
        return why(self, question)

    def broken(self) -> Iterable[str]:
        yield from self.resources.broken()
        for lock in self.locks.by_name.values():
            holder = lock.holder
            if holder is not None and (holder.stage is not Stage.RUNNING or lock not in holder.locks):
                yield f"a_holder_runs:{lock.name}"
        for action in self.running.values():
            if any(lock.holder is not action for lock in action.locks):
                yield f"a_running_action_holds_its_locks:{action.instance.id}"

    def apply(self, command: Command) -> Outcome[Event]:
        self._out = []
        answer: Json = None
        match command:
            case Submit(actions):
                answer = {"taken": self._submit(actions)}
            case Request(interrupts, commands):
                self._request(interrupts, commands)
            case Advance(to):
                if to < self.minute:
                    return Outcome(refusal=self.setting.no_way_back(self.minute, to))
                self._advance(to)
                answer = {"now": self.minute}
        return Outcome(tuple(self._out), answer)

    # What comes in

    def _submit(self, raws: Iterable[object], rank: int = SUBMITTED) -> int:
        """Queue instances for their minute; returns how many were taken."""
        late: list[tuple[int, Instance]] = []
        taken = 0
        for raw in raws:
            read = read_instance(raw)
            if isinstance(read, Fault):
                self._reject(_id_of(raw), read)
                self.used_ids.update(filter(None, (_id_of(raw),)))
                continue
            instance, extra = read
            if instance.id in self.used_ids:
                self._reject(instance.id, Fault(Code.DUPLICATE_ACTION_ID, f"The id {instance.id} is in use already"))
                continue
            self.used_ids.add(instance.id)
            if extra:
                self._keep_extra(instance, extra)
            when = self.setting.submitted(instance)
            if isinstance(when, Fault):
                self._reject(instance.id, when)
                continue
            minute, micros = when
            if minute < self.minute:
                late.append((micros, instance))
            else:
                self.queue.push(minute, rank, instance)
            taken += 1
        late.sort(key=lambda entry: entry[0])
        for _, instance in late:
            self.queue.push(self.minute, LATE, instance)
        return taken

    def _request(self, interrupts: Iterable[Json], commands: Iterable[Json]) -> None:
        for wish in read_wishes(interrupts, commands, self.setting):
            if isinstance(wish, Fault):
                self._diagnose(wish.code, None, wish.message)
            else:
                self.put_wish(msgspec.structs.replace(wish, minute=max(wish.minute, self.minute)))

    def put_wish(self, wish: Wish) -> None:
        self.queue.push(wish.minute, REQUESTED, wish)

    def put_action(self, action: Action) -> None:
        """Place an action that was saved: in its queues, in its hold, or running towards its end."""
        self.actions[action.instance.id] = action
        action.seen = self.setting.shows(action.instance)
        match action.stage:
            case Stage.RUNNING:
                for lock in action.locks:
                    lock.holder = action
                action.ending = self.queue.push(action.t_end, action.admission, action)
                self.running[action.admission] = action
            case Stage.WAITING:
                locks.join(action, action.joined)
            case Stage.HELD:
                self.queue.push(action.joined, JOINING, action)

    def wake_whoever_is_first(self) -> None:
        """After a restore: those who are first in the queues of free locks have their turn in the present minute."""
        firsts = [lock.first() for lock in self.locks.by_name.values() if lock.holder is None]
        self._candidates = [(action.key, action) for action in firsts if action is not None]
        if self._candidates:
            self.wake(self.minute)

    # How time goes on

    def _advance(self, to: int) -> None:
        queue = self.queue
        while (entry := queue.peek()) is not None and entry[0] <= to:
            minute = entry[0]
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
        self._tell(minute)
        if self._candidates:
            self.wake(minute)

    def wake(self, minute: int) -> None:
        """See to it that whoever is first in a queue has its turn in this minute, though nothing else happens in it."""
        self.queue.push(minute, WAKING, None)

    def _live_through(self, minute: int, entries: list[Any]) -> None:
        """One minute, in the order of ranks: ends, interrupts, joinings, admissions; then the starts."""
        wishes: list[Wish] = []
        for _, rank, _, item in entries:
            if rank < REQUESTED:
                self._end(item, minute)
                continue
            if rank == REQUESTED:
                wishes.append(item)
                continue
            if wishes:
                self._grant(wishes, minute)
                wishes = []
            if rank == JOINING:
                self._join(item, minute)
            elif rank != WAKING:
                self._admit(item, minute, rank == LATE)
        if wishes:
            self._grant(wishes, minute)
        # Follow-ups of ends of this very minute were queued while it was lived through.
        while (entry := self.queue.peek()) is not None and entry[0] == minute and entry[1] == FOLLOWING:
            self._admit(self.queue.pop()[3], minute, False)
        self._start_all(minute)

    def _begin_epoch(self) -> None:
        self.epoch += 1
        self.epoch_start = self.boundary
        self.boundary += self.setting.horizon
        self.admitted_in_epoch = 0
        self._out.append(self.header())

    def header(self) -> EpochBegan:
        """What the chunk of the present epoch begins with: who runs on from before."""
        start = self.epoch_start
        carried = tuple(
            {"action_id": action.instance.id, "remaining": action.t_end - start, "pc": action.seen}
            for _, action in sorted(self.running.items())
        )
        return EpochBegan(self.setting.first_epoch + self.epoch, self.setting.display(start), carried)

    # What happens to an action

    def _admit(self, instance: Instance, minute: int, late: bool) -> None:
        verb = self.setting.verbs.get(instance.verb)
        fault = self._why_not(instance, verb)
        if fault is not None:
            self._turn_away(instance, fault, minute)
            return
        assert isinstance(verb, Verb)
        asked = asked_modifiers(self.outside, self.setting.options, instance, minute)
        timing = self.setting.durations.timing(verb, instance, minute, self.setting.first_epoch + self.epoch, asked)
        if isinstance(timing, Fault):
            self._turn_away(instance, timing, minute)
            return
        if (fault := self._no_lock_or_room(verb)) is not None:
            self._turn_away(instance, fault, minute)
            return
        definition = verb.definition
        if definition.resources and (shortages := self.resources.reserve(definition.resources)):
            missing = "; ".join(f"{s.name}: {s.needed} needed, {s.available} available" for s in shortages)
            self._turn_away(instance, Fault(Code.INSUFFICIENT_RESOURCES, missing), minute)
            return
        action = Action(instance, definition, self.next_admission, timing.minutes, self._locks(verb, instance))
        self.next_admission += 1
        self.admitted_in_epoch += 1
        if timing.meta is not None or late or instance.id in self.extras:
            action.meta = self._first_meta(instance.id, timing, late)
        self.actions[instance.id] = action
        action.seen = self.setting.shows(instance)
        locks.join(action, minute)
        self._candidates.append((action.key, action))
        if definition.preempts:
            self._preempt(action, minute)

    def _first_meta(self, action_id: str, timing: Timing, late: bool) -> dict[str, Any]:
        meta = dict(timing.meta or {})
        if late:
            meta["late"] = True
        if action_id in self.extras:
            meta["extra"] = self.extras.pop(action_id)
        return meta

    def _why_not(self, instance: Instance, verb: Verb | Fault | None) -> Fault | None:
        if verb is None:
            return Fault(Code.UNKNOWN_VERB, f"There is no definition of {instance.verb}")
        if isinstance(verb, Fault):
            return verb
        return None

    def _no_lock_or_room(self, verb: Verb) -> Fault | None:
        allowed = self.setting.options.strict_locks
        if allowed is not None and (unknown := sorted(set(verb.locks).difference(allowed))):
            return Fault(Code.UNKNOWN_LOCK, f"{', '.join(unknown)}: not in the list of locks")
        for limit, value in (
            (LOCKS_EACH, len(verb.locks)),
            (RESOURCES_EACH, len(verb.definition.resources)),
            (INSTANCES, self.admitted_in_epoch + 1),
            (LOCKS, len(self.locks.by_name)),
        ):
            if value > limit.default:
                return Fault(Code.LIMIT_EXCEEDED, f"{limit.sentence}: {value}, allowed are {limit.default}")
        return None

    def _locks(self, verb: Verb, instance: Instance) -> tuple[Lock, ...]:
        if self.setting.options.actor_exclusive:
            return self.locks.of((*verb.locks, f"actor:{instance.actor}"))
        found = self._locks_of.get(verb.name)
        if found is None:
            found = self._locks_of[verb.name] = self.locks.of(verb.locks)
        return found

    def _join(self, action: Action, minute: int) -> None:
        locks.join(action, minute)
        self._candidates.append((action.key, action))

    def _start_all(self, minute: int) -> None:
        """One pass in queue order over everybody whose turn it may be."""
        candidates = self._candidates
        if not candidates:
            self._tell(minute)
            return
        self._candidates = []
        started: list[Action] = []
        heapify(candidates)
        while candidates:
            _, action = heappop(candidates)
            if action.stage is not Stage.WAITING:
                continue
            if locks.can_start(action):
                locks.take(action)
                action.stage = Stage.RUNNING
                action.t_end = minute + action.remaining
                action.ending = self.queue.push(action.t_end, action.admission, action)
                self.running[action.admission] = action
                started.append(action)
            elif action.definition.wait is Wait.FAIL and action.segment == 0:
                self._give_up(action, minute, candidates)
        if len(started) > 1:
            started.sort(key=_admission)
        self._tell(minute)
        if self.recording:
            for action in started:
                self._emit_start(action, minute)

    def _give_up(self, action: Action, minute: int, candidates: list[tuple[int, Action]]) -> None:
        self._leave(action)
        for lock in action.locks:
            if (first := lock.first()) is not None:
                heappush(candidates, (first.key, first))
        taken = ", ".join(lock.name for lock in action.locks if lock.holder is not None or lock.first() is not None)
        fault = Fault(
            Code.CANNOT_ACQUIRE_LOCK, f"{action.instance.id} does not wait, and {taken} cannot be had at once"
        )
        self._turn_away(action.instance, fault, minute)

    def _leave(self, action: Action) -> None:
        """Out of the world without an end: everything reserved goes back."""
        action.stage = Stage.OVER
        self.resources.give_back(action.definition.resources)
        del self.actions[action.instance.id]

    def _end(self, action: Action, minute: int) -> None:
        definition = action.definition
        action.stage = Stage.OVER
        self._free(action)
        if definition.resources:
            self.resources.finish(definition.resources)
        del self.running[action.admission]
        del self.actions[action.instance.id]
        if self.recording:
            self._emit(End, action, minute, {"segment": action.segment, "admission": action.admission})
        if definition.may_trigger_event:
            for reveal in action.instance.knowledge:
                self._bring_to_light(action, reveal if isinstance(reveal, Reveal) else Reveal(reveal), minute)
        self._ask_what_follows(action.instance, definition.may_trigger_event, {"ended": minute, "t": minute}, minute)

    def _free(self, action: Action) -> None:
        """Release the locks; whoever is first in their queues now may have its turn."""
        for lock in action.locks:
            lock.holder = None
            if (first := lock.first()) is not None:
                self._candidates.append((first.key, first))

    def _bring_to_light(self, action: Action, reveal: Reveal, minute: int) -> None:
        before = self.knowledge.get(reveal.id)
        after = self.knowledge[reveal.id] = revealed(before, reveal, action.instance.actor, minute)
        meta = {
            "knowledge": reveal.id,
            "from_scope": before.scope if before else "private",
            "to_scope": after.scope,
            "visibility_to": list(after.visibility_to),
            "reveals": list(reveal.reveals),
            "admission": action.admission,
        }
        self._shown.append((action.admission, len(self._shown), action, meta))

    def _ask_what_follows(self, instance: Instance, triggers: bool, outcome: dict[str, Json], minute: int) -> None:
        if not (instance.process is not None or (triggers and self.setting.options.follow_ups)):
            return
        for raw in asked_follow_ups(self.outside, instance, outcome):
            when, count = self.follow_ups
            self.follow_ups = (minute, count + 1 if when == minute else 1)
            if self.follow_ups[1] > FOLLOW_UPS.default:
                self._reject(_id_of(raw), Fault(Code.LIMIT_EXCEEDED, f"{FOLLOW_UPS.sentence}: {FOLLOW_UPS.default}"))
            else:
                self._submit((raw,), FOLLOWING)

    # Interrupts

    def _grant(self, wishes: list[Wish], minute: int) -> None:
        """External requests of one minute, by the admission of their target, then as they came."""
        known = [(self.actions.get(wish.target), wish) for wish in wishes]
        known.sort(key=lambda pair: pair[0].admission if pair[0] else self.next_admission)
        for action, wish in known:
            match wish.kind:
                case "interrupt":
                    self._interrupt_if_allowed(action, wish, minute)
                case "cancel":
                    self._cancel(action, wish, minute)
                case "resume":
                    self._resume(action, wish, minute)

    def _interrupt_if_allowed(self, action: Action | None, wish: Wish, minute: int) -> None:
        if action is None or action.stage is not Stage.RUNNING:
            reason = "it does not run" if action else "it is unknown or over"
        elif not action.definition.interruptible:
            reason = "it cannot be interrupted"
        elif wish.priority <= action.priority:
            reason = f"its priority {action.priority} is not below {wish.priority}"
        else:
            self._interrupt(action, minute, wish.source, wish.hold_min, action.definition.resume)
            return
        message = f"{wish.target} is not interrupted: {reason}"
        self._diagnose(Code.INTERRUPT_IGNORED, wish.target, message, by=wish.source)

    def _interrupt(self, action: Action, minute: int, by: str, hold: int, resume: Resume) -> None:
        self.queue.cancel(action.ending)
        action.ending = -1
        del self.running[action.admission]
        action.remaining = action.t_end - minute
        meta = {
            "segment": action.segment,
            "d_rem": action.remaining,
            "by": by,
            "resume": resume,
            "admission": action.admission,
        }
        self._interrupted.append((action.admission, len(self._interrupted), action, meta))
        action.segment += 1
        action.stage = Stage.SUSPENDED
        self._free(action)
        match resume:
            case Resume.AUTO if hold:
                action.stage = Stage.HELD
                action.joined = minute + hold
                self.queue.push(minute + hold, JOINING, action)
            case Resume.AUTO:
                self._join(action, minute)
            case Resume.MANUAL:
                pass
            case Resume.DROP:
                self._leave(action)
                self._ask_what_follows(action.instance, False, {"interrupted": minute, "by": by, "t": minute}, minute)

    def _preempt(self, action: Action, minute: int) -> None:
        """Interrupt those in the way, all or none, and those whose verb it is told to interrupt."""
        in_the_way = locks.holders(action)
        wanted = action.definition.interrupts
        if not locks.is_first_everywhere(action):
            if in_the_way:
                self._diagnose(
                    Code.PREEMPT_REFUSED, action.instance.id, f"{action.instance.id} is not first in all its queues"
                )
            return
        for holder in in_the_way:
            if not _yields(holder, action):
                self._diagnose(
                    Code.PREEMPT_REFUSED,
                    action.instance.id,
                    f"{action.instance.id} waits: {holder.instance.id} does not yield",
                    by=holder.instance.id,
                )
                return
        listed = [
            other
            for _, other in sorted(self.running.items())
            if other not in in_the_way and (wanted == "*" or other.instance.verb in wanted)
        ]
        for other in sorted([*in_the_way, *(one for one in listed if _yields(one, action))], key=_admission):
            self._interrupt(other, minute, action.instance.id, 0, other.definition.resume)
        for other in listed:
            if other.stage is Stage.RUNNING:
                message = f"{other.instance.id} does not yield to {action.instance.id}"
                self._diagnose(Code.INTERRUPT_IGNORED, other.instance.id, message, by=action.instance.id)

    def _cancel(self, action: Action | None, wish: Wish, minute: int) -> None:
        if action is None:
            self._diagnose(Code.NOT_CANCELLABLE, wish.target, f"{wish.target} is unknown or over")
        elif action.stage is Stage.RUNNING:
            self._interrupt(action, minute, "cancel", 0, Resume.DROP)
        else:
            self._leave(action)
            for lock in action.locks:
                if lock.holder is None and (first := lock.first()) is not None:
                    self._candidates.append((first.key, first))
            self._ask_what_follows(action.instance, False, {"cancelled": minute, "t": minute}, minute)

    def _resume(self, action: Action | None, wish: Wish, minute: int) -> None:
        if action is None or action.stage is not Stage.SUSPENDED:
            self._diagnose(Code.NOT_RESUMABLE, wish.target, f"{wish.target} is not suspended")
        else:
            self._join(action, minute)

    # What comes out

    def _tell(self, minute: int) -> None:
        """Interrupts, then what came to light, each by admission; they were gathered while the minute went on."""
        if self._interrupted:
            self._interrupted.sort(key=_place)
            for _, _, action, meta in self._interrupted:
                self._emit(Interrupted, action, minute, meta)
            self._interrupted.clear()
        if self._shown:
            self._shown.sort(key=_place)
            for _, _, action, meta in self._shown:
                self._emit(VisibilityChange, action, minute, meta, self._pc_knows(action, meta["knowledge"], minute))
            self._shown.clear()

    def _pc_knows(self, action: Action, item: str, minute: int) -> bool:
        circle = self.setting.circle
        if circle.pc is None:
            return False
        return action.instance.actor == circle.pc or knows(self.knowledge[item], circle.pc, minute, circle)

    def _emit_start(self, action: Action, minute: int) -> None:
        meta: dict[str, Any] = {
            "segment": action.segment,
            "d": action.remaining,
            "t_end": action.t_end - self.epoch_start,
            "waited": minute - action.joined,
            "admission": action.admission,
        }
        if action.meta is not None and action.segment == 0:
            meta.update(action.meta)
        self._emit(Start, action, minute, meta)

    def _emit(
        self, kind: type[WorldEvent], action: Action, minute: int, meta: dict[str, Any], pc: bool | None = None
    ) -> None:
        if not self.recording:
            return
        if self._at[0] != minute:
            self._at = (minute, self.setting.display(minute))
        t = minute - self.epoch_start
        instance = action.instance
        setting = self.setting
        slot = min(t // setting.slot_minutes, setting.last_slot)
        self._out.append(
            kind(
                self.next_event,
                instance.id,
                t,
                self._at[1],
                setting.first_epoch + self.epoch,
                slot,
                instance.actor,
                instance.verb,
                action.seen if pc is None else pc,
                meta,
            )
        )
        self.next_event += 1

    def _turn_away(self, instance: Instance, fault: Fault, minute: int) -> None:
        self._reject(instance.id, fault)
        self._ask_what_follows(instance, False, {"rejected": fault.code, "t": minute}, minute)

    def _reject(self, action_id: str | None, fault: Fault) -> None:
        t = self.minute - self.epoch_start
        self._out.append(Rejection(action_id, fault.code, fault.message, t, self.setting.first_epoch + self.epoch))

    def _diagnose(self, code: Code, action_id: str | None, message: str, by: str | None = None) -> None:
        t = self.minute - self.epoch_start
        self._out.append(Diagnostic(code, action_id, t, message, self.setting.first_epoch + self.epoch, by))

    def _keep_extra(self, instance: Instance, extra: dict[str, Json]) -> None:
        """Fields nobody knows go into the meta of the first start; each name is reported once."""
        self.extras[instance.id] = extra
        new = sorted(extra.keys() - self.reported)
        if new:
            self.reported.update(new)
            self._diagnose(Code.UNKNOWN_FIELDS, instance.id, f"Fields nobody knows: {', '.join(new)}")


def _yields(holder: Action, to: Action) -> bool:
    return holder.definition.interruptible and to.priority > holder.priority


def _admission(action: Action) -> int:
    return action.admission


def _place(entry: tuple[int, int, Action, dict[str, Any]]) -> tuple[int, int]:
    return entry[:2]


def _id_of(raw: object) -> str | None:
    found = raw.get("id") if isinstance(raw, dict) else None
    return found if isinstance(found, str) else None
