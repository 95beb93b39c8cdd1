"""The credit scheduler over HTTP: scenarios, runs, and their events, as the simulator protocol defines them.

scheduler  the scheduler with the settings of the environment
service    scenarios, runs, owners, limits of active runs, retention
running    engines of active runs, and journals of ended ones
routes     the paths of the protocol
owners     owners of runs, and their cookies
shapes     structs of requests and responses
errors     errors with the codes and statuses of the protocol
"""
