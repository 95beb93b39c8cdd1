"""The credit scheduler over HTTP: scenarios, runs, and their events, as the simulator protocol defines them.

scheduler  the scheduler with the settings of the environment
service    scenarios, runs, owners, limits of active runs, retention
run        one served run: engine, ticks, commands, stream
stream     its events, numbered and rendered once, for any number of readers
output     its record, metrics and bottlenecks in the store, and its files
recovery   finishes runs of a killed process, and reads ended runs from their journals
what_if    forks a run and compares both branches
store      the database and its thread
records    records of runs, their states, and limits on active runs
scenarios  bundled and uploaded scenarios
routes     the paths of the protocol
owners     owners of runs, and their cookies
counters   Prometheus metrics
settings   settings of the process, beside those of runs
shapes     structs of requests and responses
errors     errors with the codes and statuses of the protocol
"""
