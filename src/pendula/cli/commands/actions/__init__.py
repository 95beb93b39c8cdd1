"""`pendula actions`: run a file of actions, check it, ask why an action has not started.

run         the epochs of a file: what happens when, who waits for whom
check       everything that is wrong with a file
why         where an action stands at a moment of the run
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
