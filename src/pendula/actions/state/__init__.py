"""All that a world is, from one command to the next.

plans           verbs made ready: locks found, limits checked, durations remembered
ranks           the order within a minute
event_writer    events in the order of a minute, numbered and placed in time
"""
