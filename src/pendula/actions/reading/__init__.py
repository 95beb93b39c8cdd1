"""A file of actions: loading, checking, JSON Schema.

loading       loads the document of a run from a file
checking      finds every fault of a file, with place and code
schema        the JSON Schema of a file
sections      the sections of a file, and the faults that make it unusable
complaints    faults of the engine's readers, noted at their place
refusals      the errors of a refused file
"""

from pendula.actions.reading.checking import check
from pendula.actions.reading.loading import accept, load, town
from pendula.actions.reading.schema import file_schema
from pendula.actions.reading.sections import LISTS, SECTIONS

__all__ = [
    "LISTS",  # sections that are lists
    "SECTIONS",  # every section of a file
    "accept",  # a document, or `FileRefused`
    "check",  # every fault of a document
    "file_schema",  # the JSON Schema of a file
    "load",  # the document in a file
    "town",  # the example that comes with the package
]
