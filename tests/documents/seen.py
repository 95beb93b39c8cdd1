"""What tests look at: the faults of a text, in short."""

from pendula.documents import DocumentLimits, DocumentRefused, Fault, Format, read_bytes
from pendula.documents.faults import FaultList, Lines
from pendula.documents.reading import scan
from pendula.documents.tree import Tree
from pendula.kernel.canonical import Json

JSON, YAML = Format.JSON, Format.YAML
LIMITS = DocumentLimits()


def value(text: str | bytes, form: Format = JSON, limits: DocumentLimits = LIMITS) -> Json:
    return read_bytes(text.encode() if isinstance(text, str) else text, form, limits=limits).value


def faults(text: str | bytes, form: Format = JSON, limits: DocumentLimits = LIMITS) -> tuple[Fault, ...]:
    """The faults of a text that must be refused."""
    data = text.encode() if isinstance(text, str) else text
    try:
        read_bytes(data, form, limits=limits)
    except DocumentRefused as refused:
        return refused.faults
    raise AssertionError(f"{data[:80]!r} was read without a fault")


def places(text: str | bytes, form: Format = JSON, limits: DocumentLimits = LIMITS) -> list[tuple[str, str, int, int]]:
    """Code, path, line and column of every fault."""
    return [(fault.code, fault.path, fault.line, fault.column) for fault in faults(text, form, limits)]


def carefully(text: str, limits: DocumentLimits = LIMITS) -> tuple[Json, FaultList]:
    """What the careful road alone makes of a JSON text."""
    found = FaultList(limits.faults)
    return scan(text, JSON, Tree(limits, found, Lines(text))), found
