"""What a look at a store finds wrong with it."""

from msgspec import Struct


class Finding(Struct, frozen=True):
    """One thing that is wrong with a store."""

    code: str
    where: str
    sentence: str
