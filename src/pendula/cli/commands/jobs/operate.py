"""The commands cancel and requeue, for one job or all that match a filter."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, Any

import typer
from msgspec.structs import asdict

from pendula.cli.commands.jobs.filters import Filters
from pendula.cli.commands.jobs.target import Target, command, members, sent
from pendula.kernel.errors import WrongUsage

if TYPE_CHECKING:
    from pendula.jobs.client import RemoteScheduler
    from pendula.jobs.scheduler import Scheduler
    from pendula.jobs.scheduler_calls import Changed

JobArgument = Annotated[
    str | None, typer.Argument(metavar="[JOB]", help="The id of the job; without it, filters.", show_default=False)
]
ReasonOption = Annotated[str | None, typer.Option(metavar="TEXT", help="Why, for the trail.", show_default=False)]
YesOption = Annotated[
    bool, typer.Option("--yes", help="Apply it; without this option only the number of matching jobs is shown.")
]


def register(jobs: typer.Typer) -> None:
    at = "--db sqlite:///jobs.db"
    command(
        jobs,
        "cancel",
        f"pendula jobs cancel job_000000000001 --reason 'object deleted' {at}",
        f"pendula jobs cancel --correlation-id import-7 --reason 'wrong file' --yes {at}",
    )(cancel)
    command(
        jobs,
        "requeue",
        f"pendula jobs requeue job_000000000001 --reason 'service is back' {at}",
        f"pendula jobs requeue --status dead_letter --error-code timeout --yes {at}",
    )(requeue)


def cancel(
    target: Target,
    job_id: JobArgument = None,
    status: Annotated[str | None, typer.Option(help="queued or running.", show_default="queued")] = None,
    *,
    chosen: Filters,
    reason: ReasonOption = None,
    yes: YesOption = False,
) -> None:
    """Cancel a job, or all that match. A waiting job becomes failed; a running job gets a cancel request.

    The handler of a running job sees the request with the next renewal of its lease, and may succeed first.
    """
    from pendula.jobs.scheduler_calls import cancel_all

    asked = {**chosen, **members(status=status)}
    if _is_one(job_id, asked, yes):
        reply = target.send("cancel", members(reason=reason), str(job_id))
        target.out.result(reply, lambda: _cancelled(reply["job"]))
        return
    asked.setdefault("status", "queued")
    why = members(reason=reason)
    _many(target, asked, yes, "cancel", lambda scheduler, say: cancel_all(scheduler, asked, progress=say, **why))


def requeue(
    target: Target,
    job_id: JobArgument = None,
    status: Annotated[str | None, typer.Option(help="dead_letter or failed.", show_default="dead_letter")] = None,
    *,
    chosen: Filters,
    run_at: Annotated[
        str | None,
        typer.Option(metavar="TIME", help="A time with offset: 2026-02-21T00:00:00Z.", show_default="now"),
    ] = None,
    reason: ReasonOption = None,
    yes: YesOption = False,
) -> None:
    """Requeue dead letters, or jobs that failed or were cancelled, with all their attempts."""
    from pendula.jobs.scheduler_calls import requeue_all

    asked = {**chosen, **members(status=status)}
    why = members(run_at=run_at, reason=reason)
    if _is_one(job_id, asked, yes):
        reply = target.send("requeue", why, str(job_id))
        target.out.result(reply, lambda: f"{job_id} is {reply['job']['status']}, due at {reply['job']['run_at']}.")
        return
    asked.setdefault("status", "dead_letter")
    _many(target, asked, yes, "requeue", lambda scheduler, say: requeue_all(scheduler, asked, progress=say, **why))


DONE = {"cancel": "cancelled or requested to stop", "requeue": "requeued"}


def _is_one(job_id: str | None, asked: dict[str, Any], yes: bool) -> bool:
    if job_id is not None and (asked or yes):
        raise WrongUsage("pass JOB or filters, not both; --yes is for filters")
    if job_id is None and not asked:
        raise WrongUsage("pass JOB, or filters such as --status, --queue, --correlation-id, --error-code")
    return job_id is not None


def _many(
    target: Target,
    asked: dict[str, Any],
    yes: bool,
    verb: str,
    run: "Callable[[Scheduler | RemoteScheduler, Callable[[int], None]], Changed]",
) -> None:
    """Count the matching jobs; change them only with `--yes`."""
    with target.scheduler() as scheduler:
        count: int = sent(scheduler, "count", asked)["count"]
        if not yes:
            matches, them = ("1 job matches", "it") if count == 1 else (f"{count} jobs match", "them")
            text = f"{matches}; nothing was changed. Add --yes to {verb} {them}."
            target.out.result({"count": count, "done": False}, lambda: text)
            return
        with target.out.progress(verb, count) as advance:
            done = run(scheduler, advance)
    document = {"count": count, "done": True, **asdict(done)}
    summary = f"{done.changed} of {done.matched} {DONE[verb]}."
    target.out.result(document, lambda: summary)


def _cancelled(job: dict[str, Any]) -> str:
    if job["status"] == "running":
        return f"{job['job_id']} is running; its worker gets the cancel request with the next renewal."
    return f"{job['job_id']} is {job['status']}: {job['last_error']}."
