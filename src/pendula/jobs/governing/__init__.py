"""Governance inside a transaction, shared by calls on jobs and calls on objects.

deliveries     governed jobs in pull, ack and fail
apply_ending   what an ending writes, all or nothing
followups      the one scheduled job of an object
verdicts       the inputs of a decision: machine, tiers, gates, evidence
learning       whether exploratory verifications still happen
views          objects, gates and endings as JSON
"""
