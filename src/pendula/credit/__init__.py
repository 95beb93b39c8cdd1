"""A simulated credit network: who can pay whom, where capacity runs out, what clearing frees, what a policy costs.

    model, money            participants, lines, profiles, scenarios; atoms, never floats
    loading, timeline_loading, linting, schema
                            a scenario in, all its faults, what a designer should look at, its form
    settings, effective     every setting of a run, its variable and range
    ledger                  who owes whom; capacities kept up hop by hop
    routing, exact, payments
                            ways for a payment; the largest flow; one payment, all or nothing
    clearing, optimal, clearing_calls
                            circles of debt, one by one; the best circulation and its proof; one call
    adaptive, drift         when clearing is worth trying; trust that grows and decays
    profiles, planning      how participants behave; what they want to pay in a tick
    timeline, injecting, fixtures
                            events of a scenario; the demonstration mode
    network, ticking, draft, paying, hand, engine
                            the state of a run, one tick in phases, what is done by hand, the one state machine
    asking, behaviour, service, answering
                            what a run asks of others, and who answers
    events, telling, measuring, counters, naming, digests
                            what goes in and comes out, and how it is told
    saving, forking         state at any tick; the same run with another policy
    explain                 why a payment fails, why clearing was tried or not
    running, recording, artifacts
                            a run without a server, its journal, its files
    figures, spreading, columns, medians, sweeping, comparing, curves, setting_files
                            many seeds and settings: counted, spread over processes, put in tables, compared, drawn
    village, people, example
                            scenarios out of a seed; a village to begin with

Public names:
"""

from pendula.credit.commands import Clear, Config, Configure, Pay, SetIntensity, SetLimit, Tick
from pendula.credit.engine import Run
from pendula.credit.reading.scenario import read_scenario
from pendula.credit.runs.headless import Headless, Result, made, simulate
from pendula.credit.settings import Settings, changed, from_environment

__all__ = [
    "Clear",  # clear by hand
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
    "changed",  # settings with some of them given anew
    "from_environment",  # the settings of a process
    "made",  # the configuration of a run of a document
    "read_scenario",  # a document into a scenario
    "simulate",  # a whole run in one call
]
