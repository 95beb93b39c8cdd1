"""Limits of an operator action, checked by HTTP, the manager of a live fleet and the reader of scenarios.

They are needed because the journal stores each action in full, and snapshots store it with its answer.
"""

from collections.abc import Iterator, Sequence
from decimal import Decimal

from msgspec import UNSET

from pendula.fleet.contracts.traffic import AnchorPlace, OperatorAction
from pendula.fleet.model import NAME_BYTES
from pendula.fleet.units import FARTHEST_M
from pendula.kernel.wording import shown

# No edge is longer than a map may be wide.
LONGEST_EDGE_M = FARTHEST_M
# The key of an edge is made of the names of two nodes.
MOST_KEY_BYTES = 2 * NAME_BYTES + 2
MOST_REASON = 500
MOST_REASON_BYTES = 4 * MOST_REASON
# More than a truck holds.
MOST_RESOURCES = 256
MOST_RESOURCES_BYTES = 16 * 1024

_IDS = ("actionId", "operatorId", "type", "robotId", "taskId", "confirmationOf")


def exceeded_limit(action: OperatorAction) -> str | None:
    """A sentence about the first exceeded limit; None if there is none."""
    return next(_excesses(action), None)


def _excesses(action: OperatorAction) -> Iterator[str]:
    for member in _IDS:
        yield from _too_long(member, getattr(action, member), NAME_BYTES)
    yield from _too_long("reason", action.reason, MOST_REASON_BYTES)
    if action.anchor is not UNSET:
        yield from _too_long("edgeKey", action.anchor.edgeKey, MOST_KEY_BYTES)
        nowhere = anchor_problem(action.anchor)
        yield from () if nowhere is None else (nowhere,)
    if action.resources is not UNSET:
        excess = too_many(action.resources)
        yield from () if excess is None else (excess,)


def _too_long(member: str, text: object, most: int) -> Iterator[str]:
    size = bytes_of(text) if isinstance(text, str) else 0
    if size > most:
        yield f"{member} has {size} bytes; at most {most}"


def too_many(resources: Sequence[str]) -> str | None:
    """A sentence if there are too many resources, or too long ones."""
    if len(resources) > MOST_RESOURCES:
        return f"resources has {len(resources)} entries; at most {MOST_RESOURCES}"
    size = sum(map(bytes_of, resources))
    if size > MOST_RESOURCES_BYTES:
        return f"resources has {size} bytes together; at most {MOST_RESOURCES_BYTES}"
    return None


def anchor_problem(place: AnchorPlace) -> str | None:
    """A sentence if no edge of any map can have this position."""
    s_m: object = place.sM
    # Programs may pass NaN, which compares with nothing, or text.
    if isinstance(s_m, bool) or not isinstance(s_m, Decimal | int):
        return f"sM is {shown(s_m)}; it must be a number"
    if not Decimal(s_m).is_finite() or not 0 <= s_m <= LONGEST_EDGE_M:
        return f"sM is {shown(s_m)}; it must be a number of metres from 0 to {LONGEST_EDGE_M}"
    return None


def bytes_of(text: str) -> int:
    """The encoded length of a text; a lone surrogate counts as a replacement character."""
    return len(text) if text.isascii() else len(text.encode(errors="replace"))
