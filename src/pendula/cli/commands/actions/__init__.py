"""`pendula actions`: run a file of actions, check it, ask why an action has not started."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from pendula.cli.output import JsonFlag, Output, example
from pendula.kernel.errors import InputRefused, WrongUsage

if TYPE_CHECKING:
    from pendula.actions.engine import World
    from pendula.actions.running import Road, RunResult
    from pendula.kernel.disk import RealDisk
    from pendula.kernel.driver import Driver

actions = typer.Typer(
    epilog=example("pendula actions run town.yaml --gantt town.svg", "pendula actions check town.yaml")
)

FileArgument = Annotated[
    Path, typer.Argument(metavar="FILE", help="Who wants to do what: a YAML or JSON file.", show_default=False)
]


@actions.command(
    "run",
    epilog=example(
        "pendula actions run town.yaml --gantt town.svg",
        "pendula actions run town.yaml --journal town-journal --json > town.json",
    ),
)
def run(
    file: FileArgument,
    journal: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Keep a journal there, for `pendula replay`.")
    ] = None,
    logs: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Write the world log and the player's log there.")
    ] = None,
    gantt: Annotated[Path | None, typer.Option(metavar="SVG", help="Draw the run into this file.")] = None,
    json: JsonFlag = False,
) -> None:
    """Run the epochs of a file: what happens when, who waits for whom, what is carried on.

    Instances that cannot take part are rejected one by one; that is a result, and the exit code is 0. A file that
    cannot be used as a whole is refused with every fault it has.
    """
    from pendula.actions.engine import World
    from pendula.actions.reading.loading import accept, unknown_sections
    from pendula.actions.running import config_of, drive
    from pendula.documents import read_file

    out = Output(json)
    document = accept(read_file(file))
    for sentence in unknown_sections(document):
        out.note(f"pendula: {file}: {sentence}; it is passed over")
    config = config_of(document)
    world = World.create(config)
    with _road(world, config, journal, logs) as road, out.progress("epochs", document.get("epochs") or 1) as advance:
        result = drive(world, road, document, advance)
    if gantt is not None:
        _draw(gantt, result, document, file.stem)
    out.result(result.as_json(), lambda: _tables().drawn(result))


@actions.command("check", epilog=example("pendula actions check town.yaml"))
def check(file: FileArgument, json: JsonFlag = False) -> None:
    """Say everything that is wrong with a file, with line and column; the exit code is 1 if anything is.

    That includes what a run gets along with: instances it would reject, requests it would pass over, names that nobody
    knows. Only what depends on how the days go is not foreseen: locks that are taken, resources that run out.
    """
    from pendula.actions.reading import checking
    from pendula.documents import read_file

    document = read_file(file)
    checking.check(document)
    counts = _counts(document.value)
    told = ", ".join(f"{count} {name.replace('_', ' ')}" for name, count in counts.items())
    Output(json).result({"file": str(file), "sound": True, **counts}, lambda: f"{file} is sound: {told}.")


@actions.command(
    "why",
    epilog=example(
        "pendula actions why town.yaml council-tue --at 2025-07-01T10:30:00",
        "pendula actions why town.yaml council-tue --at 630 --json",
    ),
)
def why(
    file: FileArgument,
    action: Annotated[str, typer.Argument(metavar="ACTION", help="The id of an action.", show_default=False)],
    at: Annotated[str, typer.Option(metavar="TIME", help="An ISO time, or a minute of the run.", show_default=False)],
    json: JsonFlag = False,
) -> None:
    """Say where an action stands at a moment of the run: what it waits for, who has it, who is before it."""
    from pendula.actions.engine import World
    from pendula.actions.events import Advance, Request, Submit
    from pendula.actions.reading.loading import accept
    from pendula.actions.running import config_of
    from pendula.documents import read_file

    document = accept(read_file(file))
    world = World.create(config_of(document))
    minute = _minute(world, at, document.get("epochs") or 1)
    submitted = tuple(document["actions_submitted"] or ())
    world.apply(Submit(submitted))
    world.apply(Request(tuple(document.get("interrupts") or ()), tuple(document.get("commands") or ())))
    world.apply(Advance(minute))
    reason = world.why({"action": action})
    if reason.code == "unknown":
        raise _unknown(action, submitted)
    when = world.setting.display(minute)
    Output(json).result({"at": when, "reason": reason, "t": minute}, lambda: _tables().reasoned(when, reason))


@contextmanager
def _road(world: "World", config: Mapping[str, Any], journal: Path | None, logs: Path | None) -> "Iterator[Road]":
    """The way into the world: straight, or through a journal; logs hear everything that comes out."""
    from pendula.actions.logs import Logs
    from pendula.kernel.recording import send

    folder = _empty_folder(logs) if logs is not None else None
    kept = Logs(world.header(), folder) if folder is not None else None
    driver = _driver(world, config, journal) if journal is not None else None

    def apply(command: Any) -> Any:
        if driver is None:
            outcome = world.apply(command)
        else:
            outcome = send(driver, command, "cli")
        if kept is not None:
            kept.feed(outcome.events)
        return outcome

    try:
        yield apply
    finally:
        if driver is not None:
            driver.close()
        if folder is not None:
            folder.close()


def _driver(world: "World", config: Mapping[str, Any], directory: Path) -> "Driver[Any, Any]":
    from pendula.actions.questions import NoAnswers
    from pendula.kernel.disk import RealDisk
    from pendula.kernel.recording import begin_recording

    return begin_recording(world, dict(config), RealDisk(directory), outside=NoAnswers())


def _empty_folder(directory: Path) -> "RealDisk":
    """A folder for logs; one that holds any is refused, because a written log is never changed."""
    from pendula.kernel.disk import RealDisk

    disk = RealDisk(directory)
    if found := [name for name in disk.list() if name.endswith(".jsonl")]:
        disk.close()
        raise InputRefused(f"There are logs already: {directory / found[0]}", path=str(directory), found=found)
    return disk


def _draw(path: Path, result: "RunResult", document: Mapping[str, Any], title: str) -> None:
    from pendula.actions.gantt import gantt_svg

    slots = (document.get("options") or {}).get("slots", 24)
    picture = gantt_svg(result, document["action_defs"] or {}, slots=slots, title=title)
    path.write_text(picture, encoding="utf-8")


def _tables() -> Any:
    """Only where something is drawn: it loads rich."""
    from pendula.cli.commands.actions import tables

    return tables


def _counts(document: Any) -> dict[str, int]:
    names = ("action_defs", "actions_submitted", "interrupts", "commands")
    return {name: len(document.get(name) or ()) for name in names}


def _minute(world: "World", text: str, epochs: int) -> int:
    """The minute that is meant; it has to lie in the epochs of the file."""
    from pendula.actions.admission import Fault

    last = epochs * world.setting.horizon
    if text.isdecimal():
        minute = int(text[:18])
    else:
        found = world.setting.minute_of(text)
        if isinstance(found, Fault):
            raise WrongUsage(f"--at: {found.message}; or a minute of the run", at=text)
        minute = found[0]
    if not 0 <= minute <= last:
        first, end = world.setting.display(0), world.setting.display(last)
        raise WrongUsage(f"--at {text} is outside the run; allowed is 0 to {last}, {first} to {end}", at=text)
    return minute


def _unknown(action: str, submitted: Sequence[Any]) -> InputRefused:
    from pendula.documents.faults import suggestion

    ids = [one["id"] for one in submitted if isinstance(one, dict) and isinstance(one.get("id"), str)]
    return InputRefused(f"Nobody submits {action!r}{suggestion(action, ids)}", action=action)
