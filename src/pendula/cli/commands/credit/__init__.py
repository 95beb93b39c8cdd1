"""`pendula credit`: run, check and create scenarios; fork and explain runs; compare and sweep settings.

run, check, new  commands on scenario files
fork, why        commands on the journal of a run
compare, sweep   commands that make many runs
options          shared arguments and options, and the settings from them
tables           results as tables
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
