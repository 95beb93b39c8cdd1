"""`pendula jobs`: a store of due-driven jobs, or the server that has one: every call, workers, upkeep.

target      the store or the server that is meant: --db or --url
change      calls on one job that change something
operate     calls on many jobs at once, by a filter
plans       time plans: list, put, pause, resume, run now, remove
governed/   governed objects, gates, rollbacks
look        calls that only look
filters     the options that choose jobs
spans       spans of time: 90, 15m, 2h, 7d
upkeep      making a store, checking, backing up, retaining
work        serving a store, and workers on one
tables      results as tables
"""

import typer

from pendula.cli.commands.jobs import change, look, operate, plans, upkeep, work
from pendula.cli.commands.jobs.governed import gates, objects
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
operate.register(jobs)
look.register(jobs)
plans.register(jobs)
objects.register(jobs)
gates.register(jobs)
