"""`pendula actions why`: explain the state of an action at a moment of the run."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from pendula.cli.commands.actions.run import FileArgument
from pendula.cli.output import JsonFlag, Output, example, tables_of
from pendula.kernel.engine import Reason
from pendula.kernel.errors import InputRefused, WrongUsage

if TYPE_CHECKING:
    from pendula.actions.engine import World
    from pendula.actions.messages import Event


def register(scheduler: typer.Typer) -> None:
    shown = example(
        "pendula actions why town.yaml council-tue --at 2025-07-01T10:30:00",
        "pendula actions why town.yaml council-tue --at 630 --json",
    )
    scheduler.command("why", epilog=shown)(why)


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
    from pendula.documents.faults import suggestion

    ids = [one["id"] for one in submitted if isinstance(one, dict) and isinstance(one.get("id"), str)]
    return InputRefused(f"No action {action!r} is submitted{suggestion(action, ids)}", action=action)
