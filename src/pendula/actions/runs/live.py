"""A world in a game loop: submit, interrupt, advance, ask why; and processes as in SimPy.

    world = LiveWorld(config)
    world.submit({"id": "A1", "actor": "ann", "verb": "clean", "t": 5})
    for event in world.advance_to(60): ...

With a journal all events are durable before they are returned. Answers of user code (hooks, modifiers, processes) are
stored in the journal, so a replay does not ask again. `LiveWorld.recover` continues after a crash. Exceptions of
observers do not affect the world.
"""

import logging
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import datetime
from decimal import Decimal
from os import PathLike
from time import sleep as sleep_seconds
from typing import Any, Self

import msgspec
from msgspec import Struct

from pendula.actions import messages
from pendula.actions.configuration import InvalidSetting
from pendula.actions.engine import World
from pendula.actions.gantt.picture import Timeline
from pendula.actions.messages import Command, EpochBegan, Event, Request
from pendula.actions.minute.world_state import WorldState
from pendula.actions.model import Instance
from pendula.actions.rules.locks import Action, Stage
from pendula.actions.rules.validation import as_journal_value, read_instance
from pendula.actions.rules.visibility import knows
from pendula.actions.runs.batch import submission_with_text, with_texts
from pendula.actions.runs.user_code import Hook, Modifiers, Process, Step, UserCode, UserCodeFailed
from pendula.actions.sentences import sentence_of
from pendula.kernel.cancellation import check
from pendula.kernel.canonical import Json, decode
from pendula.kernel.disk import Disk, RealDisk
from pendula.kernel.driver import Driver, EngineDefect, begin_recording, send
from pendula.kernel.engine import Answer, Outcome, Reason, Recorder
from pendula.kernel.errors import InputRefused, NotCanonical, WorldBroken
from pendula.kernel.frames import read_input, read_outcome
from pendula.kernel.journal import FileJournal, Journal, claimed
from pendula.kernel.replay import first_engine
from pendula.kernel.wording import shown

