"""Requests that wait for the next tick of a served fleet.

A request that makes a tick fail must not fail the others: after a failed tick comes one without requests, and then the
requests of the failed tick are tried in halves, until only the one that causes the failure is rejected.
"""

import asyncio
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Self

from pendula.fleet.contracts import OperatorAction, OperatorAnswer
from pendula.fleet.events import FleetEvent, OperatorAnswered, TaskEventRefused
from pendula.fleet.tasks import TaskEvent
from pendula.fleet.tasks.operators import is_same
from pendula.kernel.errors import PendulaError

PendingAction = tuple[OperatorAction, asyncio.Future[OperatorAnswer]]
PendingEvent = tuple[TaskEvent, asyncio.Future[TaskEventRefused | None]]
PendingWrite = tuple[None, asyncio.Future[None]]


@dataclass(frozen=True, slots=True)
class RequestBatch:
    """The requests of one tick."""

    actions: Sequence[PendingAction] = ()
    events: Sequence[PendingEvent] = ()

    @property
    def count(self) -> int:
        return len(self.actions) + len(self.events)

    def halves(self) -> tuple[Self, Self]:
        """Two non-empty parts of at least two requests."""
        a, e = len(self.actions) // 2, (len(self.events) + 1) // 2
        return type(self)(self.actions[:a], self.events[:e]), type(self)(self.actions[a:], self.events[e:])

    def unanswered(self) -> Self:
        """Without requests that were cancelled or timed out."""
        return type(self)(_unanswered(self.actions), _unanswered(self.events))


@dataclass(frozen=True, slots=True)
class Waiting:
    """All that waits for one tick. `writes` wait until the journal has the tick; `retried_writes` are those of the tick
    before, which failed."""

    batch: RequestBatch
    writes: Sequence[PendingWrite]
    retried_writes: Sequence[PendingWrite]

    def all(self) -> Iterator[tuple[object, asyncio.Future[Any]]]:
        for line in (self.batch.actions, self.batch.events, self.writes, self.retried_writes):
            yield from line

    def answer(self, events: Sequence[FleetEvent]) -> None:
        """Answer the requests with the events of their tick; cancelled requests are skipped."""
        answers = {
            event.answer.actionId: event.answer.answer for event in events if isinstance(event, OperatorAnswered)
        }
        for action, action_answer in self.batch.actions:
            if not action_answer.done() and action.actionId in answers:
                action_answer.set_result(answers[action.actionId])
        refusals = [event for event in events if isinstance(event, TaskEventRefused)]
        for task_event, event_answer in self.batch.events:
            if not event_answer.done():
                refusal = next((refusal for refusal in refusals if refusal.event == task_event), None)
                event_answer.set_result(refusal)
        for _, write in (*self.retried_writes, *self.writes):
            if not write.done():
                write.set_result(None)


@dataclass(slots=True)
class RequestQueue:
    """Everything that waits for ticks to come. Only the event loop uses it."""

    actions: list[PendingAction] = field(default_factory=list)
    events: list[PendingEvent] = field(default_factory=list)
    writes: list[PendingWrite] = field(default_factory=list)
    _retried_writes: Sequence[PendingWrite] = ()
    # Parts of the requests of a failed tick, each for a tick of its own.
    _parts: deque[RequestBatch] = field(default_factory=deque)
    _skip_requests: bool = False

    def take(self) -> Waiting:
        """Take what the next tick answers."""
        waiting = Waiting(self._next_batch(), self.writes, self._retried_writes)
        self.writes, self._retried_writes, self._skip_requests = [], (), False
        return waiting

    def _next_batch(self) -> RequestBatch:
        if self._skip_requests:
            return RequestBatch()
        while self._parts:
            part = self._parts.popleft().unanswered()
            if part.count:
                return part
        now, self.actions = _first_of_each_id(self.actions)
        events, self.events = self.events, []
        return RequestBatch(now, events)

    def failed(self, waiting: Waiting, error: PendulaError, *, retried: bool, may_be_cause: bool) -> None:
        """Handle a failed tick, which left no trace.

        `retried`: the next tick repeats its operations, so its writes wait for that. `may_be_cause`: one of its
        requests may have made it fail; several requests wait to be tried in parts, a single one is rejected.
        """
        self._skip_requests = True
        self._retried_writes, writes = (waiting.writes, ()) if retried else ((), waiting.writes)
        rejected = waiting.batch
        if may_be_cause and rejected.count > 1:
            self._parts.extendleft(reversed(rejected.halves()))
            rejected = RequestBatch()
        reject(Waiting(rejected, writes, waiting.retried_writes).all(), error)

    def end(self, error: PendulaError) -> None:
        """Reject everything: no tick comes any more."""
        reject((*self.actions, *self.events, *self.writes, *self._retried_writes), error)
        for part in self._parts:
            reject((*part.actions, *part.events), error)


def reject(pending: Iterable[tuple[object, asyncio.Future[Any]]], error: PendulaError) -> None:
    for _, answer in pending:
        if not answer.done():
            answer.set_exception(error)


def _unanswered(pending: Sequence[tuple[Any, asyncio.Future[Any]]]) -> list[Any]:
    return [entry for entry in pending if not entry[1].done()]


def _first_of_each_id(pending: Sequence[PendingAction]) -> tuple[list[PendingAction], list[PendingAction]]:
    """The actions of this tick and those of the next. Answers are matched by action id, so a different action with the
    same id waits for the next tick and is rejected there; a repeated action gets the same answer."""
    first: dict[str, OperatorAction] = {}
    now: list[PendingAction] = []
    later: list[PendingAction] = []
    for entry in pending:
        action, _ = entry
        (now if is_same(first.setdefault(action.actionId, action), action) else later).append(entry)
    return now, later
