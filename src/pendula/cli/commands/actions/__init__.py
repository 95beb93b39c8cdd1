"""`pendula actions`: run a file of actions, check it, ask why an action has not started.

run         runs the epochs of a file
check       lists every fault of a file
why         explains the state of an action at a moment of the run
tables      results as tables
"""

import typer

from pendula.cli.commands.actions import check, run, why
from pendula.cli.output import example

actions = typer.Typer(
    epilog=example("pendula actions run town.yaml --gantt town.svg", "pendula actions check town.yaml")
)
run.register(actions)
check.register(actions)
why.register(actions)
