"""Planned payments of a tick, and the events of the scenario that are due.

planner     candidates in a shuffled order, accepted one by one, with random receivers and amounts
profiles    behaviour of participants: the props of profiles completed with presets
"""
