"""Turns that go on over a change: credits and cursors as of what was shown, where the records are still there.

What was made ahead and is dropped has never been: its channels have their credit back, and their cursors stand at the
first record that was to come. So who changes something often still gives every channel its share.
"""

from collections.abc import Iterable, Sequence

from msgspec import Struct

from pendula.playback.choosing.generator import Generator
from pendula.playback.choosing.records import PastShelf, Shelf
from pendula.playback.choosing.snapshot import Channel
from pendula.playback.model import Item, Origin


class Carried(Struct, frozen=True):
    """Where the turns stand: each channel's credit, its picks in this epoch, and its next place."""

    credits: tuple[int, ...]
    picks: tuple[int, ...]
    cursors: tuple[int, ...]


def as_shown(generator: Generator, lookahead: Iterable[Item]) -> Carried:
    """The turns of a generator as of the last item that was taken out of the lookahead."""
    ahead = list(lookahead)
    step = next((first_step(item) for item in ahead if item.step is not None), generator.round.taken)
    cursors = generator.cursors
    for item in reversed(ahead) if generator.in_order else ():
        if item.channel_index is not None and item.at is not None:
            cursors[item.channel_index] = item.at
    return Carried(tuple(generator.round.credits_at(step)), tuple(generator.round.picks_at(step)), tuple(cursors))


def first_step(item: Item) -> int:
    """How many steps were taken before an item of the round, and before what it passed over on the way."""
    assert item.step is not None
    return item.step - 1 - len(item.trace.unreadable if item.trace else ())


def over_a_change(
    shown: Carried, before: Sequence[Channel], after: Sequence[Channel], ahead: Iterable[Item], *, in_order: bool
) -> Carried:
    """The same turns for other channels: credits of those that stay, cursors where their record is still there.

    A new channel begins with nothing. What a channel that goes had is shared out among the others, one unit a time
    from the first: the sum stays 0.
    """
    there = {channel.id: index for index, channel in enumerate(before)}
    next_ones = {item.channel: item.raw for item in reversed(list(ahead)) if item.channel}
    credits = [shown.credits[there[one.id]] if one.id in there else 0 for one in after]
    cursors = [0] * len(after)
    for index, channel in enumerate(after):
        if channel.id in there and in_order:
            old = before[there[channel.id]]
            cursor = shown.cursors[there[channel.id]]
            cursors[index] = cursor if channel.same(old) else _found_again(channel, old, cursor, next_ones)
    return Carried(tuple(_balanced(credits)), (0,) * len(after), tuple(cursors))


def _balanced(credits: list[int]) -> list[int]:
    if not credits:
        return credits
    each, rest = divmod(-sum(credits), len(credits))
    return [credit + each + (index < rest) for index, credit in enumerate(credits)]


def _found_again(channel: Channel, old: Channel, cursor: int, next_ones: dict[str, bytes]) -> int:
    """Where the record that was next is now; 0, the newest, where it is no more."""
    raw = next_ones.get(channel.id)
    if raw is None and isinstance(old.shelf, PastShelf):
        return _behind(channel.visible, old.shelf.last)
    if raw is None and cursor < old.visible.count:
        place, id, found = old.visible.record(cursor)
        raw = None if place is None or id is None else found
    place = None if raw is None else place_in(channel.visible, raw)
    return place or 0


def _behind(shelf: Shelf, last: bytes | None) -> int:
    """The place after the record that was shown last; 0, the newest, where nobody knows it."""
    place = None if last is None else place_in(shelf, last)
    return 0 if place is None else (place + 1) % shelf.count


def place_in(shelf: Shelf, raw: bytes) -> int | None:
    """The place of the record with this time and id on a shelf, which is sorted by both; None where it is not."""
    wanted = _key(raw)
    low, high = 0, shelf.count
    while low < high:
        middle = (low + high) // 2
        at, key = _readable(shelf, middle, high)
        if key == wanted:
            return at
        if key is None or key < wanted:
            high = middle
        else:
            low = at + 1
    return None


def _readable(shelf: Shelf, at: int, end: int) -> tuple[int, tuple[int, int] | None]:
    """The first place from `at` on whose record can be read, and its time and id; None where there is none."""
    while at < end:
        place, id, raw = shelf.record(at)
        if place is not None and id is not None:
            return at, _key(raw)
        at += 1
    return at, None


def _key(raw: bytes) -> tuple[int, int]:
    return int.from_bytes(raw[8:16], "little", signed=True), int.from_bytes(raw[:8], "little")


def left_of(lookahead: Iterable[Item], on: Item | None, unwanted: int | None) -> list[Item]:
    """What stays of the lookahead while the turns are taken anew: new artwork, but none twice in a row."""
    left: list[Item] = []
    last = None if on is None else on.id
    for item in lookahead:
        if item.origin is Origin.NAE and item.id not in (last, unwanted):
            left.append(item)
            last = item.id
    return left
