"""Making scenarios: what a designer should look at, their form, and villages out of a seed.

linting/          warnings about a scenario before it runs, by families
reachability      the shape of a network of lines: who is joined to whom, who is within reach
schema            the forms of a scenario, of settings and of a configuration as JSON Schema
villages          a scenario of invented people and firms that trade in circles
village_groups    who lives there: groups, habits and names
example/          the example of the scheduler: a village of a hundred that runs out of credit
"""

from pendula.credit.authoring.linting import lint
from pendula.credit.authoring.schema import file_schema
from pendula.credit.authoring.villages import village

__all__ = [
    "file_schema",  # the form of a scenario file
    "lint",  # what a designer should look at
    "village",  # a scenario out of a seed
]
