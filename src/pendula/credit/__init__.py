"""A simulated credit network: who can pay whom, where capacity runs out, what clearing frees, what a policy costs.

    model, money            participants, lines, profiles, scenarios, derived ids; atoms, never floats
    settings                every setting of a run, its variable and range
    commands, events        input and output of a run
    engine                  the state machine: dispatches commands, runs ticks, exposes the state
    manual                  manual changes of the network of a run
    demonstration           events without a ledger, for user interfaces
    reading                 parses documents into models
    sentences               sentences rendered from codes and facts
    saving, explain         the state at any tick; why a payment fails, why clearing was tried or not

    ledger/                 who owes whom, and what can move
    planning/               who wants to pay whom
    state/                  the complete state of a run between two commands
    tick/                   one tick, phase by phase
    outside/                external answers: behaviours, payment service, solver
    runs/                   one run: headless, recorded, forked, its files
    served/                 what clients of the protocol see of a run: records, events, snapshots, series
    studies/                measure one run; sweep, compare and plot many
    authoring/              create and check scenarios

Public names:
"""

from pendula.credit.commands import Clear, Config, Configure, Pay, SetIntensity, SetLimit, Tick
from pendula.credit.engine import Run
from pendula.credit.events import ClearingDone, Ticked, TxFailed, TxUpdated
from pendula.credit.reading import read_scenario
from pendula.credit.runs.headless import Headless, Result, plan_run, simulate
from pendula.credit.settings import Settings, change_settings, from_environment

__all__ = [
    "Clear",  # clear debts manually
    "ClearingDone",  # debts were cleared
    "Config",  # the configuration of a run
    "Configure",  # change settings
    "Headless",  # a run without a server, step by step
    "Pay",  # make one payment manually
    "Result",  # the result of a run
    "Run",  # the engine
    "SetIntensity",  # change the number of payments
    "SetLimit",  # change the limit of a line
    "Settings",  # all settings with their defaults
    "Tick",  # run ticks
    "Ticked",  # a tick is over
    "TxFailed",  # a payment was not made
    "TxUpdated",  # a payment was made
    "change_settings",  # settings with some values replaced
    "from_environment",  # the settings of a process
    "plan_run",  # plan a run of a document
    "read_scenario",  # parse a document into a scenario
    "simulate",  # a whole run in one call
]
