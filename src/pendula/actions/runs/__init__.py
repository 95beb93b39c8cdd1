"""Ways to use a world: a whole file in one go, a game loop, logs of what came out.

batch        whole epochs: a file or plain arguments in, results out
live         a game loop: submit, interrupt, advance, ask why
entrance     what comes into it, checked at the door
standing     who does what at this moment
what_if      when a wish would start, without doing it
observers    those who are told of each event
user_code    hooks, modifiers and processes: what a world asks of its user, answered
journals     what the journal of a world holds, for those who come back to it
logs         everything in `world_log`, what the player character learned in `pc_log`
log_lines    their lines, kept or handed on
log_files    the files of the logs, found again after a crash
audio        names of audio files for the events of a run
plain_values documents of other readers: `datetime` as text
"""

from pendula.actions.runs.batch import EPOCHS_MOST, EpochResult, Road, RunResult, config_of, drive, run_document
from pendula.actions.runs.entrance import Refused
from pendula.actions.runs.live import LiveWorld
from pendula.actions.runs.logs import Logs
from pendula.actions.runs.user_code import Process

__all__ = [
    "EPOCHS_MOST",
    "EpochResult",
    "LiveWorld",
    "Logs",
    "Process",
    "Refused",
    "Road",
    "RunResult",
    "config_of",
    "drive",
    "run_document",
]
