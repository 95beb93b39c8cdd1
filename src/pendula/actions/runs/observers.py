"""Observers: callbacks for each event, in order. Their exceptions do not affect the world."""

import logging
from collections import deque
from collections.abc import Iterable

from pendula.actions.events import (
    Diagnostic,
    End,
    EpochBegan,
    Event,
    Interrupted,
    Rejection,
    Start,
    VisibilityChange,
)

OBSERVED: dict[type, str] = {
    Start: "on_action_start",
    End: "on_action_end",
    Interrupted: "on_interrupt",
    VisibilityChange: "on_visibility_change",
    Rejection: "on_rejection",
    Diagnostic: "on_diagnostic",
    EpochBegan: "on_epoch",
}
log = logging.getLogger(__name__)


class Observers:
    """Observers of one world. If an observer calls the world, the new events are delivered after the current ones."""

    def __init__(self) -> None:
        self.errors: list[Exception] = []
        self._all: list[object] = []
        self._pending: deque[Event] = deque()
        self._delivering = False

    def add(self, observer: object) -> None:
        self._all.append(observer)

    def deliver(self, events: Iterable[Event]) -> None:
        if not self._all:
            return
        self._pending.extend(events)
        if self._delivering:
            return  # an observer called the world: the outer loop delivers these events
        self._delivering = True
        try:
            while self._pending:
                self._notify(self._pending.popleft())
        finally:
            self._delivering = False

    def _notify(self, event: Event) -> None:
        for observer in self._all:
            method = getattr(observer, OBSERVED[type(event)], None)
            if method is None:
                continue
            try:
                method(event)
            except Exception as error:
                log.exception("an observer failed")
                self.errors.append(error)
