"""Payments that a limit holds back until a later tick, as they are saved: by ids, because nodes may be renumbered."""

from msgspec import Struct


class Waiting(Struct, frozen=True, forbid_unknown_fields=True, array_like=True):
    """A payment of the plan of `tick` that was not tried yet; `wanted` in hundredths of a unit."""

    tick: int
    seq: int
    sender: str
    receiver: str
    equivalent: str
    amount: str
    wanted: int
