"""`pendula credit`: run a scenario, check it, make one, fork a run, compare policies, sweep settings, ask why."""

import typer

from pendula.cli.commands.credit import compare, fork, run, sweep
from pendula.cli.output import example

credit = typer.Typer(
    epilog=example(
        "pendula credit new --participants 100 --seed 7 -o village.json",
        "pendula credit run village.json --seed 42 --ticks 200 --cap 500",
    )
)
run.register(credit)
fork.register(credit)
compare.register(credit)
sweep.register(credit)
