"""The commands that only read: show, list, why, workers, alerts, history, stats, audit and audit verify."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from time import sleep
from typing import TYPE_CHECKING, Annotated, Any

import typer

from pendula.cli.commands.jobs.filters import Filters
from pendula.cli.commands.jobs.target import Target, command, members, sent, tables, with_target
from pendula.cli.output import Output, example
from pendula.kernel.errors import InputRefused, WrongUsage
from pendula.kernel.wording import counted

if TYPE_CHECKING:
    from rich.console import RenderableType

    from pendula.jobs.client import RemoteScheduler
    from pendula.jobs.scheduler import Scheduler

JobArgument = Annotated[str, typer.Argument(metavar="JOB", help="The id of the job.", show_default=False)]
LimitOption = Annotated[int | None, typer.Option(metavar="N", help="At most this many.", show_default="100")]


class TrailBroken(InputRefused):
    """The audit trail was altered or differs from the store. Facts: `findings`, how many."""

    code = "trail_broken"


def register(jobs: typer.Typer) -> None:
    at = "--db sqlite:///jobs.db"
    command(jobs, "show", f"pendula jobs show job_000000000001 {at}")(show)
    command(
        jobs,
        "list",
        f"pendula jobs list --status dead_letter {at}",
        f"pendula jobs list --correlation-id import-7 {at}",
        "pendula jobs list --object-type memory --limit 20 --url http://127.0.0.1:8765 --json",
    )(list_)
    command(jobs, "why", f"pendula jobs why job_000000000001 {at}")(why)
    command(jobs, "workers", f"pendula jobs workers {at}")(workers)
    command(jobs, "alerts", f"pendula jobs alerts {at}", f"pendula jobs alerts --limit 20 {at} --json")(alerts)
    command(jobs, "history", f"pendula jobs history job_000000000001 {at}")(history)
    command(jobs, "stats", f"pendula jobs stats --watch {at}", f"pendula jobs stats --window-sec 86400 {at} --json")(
        stats
    )
    command(jobs, "past", f"pendula jobs past aud_000000000012 {at}")(past)
    group = typer.Typer(
        invoke_without_command=True,
        epilog=example(f"pendula jobs audit --object-id mem_1 {at}", f"pendula jobs audit verify {at}"),
    )
    group.callback()(_unless_verifying(with_target(audit)))
    command(group, "verify", f"pendula jobs audit verify {at} --json", local=True)(verify)
    jobs.add_typer(group, name="audit", help="Read the audit trail, or verify it.")


def show(target: Target, job_id: JobArgument) -> None:
    """Show one job."""
    reply = target.send("show", {}, job_id)
    target.out.result(reply, lambda: tables().job(reply["job"]))


def why(target: Target, job_id: JobArgument) -> None:
    """Explain in one sentence why a job has not run, where it runs, or how it ended."""
    reply = target.send("why", {}, job_id)
    target.out.result(reply, lambda: reply["sentence"])


def workers(target: Target) -> None:
    """List known workers: last heartbeat, counters."""
    reply = target.send("workers", {})
    target.out.result(reply, lambda: tables().workers(reply["workers"]))


def alerts(
    target: Target,
    cursor: Annotated[
        str | None, typer.Option(metavar="CURSOR", help="The cursor from the previous page.", show_default=False)
    ] = None,
    limit: LimitOption = None,
) -> None:
    """List alerts, the newest first, delivered or not."""
    reply = target.send("alerts", members(cursor=cursor, limit=limit))
    target.out.result(reply, lambda: tables().alerts(reply))


def list_(
    target: Target,
    status: Annotated[
        str | None, typer.Option(help="queued, running, succeeded, failed or dead_letter.", show_default="all")
    ] = None,
    *,
    chosen: Filters,
    cursor: Annotated[
        str | None, typer.Option(metavar="CURSOR", help="The cursor from the previous page.", show_default=False)
    ] = None,
    limit: LimitOption = None,
) -> None:
    """List jobs, the newest first. Dead letters are `--status dead_letter`."""
    query = {**chosen, **members(status=status, cursor=cursor, limit=limit)}
    reply = target.send("list", query)
    target.out.result(reply, lambda: tables().jobs(reply))


def history(target: Target, job_id: JobArgument) -> None:
    """Show the history of a job: its errors and all events."""
    reply = target.send("history", {}, job_id)
    target.out.result(reply, lambda: tables().history(reply))


def stats(
    target: Target,
    window_sec: Annotated[
        int | None, typer.Option(metavar="SECONDS", help="The window of the rates, 60 to 604800.", show_default="3600")
    ] = None,
    watch: Annotated[bool, typer.Option("--watch", help="Refresh until Ctrl+C.")] = False,
    interval: Annotated[
        int, typer.Option(metavar="SECONDS", min=1, max=3600, help="Between two refreshes of --watch.")
    ] = 2,
    count: Annotated[
        int | None, typer.Option(metavar="N", min=1, help="Stop --watch after N refreshes.", show_default="never")
    ] = None,
) -> None:
    """Show metrics: due jobs and their lag, jobs by status, rates, dead letters, governed objects."""
    from pendula.jobs.scheduler import Scheduler

    asked = members(window_sec=window_sec)
    if count is not None and not watch:
        raise WrongUsage("--count is for --watch")
    if watch and target.out.as_json:
        raise WrongUsage("--watch does not go with --json; call stats --json repeatedly instead")
    with target.scheduler() as scheduler:
        if watch:
            reply, before = _watched(scheduler, asked, interval, count, target.out)
        else:
            reply, before = sent(scheduler, "metrics", asked), None
        from pendula.governance import governed
        from pendula.jobs.messages import plain

        reply["governance"] = plain(governed(scheduler).figures())
        if isinstance(scheduler, Scheduler):
            target.note_time(scheduler.calls.store)
    target.out.result(reply, lambda: tables().stats(reply, before))


def _watched(
    scheduler: "Scheduler | RemoteScheduler", asked: dict[str, Any], interval: int, count: int | None, out: Output
) -> tuple[dict[str, Any], dict[str, Any] | None]:
    """Refresh until stopped; return the last two replies."""
    reply, before = sent(scheduler, "metrics", asked), None
    looks = 1
    with _display(out) as draw:
        try:
            while True:
                draw(reply, before)
                if looks == count:
                    break
                sleep(interval)
                reply, before = sent(scheduler, "metrics", asked), reply
                looks += 1
        except KeyboardInterrupt:
            pass
    return reply, before


@contextmanager
def _display(out: Output) -> Iterator[Callable[[dict[str, Any], dict[str, Any] | None], None]]:
    """Draw on stderr: a live table in a terminal, otherwise one line per refresh."""
    drawn_by = tables()
    if not sys.stderr.isatty():
        yield lambda reply, _: out.note(drawn_by.line(reply))
        return
    from rich.console import Console
    from rich.live import Live

    with Live(console=Console(stderr=True, highlight=False), auto_refresh=False, transient=True) as live:
        yield lambda reply, before: live.update(drawn_by.stats(reply, before), refresh=True)


def past(
    target: Target,
    at: Annotated[
        str | None, typer.Argument(metavar="[EVENT]", help="The state after this event.", show_default="the newest")
    ] = None,
) -> None:
    """Show the queue and the governed objects after an event, one of the last 10 000."""
    reply = target.send("past", members(at=at))
    target.out.result(reply, lambda: tables().past(reply))


def audit(
    target: Target,
    object_type: Annotated[
        str | None, typer.Option(metavar="TYPE", help="Only events of this object type.", show_default=False)
    ] = None,
    object_id: Annotated[
        str | None, typer.Option(metavar="ID", help="Only of this object.", show_default=False)
    ] = None,
    job_id: Annotated[
        str | None, typer.Option("--job", metavar="JOB", help="Only of this job.", show_default=False)
    ] = None,
    event_type: Annotated[
        str | None, typer.Option(metavar="TYPE", help="scheduler_job, state_transition, …", show_default=False)
    ] = None,
    after: Annotated[
        str | None, typer.Option(metavar="EVENT", help="Events after this one.", show_default="the beginning")
    ] = None,
    limit: LimitOption = None,
) -> None:
    """Read the audit trail, the oldest event first, or verify it."""
    query = members(
        object_type=object_type, object_id=object_id, job_id=job_id, event_type=event_type, after=after, limit=limit
    )
    reply = target.send("audit", query)
    target.out.result(reply, lambda: tables().trail(reply))


def _unless_verifying(read: Callable[..., None]) -> Callable[..., None]:
    """Read the trail unless a subcommand is given."""
    from inspect import Parameter, signature

    def run(context: typer.Context, **given: Any) -> None:
        if context.invoked_subcommand is None:
            read(**given)
        elif any(value not in (None, False) for value in given.values()):
            raise WrongUsage("put the options of verify after it: pendula jobs audit verify --db sqlite:///jobs.db")

    seen = signature(read)
    first = Parameter("context", Parameter.KEYWORD_ONLY, annotation=typer.Context)
    run.__doc__ = read.__doc__
    run.__signature__ = seen.replace(parameters=[first, *seen.parameters.values()])  # type: ignore[attr-defined]
    run.__annotations__ = {"context": typer.Context, **read.__annotations__}
    return run


def verify(target: Target) -> None:
    """Replay the audit trail: check that it is unaltered and matches the store.

    The exit code is 1 if not.
    """
    result = replayed(target)
    target.out.result(result, lambda: drawn(result))
    if result["findings"]:
        raise TrailBroken(wrong(result), findings=len(result["findings"]))


def replayed(target: Target) -> dict[str, Any]:
    """The result of a replay of the trail as JSON."""
    from pendula.jobs.upkeep.verification import replay

    with target.store() as store:
        result = replay(store)
    findings = [
        {"code": finding.code, "where": finding.where, "sentence": finding.sentence} for finding in result.findings
    ]
    return {"events": result.events, "jobs": result.jobs, "findings": findings, "verified": not findings}


def drawn(result: dict[str, Any]) -> "RenderableType":
    if result["findings"]:
        findings: RenderableType = tables().findings(result["findings"])
        return findings
    events, jobs = counted(result["events"], "event"), counted(result["jobs"], "job")
    return f"Trail intact: {events}, {jobs}; the store matches."


def wrong(result: dict[str, Any]) -> str:
    return f"The trail does not match the store: {result['findings'][0]['sentence']}"
