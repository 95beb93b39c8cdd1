"""Who wants to pay whom in a tick, and what the scenario has for that tick.

planner     what participants want to pay in a tick: candidates in a shuffled order, accepted one by one
profiles    how participants behave: the props of profiles with presets filled in
timeline    what the events of a scenario do and when: multipliers of a stress, injections into the network
"""
