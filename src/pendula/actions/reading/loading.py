"""Loads a file for a run; an unusable file is refused with every fault and its place.

Faults of single definitions, instances and requests do not stop a run: they become rejections and diagnostics, and
`checking` lists them.
"""

from importlib.resources import files
from pathlib import Path as FilePath
from typing import Any

from pendula.actions.reading.refusals import refuse_if_faulty
from pendula.actions.reading.sections import Sections
from pendula.documents import Document, Format, read_bytes, read_file


def load(path: FilePath | str) -> dict[str, Any]:
    """The document in a file, for `run_document`. Raises `DocumentRefused` for an unusable file."""
    return accept(read_file(path))


def town() -> Document:
    """The example of the package: a small town over three days."""
    name = "town.yaml"
    return read_bytes((files("pendula.actions") / "example" / name).read_bytes(), Format.YAML, name)


def accept(document: Document) -> dict[str, Any]:
    """The document of a run. Raises `FileRefused` with every fault that makes the file unusable."""
    Sections(document)
    refuse_if_faulty(document)
    assert isinstance(document.value, dict)
    return document.value
