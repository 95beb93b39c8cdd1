"""`pendula jobs`: commands on a store of jobs or on a server: every call, workers, upkeep.

target      the options --db and --url, shared by all commands
change      commands that change one job
operate     cancel and requeue, for one job or many
plans       time plans: list, put, pause, resume, run now, remove
governed    governed objects, gates, rollbacks
look        commands that only read
message_options  options made from the structs of requests
filters     the options that select jobs
upkeep      create, check, back up and clean a store
work        serve a store, run a worker
tables      results as tables; those of governed objects in `governed_tables`
"""

import typer

from pendula.cli.commands.jobs import change, governed, look, operate, plans, upkeep, work
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
governed.register(jobs)
