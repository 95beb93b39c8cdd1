"""The state of a world, from one command to the next.

world_state     the state itself; only the functions of `minute` change it
clock           the minute of the run and its epoch
plans           definitions prepared for a world: locks, limits, durations
ranks           the order within a minute
event_writer    numbered events in the order of a minute
"""

from pendula.actions.state.world_state import WorldState

__all__ = ["WorldState"]
