"""The live form, for a game loop: submit, interrupt, advance, ask why; and processes for people who come from SimPy.

    world = LiveWorld(config)
    world.submit({"id": "A1", "actor": "ann", "verb": "clean", "t": 5})
    for event in world.advance_to(60): ...

With a journal everything is durable before it is told, and user code (hooks, modifiers, processes) is not asked again
on replay: its answers stand in the journal. After a crash `LiveWorld.recover` goes on.
"""

from collections import deque
from collections.abc import Callable, Iterator, Mapping
from datetime import datetime
from decimal import Decimal
from os import PathLike
from time import sleep as sleep_seconds
from typing import Any, Self

import msgspec

from pendula.actions.engine import World
from pendula.actions.events import (
    Advance,
    Command,
    Diagnostic,
    EpochBegan,
    Event,
    Rejection,
    Request,
    Submit,
)
from pendula.actions.gantt.timeline import Timeline
from pendula.actions.model import Instance
from pendula.actions.rules.validation import journalled, read_instance
from pendula.actions.rules.visibility import knows
from pendula.actions.runs.entrance import (
    Refused,
    WorldUnusable,
    disk_at,
    let_go,
    missing_user_code,
    opened_at,
    whole,
    with_user_code,
)
from pendula.actions.runs.journals import answers_in, history_of, processes_in
from pendula.actions.runs.observers import Observers
from pendula.actions.runs.plain_values import submission_with_text, with_texts
from pendula.actions.runs.standing import Doing, doing
from pendula.actions.runs.user_code import Hook, Modifiers, Process, Step, UserCode, UserCodeFailed
from pendula.actions.runs.what_if import Estimate, Modifying, what_if
from pendula.actions.sentences import sentence_of
from pendula.kernel.bodies import Recorder
from pendula.kernel.canonical import Json
from pendula.kernel.disk import Disk
from pendula.kernel.driver import Driver, EngineDefect
from pendula.kernel.engine import Outcome, Reason
from pendula.kernel.errors import NotCanonical
from pendula.kernel.recording import begin_recording, send
from pendula.kernel.wording import shown

# As many events are kept for pictures; a picture of more could not be read.
MOST_DRAWN = 20_000


