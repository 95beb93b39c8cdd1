"""Payments that the rate limit holds back; saved by ids, because participants may be renumbered."""

from msgspec import Struct


class Waiting(Struct, frozen=True, forbid_unknown_fields=True, array_like=True):
    """A payment of the plan of `tick` that was not tried yet; `wanted` in cents."""

    tick: int
    seq: int
    sender: str
    receiver: str
    equivalent: str
    amount: str
    wanted: int
