"""The commands that change one job: enqueue, pull, ack, fail, renew, release, free-key."""

import sys
from collections.abc import Mapping, Sequence
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import Annotated, Any

import typer

from pendula.cli.commands.jobs.filters import FORM, seconds_of
from pendula.cli.commands.jobs.target import Target, command, members, sent, tables, wall_now
from pendula.kernel.errors import InputRefused, WrongUsage

TOGETHER = 1000

JobArgument = Annotated[str, typer.Argument(metavar="JOB", help="The id of the job.", show_default=False)]
WorkerOption = Annotated[
    str | None, typer.Option("--worker", metavar="NAME", help="The worker that holds it.", show_default=False)
]
TokenOption = Annotated[
    str | None, typer.Option("--lease-token", metavar="TOKEN", help="The token of its lease.", show_default=False)
]
TypeArgument = Annotated[
    str | None, typer.Argument(metavar="TYPE", help="memory, experience, cognition.", show_default=False)
]
ActionArgument = Annotated[
    str | None,
    typer.Argument(metavar="ACTION", help="verify, revalidate, decay, archive, reinstate-check.", show_default=False),
]
InOption = Annotated[
    int | None,
    typer.Option("--in", metavar="SPAN", parser=seconds_of, help=f"This long from now: {FORM}.", show_default=False),
]
PriorityOption = Annotated[
    str | None,
    typer.Option(
        help="low, medium or high: the order of jobs due at the same time. "
        'With pull_order = "weighted" in the settings also in a backlog.',
        show_default="medium",
    ),
]
KeyOption = Annotated[
    str | None, typer.Option("--key", metavar="KEY", help="Idempotency key: one job per key.", show_default="derived")
]
CorrelationOption = Annotated[str | None, typer.Option(metavar="ID", help="Correlation id.", show_default=False)]
PayloadOption = Annotated[
    str | None, typer.Option(metavar="JSON", help="Arguments for its handler.", show_default=False)
]
UniqueOption = Annotated[
    str | None,
    typer.Option(
        metavar="WORD", help="waiting: only if no job for the same object and action waits or runs.", show_default=False
    ),
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
TIME = "A time with offset: 2026-02-21T00:00:00Z."


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
    object_type: TypeArgument = None,
    object_id: Annotated[
        str | None, typer.Argument(metavar="ID", help="The id of the object.", show_default=False)
    ] = None,
    action: ActionArgument = None,
    run_at: Annotated[str | None, typer.Option(metavar="TIME", help=TIME, show_default="now")] = None,
    in_sec: InOption = None,
    priority: PriorityOption = None,
    max_attempts: Annotated[int | None, typer.Option(metavar="N", help="1 to 100.", show_default="3")] = None,
    idempotency_key: KeyOption = None,
    correlation_id: CorrelationOption = None,
    queue: Annotated[str | None, typer.Option(metavar="NAME", help="The queue.", show_default="default")] = None,
    payload: PayloadOption = None,
    unique: UniqueOption = None,
    batch: BatchOption = None,
    atomic: Annotated[bool, typer.Option("--atomic", help="Store all jobs of the batch or none.")] = False,
    body: BodyOption = None,
) -> None:
    """Enqueue a job, or a batch of jobs. A repeated key returns the existing job."""
    job = members(
        object_type=object_type,
        object_id=object_id,
        action=action,
        run_at=run_at,
        priority=priority,
        max_attempts=max_attempts,
        idempotency_key=idempotency_key,
        correlation_id=correlation_id,
        queue=queue,
        payload=None if payload is None else json_given("--payload", payload),
        unique=unique,
    )
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
        if run_at is not None:
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


def pull(
    target: Target,
    worker_id: Annotated[
        str | None, typer.Option("--worker", metavar="NAME", help="The name of the worker.", show_default=False)
    ] = None,
    limit: Annotated[int | None, typer.Option(metavar="N", help="At most this many.", show_default="100")] = None,
    lease_sec: Annotated[
        int | None, typer.Option(metavar="SECONDS", help="The length of the leases.", show_default="900")
    ] = None,
    now: Annotated[
        str | None, typer.Option(metavar="TIME", help="Jobs due by this time. " + TIME, show_default="now")
    ] = None,
    object_types: Annotated[
        list[str] | None,
        typer.Option("--object-type", metavar="TYPE", help="Only these; may be repeated.", show_default=False),
    ] = None,
    actions: Annotated[
        list[str] | None,
        typer.Option("--action", metavar="ACTION", help="Only these; may be repeated.", show_default=False),
    ] = None,
    queues: Annotated[
        list[str] | None,
        typer.Option("--queue", metavar="NAME", help="Only these, in this order; may be repeated.", show_default=False),
    ] = None,
    pairs: Annotated[
        list[str] | None,
        typer.Option(
            "--pair", metavar="TYPE:ACTION", help="Only these kinds of work; may be repeated.", show_default=False
        ),
    ] = None,
    wait_ms: Annotated[
        int | None, typer.Option(metavar="N", help="Wait up to this many milliseconds for a job.", show_default="0")
    ] = None,
    body: BodyOption = None,
) -> None:
    """Pull due jobs, each with a lease. Pass its token to ack, fail, renew and release."""
    request = members(
        worker_id=worker_id,
        limit=limit,
        lease_sec=lease_sec,
        now=now,
        object_types=object_types or None,
        actions=actions or None,
        queues=queues or None,
        pairs=[pair.split(":", 1) for pair in members(pairs=pairs)["pairs"]] if pairs else None,
        wait_ms=wait_ms,
    )
    if body is not None:
        request = _body(body, request)
    elif worker_id is None:
        raise WrongUsage("pass --worker NAME, or --body FILE")
    reply = target.send("pull", request)
    target.out.result(reply, lambda: tables().pulled(reply))


