"""Actions of actors in a simulated world: who does what when, who waits for whom, who learns of it.

    model             definitions, instances, knowledge, options
    events            commands and events, as they stand in journals and streams
    configuration     what a world is made with, read once
    requests          interrupts, cancellations and resumptions that are asked for
    questions         what user code is asked, and nobody who answers
    rules/            how long, who may begin, what is used up, who gets to know
    state/            all that a world is
    minute/           what changes it: what comes in, how a minute is lived through
    engine            the one state machine: submit, request, advance
    saving            state at any moment, carry from day to day
    explain           why an action has not started
    sentences         sentences of codes and facts, where they are shown
    runs/             whole epochs in one go, a game loop, logs
    reading/          a file in, all its faults, its form
    gantt/            a run as a picture

Public names:
"""

from pendula.actions.configuration import InvalidCarryOver, InvalidEpoch, InvalidSetting
from pendula.actions.engine import World
from pendula.actions.events import (
    Advance,
    Diagnostic,
    End,
    EpochBegan,
    Interrupted,
    Rejection,
    Request,
    Start,
    Submit,
    VisibilityChange,
)
from pendula.actions.model import Code, Instance
from pendula.actions.runs.audio import AudioFile, audio_name, audio_names
from pendula.actions.runs.batch import EpochResult, RunResult, run, run_document, run_epochs
from pendula.actions.runs.entrance import Refused, WorldUnusable
from pendula.actions.runs.live import LiveWorld
from pendula.actions.runs.logs import Logs
from pendula.actions.runs.standing import Doing
from pendula.actions.runs.user_code import UserCodeFailed, any_of, ended, known, minute
from pendula.actions.runs.what_if import Estimate

__all__ = [
    "Advance",  # let time go on
    "AudioFile",
    "Code",  # every code of the scheduler
    "Diagnostic",  # something asked for that did not happen
    "Doing",  # an action that is not over, and where it stands
    "End",  # an instance is done
    "EpochBegan",  # a new day
    "EpochResult",  # all that one epoch gave
    "Estimate",  # when a wish would start
    "Instance",  # one submission
    "Interrupted",  # a segment was broken off
    "InvalidCarryOver",
    "InvalidEpoch",
    "InvalidSetting",
    "LiveWorld",  # the live form
    "Logs",  # world_log and pc_log
    "Refused",  # a wish of a game loop that cannot be granted
    "Rejection",  # an instance that does not take part
    "Request",  # interrupts, cancellations, resumptions
    "RunResult",  # epochs and the carry
    "Start",  # a segment begins
    "Submit",  # instances to take up
    "UserCodeFailed",  # a hook, modifiers or a process raised
    "VisibilityChange",  # something came to light
    "World",  # the engine
    "WorldUnusable",  # a command was broken off in the middle
    "any_of",  # what a process waits for: the first of several things
    "audio_name",  # epoch03_slot14_pc.ogg
    "audio_names",  # of all files for the events of a run
    "ended",  # one of them: an action is over
    "known",  # another: somebody can know of an item
    "minute",  # another: a minute of the run
    "run",  # one epoch
    "run_document",  # a whole file
    "run_epochs",  # several epochs
]
