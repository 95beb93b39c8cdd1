"""Ways to use a world: batch runs, a game loop, logs.

batch        runs whole epochs: a file or plain arguments in, results out
live         a game loop: submit, interrupt, advance, ask why
live_inputs  checks of the arguments of a live world, and its errors
action_status stage and times of actions that have not ended
what_if      estimates when a submission would start
observers    callbacks for each event
user_code    hooks, functions of modifiers and processes
journals     events, processes and answers read from a journal
logs         the world log and the log of the player character
log_lines    their lines, in memory or passed on to files
log_files    their files, recovered after a crash
audio        names of audio files for the events of a run
plain_values converts `datetime` values of YAML readers to text
"""

from pendula.actions.runs.batch import EPOCHS_MOST, Apply, EpochResult, RunResult, config_of, drive, run_document
from pendula.actions.runs.live import LiveWorld
from pendula.actions.runs.live_inputs import Refused
from pendula.actions.runs.logs import Logs
from pendula.actions.runs.user_code import Process

__all__ = [
    "EPOCHS_MOST",
    "Apply",
    "EpochResult",
    "LiveWorld",
    "Logs",
    "Process",
    "Refused",
    "RunResult",
    "config_of",
    "drive",
    "run_document",
]
