"""Who waits for a tick of a served fleet, and whose wishes go into it.

A wish that nobody can decide upon is the trouble of whoever has it and of nobody else: a tick that fails is followed by
one without wishes, and then those of the tick that failed are tried in halves, until the one is found that is refused.
"""

import asyncio
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Self

from pendula.fleet.contracts.traffic import OperatorAction, OperatorAnswer
from pendula.fleet.events import FleetEvent, OperatorAnswered, TaskEventRefused
from pendula.fleet.operators import is_same
from pendula.fleet.tasks import TaskEvent
from pendula.kernel.errors import PendulaError

Asked = tuple[OperatorAction, asyncio.Future[OperatorAnswer]]
Reported = tuple[TaskEvent, asyncio.Future[TaskEventRefused | None]]
Said = tuple[None, asyncio.Future[None]]


@dataclass(frozen=True, slots=True)
class Wishes:
    """What people want of one tick."""

    actions: Sequence[Asked] = ()
    events: Sequence[Reported] = ()

    @property
    def count(self) -> int:
        return len(self.actions) + len(self.events)

    def halves(self) -> tuple[Self, Self]:
        """Two parts of several, neither of them empty."""
        a, e = len(self.actions) // 2, (len(self.events) + 1) // 2
        return type(self)(self.actions[:a], self.events[:e]), type(self)(self.actions[a:], self.events[e:])

    def still_waiting(self) -> Self:
        """Without those of people who left, or were told that nothing is known."""
        return type(self)(_unanswered(self.actions), _unanswered(self.events))


@dataclass(frozen=True, slots=True)
class Waiting:
    """Whoever waits for one tick; `said_again` are those of the tick before, which failed."""

    wishes: Wishes
    said: Sequence[Said]
    said_again: Sequence[Said]

    def all(self) -> Iterator[tuple[object, asyncio.Future[Any]]]:
        for line in (self.wishes.actions, self.wishes.events, self.said, self.said_again):
            yield from line

    def answer(self, told: Sequence[FleetEvent]) -> None:
        """Tell whoever waits what the tick said; whoever asked and left is not waited for."""
        answers = {one.answer.actionId: one.answer.answer for one in told if isinstance(one, OperatorAnswered)}
        for action, answered in self.wishes.actions:
            if not answered.done() and action.actionId in answers:
                answered.set_result(answers[action.actionId])
        refused = [one for one in told if isinstance(one, TaskEventRefused)]
        for event, heard in self.wishes.events:
            if not heard.done():
                heard.set_result(next((one for one in refused if one.event == event), None))
        for _, written in (*self.said_again, *self.said):
            if not written.done():
                written.set_result(None)


@dataclass(slots=True)
class WaitingLine:
    """All who wait for ticks that are to come. Belongs to the event loop."""

    actions: list[Asked] = field(default_factory=list)
    events: list[Reported] = field(default_factory=list)
    said: list[Said] = field(default_factory=list)
    _said_again: Sequence[Said] = ()
    # Parts of a tick that failed, each to be tried alone.
    _apart: deque[Wishes] = field(default_factory=deque)
    _wary: bool = False

    def take(self) -> Waiting:
        """Whoever waits for the next tick."""
        waiting = Waiting(self._next_wishes(), self.said, self._said_again)
        self.said, self._said_again, self._wary = [], (), False
        return waiting

    def _next_wishes(self) -> Wishes:
        if self._wary:
            return Wishes()
        while self._apart:
            part = self._apart.popleft().still_waiting()
            if part.count:
                return part
        now, self.actions = _one_of_an_id(self.actions)
        events, self.events = self.events, []
        return Wishes(now, events)

    def failed(self, waiting: Waiting, error: PendulaError, *, again: bool, guilty: bool) -> None:
        """A tick left no trace. Who waits to hear of what is said `again` in the next one goes on waiting; where a wish
        may be `guilty` of it, so do those who wished, unless it can only be that one."""
        self._wary = True
        self._said_again, said = (waiting.said, ()) if again else ((), waiting.said)
        refused = waiting.wishes
        if guilty and refused.count > 1:
            self._apart.extendleft(reversed(refused.halves()))
            refused = Wishes()
        refuse(Waiting(refused, said, waiting.said_again).all(), error)

    def end(self, error: PendulaError) -> None:
        """Nobody waits for a tick that does not come."""
        refuse((*self.actions, *self.events, *self.said, *self._said_again), error)
        for one in self._apart:
            refuse((*one.actions, *one.events), error)


def refuse(asked: Iterable[tuple[object, asyncio.Future[Any]]], error: PendulaError) -> None:
    for _, waiting in asked:
        if not waiting.done():
            waiting.set_exception(error)


def _unanswered(asked: Sequence[tuple[Any, asyncio.Future[Any]]]) -> list[Any]:
    return [one for one in asked if not one[1].done()]


def _one_of_an_id(asked: Sequence[Asked]) -> tuple[list[Asked], list[Asked]]:
    """What goes into this tick, and what waits for the next. An answer is known by the id of its action, so another
    action of that id comes after it, and is refused; one that was sent again meanwhile has the same answer."""
    first: dict[str, OperatorAction] = {}
    now: list[Asked] = []
    later: list[Asked] = []
    for one in asked:
        action, _ = one
        (now if is_same(first.setdefault(action.actionId, action), action) else later).append(one)
    return now, later