def ack(
    target: Target,
    job_id: JobArgument,
    lease_token: TokenOption = None,
    worker_id: WorkerOption = None,
    next_action_at: Annotated[
        str | None, typer.Option(metavar="TIME", help="The next time of the object. " + TIME, show_default=False)
    ] = None,
    clear: Annotated[bool, typer.Option("--no-next-action", help="Clear the next time of the object.")] = False,
    next_action: Annotated[
        str | None, typer.Option(metavar="ACTION", help="The next action.", show_default="the same")
    ] = None,
    outcome: Annotated[
        str | None, typer.Option(metavar="WORD", help="A label for reports.", show_default=False)
    ] = None,
    outcome_result: Annotated[
        str | None, typer.Option(metavar="JSON", help="The full result.", show_default=False)
    ] = None,
    audit_event_id: Annotated[
        str | None,
        typer.Option(metavar="ID", help="The audit event of the result.", show_default="the one of this ack"),
    ] = None,
    body: BodyOption = None,
) -> None:
    """Finish a job as succeeded."""
    if clear and next_action_at is not None:
        raise WrongUsage("pass --next-action-at or --no-next-action, not both")
    given = members(
        lease_token=lease_token,
        worker_id=worker_id,
        next_action_at=next_action_at,
        next_action=next_action,
        outcome=outcome,
        outcome_result=None if outcome_result is None else json_given("--outcome-result", outcome_result),
        audit_event_id=audit_event_id,
    )
    if clear:
        given["next_action_at"] = None
    given = {"result": "succeeded", **given} if body is None else _body(body, given)
    reply = target.send("ack", given, job_id)
    target.out.result(reply, lambda: tables().acked(reply))


def fail(
    target: Target,
    job_id: JobArgument,
    error: Annotated[str | None, typer.Option(metavar="TEXT", help="The error.", show_default=False)] = None,
    lease_token: TokenOption = None,
    worker_id: WorkerOption = None,
    retry_delay_sec: Annotated[
        str | None, typer.Option(metavar="SECONDS", help="Retry after this delay.", show_default="longer each time")
    ] = None,
    permanent: Annotated[bool, typer.Option("--permanent", help="Do not retry.")] = False,
    cancelled: Annotated[bool, typer.Option("--cancelled", help="It stopped because of a cancel request.")] = False,
    body: BodyOption = None,
) -> None:
    """Report a failed job: it is retried, or becomes a dead letter when no attempt is left."""
    given = members(
        error=error,
        lease_token=lease_token,
        worker_id=worker_id,
        retry_delay_sec=None if retry_delay_sec is None else _number("--retry-delay-sec", retry_delay_sec),
        retryable=False if permanent else None,
        cancelled=True if cancelled else None,
    )
    if body is not None:
        given = _body(body, given)
    elif error is None:
        raise WrongUsage("pass --error TEXT, or --body FILE")
    reply = target.send("fail", given, job_id)
    target.out.result(reply, lambda: tables().failed(reply))


def renew(
    target: Target,
    job_id: JobArgument,
    lease_token: TokenOption = None,
    worker_id: WorkerOption = None,
    lease_sec: Annotated[
        int | None,
        typer.Option(metavar="SECONDS", help="New length of the lease, from now.", show_default="as the settings say"),
    ] = None,
    progress: Annotated[
        str | None, typer.Option(metavar="FRACTION", help="Progress from 0 to 1.", show_default=False)
    ] = None,
    note: Annotated[
        str | None, typer.Option("--progress-note", metavar="TEXT", help="A short note.", show_default=False)
    ] = None,
) -> None:
    """Renew a lease and report progress; shows whether cancellation was requested."""
    given = members(
        lease_token=lease_token,
        worker_id=worker_id,
        lease_sec=lease_sec,
        progress=None if progress is None else _number("--progress", progress),
        progress_note=note,
    )
    reply = target.send("renew", given, job_id)
    request = " Cancellation was requested." if reply["cancel_requested_at"] is not None else ""
    target.out.result(reply, lambda: f"The lease of {job_id} ends at {reply['lease_expires_at']}.{request}")


def release(
    target: Target, job_id: JobArgument, lease_token: TokenOption = None, worker_id: WorkerOption = None
) -> None:
    """Return a job that was not started; uses up no attempt."""
    reply = target.send("release", members(lease_token=lease_token, worker_id=worker_id), job_id)
    target.out.result(reply, lambda: f"{job_id} is {reply['job']['status']} again.")


def free_key(
    target: Target,
    key: Annotated[str, typer.Argument(metavar="KEY", help="The key of a deleted job.", show_default=False)],
    reason: Annotated[str, typer.Option(metavar="TEXT", help="Why, for the trail.", show_default=False)],
) -> None:
    """Free the key of a deleted job, so that a job with this key can be enqueued again."""
    reply = target.send("free_key", members(idempotency_key=key, reason=reason))
    target.out.result(reply, lambda: f"{key} is free." if reply["freed"] else f"{key} was free already.")


def _number(option: str, text: str) -> Decimal:
    try:
        number = Decimal(text)
    except InvalidOperation:
        number = Decimal("NaN")
    if not number.is_finite():
        raise WrongUsage(f"{option}: {text!r} is not a number", value=text)
    return number


def json_given(option: str, text: str) -> Any:
    from pendula.documents import DocumentRefused, read_bytes

    try:
        return read_bytes(members(json=text)["json"].encode()).value
    except DocumentRefused as refused:
        raise WrongUsage(f"{option} is not JSON: {refused.message}", value=text) from None
