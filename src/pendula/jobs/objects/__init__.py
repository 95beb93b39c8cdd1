"""Governed objects: state machines, gates, budgets, and what an action on an object comes to. All of it is pure.

governed             an object and every date that says when to look at it again
machine              a state machine as data
reference_machines   memory, experience and cognition
machine_check        what is wrong with a machine, all at once
decay                how much an object still weighs
gates                what gates say together
tiers                the risk and the impact that count
budgets              what uncertainty may cost
following            what comes next, and when
reasons              why something happened, as it is stored: a code and its facts
endings              how an action ends
applying             what changes with a state
deciding             what an action may do: before the verifier is entered, and when it has spoken
"""
