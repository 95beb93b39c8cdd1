"""What a transaction reads and writes: the SQL of jobs, events and all that belongs to them.

writer      what a transaction writes, collected and written at once
job_rows    rows of jobs, many with one statement: added, changed, set aside and brought back
reader      every query, each answered by an index
lists       jobs by any filter: pages and counts
due         which due jobs a pull may take, in order, without a look at others
archive     events of removed jobs, packed, still part of the chain
counts      the numbers metrics are made of, kept with every change
governed    the tables of governed objects: gates, traces, rollbacks
outgoing    effects that happened, alerts, and what objects elsewhere are told
registry    the tables of time plans and of workers' signs of life
time_set    times of a wrong clock brought back to the right one
bulk        many rows with one statement
guard       what a handler's own SQL may do within our transaction
"""
