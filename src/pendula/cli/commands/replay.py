"""`pendula replay`: apply a journal to a fresh engine and compare the outcomes, byte for byte.

A store of jobs has no engine: its audit trail is replayed and must give the contents of the store.
"""

from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from pendula.cli.output import JsonFlag, Output, example, facts
from pendula.kernel.errors import InputRefused, WorldBroken, WrongUsage

if TYPE_CHECKING:
    from rich.console import RenderableType

    from pendula.kernel.journal import FileJournal
    from pendula.kernel.replay import Difference, ReplayReport

# A state can have megabytes; `--json` prints all of it.
SHOWN_CHARACTERS = 2000
# A running server may prune the next segment; the replay then starts again at the first remaining one.
ATTEMPTS = 5


class ReplayDiffers(InputRefused):
    """The outcomes differ from the journal. Facts: `n` and `path` of the first difference, or `findings`."""

    code = "replay_differs"


def register(program: typer.Typer) -> None:
    shown = example(
        "pendula replay pendula-data/schedulers/actions/town",
        "pendula replay run-7 --upto 500 --json",
        "pendula replay --db sqlite:///jobs.db",
    )
    program.command("replay", epilog=shown)(replay)


def replay(
    journal: Annotated[
        Path | None,
        typer.Argument(metavar="JOURNAL", help="The directory of a scheduler's journal.", show_default=False),
    ] = None,
    upto: Annotated[
        int | None, typer.Option(metavar="N", min=0, help="Stop after record N.", show_default="the last")
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Replay a journal of other decisions, too.")] = False,
    db: Annotated[
        str | None,
        typer.Option(metavar="ADDRESS", help="Replay a store of jobs instead: sqlite:///jobs.db.", show_default=False),
    ] = None,
    json: JsonFlag = False,
) -> None:
    """Verify any scheduler's journal: the same commands must give the same outcomes.

    Nothing is changed, not even a torn tail. With a difference the exit code is 1 and the first one is shown. With --db
    the audit trail of a store of jobs is replayed and must give the contents of the store.
    """
    out = Output(json)
    if db is not None:
        if journal is not None or upto is not None or force:
            raise WrongUsage("--db excludes JOURNAL, --upto and --force: a trail is replayed to its end")
        _replay_store(db, out)
        return
    if journal is None:
        raise WrongUsage(
            "Missing argument 'JOURNAL', or --db for a store of jobs; see pendula replay --help",
            command="pendula replay",
        )
    document = _replayed_while_there(journal, upto, force, out)
    difference: Difference | None = document["first_difference"]
    out.result(document, lambda: _drawn(document, difference))
    if difference is not None:
        raise ReplayDiffers(f"Record {difference.n} differs at {difference.path}", n=difference.n, path=difference.path)


def _replay_store(db: str, out: Output) -> None:
    from pendula.cli.commands.jobs.look import drawn, replayed, wrong
    from pendula.cli.commands.jobs.target import Target

    report = {"scheduler": "jobs", **replayed(Target(db=db, url=None, token_file=None, ca=None, config=None, out=out))}
    out.result(report, lambda: drawn(report))
    if not report["verified"]:
        raise ReplayDiffers(wrong(report), findings=len(report["findings"]))


def _replayed_while_there(directory: Path, upto: int | None, force: bool, out: Output) -> dict[str, Any]:
    """The report; the replay starts again if a segment is pruned meanwhile."""
    for _ in range(ATTEMPTS):
        try:
            return _replayed(directory, upto, force, out)
        except FileNotFoundError:
            continue
    raise WorldBroken(
        f"{directory} is pruned faster than it can be read; replay a copy, or stop the server that writes it",
        path=str(directory),
    )


def _replayed(directory: Path, upto: int | None, force: bool, out: Output) -> dict[str, Any]:
    from pendula.cli.schedulers import engine_of, load_compiled
    from pendula.kernel.journal import opened
    from pendula.kernel.replay import replay

    with closing(opened(directory)) as journal:
        load_compiled(journal.header.scheduler, directory)
        last = journal.durable_n if upto is None else min(upto, journal.durable_n)
        with out.progress("replay", last - journal.first_n + 1) as advance:
            report = replay(
                journal,
                lambda header: engine_of(header.scheduler),
                upto,
                force=force,
                progress=lambda n: advance(n - journal.first_n + 1),
            )
        return _document(journal, last, report)


def _document(journal: "FileJournal", last: int, report: "ReplayReport") -> dict[str, Any]:
    from pendula.kernel.journal import missing_of

    header, missing = journal.header, missing_of(journal.header)
    return {
        "commands": report.commands,
        "config_digest": header.config_digest,
        "cut_tail_bytes": report.cut_tail_bytes,
        "decisions": header.decisions,
        "digest": _digest(journal, last),
        "first_difference": report.first_difference,
        "first_n": journal.first_n,
        "last_n": last,
        "package": header.package,
        "scheduler": header.scheduler,
        "snapshots": report.snapshots,
        "verified": report.first_difference is None,
        **({} if missing is None else {"missing": missing}),
        **({} if journal.tail_note is None else {"tail": journal.tail_note}),
    }


def _digest(journal: "FileJournal", last: int) -> str:
    """The chain digest after record `last`; it covers the configuration and every record so far."""
    from pendula.kernel.canonical import chain
    from pendula.kernel.frames import record_body

    link = bytes.fromhex(journal.header.chain)
    for record in journal.read():
        if record.n > last:
            break
        link = chain(link, record_body(record.n, record.t, record.kind, bytes(record.body)))
    return link.hex()


def _drawn(document: dict[str, Any], difference: "Difference | None") -> "RenderableType":
    pairs = [
        (
            "scheduler",
            f"{document['scheduler']}, decisions {document['decisions']}, written by pendula {document['package']}",
        ),
        ("records", f"{document['first_n']} to {document['last_n']}"),
        ("commands", str(document["commands"])),
        ("snapshots", str(document["snapshots"])),
        ("cut tail", f"{document['cut_tail_bytes']} bytes"),
        *([("tail", document["tail"])] if "tail" in document else []),
        *([("missing", document["missing"])] if "missing" in document else []),
        ("digest", document["digest"]),
        ("result", "every outcome is the same" if difference is None else "DIFFERENT"),
    ]
    if difference is not None:
        pairs += [
            ("record", str(difference.n)),
            ("command", _shortened(difference.command)),
            ("recorded", _shortened(difference.recorded)),
            ("computed", _shortened(difference.computed)),
            ("path", difference.path),
        ]
    return facts(pairs)


def _shortened(value: Any) -> str:
    from pendula.kernel.canonical import encode

    text = encode(value).decode()
    if len(text) <= SHOWN_CHARACTERS:
        return text
    return f"{text[:SHOWN_CHARACTERS]}… ({len(text)} characters; --json shows all)"
