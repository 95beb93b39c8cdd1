"""The live form, for a game loop: submit, interrupt, advance, ask why; and processes for people who come from SimPy.

    world = LiveWorld(config)
    world.submit({"id": "A1", "actor": "ann", "verb": "clean", "t": 5})
    for event in world.advance_to(60): ...

With a journal everything is durable before it is told, and user code (hooks, modifiers, processes) is not asked again
on replay: its answers stand in the journal.
"""

import logging
from collections.abc import Callable, Iterable, Mapping
from time import sleep as sleep_seconds
from typing import Any

import msgspec

from pendula.actions.engine import World
from pendula.actions.events import (
    Advance,
    Command,
    Diagnostic,
    End,
    Event,
    Interrupted,
    Rejection,
    Request,
    Start,
    Submit,
    VisibilityChange,
)
from pendula.actions.model import Instance
from pendula.actions.runs.user_code import Hook, Modifiers, Process, Step, UserCode
from pendula.kernel.bodies import Recorder
from pendula.kernel.canonical import Json
from pendula.kernel.disk import Disk
from pendula.kernel.driver import Driver
from pendula.kernel.engine import Outcome, Reason
from pendula.kernel.errors import InputRefused
from pendula.kernel.recording import begin_recording, send

OBSERVED: dict[type, str] = {
    Start: "on_action_start",
    End: "on_action_end",
    Interrupted: "on_interrupt",
    VisibilityChange: "on_visibility_change",
}
log = logging.getLogger(__name__)


class Refused(InputRefused):
    """A wish of a game loop that cannot be granted; facts: `reason`."""

    code = "refused"


class LiveWorld:
    """A world in a game loop. Not for several threads; a server gives each world a thread of its own."""

    def __init__(
        self,
        config: Mapping[str, Any],
        *,
        journal: Disk | None = None,
        hook: Hook | None = None,
        modifiers: Modifiers | None = None,
    ) -> None:
        options = {**(config.get("options") or {})}
        options |= {"follow_ups": True} if hook else {}
        options |= {"ask_modifiers": True} if modifiers else {}
        self._user_code = UserCode(hook, modifiers)
        self._observers: list[object] = []
        self.trouble: list[Exception] = []  # of observers
        self.config: dict[str, Json] = {**config, "options": options}
        self._driver: Driver[Command, Event] | None = None
        engine = World.create(self.config)
        if journal is not None:
            self._driver = begin_recording(engine, self.config, journal, outside=self._user_code)
        self._engine = engine

    @property
    def engine(self) -> World:
        """The engine itself; `engine.current` has locks, resources and knowledge, to look at and not to touch."""
        if self._driver is None:
            return self._engine
        engine = self._driver.engine
        assert isinstance(engine, World)
        return engine

    @property
    def minute(self) -> int:
        return self.engine.now()

    def submit(self, *steps: Step) -> tuple[Event, ...]:
        """Wishes for their minute (`t` or `submitted_at`; now when neither is given); returns rejections at once."""
        return self._apply(Submit(tuple(self._timed(step) for step in steps))).events

    def interrupt(
        self, target: str, priority: int, *, source: str = "outside", hold_min: int = 0, t: int | None = None
    ) -> None:
        """Ask for an interrupt in a minute, the present one unless given; it happens, or not, when time goes on."""
        form: Json = {"target": target, "priority": priority, "source": source, "hold_min": hold_min}
        self._ask(Request(interrupts=({"t": self._asked_minute(t), **form},)))  # type: ignore[dict-item]

    def cancel(self, action_id: str, *, t: int | None = None) -> None:
        """Take an action back in a minute, the present one unless given: one that runs, waits or is still to come."""
        self._ask(Request(commands=({"t": self._asked_minute(t), "cancel": action_id},)))

    def resume(self, action_id: str, *, t: int | None = None) -> None:
        """Let a suspended action join its queues again, in a minute, the present one unless given."""
        self._ask(Request(commands=({"t": self._asked_minute(t), "resume": action_id},)))

    def _asked_minute(self, t: int | None) -> int:
        return self.minute if t is None else t

    def advance_to(self, minute: int) -> tuple[Event, ...]:
        """All that happens up to a minute of the run; at the end of an epoch its first half, the ends."""
        return self._apply(Advance(minute)).events

    def advance_until(self, found: Callable[[Event], bool], latest: int) -> tuple[Event, ...]:
        """All that happens until an event is found (its minute is lived to the end), or until `latest`."""
        events: list[Event] = []
        while self.minute < latest and not any(map(found, events)):
            due = self.engine.next_due()
            to = latest if due is None else due
            events += self.advance_to(min(to, latest))
            if due is not None and due > latest:
                break
        return tuple(events)

    def play(
        self,
        until: int,
        *,
        seconds_per_minute: float,
        each: Callable[[Event], None],
        sleep: Callable[[float], None] = sleep_seconds,
    ) -> None:
        """Let time go on at a pace, minute by minute of events: one minute of the world lasts that many seconds."""
        while self.minute < until:
            due = self.engine.next_due()
            to = until if due is None else min(max(due, self.minute + 1), until)
            sleep((to - self.minute) * seconds_per_minute)
            for event in self.advance_to(to):
                each(event)

    def run(self, process: Process, name: str | None = None) -> str:
        """Start a process: what it yields is done, and it is sent how that went: `{"ended": minute}` and the like."""
        key = name or f"process-{len(self._user_code.processes)}"
        if key in self._user_code.processes:
            raise Refused(f"There is a process {key!r} already", reason="name in use")
        first = self._user_code.begin(key, process, self.minute)
        if first is not None:
            self._apply(Submit((first,)))
        return key

    def observe(self, observer: object) -> None:
        """Call its `on_action_start`, `on_action_end`, `on_interrupt` and `on_visibility_change`, as far as it has
        them, with each event in order. What goes wrong there is logged and kept in `trouble`; it disturbs nothing."""
        self._observers.append(observer)

    def why(self, action_id: str) -> Reason:
        return self.engine.why({"action": action_id})

    def state(self) -> bytes:
        """The world as bytes, at any moment between two calls. Processes are not part of it: they are user code."""
        return self.engine.state()

    def close(self) -> None:
        if self._driver is not None:
            self._driver.close()

    def _timed(self, step: Step) -> Json | Instance:
        if isinstance(step, Instance):
            late = step.t is None and step.submitted_at is None
            return msgspec.structs.replace(step, t=self.minute) if late else step
        return step if "t" in step or "submitted_at" in step else {**step, "t": self.minute}

    def _ask(self, request: Request) -> None:
        for event in self._apply(request).events:
            if isinstance(event, Diagnostic | Rejection):
                raise Refused(event.message, reason=event.code)

    def _apply(self, command: Command) -> Outcome[Event]:
        if self._driver is None:
            self._engine.outside = Recorder(self._user_code)
            outcome = self._engine.apply(command)
        else:
            outcome = send(self._driver, command, "live")
        if outcome.refusal is not None:
            raise Refused(outcome.refusal.message, reason=outcome.refusal.code)
        for observer in self._observers:
            self._show(observer, outcome.events)
        return outcome

    def _show(self, observer: object, events: Iterable[Event]) -> None:
        for event in events:
            method = getattr(observer, OBSERVED.get(type(event), ""), None)
            if method is None:
                continue
            try:
                method(event)
            except Exception as trouble:
                log.exception("an observer failed")
                self.trouble.append(trouble)
