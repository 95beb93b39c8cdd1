"""`pendula fleet replay`, `export` and `incidents`: what is done with the journal of a fleet."""

import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from pendula.cli.failing import keeping, require
from pendula.cli.output import JsonFlag, Output, example, tables_of
from pendula.cli.text import printable
from pendula.cli.writing import write_pieces
from pendula.kernel.errors import InputRefused, WrongUsage

if TYPE_CHECKING:
    from pendula.fleet.events import FleetEvent
    from pendula.fleet.runs import Moment


class ReplayDiffers(InputRefused):
    """A tick came out otherwise than it was recorded. Facts: `tick`, `robotId`, `field`."""

    code = "replay_differs"


JournalArgument = Annotated[
    Path, typer.Argument(metavar="JOURNAL", help="The directory of a fleet's journal.", show_default=False)
]
FromOption = Annotated[
    int | None,
    typer.Option("--tick", metavar="T", min=1, help="Begin at this tick.", show_default="the first"),
]
UptoOption = Annotated[
    int | None, typer.Option(metavar="T", min=1, help="End with this tick.", show_default="the last")
]


def register(group: typer.Typer) -> None:
    group.command(
        "replay",
        epilog=example(
            "pendula fleet replay hall-journal",
            "pendula fleet replay hall-journal --tick 600 --speed 10",
            "pendula fleet replay hall-journal --against params.yaml",
        ),
    )(replay)
    group.command(
        "export",
        epilog=example(
            "pendula fleet export hall-journal -o hall.jsonl",
            "pendula fleet export hall-journal --tick 600",
            "pendula fleet export hall-journal --snapshots -o states.jsonl",
        ),
    )(export)
    group.command(
        "snapshot",
        epilog=example("pendula fleet snapshot hall-journal", "pendula fleet snapshot hall-journal --tick 600 --json"),
    )(snapshot)
    group.command(
        "incidents",
        epilog=example("pendula fleet incidents hall-journal", "pendula fleet incidents hall-journal -o bundles"),
    )(incidents)


def replay(
    journal: JournalArgument,
    tick: FromOption = None,
    upto: UptoOption = None,
    speed: Annotated[
        float | None,
        typer.Option(
            metavar="X",
            min=0.01,
            help="Tell it this many times as fast as it was.",
            show_default="as fast as it goes",
        ),
    ] = None,
    step: Annotated[bool, typer.Option("--step", help="Tell one tick after the other, each after Enter.")] = False,
    against: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="Parameters of traffic: what they would have decided otherwise.", show_default=False
        ),
    ] = None,
    json: JsonFlag = False,
) -> None:
    """Compute the ticks of a journal again and compare them with what was recorded.

    From any tick on, at any speed. The first deviation is named by tick, truck and field, and the exit code is 1. With
    --against another set of parameters decides on the same reports, and the differences of grants, hold points and
    reasons are told, with the figures of both.
    """
    require("fleet")
    output = Output(json)
    if against is not None:
        if any(one is not None for one in (tick, upto, speed)) or step:
            raise WrongUsage("--against looks at the whole journal: it takes no --tick, --upto, --speed or --step")
        _versus(journal, against, output)
        return
    if json and (speed is not None or step):
        raise WrongUsage("--speed and --step tell ticks one by one; --json gives one document")
    _require_ticks(tick, upto)
    _verified(journal, tick, upto, _teller(speed, step), output)


def _require_ticks(tick: int | None, upto: int | None) -> None:
    """Raises `WrongUsage` where no tick can be between the two."""
    if tick is not None and upto is not None and upto < tick:
        raise WrongUsage(f"--upto {upto} is before --tick {tick}: there is no tick to look at", tick=tick, upto=upto)


def _verified(
    directory: Path, tick: int | None, upto: int | None, watch: "Callable[[Moment], None]", output: Output
) -> None:
    from pendula.fleet.runs import reading, verified

    with reading(directory) as journal:
        form = verified(journal, tick, upto, watch)
    output.result(form, lambda: tables_of("fleet").replayed(form))
    first = form["firstDifference"]
    if first is not None:
        raise ReplayDiffers(
            f"Tick {first['tick']} differs: {first['field']} of {first['robotId'] or 'the fleet'}",
            tick=first["tick"],
            robotId=first["robotId"],
            field=first["field"],
        )


def _versus(directory: Path, against: Path, output: Output) -> None:
    from pendula.documents import read_file
    from pendula.fleet.engine import read_config
    from pendula.fleet.runs import compared, reading
    from pendula.fleet.scenarios.reading.traffic_params import read_traffic_params

    document = read_file(against)
    with reading(directory) as journal:
        # What the file does not name is as it was.
        params = read_traffic_params(document, read_config(journal.header.config).traffic)
        form = compared(journal, params)
    output.result(form, lambda: tables_of("fleet").versus(form))


