"""The reader of YAML, JSON, JSON5 and TOML, for files and HTTP bodies.

reading     bytes, files or values to a `Document`, or one refusal with every fault
cursor      one value of a document, checked; its faults are collected
typed       values to structs, with every fault at once
schema      JSON Schemas of these structs
faults      faults with place, value and what is allowed; how they are printed
places      paths, lines, columns
json_fast   JSON without faults, with the interpreter's parser
json_text   JSON with places and all its faults
json5_text  JSON5, for files written by hand
json_places the places of values in valid JSON
yaml_text   YAML with the values of JSON
toml_text   TOML with the places of its values
tree        builds values from scanner events, within limits
numbers     int or exact Decimal, never float
findings    faults of a reading before their lines are known
"""

from pendula.documents.cursor import Cursor, Members
from pendula.documents.faults import CODES, DocumentRefused, Fault, render
from pendula.documents.places import NOWHERE, Path, Place, path_text
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
