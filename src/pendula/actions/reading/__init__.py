"""A file of actions: read into what a run takes, checked with all its faults, its form as a schema.

loading       a file into the document that a run takes
checking      everything that is wrong with a file, single things too, each with its place and its code
schema        the form of a file as JSON Schema
sections      the parts of a file, and what spoils the whole
complaints    what the readers of the engine say about a value, noted at its place
refusals      the kinds of refusal of a file
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
    "file_schema",  # the form of a file
    "load",  # the document in a file
    "town",  # the example that comes with the package
]
