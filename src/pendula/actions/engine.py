"""The engine of `actions`: submissions and requests in, events out. Tickless: time jumps from event to event.

Within a minute the order is fixed: ends, interrupts, visibility changes, admissions, starts. Minutes count from the
start of the run, so that k consecutive epochs equal one long epoch. In the last minute of an epoch only ends happen;
everything else in that minute belongs to the next epoch.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Any, ClassVar, Self

import msgspec

from pendula.actions.configuration import Setting
from pendula.actions.explain import why
from pendula.actions.messages import Advance, Command, EpochBegan, Event, NoAnswers, Request, Submit, read_requests
from pendula.actions.minute.advance import advance
from pendula.actions.minute.follow_ups import is_wait, queue_followers, read_new, reject_submission, start_wait
from pendula.actions.minute.world_state import LATE, REQUESTED, SUBMITTED, WorldState
from pendula.actions.model import Instance
from pendula.actions.rules.validation import Fault
from pendula.actions.saving import carry_of, restore, save, take_up
from pendula.actions.sentences import sentence_of
from pendula.kernel.canonical import Json
from pendula.kernel.engine import Outcome, Outside, Reason


def submit(world: WorldState, raws: Iterable[object]) -> int:
    """Queue instances for their minute; returns how many were taken."""
    late: list[tuple[int, Instance]] = []
    taken = 0
    setting = world.setting
    now, latest = world.clock.minute, setting.latest
    push: Callable[[int, int, Instance], object] = world.queue.push
    if world.pending is not None or world.deferred is not None:
        push = world.schedule
    used = world.used_ids
    for raw in raws:
        if type(raw) is Instance and raw.params is None and type(raw.t) is int and raw.id not in used:
            # An Instance of Python code, which needs no check.
            used.add(raw.id)
            instance = raw
        else:
            if is_wait(raw):
                if (refused := start_wait(world, raw, now)) is not None:
                    reject_submission(world, raw, refused, now)
                else:
                    taken += 1
                continue
            read = read_new(world, raw, True)
            if isinstance(read, Fault):
                reject_submission(world, raw, read, now)
                continue
            instance = read
        minute = instance.t
        if minute is None or not now <= minute <= latest:
            when = setting.submitted(instance)
            if isinstance(when, Fault):
                reject_submission(world, instance, when, now)
                continue
            minute, micros = when
            if micros < setting.micros_of(now):
                late.append((micros, instance))
                continue
        push(minute, SUBMITTED, instance)
        taken += 1
    late.sort(key=lambda entry: entry[0])
    for _, instance in late:
        push(now, LATE, instance)
    queue_followers(world, now)
    return taken + len(late)


def request(world: WorldState, interrupts: Iterable[Json], commands: Iterable[Json]) -> None:
    """Queue interrupts, cancellations and resumptions; requests for the past apply now."""
    now = world.clock.minute
    for request in read_requests(interrupts, commands, world.setting):
        if isinstance(request, Fault):
            world.writer.diagnose(request.code, None, request.reason, request.facts)
        else:
            minute = max(request.minute, now)
            world.queue.push(minute, REQUESTED, msgspec.structs.replace(request, minute=minute))


class World:
    """The engine of the scheduler `actions`; satisfies `pendula.kernel.engine.Engine`."""

    scheduler: ClassVar[str] = "actions"
    decisions: ClassVar[int] = 1
    time_unit: ClassVar[str] = "min"
    commands: ClassVar[Any] = Command
    events: ClassVar[Any] = Event

    __slots__ = ("current",)

    def __init__(self, current: WorldState) -> None:
        self.current = current  # read-only for callers; only commands change it

    @classmethod
    def create(cls, config: Json) -> Self:
        """A new world, or the continuation of a carry. Raises `InputRefused` for an invalid configuration."""
        fresh = _fresh(config)
        if fresh.setting.carry is not None:
            take_up(fresh, fresh.setting.carry)
        else:
            fresh.schedule_expiries()
        return cls(fresh)

    @classmethod
    def from_state(cls, config: Json, state: bytes) -> Self:
        fresh = _fresh(config)
        restore(fresh, state)
        return cls(fresh)

    @property
    def outside(self) -> Outside:
        """Answers questions about modifiers and follow-ups."""
        return self.current.outside

    @outside.setter
    def outside(self, outside: Outside) -> None:
        self.current.outside = outside

    def apply(self, command: Command) -> Outcome[Event]:
        world = self.current
        answer: Json = None
        match command:
            case Submit(actions):
                answer = {"taken": submit(world, actions)}
            case Request(interrupts, commands):
                request(world, interrupts, commands)
            case Advance(to):
                if type(to) is not int or not world.clock.minute <= to <= world.setting.latest:
                    return Outcome(refusal=world.setting.refuse_time(world.clock.minute, to))
                advance(world, to)
                answer = {"now": world.clock.minute}
        if world.listener is not None:
            world.writer.publish(world.listener)
        return Outcome(world.writer.take(), answer)

    def state(self) -> bytes:
        return save(self.current)

    def carry(self) -> dict[str, Json]:
        """The state for the next run; available only at the end of an epoch."""
        return carry_of(self.current)

    def now(self) -> int:
        return self.current.clock.minute

    def next_due(self) -> int | None:
        return self.current.next_due()

    def header(self) -> EpochBegan:
        """The header of the current epoch, with the actions carried into it."""
        return self.current.header()

    @staticmethod
    def sentence(code: str, facts: Mapping[str, Json]) -> str:
        return sentence_of(code, facts)

    def why(self, question: Json) -> Reason:
        """Answer `{"action": id}` or `{"lock": name}`: the stage of the action and what it waits for."""
        return why(self.current, question)

    def broken(self) -> Iterable[str]:
        return self.current.broken()


def _fresh(config: Json) -> WorldState:
    return WorldState(Setting.read(config), NoAnswers())
