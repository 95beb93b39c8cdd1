"""The commands that maintain a store: init, check, backup, set-time, retain."""

import os
from pathlib import Path
from typing import Annotated, Any

import typer

from pendula.cli.commands.jobs.target import Target, caller, command, members, wall_now
from pendula.cli.output import table
from pendula.kernel.errors import InputRefused
from pendula.kernel.wording import counted

STORE_SUFFIXES = ("-wal", "-shm", "-journal", ".turn", ".lock")  # other files of a store


class StoreFaulty(InputRefused):
    """A store has faults. Facts: `findings`, how many."""

    code = "store_faulty"


class BackupExists(InputRefused):
    """Facts: `path`."""

    code = "backup_exists"


def register(jobs: typer.Typer) -> None:
    command(jobs, "init", "pendula jobs init --db sqlite:///jobs.db", local=True)(init)
    command(
        jobs,
        "check",
        "pendula jobs check --db sqlite:///jobs.db",
        "pendula jobs check --db sqlite:////srv/jobs.db --json",
        local=True,
    )(check)
    command(jobs, "backup", "pendula jobs backup jobs-monday.db --db sqlite:///jobs.db", local=True)(backup)
    command(
        jobs,
        "set-time",
        "pendula jobs set-time --reason 'a host had a wrong clock' --db sqlite:///jobs.db",
    )(set_time)
    command(
        jobs,
        "retain",
        "pendula jobs retain --db sqlite:///jobs.db",
        "pendula jobs retain --days 90 --dead-letters --db sqlite:///jobs.db",
        local=True,
    )(retain)


def init(target: Target) -> None:
    """Create a store of jobs, or migrate one to the newest schema."""
    from pendula.jobs.store.sqlite import migrations

    target.require_store()
    path = target.path()
    there = path.exists() and path.stat().st_size > 0
    with target.store(make=True) as store:
        settings = store.settings()
        store.check_durable()
    document: dict[str, Any] = {
        "created": not there,
        "file": str(path),
        "version": len(migrations()),
        "durability": store.durability.value,
        "settings": settings,
    }
    schema = f"(schema version {document['version']})"
    said = f"{path} exists and is up to date {schema}." if there else f"Created {path} {schema}."
    target.out.result(document, lambda: said)


def check(target: Target) -> None:
    """Check a store: its file, its invariants, its audit trail.

    The exit code is 1 if there are findings.
    """
    from pendula.jobs.store.sqlite_files import schema_damage
    from pendula.jobs.upkeep.verification import check as checked
    from pendula.jobs.upkeep.verification import damaged

    target.require_store()
    path = target.path()
    if path.is_file() and (trouble := schema_damage(path)) is not None:
        problems = [damaged(trouble)]
    else:
        configured = target.configured()
        with target.store(configured) as store:
            problems = checked(
                store, wall_now(), configured.policy.max_clock_step_sec, followups=configured.policy.auto_followup
            )
            target.note_time(store)
    findings = [{"code": problem.code, "where": problem.where, "sentence": problem.sentence} for problem in problems]
    document = {"file": str(target.path()), "findings": findings, "sound": not findings}
    rows = [(finding["code"], finding["where"], finding["sentence"]) for finding in findings]
    drawn = lambda: table(("code", "where", "problem"), rows) if rows else f"{target.path()} is sound."  # noqa: E731
    target.out.result(document, drawn)
    if findings:
        raise StoreFaulty(f"{target.path()} is damaged: {counted(len(findings), 'fault')}", findings=len(findings))


def backup(
    target: Target,
    file: Annotated[Path, typer.Argument(metavar="FILE", help="The copy; a new file.", show_default=False)],
) -> None:
    """Copy a store while it is in use; the copy is consistent."""
    target.require_store()
    if file.exists():
        raise BackupExists(f"{file} already exists; name another file", path=str(file))
    store_file = target.path().absolute()
    if file.absolute() in [store_file.with_name(store_file.name + end) for end in STORE_SUFFIXES]:
        raise BackupExists(f"{file} belongs to the store itself; name another file", path=str(file))
    part = file.with_name(file.name + ".part")
    try:
        with target.store() as store, target.out.progress("backup", 100) as advance:
            part.unlink(missing_ok=True)
            store.backup(part, lambda done, pages: advance(done * 100 // max(pages, 1)))
        _settle(part, file)
    finally:
        part.unlink(missing_ok=True)
    document = {"bytes": file.stat().st_size, "file": str(file), "from": str(target.path())}
    target.out.result(document, lambda: f"{file} is a copy of {target.path()}, {document['bytes']} bytes.")


def _settle(part: Path, file: Path) -> None:
    """Rename the copy once it is durable, and never overwrite a file."""
    with part.open("rb") as copied:
        os.fsync(copied.fileno())
    try:
        os.link(part, file)
    except FileExistsError:
        raise BackupExists(f"{file} already exists; name another file", path=str(file)) from None
    folder = os.open(file.parent, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def set_time(
    target: Target,
    reason: Annotated[str, typer.Option(metavar="TEXT", help="Why, for the trail.", show_default=False)],
) -> None:
    """Set the time of the store to this machine's clock, or the server's, also backwards.

    Leases, delays and plans written with the wrong clock count from now. Jobs with a time set by a caller keep it.
    """
    reply = target.send("set_time", members(reason=reason))
    target.out.result(reply, lambda: _time_set(reply))


def _time_set(reply: dict[str, Any]) -> str:
    summary = (
        f"The time of the store is {reply['now']}; it was {reply['before']}.\n"
        f"Counted from now: {counted(reply['due'], 'job')}, {counted(reply['leases'], 'lease')}, "
        f"{counted(reply['plans'], 'plan')}."
    )
    if not reply["kept"]:
        return summary
    return (
        f"{summary}\n{counted(reply['kept'], 'job')} enqueued meanwhile keep their time: "
        f"{', '.join(reply['kept_jobs'])}. If it was meant as a delay: cancel, then requeue with --run-at."
    )


def retain(
    target: Target,
    days: Annotated[
        int | None,
        typer.Option(
            metavar="N", min=1, max=3650, help="Older than this many days.", show_default="as the settings say"
        ),
    ] = None,
    dead_letters: Annotated[bool, typer.Option("--dead-letters", help="Also delete dead letters.")] = False,
) -> None:
    """Delete old finished jobs. Their keys stay used, and the trail keeps all events, packed."""
    from pendula.jobs.upkeep.retention import retain as retained

    with target.calls() as calls, target.out.status("retain") as say:
        done = retained(
            calls,
            days=days,
            dead_letters=dead_letters,
            caller=caller(),
            progress=lambda gone: say(f"{gone} deleted") if gone else None,
        )
    document = done.as_json()
    rows = [(status, str(number)) for status, number in done.removed.items()]
    target.out.result(document, lambda: table(("status", "deleted"), rows, f"Finished before {document['before']}"))
