"""What worlds decide by: the rules of now, and those of the version before, by which its journals still replay.

A rule that changes what comes out of a world is a member here and raises `decisions`. A journal names the decisions it
was written with, and a world found in it goes on by them to its end: no world changes its mind in the middle.
"""

from collections.abc import Mapping

from msgspec import Struct
from msgspec.structs import replace


class Version(Struct, frozen=True, kw_only=True):
    """What differs between the decisions of versions."""

    # What began in a minute can be broken off in the same minute; what did so for the second time, in the next.
    breaks_off_what_began: bool
    # Starts and ends have the params of their instance, and so have the questions to user code.
    tells_params: bool
    # A submission for later can be cancelled before it is admitted.
    cancels_what_is_to_come: bool
    # The lock of an actor counts as one of the world and one of the instance.
    counts_locks_of_actors: bool
    # Names nobody knows are refused in options, sections and definitions; before, they were passed over.
    refuses_unknown_names: bool
    # Rejections and diagnostics say what is wrong, where, and what is allowed; before, as the reader put it.
    words_faults: bool
    # The state has members that the first version did not know.
    saves_more: bool
    # What a preempting action interrupted is held until that one ends; before, it joined its queues at once.
    holds_while_cause_lasts: bool
    # The expiry of an item is an event, in the first minute in which it cannot be known any more.
    tells_expiry: bool
    # The end of an action that may trigger an event and has no knowledge attached makes the action itself known.
    makes_actions_known: bool
    # Cancelling what runs and cannot be interrupted needs force, and ends it.
    cancels_by_force: bool
    # A list of verbs to interrupt is refused where the definition does not preempt.
    refuses_idle_interrupts: bool


NOW = Version(
    breaks_off_what_began=True,
    tells_params=True,
    cancels_what_is_to_come=True,
    counts_locks_of_actors=True,
    refuses_unknown_names=True,
    words_faults=True,
    saves_more=True,
    holds_while_cause_lasts=True,
    tells_expiry=True,
    makes_actions_known=True,
    cancels_by_force=True,
    refuses_idle_interrupts=True,
)
SECOND = replace(
    NOW,
    holds_while_cause_lasts=False,
    tells_expiry=False,
    makes_actions_known=False,
    cancels_by_force=False,
    refuses_idle_interrupts=False,
)
FIRST = replace(
    SECOND,
    breaks_off_what_began=False,
    tells_params=False,
    cancels_what_is_to_come=False,
    counts_locks_of_actors=False,
    refuses_unknown_names=False,
    words_faults=False,
    saves_more=False,
)
BY_DECISIONS: Mapping[int, Version] = {1: FIRST, 2: SECOND, 3: NOW}
