"""What runs decide by: the rules of now, and those of versions before, by which their journals still replay.

A rule that changes what comes out of a run is a member here and raises `decisions`. A journal names the decisions it
was written with, and a run found in it goes on by them to its end: no run changes its mind in the middle.
"""

from collections.abc import Mapping

import msgspec
from msgspec import Struct

from pendula.credit.settings import Settings


class Rules(Struct, frozen=True, kw_only=True):
    """What differs between the decisions of versions."""

    # Lines that a clearing lights up run from creditor to debtor, as the links of a snapshot do; before, the other way.
    lit_from_creditor: bool
    # A refusal names what would let the payment pass; before, the narrowest hop of the shortest chain.
    names_cures: bool
    # Hops are counted as payments try them, so that bottlenecks can be told.
    counts_hops: bool
    # What no clearing can cure is not part of the rate that the adaptive policy watches; the policy observes and
    # remembers calls also while it does not decide, clears in the background while it is not active, and a skip in its
    # cold start has the reason of its cause.
    watches_the_curable: bool
    # What the adaptive policy's least depth is where nobody gives one; None is its greatest.
    least_depth: int | None
    # Injected debts are told apart from injected participants and lines, with a reason of their own.
    injected_debts_apart: bool


NOW = Rules(
    lit_from_creditor=True,
    names_cures=True,
    counts_hops=True,
    watches_the_curable=True,
    least_depth=None,
    injected_debts_apart=True,
)
FIRST = Rules(
    lit_from_creditor=False,
    names_cures=False,
    counts_hops=False,
    watches_the_curable=False,
    least_depth=3,
    injected_debts_apart=False,
)
BY_DECISIONS: Mapping[int, Rules] = {1: FIRST, 2: NOW}


def with_defaults_of(decisions: int, settings: Settings) -> Settings:
    """The settings, what is not given as it was then: a run that goes on was begun with the defaults of then."""
    rules = BY_DECISIONS.get(decisions, NOW)
    if settings.adaptive_max_depth_min is not None or rules.least_depth is None:
        return settings
    return msgspec.structs.replace(settings, adaptive_max_depth_min=rules.least_depth)
