"""Governed objects over HTTP: state machines, gates, budgets, evidence.

routes   a job in two steps, objects, gates, rollbacks, at `/scheduler/…`
shapes   their bodies in OpenAPI
metrics  what Prometheus reads of them
"""
