"""`pendula playback`: run a playback file, explain an item, play folders, manage cache files.

run       run the calls of a file, or `next` N times; explain why an item of such a run was selected
play      play folders of media on this terminal
cache     write, inspect, verify and repair cache files
terminal  keys and real time for `play`
tables    results as tables, and the screen of `play`
"""

import typer

from pendula.cli.commands.playback import cache, play, run
from pendula.cli.output import example

playback = typer.Typer(
    epilog=example("pendula playback run frame.yaml", "pendula playback play pictures/sea pictures/hills")
)
playback.add_typer(cache.cache, name="cache", help="Write, inspect, verify and repair cache files.")
play.register(playback)
run.register(playback)
