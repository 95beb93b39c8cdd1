"""The SQL of a transaction: jobs, events, objects, plans, workers.

writer      what a transaction writes, collected and written at once
job_rows    rows of jobs, many with one statement: insert, update, set aside and bring back
reader      every query, each answered by an index
lists       jobs by any filter: pages and counts
due         the due jobs that a pull may take, in order, without reading others
archive     events of removed jobs, packed, still part of the chain
counts      the numbers behind metrics, updated with every change
outgoing    effects, alerts and write-backs
registry    the tables of time plans and of worker heartbeats
time_set    times that a wrong clock wrote, set back
bulk        many rows with one statement
statement_authorizer
            what SQL of a handler may do within the transaction of the store
"""
