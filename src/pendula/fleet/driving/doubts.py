"""Data of a truck whose position is in doubt: why, where on its route it can be, and what it may cover instead.

A doubt ends when poses have been steady for a while and fit: where the truck can be on its route, where an operator
relocated it, or, if no pose was torn from the one before, where it went by itself.
"""

from msgspec import Struct

# From here on a removed truck can be: it is no longer on its route.
NOWHERE_UM = 1 << 61


class Rejoin(Struct, frozen=True, array_like=True):
    """A truck beside its line: how far, positive to its left, on which edge and where. It is sent back to its line at
    `target_um` of its track; if that is None, `blockers` are the trucks in the way, each with a resource it holds
    there, and without any the granted route is too short to steer back."""

    aside_um: int
    edge: int
    on_um: int
    target_um: int | None = None
    blockers: tuple[tuple[int, int], ...] = ()


class Doubt(Struct, frozen=True, array_like=True):
    """`low_um` to `high_um`: where on its track the truck can be. `torn`: two consecutive poses between which no truck
    can drive. `steady_ms`: since when there was none, and the truck reports no fault."""

    code: str
    since_ms: int
    low_um: int
    high_um: int
    torn: bool
    steady_ms: int | None = None
    # An operator confirmed the reported position, and named its edge.
    confirmed: bool = False
    edge: int | None = None
    # What the truck may cover at its reported position, and for which position that was computed.
    extra: tuple[int, ...] = ()
    seen: tuple[int, int] | None = None
    # Whether this began with the first report of the truck.
    first: bool = False
    # Since when the truck has reported, without a break, to be on its route, or elsewhere on the map.
    on_map_ms: int | None = None
    # Whether an alert for its silence was raised.
    silent: bool = False
    # A truck a little beside its line: how it gets back, or what prevents it.
    rejoin: Rejoin | None = None
    # A truck beyond its stop line: how far, more than an obeying truck could report.
    beyond_um: int | None = None
