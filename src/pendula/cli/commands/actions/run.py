"""`pendula actions`: run the epochs of a file, list its faults, explain an action at a moment of the run."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import msgspec
import typer

from pendula.cli.failing import keeping
from pendula.cli.output import JsonFlag, Output, example, require_suffix, tables_of
from pendula.cli.writing import write_whole
from pendula.kernel.engine import Reason
from pendula.kernel.errors import InputRefused, WrongUsage

if TYPE_CHECKING:
    from pendula.actions.engine import World
    from pendula.actions.messages import Event
    from pendula.actions.runs.batch import Apply, AudioFile, RunResult
    from pendula.actions.runs.logs import Logs
    from pendula.kernel.disk import RealDisk

FileArgument = Annotated[
    Path, typer.Argument(metavar="FILE", help="A file of actions, YAML or JSON.", show_default=False)
]


def register(scheduler: typer.Typer) -> None:
    scheduler.command(
        "run",
        epilog=example(
            "pendula actions run town.yaml --gantt town.svg",
            "pendula actions run town.yaml --journal town-journal --json > town.json",
        ),
    )(run)
    scheduler.command("check", epilog=example("pendula actions check town.yaml"))(check)
    scheduler.command(
        "why",
        epilog=example(
            "pendula actions why town.yaml council-tue --at 2025-07-01T10:30:00",
            "pendula actions why town.yaml council-tue --at 630 --json",
        ),
    )(why)


def run(
    file: FileArgument,
    journal: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Keep a journal in this folder, for `pendula replay`.")
    ] = None,
    logs: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Write the world log and the player's log into this folder.")
    ] = None,
    gantt: Annotated[Path | None, typer.Option(metavar="SVG", help="Draw the run into this file.")] = None,
    audio_names: Annotated[
        bool, typer.Option("--audio-names", help="Name an audio file for each slot and channel with events.")
    ] = False,
    json: JsonFlag = False,
) -> None:
    """Run the epochs of a file: events, rejections, locks, and the carry.

    Invalid instances are rejected one by one; that is a result, and the exit code is 0. An unusable file is refused
    with all its faults.
    """
    from pendula.actions.checks import accept
    from pendula.actions.engine import World
    from pendula.actions.runs.batch import config_of, drive
    from pendula.documents import read_file

    require_suffix(gantt, ".svg")
    out = Output(json)
    document = accept(read_file(file))
    config = config_of(document)
    world = World.create(config)
    # With a journal, time advances slot by slot, so that the logs follow it closely.
    step = world.current.setting.slot_minutes if journal is not None and logs is not None else None
    with (
        _open_world(world, config, journal, logs) as apply,
        out.progress("epochs", document.get("epochs") or 1) as advance,
    ):
        result = drive(world, apply, document, advance, step)
    if gantt is not None:
        _draw(gantt, result, document, file.stem)
    audio = _audio(result) if audio_names else None
    named = {} if audio is None else {"audio": [msgspec.structs.asdict(one) for one in audio]}
    out.result(result.as_json() | named, lambda: tables_of("actions").drawn(result, audio))


def _audio(result: "RunResult") -> "list[AudioFile]":
    from pendula.actions.runs.batch import audio_names

    return audio_names(event for epoch in result.epochs for event in epoch.events)


@contextmanager
def _open_world(
    world: "World", config: Mapping[str, Any], journal: Path | None, logs: Path | None
) -> "Iterator[Apply]":
    """A function that applies commands, directly or through a journal, and writes the logs."""
    from pendula.actions.messages import NoAnswers
    from pendula.kernel import begin_recording, send
    from pendula.kernel.disk import RealDisk

    folder = RealDisk(logs) if logs is not None else None
    log_lines = _logs(folder, world) if folder is not None else None
    driver = None
    for written in (journal, logs):
        if written is not None:
            keeping(f"{written} has everything up to the interrupt")
    if journal is not None:
        driver = begin_recording(world, dict(config), RealDisk(journal), outside=NoAnswers())

    def apply(command: Any) -> Any:
        if driver is None:
            outcome = world.apply(command)
        else:
            outcome = send(driver, command, "cli")
            if log_lines is not None:
                log_lines.feed(outcome.events)
        if log_lines is not None:
            log_lines.sync()
        return outcome

    if driver is None and log_lines is not None:
        world.current.listener = log_lines.write

    try:
        yield apply
    finally:
        if driver is not None:
            driver.close()
        if folder is not None:
            folder.close()


def _logs(folder: "RealDisk", world: "World") -> "Logs":
    """New logs, or existing ones that this run continues; others are refused, because a written log never changes."""
    from pendula.actions.runs.logs import Logs

    header = world.header()
    log_lines = Logs.continued(folder)
    if log_lines.epoch is not None and (log_lines.epoch, log_lines.next_seq or 0) != (
        header.epoch - 1,
        world.current.writer.next_event,
    ):
        found = [name for name in folder.list() if name.endswith(".jsonl")]
        folder.close()
        message = f"Logs already exist: {folder.directory / found[0]}; this run does not continue them"
        raise InputRefused(message, path=str(folder.directory), found=found)
    log_lines.feed((header,))
    return log_lines


def _draw(path: Path, result: "RunResult", document: Mapping[str, Any], title: str) -> None:
    from pendula.actions.gantt import gantt_svg

    slots = (document.get("options") or {}).get("slots", 24)
    picture = gantt_svg(result, document["action_defs"] or {}, slots=slots, title=title)
    write_whole(path, picture.encode())


def check(file: FileArgument, json: JsonFlag = False) -> None:
    """List every fault of a file, with line and column; the exit code is 1 if there is any.

    That includes faults that do not stop a run: instances that it would reject, requests that it would ignore, unknown
    names. It does not include what depends on the run: locks that are taken, resources that run out.
    """
    from pendula.actions import checks
    from pendula.documents import read_file

    document = read_file(file)
    checks.check(document)
    counts = _counts(document.value)
    summary = ", ".join(f"{count} {name.replace('_', ' ')}" for name, count in counts.items())
    Output(json).result({"file": str(file), "sound": True, **counts}, lambda: f"{file} is sound: {summary}.")


def _counts(document: Any) -> dict[str, int]:
    names = ("action_defs", "actions_submitted", "interrupts", "commands")
    return {name: len(document.get(name) or ()) for name in names}


def why(
    file: FileArgument,
    action: Annotated[str, typer.Argument(metavar="ACTION", help="The id of an action.", show_default=False)],
    at: Annotated[str, typer.Option(metavar="TIME", help="An ISO time, or a minute of the run.", show_default=False)],
    json: JsonFlag = False,
) -> None:
    """Explain an action at a moment of the run: its stage, what it waits for, and why."""
    from pendula.actions.checks import accept
    from pendula.actions.engine import World
    from pendula.actions.messages import Advance, Request, Submit
    from pendula.actions.runs.batch import config_of
    from pendula.documents import read_file

    document = accept(read_file(file))
    world = World.create(config_of(document))
    minute = _minute(world, at, document.get("epochs") or 1)
    submitted = tuple(document["actions_submitted"] or ())
    requests = Request(tuple(document.get("interrupts") or ()), tuple(document.get("commands") or ()))
    commands = (Submit(submitted), requests, Advance(minute))
    events = [event for command in commands for event in world.apply(command).events]
    reason = world.why({"action": action})
    if reason.code == "unknown":
        raise _unknown(action, submitted)
    if reason.code == "over":
        reason = _how_it_ended(reason, action, events, world)
    when = world.current.setting.display(minute)
    Output(json).result(
        {"at": when, "reason": reason, "t": minute}, lambda: tables_of("actions").reasoned(when, reason)
    )


def _how_it_ended(reason: Reason, action: str, events: Sequence["Event"], world: "World") -> Reason:
    """The reason for an ended action, from the events of the run. A dropped action has no end event."""
    from pendula.actions.messages import End, Rejection

    ends = [event for event in events if isinstance(event, End | Rejection) and event.action_id == action]
    if not ends:
        return reason
    last = ends[-1]
    when = world.current.setting.display(last.t)
    how = f"ended at {when}" if isinstance(last, End) else f"was rejected at {when}: {last.message}"
    facts = {**reason.facts, "at": when}
    if isinstance(last, Rejection):
        facts["code"] = last.code
    return Reason(reason.code, f"{action} {how}.", facts)


def _minute(world: "World", text: str, epochs: int) -> int:
    """The minute of a time or number, within the epochs of the file."""
    from pendula.actions.rules.validation import Fault

    last = epochs * world.current.setting.horizon
    if text.isdecimal():
        minute = int(text[:18])
    else:
        read = world.current.setting.minute_of(text)
        if isinstance(read, Fault):
            first = world.current.setting.display(0)
            raise WrongUsage(f"--at {text!r} is not a time of the run; pass one like {first}, or a minute", at=text)
        minute = read[0]
    if not 0 <= minute <= last:
        first, end = world.current.setting.display(0), world.current.setting.display(last)
        raise WrongUsage(f"--at {text} is outside the run; it must be 0 to {last}, or {first} to {end}", at=text)
    return minute


def _unknown(action: str, submitted: Sequence[Any]) -> InputRefused:
    from pendula.kernel.wording import suggestion

    ids = [one["id"] for one in submitted if isinstance(one, dict) and isinstance(one.get("id"), str)]
    return InputRefused(f"No action {action!r} is submitted{suggestion(action, ids)}", action=action)
