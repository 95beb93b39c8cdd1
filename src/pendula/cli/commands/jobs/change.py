"""The commands that change one job: enqueue, pull, ack, fail, renew, release, free-key."""

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from pendula.cli.commands.jobs.filters import FORM, seconds_of
from pendula.cli.commands.jobs.message_options import options_of
from pendula.cli.commands.jobs.target import Target, command, members, sent, tables, wall_now
from pendula.jobs import messages
from pendula.kernel.errors import InputRefused, WrongUsage

TOGETHER = 1000

JobArgument = Annotated[str, typer.Argument(metavar="JOB", help="The id of the job.", show_default=False)]
TypeArgument = Annotated[
    str | None, typer.Argument(metavar="TYPE", help="memory, experience, cognition.", show_default=False)
]
IdArgument = Annotated[str | None, typer.Argument(metavar="ID", help="The id of the object.", show_default=False)]
ActionArgument = Annotated[
    str | None,
    typer.Argument(metavar="ACTION", help="verify, revalidate, decay, archive, reinstate-check.", show_default=False),
]
InOption = Annotated[
    int | None,
    typer.Option("--in", metavar="SPAN", parser=seconds_of, help=f"This long from now: {FORM}.", show_default=False),
]
BatchOption = Annotated[
    Path | None,
    typer.Option(metavar="FILE", help="Many jobs: a YAML or JSON list.", show_default=False),
]
BodyOption = Annotated[
    Path | None,
    typer.Option(
        "--body",
        metavar="FILE",
        help="The body of the HTTP call as a JSON or YAML file; - for JSON from standard input.",
        show_default=False,
    ),
]
# The members of the requests that options give; the others are arguments, or options of their own.
EnqueueOptions = Annotated[dict[str, Any], options_of(messages.Enqueue, without=("object_type", "object_id", "action"))]
PullOptions = Annotated[dict[str, Any], options_of(messages.Pull)]
AckOptions = Annotated[dict[str, Any], options_of(messages.Ack, without=("result",))]
FailOptions = Annotated[dict[str, Any], options_of(messages.Fail, without=("retryable",))]
RenewOptions = Annotated[dict[str, Any], options_of(messages.Renew)]
ReleaseOptions = Annotated[dict[str, Any], options_of(messages.Release)]


class EntriesRefused(InputRefused):
    """Facts: `refused` and `entries`, how many."""

    code = "entries_refused"


def register(jobs: typer.Typer) -> None:
    at = "--db sqlite:///jobs.db"
    command(
        jobs,
        "enqueue",
        f"pendula jobs enqueue memory mem_1 verify {at}",
        f"pendula jobs enqueue cognition cg_7 revalidate --in 3600 --priority high {at}",
        f"pendula jobs enqueue memory mem_1 decay --payload '{{\"by\": 0.5}}' --unique waiting {at}",
        f"pendula jobs enqueue --batch jobs.yaml {at}",
    )(enqueue)
    command(jobs, "pull", f"pendula jobs pull --worker night-1 --limit 10 {at} --json")(pull)
    command(
        jobs,
        "ack",
        f"pendula jobs ack job_000000000001 --lease-token lt_5c1e --next-action-at 2026-02-28T00:00:00Z {at}",
        f"pendula jobs ack job_000000000001 --body ack.json {at}",
    )(ack)
    command(
        jobs,
        "fail",
        f"pendula jobs fail job_000000000001 --error 'no evidence' --retry-delay-sec 300 {at}",
    )(fail)
    command(
        jobs,
        "renew",
        f"pendula jobs renew job_000000000001 --worker night-1 --lease-token lt_5c1e --lease-sec 120 {at}",
    )(renew)
    command(jobs, "release", f"pendula jobs release job_000000000001 --worker night-1 --lease-token lt_5c1e {at}")(
        release
    )
    command(jobs, "free-key", f"pendula jobs free-key cg_1:verify:7 --reason 'run it again' {at}")(free_key)


def enqueue(
    target: Target,
    given: EnqueueOptions,
    object_type: TypeArgument = None,
    object_id: IdArgument = None,
    action: ActionArgument = None,
    in_sec: InOption = None,
    batch: BatchOption = None,
    atomic: Annotated[bool, typer.Option("--atomic", help="Store all jobs of the batch or none.")] = False,
    body: BodyOption = None,
) -> None:
    """Enqueue a job, or a batch of jobs. A repeated key returns the existing job."""
    job = {**members(object_type=object_type, object_id=object_id, action=action), **given}
    if batch is not None:
        if job or in_sec is not None or body is not None:
            raise WrongUsage("--batch takes all jobs from the file; leave other options out")
        _enqueue_batch(target, batch, atomic)
        return
    if atomic:
        raise WrongUsage("--atomic is for --batch")
    if body is not None:
        if in_sec is not None:
            raise WrongUsage("--in does not go with --body; set run_at in the file")
        job = _body(body, job)
    elif object_type is None or object_id is None or action is None:
        raise WrongUsage("pass TYPE ID ACTION, --body FILE or --batch FILE; see pendula jobs enqueue --help")
    if in_sec is not None:
        if "run_at" in given:
            raise WrongUsage("pass --run-at or --in, not both")
        job["run_at"] = _from_now(in_sec)
    reply = target.send("enqueue", job)
    target.out.result(reply, lambda: tables().enqueued(reply))


