"""Authoring of scenarios: linter, JSON Schema, and a generator of villages.

linting           warnings about a scenario before it runs, by topic
reachability      graph questions about lines: components, reachability, cycles
schema            JSON Schemas of a scenario, of settings and of a configuration
villages          generates scenarios of invented people and firms that trade in cycles
example/          the example of the scheduler: a village of a hundred that runs out of credit
"""

from pendula.credit.authoring.linting import lint
from pendula.credit.authoring.schema import file_schema
from pendula.credit.authoring.villages import village

__all__ = [
    "file_schema",  # JSON Schema of a scenario file
    "lint",  # warnings about a scenario
    "village",  # generate a scenario from a seed
]
