"""`pendula credit`: run a scenario, check it, make one, fork a run, ask why a payment fails."""

import typer

from pendula.cli.commands.credit import journals, scenarios
from pendula.cli.output import example

credit = typer.Typer(
    epilog=example(
        "pendula credit new --participants 100 --seed 7 -o village.json",
        "pendula credit run village.json --seed 42 --ticks 200 --cap 500",
    )
)
scenarios.register(credit)
journals.register(credit)
