"""`pendula actions`: run a file of actions, check it, ask why an action has not started."""

import typer

from pendula.cli.commands.actions import run
from pendula.cli.output import example

actions = typer.Typer(
    epilog=example("pendula actions run town.yaml --gantt town.svg", "pendula actions check town.yaml")
)
run.register(actions)
