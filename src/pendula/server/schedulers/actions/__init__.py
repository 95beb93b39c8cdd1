"""The scheduler of actions over HTTP.

routes       create worlds, send commands, read state and events
views        state, events and logs of a world
estimates    when a submission would start
choices      questions and commands to choose from
bounds       the size limit of one command
"""
