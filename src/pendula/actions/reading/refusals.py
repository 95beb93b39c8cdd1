"""The errors of a refused file."""

import msgspec

from pendula.actions.configuration import InvalidCarryOver, InvalidEpoch
from pendula.documents import Document, DocumentRefused, Fault


class FileRefused(DocumentRefused):
    """A file of actions with faults; each line on a terminal ends with its code."""

    def render(self) -> str:
        coded = [msgspec.structs.replace(fault, allowed=(), message=_with_code(fault)) for fault in self.faults]
        return DocumentRefused(coded, self.source_name, self.more).render()


class EpochRefused(FileRefused, InvalidEpoch):
    """Only the epoch is invalid."""

    code = "InvalidEpoch"


class CarryRefused(FileRefused, InvalidCarryOver):
    """Only the carry is invalid."""

    code = "InvalidCarryOver"


def refuse_if_faulty(document: Document) -> None:
    """Raise the noted faults; faults of the epoch alone, or of the carry alone, have their own error."""
    try:
        document.done()
    except DocumentRefused as refused:
        kind = FileRefused
        for special in (EpochRefused, CarryRefused):
            if all(fault.code == special.code for fault in refused.faults):
                kind = special
        raise kind(refused.faults, refused.source_name, refused.more) from None


def _with_code(fault: Fault) -> str:
    allowed = f"; allowed: {', '.join(fault.allowed)}" if fault.allowed else ""
    return f"{fault.message}{allowed} ({fault.code})"
