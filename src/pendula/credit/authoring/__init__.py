"""Authoring of scenarios: linter, JSON Schema, and a generator of villages."""

from pendula.credit.authoring.linting import lint
from pendula.credit.authoring.villages import village
from pendula.credit.reading import file_schema

__all__ = [
    "file_schema",  # JSON Schema of a scenario file
    "lint",  # warnings about a scenario
    "village",  # generate a scenario from a seed
]
