"""Those who are told of each event as it comes: called in the order of events, unable to disturb."""

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
    """Observers of one world. One that calls the world in turn is told of the rest first."""

    def __init__(self) -> None:
        self.trouble: list[Exception] = []
        self._all: list[object] = []
        self._coming: deque[Event] = deque()
        self._showing = False

    def add(self, observer: object) -> None:
        self._all.append(observer)

    def show(self, events: Iterable[Event]) -> None:
        if not self._all:
            return
        self._coming.extend(events)
        if self._showing:
            return  # an observer called the world: whoever shows goes on with these
        self._showing = True
        try:
            while self._coming:
                self._tell(self._coming.popleft())
        finally:
            self._showing = False

    def _tell(self, event: Event) -> None:
        for observer in self._all:
            method = getattr(observer, OBSERVED[type(event)], None)
            if method is None:
                continue
            try:
                method(event)
            except Exception as trouble:
                log.exception("an observer failed")
                self.trouble.append(trouble)
