"""The scheduler of actions over HTTP.

routes   create worlds, send commands, read state and events
views    state, events and logs of a world; estimates; questions and commands to choose from
"""
