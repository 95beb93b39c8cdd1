"""A simulated credit network: who can pay whom, where capacity runs out, what clearing frees, what a policy costs.

    model, money, ids       participants, lines, profiles, scenarios; atoms, never floats; names derived, never drawn
    settings                every setting of a run, its variable and range
    commands, events        what goes into a run, and what comes out of it
    engine                  the one state machine: commands are dispatched, the run is shown
    steering, manual        ticks, settings and states of a run; what a person does to its network
    demonstration           events without a ledger, for pages that want something to show
    sentences               sentences of codes and facts, where they are shown
    saving, explain         the state at any tick; why a payment fails, why clearing was tried or not

    ledger/                 who owes whom, and what can move
    planning/               who wants to pay whom
    reading/                documents into models
    state/                  all that a run is between two commands
    tick/                   one tick, phase by phase
    outside/                who answers what a run asks
    runs/                   one run: headless, recorded, forked, its files
    served/                 what clients of the protocol see of a run: records, events, pictures, series
    studies/                one run measured, many runs swept, compared, drawn
    authoring/              making scenarios

Public names:
"""

from pendula.credit.commands import Clear, Config, Configure, Pay, SetIntensity, SetLimit, Tick
from pendula.credit.engine import Run
from pendula.credit.events import ClearingDone, Ticked, TxFailed, TxUpdated
from pendula.credit.reading.scenario import read_scenario
from pendula.credit.runs.headless import Headless, Result, made, simulate
from pendula.credit.settings import Settings, changed, from_environment

__all__ = [
    "Clear",  # clear by hand
    "ClearingDone",  # debts were cleared
    "Config",  # a run as it is made
    "Configure",  # change settings
    "Headless",  # a run without a server, step by step
    "Pay",  # pay by hand
    "Result",  # what a run came to
    "Run",  # the engine
    "SetIntensity",  # more or fewer payments
    "SetLimit",  # another limit
    "Settings",  # all settings with their defaults
    "Tick",  # let ticks pass
    "Ticked",  # a tick is over
    "TxFailed",  # a payment was not made
    "TxUpdated",  # a payment was made
    "changed",  # settings with some of them given anew
    "from_environment",  # the settings of a process
    "made",  # the configuration of a run of a document
    "read_scenario",  # a document into a scenario
    "simulate",  # a whole run in one call
]
