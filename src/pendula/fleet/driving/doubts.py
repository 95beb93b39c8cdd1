"""What is known of a truck whose place is in doubt: why, where on its way it can be, and what it may cover instead.

A doubt ends when poses have been steady for a while and fit: where the truck can be on its way, or where a person says
it is, or, as long as no pose was torn from the one before, where it went by itself.
"""

from msgspec import Struct

# From where on a truck can be of which somebody said that it is no longer on its way.
NOWHERE_UM = 1 << 61


class Rejoin(Struct, frozen=True, array_like=True):
    """A truck beside its line: how far, positive to its left, on which edge and where. It is sent back to its line at
    `target_um` of its track; where that is None, `blockers` are the trucks in the way, each with something it holds
    there, and without any the way that is granted is too short to steer back."""

    aside_um: int
    edge: int
    on_um: int
    target_um: int | None = None
    blockers: tuple[tuple[int, int], ...] = ()


class Doubt(Struct, frozen=True, array_like=True):
    """`low_um` to `high_um`: where on its track the truck can be. `torn`: two poses in a row that no truck drives
    between. `steady_ms`: since when there was none, and the truck says that it is well."""

    code: str
    since_ms: int
    low_um: int
    high_um: int
    torn: bool
    steady_ms: int | None = None
    # A person has said that the truck is where its reports say, and on which edge that is.
    confirmed: bool = False
    edge: int | None = None
    # What the truck may cover where it says it is, and for which place that was looked up last.
    extra: tuple[int, ...] = ()
    seen: tuple[int, int] | None = None
    # Whether this was the first that was ever heard of the truck.
    first: bool = False
    # Since when the truck has said without a break that it is on its way, or elsewhere on the map.
    on_map_ms: int | None = None
    # Whether it was told that nothing is heard of the truck.
    silent: bool = False
    # Of a truck a little beside its line: how it gets back, or what keeps it from that.
    rejoin: Rejoin | None = None
    # Of a truck that has passed its stop line: how far it is beyond it, farther than one that obeys may say.
    beyond_um: int | None = None
