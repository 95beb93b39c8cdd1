"""`pendula jobs`: a store of due-driven jobs, or the server that has one: every call, workers, upkeep."""

import typer

from pendula.cli.commands.jobs import change, look, plans, upkeep, work
from pendula.cli.output import example

jobs = typer.Typer(
    epilog=example(
        "pendula jobs init --db sqlite:///jobs.db",
        "pendula jobs enqueue memory mem_1 verify --db sqlite:///jobs.db",
        "pendula jobs stats --watch --db sqlite:///jobs.db",
    )
)
upkeep.register(jobs)
work.register(jobs)
change.register(jobs)
look.register(jobs)
plans.register(jobs)
