"""All that a world is, from one command to the next.

world_state     everything in one place, for the functions of `minute` to change and for others to look at
clock           the minute of the run and its epoch
plans           verbs made ready: locks found, limits checked, durations remembered
ranks           the order within a minute
event_writer    events in the order of a minute, numbered and placed in time
"""

from pendula.actions.state.world_state import WorldState

__all__ = ["WorldState"]
