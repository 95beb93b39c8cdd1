"""What an action may be at most, for whoever takes one in: beyond that nobody could decide upon it or write it down.

Every door asks here first: HTTP, the manager of a live fleet, the reader of scenarios, and the desk for all others.
"""

from decimal import Decimal

from msgspec import UNSET

from pendula.fleet.contracts.traffic import AnchorPlace, OperatorAction
from pendula.fleet.units import FARTHEST_M
from pendula.kernel.wording import shown

# No edge is longer than a map may be wide.
LONGEST_EDGE_M = FARTHEST_M


def beyond_measure(action: OperatorAction) -> str | None:
    """What of an action is more than anybody can mean, as a sentence; None where nothing is."""
    return None if action.anchor is UNSET else off_every_edge(action.anchor)


def off_every_edge(place: AnchorPlace) -> str | None:
    """Why no edge of any map has such a place; None where one could."""
    s_m: object = place.sM
    # A program may hand over anything: NaN compares with nothing, and text is no number.
    if isinstance(s_m, bool) or not isinstance(s_m, Decimal | int):
        return f"sM is {shown(s_m)}; it must be a number"
    if not Decimal(s_m).is_finite() or not 0 <= s_m <= LONGEST_EDGE_M:
        return f"sM is {shown(s_m)}; it must be a number of metres from 0 to {LONGEST_EDGE_M}"
    return None
