"""Who does the work, and how a worker goes about it.

delivery    one delivery from the confirmed lease to the word that ends it: named steps
effects     effects that happen once: written together with their record
handlers    what a worker runs: functions marked with `@handler`, what they are handed, and what they may answer
leases      the leases a worker holds, renewed by one thread that no handler can block
worker      the worker: takes due jobs, runs their handlers, tells how they ended
"""
