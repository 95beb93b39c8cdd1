"""`pendula credit`: run, check and create scenarios; fork and explain runs; compare and sweep settings.

run              `run`
scenarios        `check`, `new`
journals         `fork`, `why` on the journal of a run
studies          `compare`, `sweep`: many runs
options          shared arguments and options, and the settings from them
tables           results as tables
"""

import typer

from pendula.cli.commands.credit import journals, run, scenarios, studies
from pendula.cli.output import example

credit = typer.Typer(
    epilog=example(
        "pendula credit new --participants 100 --seed 7 -o village.json",
        "pendula credit run village.json --seed 42 --ticks 200 --cap 500",
    )
)
run.register(credit)
scenarios.register(credit)
journals.register(credit)
studies.register(credit)
