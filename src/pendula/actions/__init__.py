"""Actions of actors in a simulated world: when each one runs, what it waits for, and which actors learn of it.

    model             definitions, instances, knowledge, options
    messages          commands and events, requests from outside, questions to user code
    configuration     the configuration of a world, read once
    rules/            durations, locks, resources, visibility
    minute/           the state of a world, and the phases of a minute that change it
    engine            the one state machine: submit, request, advance
    saving            saved state and the carry between epochs
    explain           why an action has not started
    sentences         sentences rendered from codes and facts
    runs/             batch runs, a game loop, logs
    checks            every fault of a file, its JSON Schema
    gantt/            an SVG picture of a run

Public names:
"""

from pendula.actions.checks import accept, check, file_schema, load, town
from pendula.actions.configuration import InvalidCarryOver, InvalidEpoch, InvalidSetting
from pendula.actions.engine import World
from pendula.actions.messages import (
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
from pendula.actions.runs.batch import (
    AudioFile,
    EpochResult,
    RunResult,
    audio_name,
    audio_names,
    config_of,
    run,
    run_document,
    run_epochs,
)
from pendula.actions.runs.live import ActionStatus, Estimate, LiveWorld, Refused, WorldUnusable
from pendula.actions.runs.logs import Logs
from pendula.actions.runs.user_code import UserCodeFailed, any_of, ended, known, minute

__all__ = [
    "ActionStatus",  # an action that has not ended: its stage and times
    "Advance",  # advance time
    "AudioFile",
    "Code",  # every code of the scheduler
    "Diagnostic",  # a request without effect
    "End",  # an instance is done
    "EpochBegan",  # a new day
    "EpochResult",  # the result of one epoch
    "Estimate",  # when a submission would start
    "Instance",  # one submission
    "Interrupted",  # a segment was interrupted
    "InvalidCarryOver",
    "InvalidEpoch",
    "InvalidSetting",
    "LiveWorld",  # a world in a game loop
    "Logs",  # world_log and pc_log
    "Refused",  # a rejected call of a game loop
    "Rejection",  # a rejected instance
    "Request",  # interrupts, cancellations, resumptions
    "RunResult",  # epochs and the carry
    "Start",  # a segment begins
    "Submit",  # instances to submit
    "UserCodeFailed",  # a hook, modifiers or a process raised
    "VisibilityChange",  # the visibility of an item changed
    "World",  # the engine
    "WorldUnusable",  # a command failed half-way
    "accept",  # the document of a file, or every fault that makes it unusable
    "any_of",  # a process waits for the first of several conditions
    "audio_name",  # epoch03_slot14_pc.ogg
    "audio_names",  # all audio files for the events of a run
    "check",  # every fault of a file, also those that a run survives
    "config_of",  # the configuration of the world of a file
    "ended",  # condition: an action has ended
    "file_schema",  # the JSON Schema of a file
    "known",  # condition: an actor can know of an item
    "load",  # the document in a file
    "minute",  # condition: a minute of the run is reached
    "run",  # one epoch
    "run_document",  # a whole file
    "run_epochs",  # several epochs
    "town",  # the example that comes with the package
]