def _teller(speed: float | None, step: bool) -> "Callable[[Moment], None]":
    """Tells what changed in each tick, in its time; nothing where nobody wants to watch."""
    if speed is None and not step:
        return lambda _: None
    from time import sleep

    last: list[int] = []

    def tell(moment: "Moment") -> None:
        now = moment.ticked.now_ms
        if step:
            sys.stdin.readline()
        elif speed is not None and last:
            sleep((now - last[0]) / 1000 / speed)
        last[:] = [now]
        for sentence in filter(None, map(_told, moment.computed)):
            sys.stdout.write(f"{now / 1000:.1f} s, tick {moment.ticked.tick}: {printable(sentence)}\n")
        sys.stdout.flush()

    return tell


def _told(event: "FleetEvent") -> str | None:
    """An event in words; None for what happens in every tick."""
    from pendula.fleet import events
    from pendula.fleet.sentences import cause_sentence

    match event:
        case events.HoldChanged(robot_id=robot, reason_code=code, blocker_robot_id=by):
            return f"{robot} {code or 'goes on'}" + (f", {by} is in the way" if by else "")
        case events.TaskMoved(task_id=task, state=state, cause=cause, robot_id=robot, by=by):
            return f"task {task} is {state.value}, {cause_sentence(cause, by)}" + (f", {robot}" if robot else "")
        case events.AlertRaised(alert=alert):
            return f"alert {alert.severity} {alert.code}"
        case events.NoticeRaised(notice=notice):
            return f"notice {notice.code}"
        case events.Incident(incident_id=name, message=message):
            return f"incident {name}: {message}"
        case events.TickFailed(error=message):
            return f"the tick failed: {message}"
        case events.TickLate(gap_ms=gap):
            return f"the tick is late by {gap} ms: no truck is told anything"
        case _:
            return None


def export(
    journal: JournalArgument,
    tick: FromOption = None,
    upto: UptoOption = None,
    out: Annotated[
        Path | None, typer.Option("--out", "-o", metavar="FILE", help="Where the lines go.", show_default="stdout")
    ] = None,
    states: Annotated[
        bool,
        typer.Option("--snapshots", help="Trucks, grants, locks and commands after each tick (TickSnapshot) instead."),
    ] = False,
    json: JsonFlag = False,
) -> None:
    """Write a journal as JSON Lines: one record of the contract a tick, members in canonical order.

    A record is a TickRecord: what a tick read, decided and sent. With --snapshots it is a TickSnapshot: every truck as
    RobotState, what each was granted as LockResult, and who holds what as LockSnapshot. All of it is computed again; a
    tick that comes out otherwise ends the export. With --json the records are one list.
    """
    require("fleet")
    _require_ticks(tick, upto)
    from pendula.fleet.runs import lines, reading, snapshot_lines

    with reading(journal) as kept:
        ticks = snapshot_lines(kept, tick, upto) if states else lines(kept, tick, upto)
        if json:
            ticks = iter([b"[" + b",".join(ticks) + b"]"])
        if out is None:
            for line in ticks:
                sys.stdout.buffer.write(line + b"\n")
            sys.stdout.buffer.flush()
            return
        # Whole or not at all: a replay may end in the middle.
        write_pieces(out, (line + b"\n" for line in ticks))


def snapshot(
    journal: JournalArgument,
    tick: Annotated[
        int | None, typer.Option("--tick", metavar="N", min=1, help="After this tick.", show_default="the last")
    ] = None,
    json: JsonFlag = False,
) -> None:
    """Show a fleet after a tick of its journal: every truck, what it was granted and why not more, who holds what.

    With --json it is a TickSnapshot, whose members are RobotState, LockResult and LockSnapshot as the contracts have
    them: metres, radians, metres a second, milliseconds.
    """
    require("fleet")
    from pendula.fleet.runs import last_tick, reading, snapshot_at

    with reading(journal) as kept:
        form = snapshot_at(kept, last_tick(kept) if tick is None else tick)
    Output(json).result(form, lambda: tables_of("fleet").state(form))


def incidents(
    journal: JournalArgument,
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", metavar="DIR", help="Where bundles go; none are made without.", show_default=False),
    ] = None,
    json: JsonFlag = False,
) -> None:
    """List the incidents of a journal, and cut out the minute before and after each as a journal of its own.

    A bundle replays alone, and every command for journals takes it. What counts as an incident is in
    docs/reference/fleet-scenarios.md.
    """
    require("fleet")
    from pendula.fleet.runs import bundles_in, incidents_of, reading

    output = Output(json)
    if out is not None:
        keeping(f"{out} holds the bundles that were whole by then")
    with reading(journal) as kept:
        found = [one.incident.form(one.t) for one in incidents_of(kept)]
        made = [] if out is None else bundles_in(kept, out, journal)
    form = {"incidents": found, "bundles": [str(one) for one in made]}
    output.result(form, lambda: tables_of("fleet").incidents(form))
