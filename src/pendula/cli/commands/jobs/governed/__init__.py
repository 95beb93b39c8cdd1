"""`pendula jobs objects`, `gates` and `rollbacks`: governed objects of a store or a server.

objects  create, show, list, why, evidence, decide, amend, refill, rollback-finished
gates    set and list gates, list open rollbacks
tables   results as tables
"""
