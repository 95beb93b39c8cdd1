"""Values that all documents of the scheduler share: versions, names, lengths.

Unknown members are ignored, as the contract requires within a major version; missing members and wrong types are
faults.
"""

from collections.abc import Collection
from decimal import Decimal
from enum import StrEnum
from re import compile as regex

from pendula.documents import Cursor, Members
from pendula.fleet.model import NAME_MOST, pick_is_drop
from pendula.fleet.units import micro


class FaultCode(StrEnum):
    """Faults of a map that other documents do not have."""

    UNKNOWN_VERSION = "unknown_version"
    COORDINATE_OUT_OF_RANGE = "coordinate_out_of_range"


MAJOR = "1"
# The limit of all lengths, to reject absurd numbers early.
HUGE = Decimal(10) ** 9
LEAST = Decimal("0.000001")
_VERSION = regex(r"[0-9]+\.[0-9]+\.[0-9]+")
# Keys join ids with these separators, so ids must not contain them.
_ID = regex(r"(?!.*->)[^\s#|\x00-\x1f]+(?: +[^\s#|\x00-\x1f]+)*")
_ID_FORM = "text without '#', '|', '->' and line breaks, with spaces only inside"


def version(members: Members) -> None:
    """Reject another major version of the contract."""
    at = members["contractVersion"]
    text = at.text(pattern=_VERSION, form="a version such as 1.0.0")
    if text and text.split(".")[0] != MAJOR:
        at.refuse(
            f"contract version {text} is not supported", code=FaultCode.UNKNOWN_VERSION, allowed=(f"{MAJOR}.x.y",)
        )


def length(at: Cursor, most: Decimal = HUGE) -> int:
    """A length (or angle, or time) as micrometres."""
    return micro(at.decimal(min=0, max=most))


def positive(at: Cursor, most: Decimal = HUGE) -> int:
    return micro(at.decimal(min=LEAST, max=most))


def name(at: Cursor) -> str:
    return at.text(min=1, max=NAME_MOST, pattern=_ID, form=_ID_FORM)


def drop_of(at: Cursor, picks: Collection[str], what: str) -> str:
    """The drop node of a stream or task; must not be one of its pick nodes."""
    node = name(at)
    if node and node in picks:
        at.refuse(pick_is_drop(what, node))
    return node
