"""The commands of time plans: list, put, pause, resume, run-now, remove."""

from typing import Annotated, Any

import typer

from pendula.cli.commands.jobs.message_options import options_of
from pendula.cli.commands.jobs.target import Target, command, members, tables
from pendula.cli.output import example
from pendula.jobs.messages import Recurring

NameArgument = Annotated[str, typer.Argument(metavar="PLAN", help="The name of the plan.", show_default=False)]
ReasonOption = Annotated[str | None, typer.Option(metavar="TEXT", help="Why, for the trail.", show_default=False)]
PlanOptions = Annotated[
    dict[str, Any], options_of(Recurring, without=("name", "cron", "object_type", "object_id", "action"))
]


def register(jobs: typer.Typer) -> None:
    at = "--db sqlite:///jobs.db"
    group = typer.Typer(
        no_args_is_help=True,
        epilog=example(f"pendula jobs plans list {at}", f"pendula jobs plans pause weekly-report {at}"),
    )
    command(group, "list", f"pendula jobs plans list {at} --json")(list_)
    command(group, "put", f"pendula jobs plans put nightly '0 3 * * *' memory mem_1 decay --zone Europe/Berlin {at}")(
        put
    )
    command(group, "pause", f"pendula jobs plans pause nightly --reason 'moving house' {at}")(pause)
    command(group, "resume", f"pendula jobs plans resume nightly {at}")(resume)
    command(group, "run-now", f"pendula jobs plans run-now nightly {at}")(run_now)
    command(group, "remove", f"pendula jobs plans remove nightly {at}")(remove)
    jobs.add_typer(group, name="plans", help="Recurring jobs: list, put, pause, resume, run now, remove.")


def list_(target: Target) -> None:
    """List all time plans with their next occurrence."""
    reply = target.send("plans", {})
    target.out.result(reply, lambda: tables().plans(reply))


def put(
    target: Target,
    name: Annotated[str, typer.Argument(metavar="PLAN", help="1 to 64 of a-z, 0-9 and -.", show_default=False)],
    cron: Annotated[str, typer.Argument(metavar="CRON", help="Five fields, or @daily and such.", show_default=False)],
    object_type: Annotated[
        str, typer.Argument(metavar="TYPE", help="memory, experience, cognition.", show_default=False)
    ],
    object_id: Annotated[str, typer.Argument(metavar="ID", help="The id of the object.", show_default=False)],
    action: Annotated[
        str,
        typer.Argument(
            metavar="ACTION", help="verify, revalidate, decay, archive, reinstate-check.", show_default=False
        ),
    ],
    given: PlanOptions,
) -> None:
    """Create or replace a time plan. It needs a running server, or a worker with --db."""
    job = members(cron=cron, object_type=object_type, object_id=object_id, action=action)
    reply = target.send("put_plan", {**job, **given}, name)
    target.out.result(reply, lambda: _summary(reply))


def pause(target: Target, name: NameArgument, reason: ReasonOption = None) -> None:
    """Pause a plan: its next occurrence is cancelled, and none follows until it is resumed."""
    reply = target.send("pause_plan", members(reason=reason), name)
    target.out.result(reply, lambda: _summary(reply))


def resume(target: Target, name: NameArgument, reason: ReasonOption = None) -> None:
    """Resume a plan; missed occurrences are skipped."""
    reply = target.send("resume_plan", members(reason=reason), name)
    target.out.result(reply, lambda: _summary(reply))


def run_now(target: Target, name: NameArgument, reason: ReasonOption = None) -> None:
    """Enqueue one job of a plan now, paused or not; its schedule stays."""
    reply = target.send("run_now", members(reason=reason), name)
    target.out.result(reply, lambda: tables().enqueued(reply))


def remove(target: Target, name: NameArgument, reason: ReasonOption = None) -> None:
    """Remove a plan and cancel its next occurrence. Remove a plan of a settings file there."""
    reply = target.send("remove_plan", members(reason=reason), name)
    target.out.result(reply, lambda: f"{name} is removed.")


def _summary(reply: dict[str, Any]) -> str:
    plan = reply["plan"]
    if plan["paused_at"] is not None:
        return f"{plan['name']} has been paused since {plan['paused_at']} by {plan['paused_by']}."
    return f"{plan['name']} occurs next at {plan['next_at']} ({plan['cron']}, {plan['zone']})."
