"""`pendula fleet replay`, `export`, `snapshot` and `incidents`: commands on the journal of a fleet."""

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
    """A replayed tick differs from its record. Facts: `tick`, `robotId`, `field`."""

    code = "replay_differs"


JournalArgument = Annotated[
    Path, typer.Argument(metavar="JOURNAL", help="The directory of a fleet's journal.", show_default=False)
]
FromOption = Annotated[
    int | None,
    typer.Option("--tick", metavar="T", min=1, help="First tick.", show_default="the first"),
]
UptoOption = Annotated[int | None, typer.Option(metavar="T", min=1, help="Last tick.", show_default="the last")]


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
            help="Print ticks at this multiple of real time.",
            show_default="as fast as possible",
        ),
    ] = None,
    step: Annotated[bool, typer.Option("--step", help="Print one tick at a time, each after Enter.")] = False,
    against: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="Parameters of traffic to compare with those of the journal.", show_default=False
        ),
    ] = None,
    json: JsonFlag = False,
) -> None:
    """Replay the ticks of a journal and compare them with their records.

    From any tick, at any speed. The first deviation is reported by tick, truck and field, with exit code 1. With
    --against the same reports are also applied with other parameters, and the differences of grants, hold points and
    reasons are listed with the totals of both.
    """
    require("fleet")
    output = Output(json)
    if against is not None:
        if any(one is not None for one in (tick, upto, speed)) or step:
            raise WrongUsage("--against compares the whole journal: it takes no --tick, --upto, --speed or --step")
        _versus(journal, against, output)
        return
    if json and (speed is not None or step):
        raise WrongUsage("--speed and --step print ticks one by one; --json prints one document")
    _require_ticks(tick, upto)
    _verified(journal, tick, upto, _printer(speed, step), output)


def _require_ticks(tick: int | None, upto: int | None) -> None:
    """Raises `WrongUsage` for an empty range of ticks."""
    if tick is not None and upto is not None and upto < tick:
        raise WrongUsage(f"--upto {upto} is before --tick {tick}: there is no tick between them", tick=tick, upto=upto)


def _verified(
    directory: Path, tick: int | None, upto: int | None, watch: "Callable[[Moment], None]", output: Output
) -> None:
    from pendula.fleet.runs import reading, verify_ticks

    with reading(directory) as journal:
        form = verify_ticks(journal, tick, upto, watch)
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
    from pendula.fleet.runs import compare_params, reading
    from pendula.fleet.scenarios.reading import read_traffic_params

    document = read_file(against)
    with reading(directory) as journal:
        # Other parameters stay as recorded.
        params = read_traffic_params(document, read_config(journal.header.config).traffic)
        form = compare_params(journal, params)
    output.result(form, lambda: tables_of("fleet").versus(form))


def _printer(speed: float | None, step: bool) -> "Callable[[Moment], None]":
    """A function that prints the changes of each tick, paced by `speed`; without speed and step it prints nothing."""
    if speed is None and not step:
        return lambda _: None
    from time import sleep

    last: list[int] = []

    def show(moment: "Moment") -> None:
        now = moment.ticked.now_ms
        if step:
            sys.stdin.readline()
        elif speed is not None and last:
            sleep((now - last[0]) / 1000 / speed)
        last[:] = [now]
        for sentence in filter(None, map(_event_sentence, moment.computed)):
            sys.stdout.write(f"{now / 1000:.1f} s, tick {moment.ticked.tick}: {printable(sentence)}\n")
        sys.stdout.flush()

    return show


def _event_sentence(event: "FleetEvent") -> str | None:
    """The sentence of an event; None for events of every tick."""
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
            return f"the tick is late by {gap} ms: no commands are sent"
        case _:
            return None


def export(
    journal: JournalArgument,
    tick: FromOption = None,
    upto: UptoOption = None,
    out: Annotated[
        Path | None, typer.Option("--out", "-o", metavar="FILE", help="The file to write.", show_default="stdout")
    ] = None,
    states: Annotated[
        bool,
        typer.Option("--snapshots", help="Trucks, grants, locks and commands after each tick (TickSnapshot) instead."),
    ] = False,
    json: JsonFlag = False,
) -> None:
    """Write a journal as JSON Lines: one record per tick, members in canonical order.

    A record is a TickRecord: the inputs, decisions and commands of a tick. With --snapshots it is a TickSnapshot: every
    truck as RobotState, its grant as LockResult, and all locks as LockSnapshot. Everything is replayed; a tick that
    differs from its record ends the export. With --json the records are one list.
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
        # Written at the end only, because a replay may fail in the middle.
        write_pieces(out, (line + b"\n" for line in ticks))


def snapshot(
    journal: JournalArgument,
    tick: Annotated[
        int | None, typer.Option("--tick", metavar="N", min=1, help="After this tick.", show_default="the last")
    ] = None,
    json: JsonFlag = False,
) -> None:
    """Show a fleet after a tick of its journal: every truck, its grant and what limits it, and all locks.

    With --json it is a TickSnapshot of the contracts RobotState, LockResult and LockSnapshot, in metres, radians,
    metres per second and milliseconds.
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
        typer.Option(
            "--out", "-o", metavar="DIR", help="Directory for bundles; without it none are written.", show_default=False
        ),
    ] = None,
    json: JsonFlag = False,
) -> None:
    """List the incidents of a journal, and write the minute before and after each as a bundle.

    A bundle is a journal: every command for journals accepts it. Incidents are defined in
    docs/reference/fleet-scenarios.md.
    """
    require("fleet")
    from pendula.fleet.runs import incidents_of, reading, write_bundles

    output = Output(json)
    if out is not None:
        keeping(f"{out} holds the bundles that were whole by then")
    with reading(journal) as kept:
        found = [one.incident.form(one.t) for one in incidents_of(kept)]
        made = [] if out is None else write_bundles(kept, out, journal)
    form = {"incidents": found, "bundles": [str(one) for one in made]}
    output.result(form, lambda: tables_of("fleet").incidents(form))
