"""Governed objects: state machines, gates, budgets, and the decision about an action. All pure.

governed             an object and its dates
machine              a state machine as data
reference_machines   memory, experience and cognition
machine_check        all faults of a machine at once
decay                the weight of an object over time
gates                gates and their combined verdict
tiers                effective risk and impact
budgets              the verification budget and the lifetime of uncertainty
next_action          the next action and its time
reasons              reasons as stored: a code and its facts
endings              how an action ends
transitions          what changes with a state
decisions            what an action may do: before the verifier runs, and after its verdict
"""
