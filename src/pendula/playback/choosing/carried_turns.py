"""Credits and cursors kept across a change, as of the last item that was shown.

Items of the lookahead that are dropped are undone: their channels get their credit back, and each cursor returns to the
first record that was not shown. So every channel gets its share even if channels change often.
"""

from collections.abc import Iterable, Sequence

from msgspec import Struct

from pendula.playback.choosing.generator import Generator
from pendula.playback.choosing.records import PastShelf, Shelf
from pendula.playback.choosing.snapshot import Channel
from pendula.playback.model import Item, Origin


class Carried(Struct, frozen=True):
    """By channel: its credit, its picks in this epoch, and its cursor."""

    credits: tuple[int, ...]
    picks: tuple[int, ...]
    cursors: tuple[int, ...]


def turns_as_shown(generator: Generator, lookahead: Iterable[Item]) -> Carried:
    """Credits, picks and cursors as of the last item that left the lookahead."""
    ahead = list(lookahead)
    step = next((first_step(item) for item in ahead if item.step is not None), generator.round.taken)
    cursors = generator.cursors
    for item in reversed(ahead) if generator.in_order else ():
        if item.channel_index is not None and item.at is not None:
            cursors[item.channel_index] = item.at
    return Carried(tuple(generator.round.credits_at(step)), tuple(generator.round.picks_at(step)), tuple(cursors))


def first_step(item: Item) -> int:
    """The number of steps before this item; steps that met unreadable channels belong to the item."""
    assert item.step is not None
    return item.step - 1 - len(item.trace.unreadable if item.trace else ())


def carry_over(
    shown: Carried, before: Sequence[Channel], after: Sequence[Channel], ahead: Iterable[Item], *, in_order: bool
) -> Carried:
    """Credits of the channels that stay, and their cursors if the record at the cursor still exists.

    A new channel starts with credit 0. The credit of a removed channel is divided among the others, the remainder one
    unit each from the first, so that the sum stays 0.
    """
    there = {channel.id: index for index, channel in enumerate(before)}
    next_ones = {item.channel: item.raw for item in reversed(list(ahead)) if item.channel}
    credits = [shown.credits[there[one.id]] if one.id in there else 0 for one in after]
    cursors = [0] * len(after)
    for index, channel in enumerate(after):
        if channel.id in there and in_order:
            old = before[there[channel.id]]
            cursor = shown.cursors[there[channel.id]]
            cursors[index] = cursor if channel.same(old) else _cursor_after_change(channel, old, cursor, next_ones)
    return Carried(tuple(_balanced(credits)), (0,) * len(after), tuple(cursors))


def _balanced(credits: list[int]) -> list[int]:
    if not credits:
        return credits
    each, rest = divmod(-sum(credits), len(credits))
    return [credit + each + (index < rest) for index, credit in enumerate(credits)]


def _cursor_after_change(channel: Channel, old: Channel, cursor: int, next_ones: dict[str, bytes]) -> int:
    """The place of the record that was next; 0, the newest, if it is gone."""
    raw = next_ones.get(channel.id)
    if raw is None and isinstance(old.shelf, PastShelf):
        return _place_after(channel.visible, old.shelf.last)
    if raw is None and cursor < old.visible.count:
        place, id, found = old.visible.record(cursor)
        raw = None if place is None or id is None else found
    place = None if raw is None else find_place(channel.visible, raw)
    return place or 0


def _place_after(shelf: Shelf, last: bytes | None) -> int:
    """The place after the record that was shown last; 0, the newest, if that is unknown."""
    place = None if last is None else find_place(shelf, last)
    return 0 if place is None else (place + 1) % shelf.count


def find_place(shelf: Shelf, raw: bytes) -> int | None:
    """Find the record with this time and id by binary search; None if the shelf does not have it."""
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
    """The first readable place from `at`, with the time and id of its record; None if there is none before `end`."""
    while at < end:
        place, id, raw = shelf.record(at)
        if place is not None and id is not None:
            return at, _key(raw)
        at += 1
    return at, None


def _key(raw: bytes) -> tuple[int, int]:
    return int.from_bytes(raw[8:16], "little", signed=True), int.from_bytes(raw[:8], "little")


def remaining_new_artwork(lookahead: Iterable[Item], on: Item | None, unwanted: int | None) -> list[Item]:
    """The new artwork of the lookahead, without repeats in a row; items of channels are generated again."""
    left: list[Item] = []
    last = None if on is None else on.id
    for item in lookahead:
        if item.origin is Origin.NAE and item.id not in (last, unwanted):
            left.append(item)
            last = item.id
    return left
