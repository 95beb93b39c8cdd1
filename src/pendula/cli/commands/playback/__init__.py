"""`pendula playback`: run a playback file, explain an item, play folders, manage cache files."""

import typer

from pendula.cli.commands.playback import cache, play, run
from pendula.cli.output import example

playback = typer.Typer(
    epilog=example("pendula playback run frame.yaml", "pendula playback play pictures/sea pictures/hills")
)
playback.add_typer(cache.cache, name="cache", help="Write, inspect, verify and repair cache files.")
play.register(playback)
run.register(playback)