class LiveWorld:
    """A world in a game loop. Not for several threads; a server gives each world a thread of its own."""

    def __init__(
        self,
        config: Mapping[str, Any],
        *,
        journal: Disk | str | PathLike[str] | None = None,
        hook: Hook | None = None,
        modifiers: Modifiers | None = None,
    ) -> None:
        """A fresh world; with a `journal`, a new folder, everything that is told is durable before."""
        config = with_user_code(with_texts(config) if isinstance(config, Mapping) else config, hook, modifiers)
        engine = World.create(config)
        user_code = UserCode(hook, modifiers)
        disk = None if journal is None else disk_at(journal)
        driver = None if disk is None else begin_recording(engine, config, disk, outside=user_code)
        self._set_up(config, user_code, engine, driver, disk)

    @classmethod
    def from_state(
        cls, config: Mapping[str, Any], state: bytes, *, hook: Hook | None = None, modifiers: Modifiers | None = None
    ) -> Self:
        """The world that gave `state`, made with the same configuration. Processes are not part of a state."""
        config = with_user_code(config, hook, modifiers)
        if not isinstance(state, bytes):
            raise Refused(f"A state is bytes, as `state()` gives them, not {shown(state)}", reason="no state")
        world = cls.__new__(cls)
        world._set_up(config, UserCode(hook, modifiers), World.from_state(config, state))
        return world

    @classmethod
    def recover(
        cls,
        journal: Disk | str | PathLike[str],
        *,
        hook: Hook | None = None,
        modifiers: Modifiers | None = None,
        processes: Mapping[str, Process] | None = None,
    ) -> Self:
        """The world as its journal left it. To go on it needs the user code that it asked before: `hook`, `modifiers`,
        and fresh generators under the names of the `processes`, which do again what they did. Without its `hook` or
        `modifiers` it can be read, and refuses commands. Raises `WrongJournal` for that of another scheduler."""
        user_code = UserCode(hook, modifiers)
        disk = disk_at(journal)
        opened = opened_at(disk)
        try:
            driver: Driver[Command, Event] = Driver.recover(opened, lambda _: World, outside=user_code)
            engine = driver.engine
            assert isinstance(engine, World)
            begun = processes_in(opened) if processes else set()
            found = {name: one for name, one in (processes or {}).items() if name in begun}
            if found:
                user_code.repeat(found, answers_in(opened))
        except BaseException:
            opened.close()
            raise
        world = cls.__new__(cls)
        config = opened.header.config
        assert isinstance(config, Mapping)
        world._set_up(config, user_code, engine, driver, disk)
        world._recent = None
        world._read_only = missing_user_code(engine, hook, modifiers)
        for name, process in (processes or {}).items():
            if name not in found:  # the crash came before its first step
                world.run(process, name)
        return world

    def _set_up(
        self,
        config: Mapping[str, Any],
        user_code: UserCode,
        engine: World,
        driver: Driver[Command, Event] | None = None,
        disk: Disk | None = None,
    ) -> None:
        self.config: dict[str, Json] = dict(config)
        self._user_code = user_code
        self._engine = engine
        self._driver, self._disk = driver, disk
        self._observers = Observers()
        self._busy = False
        self._unusable: WorldUnusable | None = None
        self._read_only: Refused | None = None
        self._untold: list[Event] = []
        # What a picture shows; None in a recovered world before its first picture, so that recovering stays quick.
        self._recent: deque[Event] | None = deque(maxlen=MOST_DRAWN)

    # What there is to see

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

    @property
    def trouble(self) -> list[Exception]:
        """What observers raised."""
        return self._observers.trouble

    def next_due(self) -> int | None:
        """The earliest minute up to which something would happen; None when nothing is to come."""
        return self.engine.next_due()

    def why(self, action_id: str) -> Reason:
        """Where an action stands, and what it waits for."""
        return self.engine.why({"action": action_id})

    def knows(self, actor: str, item: str) -> bool:
        """Whether an actor can know of an item now."""
        world = self.engine.current
        found = world.knowledge.get(item)
        return found is not None and knows(found, actor, world.clock.minute, world.setting.circle)

    def place_of(self, actor: str) -> str | None:
        """Where the last action that says so took its actor; None when nobody ever said."""
        return self.engine.current.places.get(actor)

    def doing(self, actor: str | None = None) -> tuple[Doing, ...]:
        """Who does what or waits for it now, one actor or all; in the order of admission."""
        return doing(self.engine.current, actor)

    def locks(self) -> dict[str, dict[str, Any]]:
        """Every lock that was ever named: who holds it (`held_by`) and who waits (`queue`)."""
        return self.engine.current.locks.rows()

    def resources(self) -> dict[str, dict[str, Decimal]]:
        """What there is of each resource: `available` and `reserved`."""
        return self.engine.current.resources.rows()

    def what_if(self, step: Step, *, until: int | None = None) -> Estimate:
        """When a wish would start, without doing it, as far as it can be known now."""
        self._refuse_if_it_cannot_go_on()
        if not isinstance(step, Mapping | Instance):
            raise Refused(f"A wish is an object or an Instance, not {shown(step)}", reason="no wish")
        wish = self._timed(step)
        given = dict(wish) if isinstance(wish, Mapping) else wish.members()
        given = {name: value for name, value in given.items() if value is not None}
        action_id = given.setdefault("id", "what if")
        copy = type(self.engine).from_state(self.config, self.engine.state())
        copy.outside = Modifying(self._user_code)
        return what_if(copy, given, str(action_id), until)

    def timeline(self, title: str = "") -> Timeline:
        """A picture of what happened lately, up to 20 000 events; a notebook shows it by itself."""
        if self._recent is None:
            self._recent = deque(self.history(), maxlen=MOST_DRAWN)
        return Timeline.of(self.engine.current, tuple(self._recent), title)

    def history(self) -> Iterator[Event]:
        """All that the journal has, from the header of its first epoch on; for logs that lost track."""
        if self._driver is None:
            raise Refused("A world without a journal keeps no history", reason="no journal")
        self._driver.flush()
        return history_of(self._driver.journal, type(self.engine))

    def header(self) -> EpochBegan:
        """What the chunk of the present epoch begins with, for `Logs`."""
        return self.engine.header()

    def state(self) -> bytes:
        """The world as bytes, at any moment between two calls. Processes are not part of it: they are user code."""
        self._refuse_if_unusable()
        return self.engine.state()

    # What is asked of it

    def submit(self, *steps: Step) -> tuple[Event, ...]:
        """Wishes for their minute (`t` or `submitted_at`; now when neither is given); returns rejections at once."""
        timed = tuple(self._timed(step) for step in steps)
        try:
            return self._told(self._apply(Submit(timed)).events)
        except NotCanonical:
            # Data may have floats; what still cannot be written down is refused for good.
            return self._told(self._apply(Submit(tuple(journalled(step) for step in timed))).events)

    def interrupt(
        self, target: str, priority: int, *, source: str = "outside", hold_min: int = 0, t: int | None = None
    ) -> None:
        """Ask for an interrupt in a minute, the present one unless given; it happens, or not, when time goes on."""
        form: dict[str, Json] = {"target": target, "priority": whole("priority", priority), "source": source}
        form |= {"hold_min": whole("hold_min", hold_min), "t": self._asked_minute(t)}
        self._ask(Request(interrupts=(form,)))

    def cancel(self, action_id: str, *, t: int | None = None, force: bool = False) -> None:
        """Take an action back in a minute, the present one unless given: one that runs, waits or is still to come.

        One that runs and cannot be interrupted is ended only with `force`; without, that is a diagnostic.
        """
        form: dict[str, Json] = {"t": self._asked_minute(t), "cancel": action_id}
        self._ask(Request(commands=(form | {"force": True} if force else form,)))

    def resume(self, action_id: str, *, t: int | None = None) -> None:
        """Let a suspended action join its queues again, in a minute, the present one unless given."""
        self._ask(Request(commands=({"t": self._asked_minute(t), "resume": action_id},)))

    def advance_to(self, minute: int) -> tuple[Event, ...]:
        """All that happens up to a minute of the run; at the end of an epoch its first half, the ends."""
        return self._told(self._apply(Advance(whole("minute", minute))).events)

    def advance_until(self, found: Callable[[Event], bool], latest: int) -> tuple[Event, ...]:
        """All that happens until an event is found (its minute is lived to the end), or until `latest`."""
        events: list[Event] = []
        self._refuse_if_too_far("latest", latest)
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
        self._refuse_if_too_far("until", until)
        while self.minute < until:
            due = self.engine.next_due()
            to = until if due is None else min(max(due, self.minute + 1), until)
            sleep((to - self.minute) * seconds_per_minute)
            for event in self.advance_to(to):
                each(event)

    def run(self, process: Process, name: str | None = None) -> str:
        """Start a process: what it yields is done, and it is sent how that went: `{"ended": minute}` and the like.

        What its first step gave at once, a rejection for example, comes with the next call that returns events.
        """
        key = name or f"process-{len(self._user_code.processes)}"
        if key in self._user_code.processes:
            raise Refused(f"There is a process {key!r} already", reason="name in use")
        self._refuse_if_it_cannot_go_on()
        number = 0
        while f"{key}-{number}" in self.engine.current.used_ids:
            number += 1  # a process of that name was there before the world was found again
        first = self._user_code.begin(key, process, self.minute, number)
        if first is not None:
            self._untold += self._apply(Submit((first,))).events
        return key

    def observe(self, observer: object) -> None:
        """Call its `on_action_start`, `on_action_end`, `on_interrupt`, `on_visibility_change`, `on_rejection`,
        `on_diagnostic` and `on_epoch`, as far as it has them, with each event in order. What goes wrong there is
        logged and kept in `trouble`; it disturbs nothing."""
        self._observers.add(observer)

    def close(self) -> None:
        self._user_code.refuse_if_asked()
        if self._unusable is not None and self._disk is not None:
            self._disk.close()  # nothing of a command that was broken off is written any more
        elif self._driver is not None:
            self._driver.close()

    def _timed(self, step: Step) -> Any:
        if isinstance(step, Instance):
            if step.t is None and step.submitted_at is None:
                step = msgspec.structs.replace(step, t=self.minute)
            whole("t", 0 if step.t is None else step.t)
            # One made by hand is checked here; as an object it is rejected with what is wrong with it.
            return step if isinstance(read_instance(step), tuple) else step.members()
        if not isinstance(step, Mapping):
            return step
        for name in ("t", "priority"):
            if step.get(name) is not None:
                whole(name, step[name])
        if isinstance(step.get("submitted_at"), datetime):
            return submission_with_text(dict(step))
        return dict(step) if "t" in step or "submitted_at" in step else {**step, "t": self.minute}

    def _asked_minute(self, t: int | None) -> int:
        return self.minute if t is None else whole("t", t)

    def _refuse_if_too_far(self, name: str, minute: int) -> None:
        setting = self.engine.current.setting
        if whole(name, minute) > setting.latest:
            refusal = setting.no_such_time(self.minute, minute)
            raise Refused(sentence_of(refusal.code, refusal.facts), reason=refusal.code)

    def _ask(self, request: Request) -> None:
        for event in self._apply(request).events:
            if isinstance(event, Diagnostic | Rejection):
                raise Refused(event.message, reason=event.code)

    def _told(self, events: tuple[Event, ...]) -> tuple[Event, ...]:
        """Everything that was not told yet, and this."""
        before, self._untold = self._untold, []
        return (*before, *events)

    # The one way into the engine

    def _apply(self, command: Command) -> Outcome[Event]:
        self._refuse_if_it_cannot_go_on()
        self._busy, self._user_code.moved = True, False
        try:
            outcome = self._carried_out(command)
        except BaseException as trouble:
            self._fail(trouble)
            raise
        finally:
            self._busy = False
        if outcome.refusal is not None:
            raise Refused(sentence_of(outcome.refusal.code, outcome.refusal.facts), reason=outcome.refusal.code)
        if self._recent is not None:
            self._recent.extend(outcome.events)
        self._observers.show(outcome.events)
        return outcome

    def _carried_out(self, command: Command) -> Outcome[Event]:
        if self._driver is not None:
            return send(self._driver, command, "live")
        self._engine.outside = Recorder(self._user_code)
        return self._engine.apply(command)

    def _fail(self, trouble: BaseException) -> None:
        """A command was broken off. With a journal it left no trace, unless a process went on in it."""
        cause = trouble.__cause__ if isinstance(trouble, EngineDefect) else trouble
        if isinstance(cause, NotCanonical) and self._user_code.who != "The world":
            text = f"{self._user_code.who} answers what cannot be kept: {cause.message}"
            cause = UserCodeFailed(text, who=self._user_code.who, raised=None)
        what = cause.message if isinstance(cause, UserCodeFailed) else repr(cause)
        if self._driver is None or self._user_code.moved or not isinstance(trouble, Exception):
            remedy = "make it anew" if self._driver is None else "recover it from its journal"
            message = f"This world cannot be used any more; {remedy}. In minute {self._driver_minute()}: {what}"
            self._unusable = WorldUnusable(message, because=what)
            let_go(self._disk)
        if isinstance(cause, UserCodeFailed):
            raise cause from trouble

    def _driver_minute(self) -> int:
        return self.engine.now()

    def _refuse_if_it_cannot_go_on(self) -> None:
        self._refuse_if_unusable()
        if self._read_only is not None:
            raise self._read_only

    def _refuse_if_unusable(self) -> None:
        if self._unusable is not None:
            raise self._unusable
        self._user_code.refuse_if_asked(self._busy)
