"""The scheduler of credit over HTTP: scenarios, runs that any client of the protocol can drive, and their events.

scheduler       the scheduler with the settings of the environment
service    scenarios, runs and their owners, capacity, what is left of runs
running    runs while they are served
routes     the paths of the protocol
owners     whose runs are whose
shapes     the closed forms of answers and bodies
errors     refusals in the words of the protocol
"""
