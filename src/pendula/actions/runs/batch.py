"""Run whole epochs from a file or from plain arguments, with the engine of a live world; names of audio files."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from re import compile as regex
from typing import Any

import msgspec
from msgspec import Struct

from pendula.actions import messages
from pendula.actions.configuration import FIELDS, RUN_SECTIONS, InvalidSetting, default_epoch
from pendula.actions.engine import World
from pendula.actions.messages import WORLD_EVENTS, Command, EpochBegan, Event, WorldEvent
from pendula.actions.minute.world_state import WorldState
from pendula.actions.model import Instance, Options
from pendula.actions.runs.logs import Logs
from pendula.kernel.canonical import Json
from pendula.kernel.engine import Outcome
from pendula.kernel.wording import unknown_name

DEEPEST = 6  # times of a document are not nested deeper; deeper values are user data
SUBMITTED = "actions_submitted"


def with_texts(document: Mapping[str, Any]) -> dict[str, Any]:
    """A copy of a document with each `datetime` as ISO 8601 text; params of submissions are not changed."""
    copy = {name: value if name == SUBMITTED else _as_texts(value, DEEPEST) for name, value in document.items()}
    steps = copy.get(SUBMITTED)
    if isinstance(steps, list):
        copy[SUBMITTED] = [submission_with_text(step) for step in steps]
    return copy


def submission_with_text(step: Any) -> Any:
    """A submission whose `submitted_at` is text."""
    if isinstance(step, dict) and isinstance(at := step.get("submitted_at"), datetime):
        return {**step, "submitted_at": at.isoformat()}
    return step


def _as_texts(value: Any, depth: int) -> Any:
    if isinstance(value, datetime):
        return value.isoformat()
    if depth and isinstance(value, dict):
        return {name: _as_texts(member, depth - 1) for name, member in value.items()}
    if depth and isinstance(value, list):
        return [_as_texts(member, depth - 1) for member in value]
    return value


Apply = Callable[[Command], Outcome[Event]]
EPOCHS_MOST = 100_000


class EpochResult(Struct, frozen=True):
    """The result of one epoch."""

    header: EpochBegan
    end_at: str
    events: tuple[WorldEvent, ...]
    rejections: tuple[messages.Rejection, ...]
    deferred: tuple[dict[str, Any], ...]
    diagnostics: tuple[messages.Diagnostic, ...]
    locks: dict[str, Any]
    resources: dict[str, Any]
    places: dict[str, str] = {}
    carry: dict[str, Json] | None = None  # only of `run`
    logs: Logs | None = None  # with `logs=True`

    def as_json(self) -> dict[str, Any]:
        """The epoch in the form of the output."""
        logs = {} if self.logs is None else self.logs.as_json()
        carry = {} if self.carry is None else {"carry": self.carry}
        return {
            "epoch": {"index": self.header.epoch, "start_at": self.header.start_at, "end_at": self.end_at},
            "events": [_event(event) for event in self.events],
            "rejections": [
                {"action_id": rejection.action_id, "code": rejection.code, "message": rejection.message}
                for rejection in self.rejections
            ],
            "deferred": list(self.deferred),
            "diagnostics": [_diagnostic(diagnostic) for diagnostic in self.diagnostics],
            "locks": self.locks,
            "resources": self.resources,
            "carried_in": [
                {"action_id": action["action_id"], "remaining": action["remaining"]}
                for action in self.header.carried_in
            ],
            "places": self.places,
            **carry,
            **logs,
        }


class RunResult(Struct, frozen=True):
    """The epochs of a run and what the next run needs."""

    epochs: tuple[EpochResult, ...]
    carry: dict[str, Json]
    logs: Logs | None = None  # with `logs=True`

    def as_json(self) -> dict[str, Any]:
        logs = {} if self.logs is None else self.logs.as_json()
        return {"epochs": [epoch.as_json() for epoch in self.epochs], "carry": self.carry, **logs}


def run(
    epoch: Mapping[str, Json] | None = None,
    action_defs: Mapping[str, Json] | None = None,
    actions_submitted: Sequence[Json | Instance] = (),
    *,
    interrupts: Sequence[Json] = (),
    commands: Sequence[Json] = (),
    carry: Json = None,
    logs: bool = False,
    **rest: Json,
) -> EpochResult:
    """One epoch from plain arguments; `rest` are the other parts of a file (skills, resources, options …).

    Without `epoch`, the day of the earliest submission is the epoch. The result has the carry for the next epoch, and
    both logs with `logs=True`.
    """
    document = {"interrupts": interrupts, "commands": commands, "carry": carry, **rest}
    result = run_epochs(epoch, action_defs, actions_submitted, 1, logs=logs, **document)  # type: ignore[arg-type]
    return msgspec.structs.replace(result.epochs[0], carry=result.carry, logs=result.logs)


def run_epochs(
    epoch: Mapping[str, Json] | None = None,
    action_defs: Mapping[str, Json] | None = None,
    actions_submitted: Sequence[Json | Instance] = (),
    epochs: int = 1,
    interrupts: Sequence[Json] = (),
    commands: Sequence[Json] = (),
    carry: Json = None,
    logs: bool = False,
    **rest: Json,
) -> RunResult:
    """Several epochs in a row; the result has the carry for the next run, and both logs with `logs=True`."""
    document: dict[str, Any] = {
        "epoch": epoch,
        "action_defs": action_defs,
        "actions_submitted": actions_submitted,
        "interrupts": interrupts,
        "commands": commands,
        "carry": carry,
        "epochs": epochs,
        **rest,
    }
    return run_document(document, logs=logs)


def config_of(document: Mapping[str, Any]) -> dict[str, Json]:
    """The configuration in a file. Without `epoch`, the day of the earliest submission is the epoch."""
    config = {name: document[name] for name in FIELDS if document.get(name) is not None}
    if "epoch" not in config:
        try:
            options = msgspec.convert(config.get("options") or {}, Options)
        except msgspec.ValidationError:
            options = Options()  # invalid options are refused on their own
        epoch = default_epoch(document.get("actions_submitted"), options)
        config = {"epoch": msgspec.structs.asdict(epoch), **config}
    return config


def run_document(document: Mapping[str, Any], *, logs: bool = False) -> RunResult:
    """Run a whole file. Raises `InputRefused` if it is unusable; invalid instances are rejections in the result."""
    if not isinstance(document, Mapping):
        raise InvalidSetting("A run needs an object with at least `action_defs` and `actions_submitted`", path="$")
    document = with_texts(document)
    for name in document:
        if name not in (*FIELDS, *RUN_SECTIONS):
            raise InvalidSetting(unknown_name(str(name), (*FIELDS, *RUN_SECTIONS), "a section"), path=f"$.{name}")
    world = World.create(config_of(document))
    lines = Logs(world.header()) if logs else None
    if lines is not None:
        world.current.listener = lines.write
    return msgspec.structs.replace(drive(world, world.apply, document), logs=lines)


def drive(
    world: World,
    apply: Apply,
    document: Mapping[str, Any],
    progress: Callable[[int], None] | None = None,
    step: int | None = None,
) -> RunResult:
    """Run a document through `apply`, for example a driver with a journal. Time advances in steps of `step` minutes,
    by default whole epochs."""
    epochs = document.get("epochs")
    count = 1 if epochs is None else epochs
    if not isinstance(count, int) or isinstance(count, bool) or not 1 <= count <= EPOCHS_MOST:
        raise InvalidSetting(f"epochs is {count!r}; it must be 1 to {EPOCHS_MOST}", path="$.epochs")
    world.current.deferred = {}
    horizon = world.current.setting.horizon
    header = world.header()
    events: list[Event] = []
    events += apply(messages.Submit(_list(document, "actions_submitted"))).events
    events += apply(messages.Request(_list(document, "interrupts"), _list(document, "commands"))).events
    results: list[EpochResult] = []
    for number in range(count):
        start, end = number * horizon, (number + 1) * horizon
        for to in (*range(start + (step or horizon), end, step or horizon), end):
            events += apply(messages.Advance(to)).events
        headers = [event for event in events if isinstance(event, EpochBegan)]
        header = headers[-1] if headers else header
        results.append(_result(world.current, header, events))
        events = []
        if progress is not None:
            progress(number + 1)
    return RunResult(tuple(results), world.carry())


def _list(document: Mapping[str, Any], name: str) -> tuple[Any, ...]:
    value = document.get(name)
    if value is None:
        value = ()
    if not isinstance(value, list | tuple):
        raise InvalidSetting(f"{name} is not a list", path=f"$.{name}")
    return tuple(value)


def _result(world: WorldState, header: EpochBegan, events: Sequence[Event]) -> EpochResult:
    return EpochResult(
        header=header,
        end_at=world.setting.display(world.clock.boundary),
        events=tuple(event for event in events if isinstance(event, WORLD_EVENTS)),
        rejections=tuple(event for event in events if isinstance(event, messages.Rejection)),
        deferred=tuple(_deferred(world)),
        diagnostics=tuple(event for event in events if isinstance(event, messages.Diagnostic)),
        locks=world.locks.rows(),
        resources=world.resources.rows(),
        places=dict(sorted(world.places.items())),
    )


def _deferred(world: WorldState) -> Iterable[dict[str, Any]]:
    """Submissions of this epoch for a later one, as they were given; each is reported once."""
    entries = sorted((minute, rank, handle) for handle, (minute, rank, _) in (world.deferred or {}).items())
    for _, _, handle in entries:
        item = (world.deferred or {})[handle][2]
        given = item.members()
        yield {
            **{name: value for name, value in given.items() if value is not None and value != ()},
            **world.extras.get(item.id, {}),
        }


def _event(event: WorldEvent) -> dict[str, Any]:
    return {
        "seq": event.seq,
        "type": event.__struct_config__.tag,
        "action_id": event.action_id,
        "t": event.t,
        "at": event.at,
        "meta": event.meta,
    }


def _diagnostic(diagnostic: messages.Diagnostic) -> dict[str, Any]:
    by = {} if diagnostic.by is None else {"by": diagnostic.by}
    return {
        "code": diagnostic.code,
        "action_id": diagnostic.action_id,
        "t": diagnostic.t,
        "message": diagnostic.message,
        **by,
    }


CHANNEL = regex(r"[a-z0-9-]{1,32}")
WORLD, PC = "world", "pc"


class AudioFile(Struct, frozen=True):
    """One file, with its epoch, slot, channel and event numbers."""

    name: str
    epoch: int
    slot: int
    channel: str
    events: tuple[int, ...]


def audio_name(epoch: int, slot: int, channel: str) -> str:
    """`epoch03_slot14_pc.ogg`; raises `ValueError` for an invalid channel."""
    if not isinstance(channel, str) or CHANNEL.fullmatch(channel) is None:
        raise ValueError(
            f"{channel!r} is not a channel; allowed are 1 to 32 characters of a-z, 0-9 and -, such as world or pc"
        )
    return f"epoch{epoch:02d}_slot{slot:02d}_{channel}.ogg"


def audio_names(events: Iterable[Event]) -> list[AudioFile]:
    """The files for these events, by epoch, slot and channel.

    Every event is in `world`, and in `pc` if the player learned of it. Events of an action with `params.channel` are in
    that channel, too.
    """
    own: dict[str, str] = {}  # channel by action, because only starts and ends have params
    files: dict[tuple[int, int, str], list[int]] = {}
    for event in events:
        if not isinstance(event, WORLD_EVENTS):
            continue
        channel = _channel_of(event)
        if channel is not None:
            own[event.action_id] = channel
        channels = {WORLD, *([PC] if event.pc else []), *([own[event.action_id]] if event.action_id in own else [])}
        for channel in channels:
            files.setdefault((event.epoch, event.slot, channel), []).append(event.seq)
    return [
        AudioFile(audio_name(epoch, slot, channel), epoch, slot, channel, tuple(seqs))
        for (epoch, slot, channel), seqs in sorted(files.items())
    ]


def _channel_of(event: WorldEvent) -> str | None:
    params = event.meta.get("params")
    channel = params.get("channel") if isinstance(params, dict) else None
    return channel if isinstance(channel, str) and CHANNEL.fullmatch(channel) else None