OBSERVED: dict[type, str] = {
    messages.Start: "on_action_start",
    messages.End: "on_action_end",
    messages.Interrupted: "on_interrupt",
    messages.VisibilityChange: "on_visibility_change",
    messages.Rejection: "on_rejection",
    messages.Diagnostic: "on_diagnostic",
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


_read_events = msgspec.json.Decoder(list[Event], float_hook=Decimal).decode


def history_of(journal: Journal, kind: type[World]) -> Iterator[Event]:
    """The header of the first epoch in the journal, then all later events."""
    engine, start = first_engine(journal, kind)
    assert isinstance(engine, World)
    yield engine.header()
    for record in journal.read(start):
        if record.kind == "outcome":
            yield from _read_events(read_outcome(record.body).events)


def processes_in(journal: Journal) -> set[str]:
    """The names of processes whose first step was submitted."""
    names: set[str] = set()
    for record in journal.read(journal.first_n):
        if record.kind == "input":
            command: Any = decode(bytes(read_input(record.body).command))
            steps = command.get("actions", ()) if command["type"] == "submit" else ()
            names |= {str(step["process"]) for step in steps if isinstance(step, dict) and step.get("process")}
    return names


def answers_in(journal: Journal) -> Iterator[Answer]:
    """All questions to user code with their answers. Raises `InputRefused` if the journal was pruned."""
    if journal.first_n > 0:
        raise InputRefused("The beginning of the journal was pruned: processes cannot be replayed")
    for record in journal.read(0):
        if record.kind == "input":
            yield from read_input(record.body).stored_answers()


class ActionStatus(Struct, frozen=True):
    """An action that has not ended. `stage` is running, waiting, held or suspended; times are minutes of the run.

    Running: from `since` to `until`. Waiting: `since`. Held: `until`, None if the action that holds it has not started.
    `remaining` is the work left, in minutes.
    """

    action_id: str
    actor: str
    verb: str
    stage: str
    since: int | None
    until: int | None
    remaining: int
    locks: tuple[str, ...]
    params: Json


def statuses(world: WorldState, actor: str | None) -> tuple[ActionStatus, ...]:
    """The actions of one actor, or of all, by admission."""
    actions = (action for action in world.actions.values() if actor is None or action.instance.actor == actor)
    return tuple(status_of(world, action) for action in sorted(actions, key=lambda action: action.admission))


def status_of(world: WorldState, action: Action) -> ActionStatus:
    """The status of one action."""
    instance, stage = action.instance, action.stage
    running = stage is Stage.RUNNING
    since = {Stage.RUNNING: action.t_end - action.remaining, Stage.WAITING: action.joined}.get(stage)
    until = {Stage.RUNNING: action.t_end, Stage.HELD: action.joined}.get(stage)
    if action.cause is not None:
        is_running = action.cause.stage is Stage.RUNNING
        until = action.cause.t_end + action.hold_min if is_running else None
    return ActionStatus(
        instance.id,
        instance.actor,
        instance.verb,
        stage.name.lower(),
        since,
        until,
        remaining=action.t_end - world.clock.minute if running else action.remaining,
        locks=tuple(lock.name for lock in action.locks),
        params=instance.params,
    )


class Estimate(Struct, frozen=True):
    """When a submission would start and end, in minutes of the run; or why it would not.

    `end` ignores interrupts that are not requested yet. If `start` is None, the submission was rejected or waits for
    something that is not scheduled.
    """

    action_id: str
    start: int | None = None
    end: int | None = None
    rejected: messages.Rejection | None = None
    why: Reason | None = None


class ModifiersOnly:
    """The outside of the copy: asks for modifiers, not for follow-ups."""

    def __init__(self, user_code: UserCode) -> None:
        self._user_code = user_code

    def ask(self, name: str, question: Json) -> Json:
        assert isinstance(question, Mapping)
        return self._user_code.factors(question) if name == "modifiers" else []


def what_if(copy: World, submission: Any, action_id: str, until: int | None) -> Estimate:
    """Advance the copy until the submission starts, is rejected, or nothing is pending; at most to minute `until`."""
    estimate = _estimate(copy, copy.apply(messages.Submit((submission,))).events, action_id)
    latest = copy.current.setting.latest if until is None else until
    while estimate is None:
        due = copy.next_due()
        if due is None or due > latest:
            return Estimate(action_id, why=copy.why({"action": action_id}))
        check()
        estimate = _estimate(copy, copy.apply(messages.Advance(due)).events, action_id)
    return estimate


def _estimate(copy: World, events: tuple[Event, ...], action_id: str) -> Estimate | None:
    for event in events:
        # A submission without a readable id is rejected without one; the copy has no other submission.
        if isinstance(event, messages.Rejection) and event.action_id in (action_id, None):
            return Estimate(action_id, rejected=event)
        if isinstance(event, messages.Start) and event.action_id == action_id:
            start = (event.epoch - copy.current.setting.first_epoch) * copy.current.setting.horizon + event.t
            return Estimate(action_id, start, start + event.meta["d"])
    return None


class Refused(InputRefused):
    """A rejected call of a game loop. Facts: `reason`."""

    code = "refused"


class WorldUnusable(WorldBroken):
    """A command failed half-way, and the state is unknown: create the world again, or recover it from its journal."""

    code = "world_unusable"


def with_user_code(config: Mapping[str, Any], hook: Hook | None, modifiers: Modifiers | None) -> dict[str, Any]:
    """The configuration with the options for the given user code."""
    if not isinstance(config, Mapping):
        message = f"A world needs an object with at least `epoch` and `action_defs`, not {shown(config)}"
        raise InvalidSetting(message, path="$")
    given = config.get("options")
    if given is not None and not isinstance(given, Mapping):
        raise InvalidSetting(f"options is {shown(given)}; it must be an object", path="$.options")
    options = {**(given or {})}
    options |= {"follow_ups": True} if hook else {}
    options |= {"ask_modifiers": True} if modifiers else {}
    return {**config, "options": options}


def missing_user_code(engine: World, hook: Hook | None, modifiers: Modifiers | None) -> Refused | None:
    """The error of a recovered world whose user code is missing; None if it is complete."""
    options = engine.current.setting.options
    for is_asked, given, name in (
        (options.follow_ups, hook, "hook"),
        (options.ask_modifiers, modifiers, "modifiers"),
    ):
        if is_asked and given is None:
            message = f"This world is read-only without its {name}; recover it with {name}=..."
            return Refused(message, reason=f"no {name}")
    return None


def claim_disk(place: Disk | str | PathLike[str]) -> Disk:
    """The disk of a journal; a folder is locked for this world. Raises `JournalInUse`, `JournalBroken`."""
    return claimed(place) if isinstance(place, str | PathLike) else place


def open_journal(disk: Disk) -> FileJournal:
    """Open the journal on a disk; the disk is closed on failure."""
    try:
        return FileJournal.open(disk)
    except BaseException:
        disk.close()
        raise


def release_claim(disk: Disk | None) -> None:
    """Release the lock of the folder, so that an unusable world can be recovered before it is closed."""
    if isinstance(disk, RealDisk):
        disk.release()


def whole_number(name: str, value: Any) -> int:
    """The value if it is an int; floats and booleans are refused, too."""
    if type(value) is not int:
        text = repr(value) if isinstance(value, float) else shown(value)
        raise Refused(f"{name} is {text}; it must be a whole number", reason="not_a_minute")
    return value


# Events kept for pictures; a picture of more is unreadable.
MOST_DRAWN = 20_000


class LiveWorld:
    """A world in a game loop. Not thread-safe; a server uses one thread for each world."""

    def __init__(
        self,
        config: Mapping[str, Any],
        *,
        journal: Disk | str | PathLike[str] | None = None,
        hook: Hook | None = None,
        modifiers: Modifiers | None = None,
    ) -> None:
        """A new world. With `journal`, a new folder, events are durable before they are returned."""
        config = with_user_code(with_texts(config) if isinstance(config, Mapping) else config, hook, modifiers)
        engine = World.create(config)
        user_code = UserCode(hook, modifiers)
        disk = None if journal is None else claim_disk(journal)
        driver = None if disk is None else begin_recording(engine, config, disk, outside=user_code)
        self._set_up(config, user_code, engine, driver, disk)

    @classmethod
    def from_state(
        cls, config: Mapping[str, Any], state: bytes, *, hook: Hook | None = None, modifiers: Modifiers | None = None
    ) -> Self:
        """The world of a `state` made with the same configuration. Processes are not part of a state."""
        config = with_user_code(config, hook, modifiers)
        if not isinstance(state, bytes):
            raise Refused(f"state must be the bytes of `state()`, not {shown(state)}", reason="no state")
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
        """The world of a journal. Give it the user code that it had: `hook`, `modifiers`, and new generators under the
        names of the `processes`, which are replayed. Without its `hook` or `modifiers` it is read-only. Raises
        `WrongJournal` for the journal of another scheduler."""
        user_code = UserCode(hook, modifiers)
        disk = claim_disk(journal)
        opened = open_journal(disk)
        try:
            driver: Driver[Command, Event] = Driver.recover(opened, lambda _: World, outside=user_code)
            engine = driver.engine
            assert isinstance(engine, World)
            begun = processes_in(opened) if processes else set()
            repeated = {name: process for name, process in (processes or {}).items() if name in begun}
            if repeated:
                user_code.repeat(repeated, answers_in(opened))
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
            if name not in repeated:  # it crashed before its first step
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
        self._pending_events: list[Event] = []
        # Events for pictures; read from the journal at the first picture of a recovered world, so None until then.
        self._recent: deque[Event] | None = deque(maxlen=MOST_DRAWN)

    # Queries

    @property
    def engine(self) -> World:
        """The engine; `engine.current` has locks, resources and knowledge. Treat it as read-only."""
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
        """Exceptions that observers raised."""
        return self._observers.errors

    def next_due(self) -> int | None:
        """The next minute in which something happens; None if nothing is pending."""
        return self.engine.next_due()

    def why(self, action_id: str) -> Reason:
        """The stage of an action, and what it waits for."""
        return self.engine.why({"action": action_id})

    def knows(self, actor: str, item: str) -> bool:
        """Whether an actor can know of an item now."""
        world = self.engine.current
        known = world.knowledge.get(item)
        return known is not None and knows(known, actor, world.clock.minute, world.setting.audience)

    def place_of(self, actor: str) -> str | None:
        """The last known place of an actor; None if no action named one."""
        return self.engine.current.places.get(actor)

    def doing(self, actor: str | None = None) -> tuple[ActionStatus, ...]:
        """The actions of one actor or of all that have not ended, by admission."""
        return statuses(self.engine.current, actor)

    def locks(self) -> dict[str, dict[str, Any]]:
        """Holder (`held_by`) and queue of every lock."""
        return self.engine.current.locks.rows()

    def resources(self) -> dict[str, dict[str, Decimal]]:
        """The amounts `available` and `reserved` of each resource."""
        return self.engine.current.resources.rows()

    def what_if(self, step: Step, *, until: int | None = None) -> Estimate:
        """When a submission would start, as far as is known now. Nothing is submitted."""
        self._refuse_if_not_writable()
        if not isinstance(step, Mapping | Instance):
            raise Refused(f"A submission is an object or an Instance, not {shown(step)}", reason="not_a_submission")
        submission = self._timed(step)
        given = dict(submission) if isinstance(submission, Mapping) else submission.members()
        given = {name: value for name, value in given.items() if value is not None}
        action_id = given.setdefault("id", "what if")
        copy = type(self.engine).from_state(self.config, self.engine.state())
        copy.outside = ModifiersOnly(self._user_code)
        return what_if(copy, given, str(action_id), until)

    def timeline(self, title: str = "") -> Timeline:
        """A picture of the last events, up to 20 000; a notebook displays it."""
        if self._recent is None:
            self._recent = deque(self.history(), maxlen=MOST_DRAWN)
        return Timeline.of(self.engine.current, tuple(self._recent), title)

    def history(self) -> Iterator[Event]:
        """All events in the journal, from the header of its first epoch on, to rebuild logs."""
        if self._driver is None:
            raise Refused("A world without a journal has no history", reason="no journal")
        self._driver.flush()
        return history_of(self._driver.journal, type(self.engine))

    def header(self) -> EpochBegan:
        """The header of the current epoch, for `Logs`."""
        return self.engine.header()

    def state(self) -> bytes:
        """The state as bytes. Processes are not part of it: they are user code."""
        self._refuse_if_unusable()
        return self.engine.state()

    # Commands

    def submit(self, *steps: Step) -> tuple[Event, ...]:
        """Submit instances for their minute (`t` or `submitted_at`, default now). Returns immediate rejections."""
        timed = tuple(self._timed(step) for step in steps)
        try:
            return self._with_pending(self._apply(messages.Submit(timed)).events)
        except NotCanonical:
            # Floats in params become decimals; other values without a canonical form raise again.
            return self._with_pending(
                self._apply(messages.Submit(tuple(as_journal_value(step) for step in timed))).events
            )

    def interrupt(
        self, target: str, priority: int, *, source: str = "outside", hold_min: int = 0, t: int | None = None
    ) -> None:
        """Request an interrupt in minute `t`, default now. It takes effect when time advances."""
        form: dict[str, Json] = {"target": target, "priority": whole_number("priority", priority), "source": source}
        form |= {"hold_min": whole_number("hold_min", hold_min), "t": self._asked_minute(t)}
        self._ask(Request(interrupts=(form,)))

    def cancel(self, action_id: str, *, t: int | None = None, force: bool = False) -> None:
        """Cancel a running, waiting or pending action in minute `t`, default now.

        A running action that is not interruptible ends only with `force`; without it the cancellation is a diagnostic.
        """
        form: dict[str, Json] = {"t": self._asked_minute(t), "cancel": action_id}
        self._ask(Request(commands=(form | {"force": True} if force else form,)))

    def resume(self, action_id: str, *, t: int | None = None) -> None:
        """Let a suspended action join its queues again in minute `t`, default now."""
        self._ask(Request(commands=({"t": self._asked_minute(t), "resume": action_id},)))

    def advance_to(self, minute: int) -> tuple[Event, ...]:
        """Advance to a minute of the run and return the events. In the last minute of an epoch only ends happen."""
        return self._with_pending(self._apply(messages.Advance(whole_number("minute", minute))).events)

    def advance_until(self, found: Callable[[Event], bool], latest: int) -> tuple[Event, ...]:
        """Advance until `found` is true for an event, to the end of its minute, or until `latest`."""
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
        """Advance in real time: one minute of the world lasts `seconds_per_minute`. Calls `each` for every event."""
        self._refuse_if_too_far("until", until)
        while self.minute < until:
            due = self.engine.next_due()
            to = until if due is None else min(max(due, self.minute + 1), until)
            sleep((to - self.minute) * seconds_per_minute)
            for event in self.advance_to(to):
                each(event)

    def run(self, process: Process, name: str | None = None) -> str:
        """Start a process: each yielded step is submitted, and its outcome is sent back, such as `{"ended": minute}`.

        Events of the first step, such as a rejection, come with the next call that returns events.
        """
        key = name or f"process-{len(self._user_code.processes)}"
        if key in self._user_code.processes:
            raise Refused(f"The process name {key!r} is in use", reason="name in use")
        self._refuse_if_not_writable()
        number = 0
        while f"{key}-{number}" in self.engine.current.used_ids:
            number += 1  # the world was restored, and its process of this name took the ids
        first = self._user_code.begin(key, process, self.minute, number)
        if first is not None:
            self._pending_events += self._apply(messages.Submit((first,))).events
        return key

    def observe(self, observer: object) -> None:
        """Call its `on_action_start`, `on_action_end`, `on_interrupt`, `on_visibility_change`, `on_rejection`,
        `on_diagnostic` and `on_epoch`, as far as it has them, with each event in order. Its exceptions are
        logged and kept in `trouble`; the world continues."""
        self._observers.add(observer)

    def close(self) -> None:
        self._user_code.refuse_if_running()
        if self._unusable is not None and self._disk is not None:
            self._disk.close()  # the driver would write a part of the failed command
        elif self._driver is not None:
            self._driver.close()

    def _timed(self, step: Step) -> Any:
        if isinstance(step, Instance):
            if step.t is None and step.submitted_at is None:
                step = msgspec.structs.replace(step, t=self.minute)
            whole_number("t", 0 if step.t is None else step.t)
            # msgspec does not validate a struct; as an object it is rejected with its fault.
            return step if isinstance(read_instance(step), tuple) else step.members()
        if not isinstance(step, Mapping):
            return step
        for name in ("t", "priority"):
            if step.get(name) is not None:
                whole_number(name, step[name])
        if isinstance(step.get("submitted_at"), datetime):
            return submission_with_text(dict(step))
        return dict(step) if "t" in step or "submitted_at" in step else {**step, "t": self.minute}

    def _asked_minute(self, t: int | None) -> int:
        return self.minute if t is None else whole_number("t", t)

    def _refuse_if_too_far(self, name: str, minute: int) -> None:
        setting = self.engine.current.setting
        if whole_number(name, minute) > setting.latest:
            refusal = setting.refuse_time(self.minute, minute)
            raise Refused(sentence_of(refusal.code, refusal.facts), reason=refusal.code)

    def _ask(self, request: Request) -> None:
        for event in self._apply(request).events:
            if isinstance(event, messages.Diagnostic | messages.Rejection):
                raise Refused(event.message, reason=event.code)

    def _with_pending(self, events: tuple[Event, ...]) -> tuple[Event, ...]:
        """The pending events, then these."""
        before, self._pending_events = self._pending_events, []
        return (*before, *events)

    # Every command passes here

    def _apply(self, command: Command) -> Outcome[Event]:
        self._refuse_if_not_writable()
        self._busy, self._user_code.has_advanced = True, False
        try:
            outcome = self._send(command)
        except BaseException as trouble:
            self._fail(trouble)
            raise
        finally:
            self._busy = False
        if outcome.refusal is not None:
            raise Refused(sentence_of(outcome.refusal.code, outcome.refusal.facts), reason=outcome.refusal.code)
        if self._recent is not None:
            self._recent.extend(outcome.events)
        self._observers.deliver(outcome.events)
        return outcome

    def _send(self, command: Command) -> Outcome[Event]:
        if self._driver is not None:
            return send(self._driver, command, "live")
        self._engine.outside = Recorder(self._user_code)
        return self._engine.apply(command)

    def _fail(self, trouble: BaseException) -> None:
        """Handle a failed command. With a journal it left no trace, unless a process advanced in it."""
        cause = trouble.__cause__ if isinstance(trouble, EngineDefect) else trouble
        if isinstance(cause, NotCanonical) and self._user_code.who != "The world":
            text = f"{self._user_code.who} returned an answer that cannot be stored: {cause.message}"
            cause = UserCodeFailed(text, who=self._user_code.who, raised=None)
        what = cause.message if isinstance(cause, UserCodeFailed) else repr(cause)
        if self._driver is None or self._user_code.has_advanced or not isinstance(trouble, Exception):
            remedy = "create it again" if self._driver is None else "recover it from its journal"
            message = f"This world is unusable; {remedy}. In minute {self.engine.now()}: {what}"
            self._unusable = WorldUnusable(message, because=what)
            release_claim(self._disk)
        if isinstance(cause, UserCodeFailed):
            raise cause from trouble

    def _refuse_if_not_writable(self) -> None:
        self._refuse_if_unusable()
        if self._read_only is not None:
            raise self._read_only

    def _refuse_if_unusable(self) -> None:
        if self._unusable is not None:
            raise self._unusable
        self._user_code.refuse_if_running(self._busy)
