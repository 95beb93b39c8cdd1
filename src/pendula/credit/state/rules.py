"""What runs decide by: the rules of now, and those of versions before, by which their journals still replay.

A rule that changes what comes out of a run is a member here and raises `decisions`. A journal names the decisions it
was written with, and a run found in it goes on by them to its end: no run changes its mind in the middle.
"""

from collections.abc import Mapping

from msgspec import Struct


class Rules(Struct, frozen=True, kw_only=True):
    """What differs between the decisions of versions."""

    # Lines that a clearing lights up run from creditor to debtor, as the links of a snapshot do; before, the other way.
    lit_from_creditor: bool
    # Injected debts are told apart from injected participants and lines, with a reason of their own.
    injected_debts_apart: bool


NOW = Rules(lit_from_creditor=True, injected_debts_apart=True)
FIRST = Rules(lit_from_creditor=False, injected_debts_apart=False)
BY_DECISIONS: Mapping[int, Rules] = {1: FIRST, 2: NOW}
