"""The world: actors' wishes in, what happens in which minute out. Tickless: time jumps from event to event.

Within a minute the order is fixed: ends, interrupts, visibility changes, admissions, starts. Minutes are counted from
the start of the run; epochs are a way of counting them, so that k epochs in a row are one long epoch. At the last
minute of an epoch only ends happen; everything else of that minute is the first minute of the next.
"""

from collections.abc import Iterable, Mapping
from typing import Any, ClassVar, Self

from pendula.actions.configuration import Setting
from pendula.actions.events import Advance, Command, EpochBegan, Event, Request, Submit
from pendula.actions.explain import why
from pendula.actions.minute.advance import advance
from pendula.actions.minute.submission import request, submit
from pendula.actions.questions import NoAnswers
from pendula.actions.saving import carry_of, restore, save, take_up
from pendula.actions.sentences import sentence_of
from pendula.actions.state.world_state import WorldState
from pendula.kernel.canonical import Json
from pendula.kernel.engine import Outcome, Outside, Reason


class World:
    """The engine of the scheduler `actions`; satisfies `pendula.kernel.engine.Engine`. Dispatches, decides nothing."""

    scheduler: ClassVar[str] = "actions"
    decisions: ClassVar[int] = 1
    time_unit: ClassVar[str] = "min"
    commands: ClassVar[Any] = Command
    events: ClassVar[Any] = Event

    __slots__ = ("current",)

    def __init__(self, current: WorldState) -> None:
        self.current = current  # to look at; only commands change it

    @classmethod
    def create(cls, config: Json) -> Self:
        """A fresh world, or the continuation of a carry in the configuration; `InputRefused` for a bad one."""
        fresh = _fresh(config)
        if fresh.setting.carry is not None:
            take_up(fresh, fresh.setting.carry)
        else:
            fresh.expect_expiries()
        return cls(fresh)

    @classmethod
    def from_state(cls, config: Json, state: bytes) -> Self:
        fresh = _fresh(config)
        restore(fresh, state)
        return cls(fresh)

    @property
    def outside(self) -> Outside:
        """Who is asked for modifiers and for what follows."""
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
                    return Outcome(refusal=world.setting.no_such_time(world.clock.minute, to))
                advance(world, to)
                answer = {"now": world.clock.minute}
        if world.listener is not None:
            world.writer.tell(world.listener)
        return Outcome(world.writer.take(), answer)

    def state(self) -> bytes:
        return save(self.current)

    def carry(self) -> dict[str, Json]:
        """Everything the next run needs; only at the end of an epoch."""
        return carry_of(self.current)

    def now(self) -> int:
        return self.current.clock.minute

    def next_due(self) -> int | None:
        return self.current.next_due()

    def header(self) -> EpochBegan:
        """What the chunk of the present epoch begins with: who runs on from before."""
        return self.current.header()

    @staticmethod
    def sentence(code: str, facts: Mapping[str, Json]) -> str:
        return sentence_of(code, facts)

    def why(self, question: Json) -> Reason:
        """`{"action": id}` and `{"lock": name}`: where the action stands and what it waits for."""
        return why(self.current, question)

    def broken(self) -> Iterable[str]:
        return self.current.broken()


def _fresh(config: Json) -> WorldState:
    return WorldState(Setting.read(config), NoAnswers())
