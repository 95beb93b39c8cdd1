"""Governance on top of jobs: state machines, gates, budgets, verdicts, evidence, rollbacks.

model       an object: its state, evidence, tiers, dates and weight
machines    state machines as data, the reference machines, and the check of a machine
gates       gates and their combined verdict
budgets     the verification budget and the lifetime of uncertainty
endings     how an action ends
decisions   what an action may do: before the verifier runs, and after its verdict
inputs      the inputs of a decision: machine, tiers, gates, evidence
applying    what an ending writes, all or nothing; the scheduled job of an object
deliveries  governed jobs in pull, ack and fail, and in two steps
changes     changes by people: create, attach evidence, decide, amend, refill, set a gate
objects     `Governance` and `GovernedObjects`: every call
bodies      request bodies, with all their faults
views       objects, gates and endings as JSON
why         why an object is in its state, and what comes next
"""

import pendula.jobs as jobs  # noqa: F401  first: modules of jobs import modules of this package
