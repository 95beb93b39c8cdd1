"""Governed objects over HTTP: state machines, gates, budgets, evidence.

steps    a governed job in two steps
objects  objects, by a verb, a type and an id
gates    gates, rollbacks, machines, figures
shapes   their bodies in OpenAPI
"""

from pendula.server.schedulers.jobs.governed import gates, objects, steps
from pendula.server.schedulers.jobs.governed.shapes import schemas

ROUTERS = (steps.router, objects.router, gates.router)

__all__ = ["ROUTERS", "schemas"]
