"""Findings of a check of a store."""

from msgspec import Struct


class Finding(Struct, frozen=True):
    code: str
    where: str
    sentence: str
