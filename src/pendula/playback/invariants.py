"""Invariants of a programme; a state that violates one is refused."""

from collections.abc import Iterator
from itertools import pairwise

from pendula.playback.choosing import new_artwork
from pendula.playback.choosing.programme import Programme
from pendula.playback.model import WSUM, Item, Origin

CREDIT_MOST = 1 << 40


def broken_invariants(programme: Programme) -> Iterator[str]:
    """The names of violated invariants."""
    generator, settings = programme.generator, programme.snapshot.settings
    credits = generator.round.credits_at(generator.round.anchor)
    taken, weights = generator.round.anchor, generator.weights
    if sum(weights) not in (0, WSUM):
        yield "weights_sum_to_65536"
    possible = generator.round.carried or all(_possible(c, w, taken) for c, w in zip(credits, weights, strict=True))
    if sum(credits) != 0 or not possible or any(abs(credit) > CREDIT_MOST for credit in credits):
        yield "credits_are_steps_times_weights_less_picks"
    held = (*programme.history, *programme.lookahead)
    if not all(_drawn(item) for item in held):
        yield "new_artwork_was_drawn"
    if not all(_placed(item, programme) for item in held):
        yield "items_of_channels_have_a_place_there"
    if new_artwork.size(generator.pool) > settings.nae.cap:
        yield "pool_within_its_cap"
    if len(programme.lookahead) > 2 * settings.lookahead - 1:
        yield "buffers_within_their_limits"
    if not 0 <= programme.behind <= max(0, len(programme.history) - 1):
        yield "position_within_the_history"
    # Banned new artwork leaves a gap; pinned items have no ordinal.
    now = [item.ordinal for item in held if item.epoch_id == programme.epoch_id and item.ordinal]
    if now and (now[0] < 1 or now[-1] > generator.ordinal or any(right <= left for left, right in pairwise(now))):
        yield "ordinals_rise"


def _possible(credit: int, weight: int, taken: int) -> bool:
    """Whether a channel of this weight can have this credit after `taken` steps."""
    picks, rest = divmod(taken * weight - credit, WSUM)
    return rest == 0 and 0 <= picks <= taken and (weight > 0 or picks == 0)


def _placed(item: Item, programme: Programme) -> bool:
    """Whether an item of a channel has a valid channel, place and step, and any other item has none."""
    if item.origin in (Origin.NAE, Origin.PINNED):
        return item.channel_index is None and item.at is None and item.step is None
    if item.channel_index is None or item.at is None or item.at < 0:
        return False
    if item.epoch_id != programme.epoch_id:
        return True
    generator = programme.generator
    names = len(generator.names)
    unreadable = item.trace.unreadable if item.trace is not None else ()
    return (
        0 <= item.channel_index < names
        and item.at < generator.shelves[item.channel_index].count
        and all(0 <= index < names for index in unreadable)
        and (item.step is None or item.step <= generator.round.taken)
        and (item.step is None or generator.round.carried or generator.round.anchor < item.step)
    )


def _drawn(item: Item) -> bool:
    """Whether the draw of an item triggers its new artwork."""
    if item.origin in (Origin.BASE, Origin.PINNED):
        return True
    trace = item.trace
    return trace is not None and trace.nae_draw is not None and new_artwork.triggers(trace.nae_draw, trace.pool)
