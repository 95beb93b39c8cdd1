"""A file into the document that a run takes; what spoils the whole is refused, every fault with its place.

Faults of single definitions, instances and requests do not spoil a run, they become rejections and diagnostics;
`checking` lists them.
"""

from importlib.resources import files
from pathlib import Path as FilePath
from typing import Any

from pendula.actions.reading.refusals import refuse_if_faulty
from pendula.actions.reading.sections import Sections
from pendula.documents import Document, Format, read_bytes, read_file


def load(path: FilePath | str) -> dict[str, Any]:
    """The document in a file, for `run_document`; raises `DocumentRefused` where it is refused as a whole."""
    return accept(read_file(path))


def town() -> Document:
    """The example that comes with the package: a small town over three days."""
    name = "town.yaml"
    return read_bytes((files("pendula.actions") / "example" / name).read_bytes(), Format.YAML, name)


def accept(document: Document) -> dict[str, Any]:
    """The document as a run takes it; raises `FileRefused` with every fault that spoils the whole."""
    Sections(document)
    refuse_if_faulty(document)
    assert isinstance(document.value, dict)
    return document.value
