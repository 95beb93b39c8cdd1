"""Actions of actors in a simulated world: who does what when, who waits for whom, who learns of it.

    model               definitions, instances, knowledge, options
    duration, skills    how long something takes, and for whom
    locks, resources    who may begin; what is used up
    admission, requests, setting, asking
                        what comes in: checked one by one, with a code for everything that is wrong
    plans, ranks        verbs made ready for a world; the order within a minute
    engine              the one state machine: submit, request, advance
    interrupting        who may break off whom
    events, telling, logs, visibility
                        what comes out, and who gets to know it
    saving              state at any moment, carry from day to day
    explain             why an action has not started
    running, live       whole epochs in one go; a game loop
    loading, checking, schema
                        a file in, all its faults, its form
    gantt               a run as a picture

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
from pendula.actions.runs.batch import EpochResult, RunResult, run, run_document, run_epochs
from pendula.actions.runs.live import LiveWorld, Refused
from pendula.actions.runs.logs import Logs, audio_name

__all__ = [
    "Advance",  # let time go on
    "Code",  # every code of the room
    "Diagnostic",  # something asked for that did not happen
    "End",  # an instance is done
    "EpochBegan",  # a new day
    "EpochResult",  # all that one epoch gave
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
    "VisibilityChange",  # something came to light
    "World",  # the engine
    "audio_name",  # epoch03_slot14_pc.ogg
    "run",  # one epoch
    "run_document",  # a whole file
    "run_epochs",  # several epochs
]
