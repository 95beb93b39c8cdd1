"""`pendula playback`: run a file of channels, ask why an item came up, play folders, look after cache files.

run          the calls of a file, or so many times `next`
why          why an item of such a run came up
play         folders of media as channels, on this terminal
cache        cache files: make, inspect, verify, repair
files        the file that `run` and `why` read
new_artwork  the options of `run` and `play` that bring new artwork over MQTT
screen       a player drawn for people
terminal     its keys and its pace
tables       results as tables
"""

import typer

from pendula.cli.commands.playback import cache, play, run, why
from pendula.cli.output import example

playback = typer.Typer(
    epilog=example("pendula playback run frame.yaml", "pendula playback play pictures/sea pictures/hills")
)
playback.add_typer(cache.cache, name="cache", help="Cache files of channels: make, inspect, verify, repair.")
play.register(playback)
run.register(playback)
why.register(playback)
