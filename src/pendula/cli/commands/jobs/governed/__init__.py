"""`pendula jobs objects`, `gates` and `rollbacks`: governed objects of a store or a server.

objects  create, show, list, why, evidence, decide, amend, refill, rollback-finished
gates    gates set and listed, and rollbacks that are waited for
tables   results as tables
"""
