"""The SQL of a transaction: jobs, events, objects, plans, workers.

writer      what a transaction writes, collected and written at once
reader      every query, each answered by an index
lists       jobs by any filter, and the due jobs that a pull may take, in order, without reading others
archive     events of removed jobs, packed, still part of the chain
rows        rows, many with one statement: of jobs, counts, effects, alerts, write-backs, plans and workers
statement_authorizer
            what SQL of a handler may do within the transaction of the store
"""
