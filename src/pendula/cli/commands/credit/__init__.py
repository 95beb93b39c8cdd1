"""`pendula credit`: run a scenario, check it, make one, fork a run, compare policies, sweep settings, ask why.

run, check, new       what is done with a scenario file
fork, why             what is done with the journal of a run
compare, sweep        many runs: two settings, or a grid of them
options               arguments and options that commands share; settings out of them
tables                results as tables
"""

import typer

from pendula.cli.commands.credit import check, compare, fork, new, run, sweep, why
from pendula.cli.output import example

credit = typer.Typer(
    epilog=example(
        "pendula credit new --participants 100 --seed 7 -o village.json",
        "pendula credit run village.json --seed 42 --ticks 200 --cap 500",
    )
)
run.register(credit)
check.register(credit)
new.register(credit)
fork.register(credit)
why.register(credit)
compare.register(credit)
sweep.register(credit)
