"""Governance on top of jobs: state machines, gates, budgets, verdicts, evidence, rollbacks.

It changes objects in the transaction of the job that is about them; `hooks` is what jobs call, and nothing else here is
known to them. A queue without governed objects does not load this package.

model       an object: its state, evidence, tiers, dates and weight; durations. Pure, as are the next four
machines    state machines as data, the reference machines, and the check of a machine
gates       gates and their combined verdict
budgets     the verification budget and the lifetime of uncertainty
decisions   what an action may do: before the verifier runs, and after its verdict
tables      the tables of objects, gates, decision traces, rollbacks and counters
inputs      the inputs of a decision: rules, machine, tiers, gates, evidence
applying    what an ending writes, all or nothing; the scheduled job of an object
deliveries  governed jobs in pull, ack and fail, and in two steps
changes     changes by people: create, attach evidence, decide, amend, refill, set a gate
messages    the requests and replies
why         why an object is in its state, and what comes next
calls       `Governance`: every call
objects     `GovernedObjects`: the same calls as methods, for a store, a server and an event loop
settings    limits and custom machines in a settings file
upkeep      comparison with the trail, forgotten objects, the learning rate
hooks       what jobs ask

Public names:
"""

from pendula.governance.calls import Governance
from pendula.governance.decisions import Limits
from pendula.governance.inputs import Rules
from pendula.governance.machines import REFERENCE, Arrow, Follow, Machine, Never
from pendula.governance.objects import AsyncObjects, GovernedObjects, governed

__all__ = [
    "REFERENCE",  # the machines of memory, experience and cognition
    "Arrow",  # a transition of a machine
    "AsyncObjects",  # governed objects, awaited
    "Follow",  # the next action of a state
    "Governance",  # every call on governed objects, as a body and a caller
    "GovernedObjects",  # governed objects of a store or a server
    "Limits",  # budgets, lifetimes and counts
    "Machine",  # a state machine as data
    "Never",  # a forbidden transition
    "Rules",  # the settings of governed objects: `Policy(governance=Rules(…))`
    "governed",  # the governed objects of a scheduler
]
