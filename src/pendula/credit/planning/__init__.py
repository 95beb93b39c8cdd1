"""Who wants to pay whom in a tick, and what the scenario has for that tick.

planner     candidates in a shuffled order, accepted one by one; amounts and receivers drawn
draws       first draws kept for further runs of one seed
profiles    how participants behave: the props of profiles with presets filled in
timeline    which events are due, and what a stress multiplies
"""
