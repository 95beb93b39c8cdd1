"""The reader of YAML, JSON, JSON5 and TOML, for files and HTTP bodies.

reading     bytes, files or values to a `Document`, or one refusal with every fault
cursor      one value of a document, checked; its faults are collected
typed       values to structs, with every fault at once
schema      JSON Schemas of these structs
faults      faults with path, place, value and what is allowed; how they are printed
json_text   JSON and JSON5, fast or with places and all its faults
yaml_text   YAML with the values of JSON
toml_text   TOML with the places of its values
tree        builds values from scanner events, within limits; exact numbers
"""

from pendula.documents.cursor import Cursor, Members
from pendula.documents.faults import CODES, NOWHERE, DocumentRefused, Fault, Path, Place, path_text, render
from pendula.documents.reading import CONTENT_TYPES, Document, Format, from_value, read_bytes, read_file
from pendula.documents.tree import DocumentLimits

__all__ = [
    "CODES",
    "CONTENT_TYPES",
    "NOWHERE",
    "Cursor",
    "Document",
    "DocumentLimits",
    "DocumentRefused",
    "Fault",
    "Format",
    "Members",
    "Path",
    "Place",
    "from_value",
    "path_text",
    "read_bytes",
    "read_file",
    "render",
]
