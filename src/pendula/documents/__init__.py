"""The one reader of YAML, JSON and JSON5, for files and HTTP bodies.

reading     bytes, files, values in; a `Document` out, or one refusal with every fault
cursor      values into models, every fault at once
faults      what is wrong, where, what is allowed; how it is printed
places      paths, lines, columns
json_fast   clean JSON at the speed of the interpreter's parser
json_text   JSON with places and all its faults
json5_text  JSON5, which people write by hand
json_places where the values of sound JSON lie
yaml_text   YAML, read as JSON would be
toml_text   where the values of TOML lie
tree        what both scanners build, and the limits they keep
numbers     int or exact Decimal, never float
findings    faults of a reading before they know their lines
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