def _body(file: Path, given: Mapping[str, Any]) -> dict[str, Any]:
    """Read the body of one call from a file. Raises `WrongUsage` if options are given, too."""
    from pendula.documents import Format, read_bytes, read_file

    if given:
        raise WrongUsage("--body takes the whole call from the file; leave other options out")
    document = read_bytes(sys.stdin.buffer.read(), Format.JSON, "-") if str(file) == "-" else read_file(file)
    if not isinstance(document.value, dict):
        document.root().refuse("a body must be an object: the members of the call")
    elif unknown := sorted({"job_id", "self"} & document.value.keys()):
        document.root().refuse(f"{unknown[0]} is not a member of the body; pass the job on the command line")
    document.done()
    assert isinstance(document.value, dict)
    return dict(document.value)


def _from_now(seconds: int) -> str:
    from pendula.jobs.model import SECOND
    from pendula.kernel.time import format_utc

    return format_utc(wall_now() + seconds * SECOND)


def _enqueue_batch(target: Target, file: Path, atomic: bool) -> None:
    jobs = _entries(file)
    if atomic and len(jobs) > TOGETHER:
        raise WrongUsage(f"--atomic takes at most {TOGETHER} jobs; {file} has {len(jobs)}")
    results: list[Any] = []
    with target.scheduler() as scheduler, target.out.progress("enqueue", len(jobs)) as advance:
        for first in range(0, len(jobs), TOGETHER):
            batch = {"jobs": jobs[first : first + TOGETHER], "atomic": atomic}
            results += sent(scheduler, "enqueue_batch", batch)["results"]
            advance(len(results))
    target.out.result({"results": results}, lambda: tables().batch(results))
    refused = sum("error" in result for result in results)
    if refused:
        raise EntriesRefused(f"Rejected entries: {refused} of {len(results)}", refused=refused, entries=len(results))


def _entries(file: Path) -> Sequence[Any]:
    from pendula.documents import read_file

    document = read_file(file)
    value = document.value
    if isinstance(value, dict) and list(value) == ["jobs"]:
        value = value["jobs"]
    if not isinstance(value, list) or not value:
        document.root().refuse("a batch must be a list of at least one job")
        document.done()
    assert isinstance(value, list)
    return value


def pull(target: Target, given: PullOptions, body: BodyOption = None) -> None:
    """Pull due jobs, each with a lease. Pass its token to ack, fail, renew and release."""
    if body is not None:
        given = _body(body, given)
    elif "worker_id" not in given:
        raise WrongUsage("pass --worker NAME, or --body FILE")
    reply = target.send("pull", given)
    target.out.result(reply, lambda: tables().pulled(reply))


def ack(
    target: Target,
    job_id: JobArgument,
    given: AckOptions,
    clear: Annotated[bool, typer.Option("--no-next-action", help="Clear the next time of the object.")] = False,
    body: BodyOption = None,
) -> None:
    """Finish a job as succeeded."""
    if clear and "next_action_at" in given:
        raise WrongUsage("pass --next-action-at or --no-next-action, not both")
    if clear:
        given["next_action_at"] = None
    given = {"result": "succeeded", **given} if body is None else _body(body, given)
    reply = target.send("ack", given, job_id)
    target.out.result(reply, lambda: tables().acked(reply))


def fail(
    target: Target,
    job_id: JobArgument,
    given: FailOptions,
    permanent: Annotated[bool, typer.Option("--permanent", help="Do not retry.")] = False,
    body: BodyOption = None,
) -> None:
    """Report a failed job: it is retried, or becomes a dead letter when no attempt is left."""
    if permanent:
        given["retryable"] = False
    if body is not None:
        given = _body(body, given)
    elif "error" not in given:
        raise WrongUsage("pass --error TEXT, or --body FILE")
    reply = target.send("fail", given, job_id)
    target.out.result(reply, lambda: tables().failed(reply))


def renew(target: Target, job_id: JobArgument, given: RenewOptions) -> None:
    """Renew a lease and report progress; shows whether cancellation was requested."""
    reply = target.send("renew", given, job_id)
    request = " Cancellation was requested." if reply["cancel_requested_at"] is not None else ""
    target.out.result(reply, lambda: f"The lease of {job_id} ends at {reply['lease_expires_at']}.{request}")


def release(target: Target, job_id: JobArgument, given: ReleaseOptions) -> None:
    """Return a job that was not started; uses up no attempt."""
    reply = target.send("release", given, job_id)
    target.out.result(reply, lambda: f"{job_id} is {reply['job']['status']} again.")


def free_key(
    target: Target,
    key: Annotated[str, typer.Argument(metavar="KEY", help="The key of a deleted job.", show_default=False)],
    reason: Annotated[str, typer.Option(metavar="TEXT", help="Why, for the trail.", show_default=False)],
) -> None:
    """Free the key of a deleted job, so that a job with this key can be enqueued again."""
    reply = target.send("free_key", members(idempotency_key=key, reason=reason))
    target.out.result(reply, lambda: f"{key} is free." if reply["freed"] else f"{key} was free already.")
