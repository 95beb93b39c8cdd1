"""Save a programme as plain JSON values, without the records on the shelves, and restore it.

A restored programme continues with the same items and explains the items it holds as before. A state that violates an
invariant of a programme is refused.
"""

from base64 import b64decode, b64encode
from binascii import Error as Base64Error
from collections.abc import Callable, Iterable, Iterator
from itertools import pairwise
from typing import Any

import msgspec
from msgspec import Struct

from pendula.kernel.canonical import Json
from pendula.kernel.errors import InputRefused
from pendula.kernel.rng import Pcg32
from pendula.kernel.wording import explain_validation_error
from pendula.playback.choosing import new_artwork
from pendula.playback.choosing.dayparts import WEEK, part_at
from pendula.playback.choosing.programme import BANS_MOST, PINS_MOST, Programme, first_step
from pendula.playback.choosing.records import Channel, PastShelf, Shelf, Snapshot, sound
from pendula.playback.choosing.swrr import RoundRobin
from pendula.playback.model import (
    MASK_64,
    WSUM,
    Counts,
    Entry,
    Item,
    Levels,
    Origin,
    ResetReason,
    Trace,
)
from pendula.playback.settings import Settings, checked

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


READABLE, OUT_BEFORE, OUT_NOW, BARRED = 0, 1, 2, 3


class InvalidState(InputRefused):
    """Not a valid state of a programme. Facts: `broken`."""

    code = "invalid_state"


class OtherContents(InputRefused):
    """A channel holds other records than when the state was saved. Facts: `channel`."""

    code = "other_contents"


class ChannelState(Struct, frozen=True, forbid_unknown_fields=True):
    id: str
    count: int
    generation: int
    out: int
    cursor: int
    credit: int
    gone: tuple[int, ...]
    picks: int  # before the anchor, where credits are carried on


class PoolRow(Struct, frozen=True, forbid_unknown_fields=True, array_like=True):
    priority: int
    number: int
    id: int
    raw: str = ""


class TraceRow(Struct, frozen=True, forbid_unknown_fields=True, array_like=True):
    """`pool` is None if it follows from the previous item."""

    nae_draw: int | None
    picked: tuple[int, ...]
    skipped: tuple[int, ...]
    bad: tuple[int, ...]
    unreadable: tuple[int, ...]
    pool: tuple[PoolRow, ...] | None


class ItemRow(Struct, frozen=True, forbid_unknown_fields=True, array_like=True):
    """`channel` is set only for an item of an earlier epoch."""

    raw: str
    channel: str | None
    channel_index: int | None
    at: int | None
    origin: Origin
    epoch_id: int
    ordinal: int
    step: int | None
    trace: TraceRow | None


class State(Struct, frozen=True, forbid_unknown_fields=True):
    seed: int
    epoch_id: int
    settings: Settings
    channels: tuple[ChannelState, ...]
    anchor: int
    taken: int
    nae_draws: int
    pick_draws: int
    pool: tuple[PoolRow, ...]
    number: int
    last_id: int | None
    ordinal: int
    history: tuple[ItemRow, ...]
    lookahead: tuple[ItemRow, ...]
    behind: int
    counts: Counts
    batches: int
    resets: int
    last_reset: ResetReason | None
    diagnosed: int
    carried: bool
    pins: tuple[str, ...]
    bans: tuple[tuple[int, int | None], ...]
    paused_channels: tuple[str, ...]
    minute: int | None
    part: str | None
    returned: int | None


def save(programme: Programme) -> dict[str, Json]:
    """The state without records; at most 64 KiB of JSON with ids of ordinary length."""
    generator = programme.generator
    anchor = _anchor(programme)
    credits, cursors = generator.round.credits_at(anchor), generator.cursors
    channels = tuple(
        ChannelState(
            id=channel.id,
            count=channel.shelf.count,
            generation=channel.shelf.generation,
            out=_out(programme, index),
            cursor=cursors[index],
            credit=credits[index],
            gone=channel.gone,
            picks=generator.round.picks_at(anchor)[index] if generator.round.carried else 0,
        )
        for index, channel in enumerate(programme.snapshot.channels)
    )
    rows = list(_item_rows((*programme.history, *programme.lookahead), programme.epoch_id))
    state = State(
        seed=programme.seed,
        epoch_id=programme.epoch_id,
        settings=programme.snapshot.settings,
        channels=channels,
        anchor=anchor,
        taken=generator.round.taken,
        nae_draws=generator.nae_draws.state,
        pick_draws=generator.pick_draws.state,
        pool=tuple(_pool_rows(generator.pool, with_raw=True)),
        number=generator.number,
        last_id=generator.last_id,
        ordinal=generator.ordinal,
        history=tuple(rows[: len(programme.history)]),
        lookahead=tuple(rows[len(programme.history) :]),
        behind=programme.behind,
        counts=generator.fold(),
        batches=programme.batches,
        resets=programme.resets,
        last_reset=programme.last_reset,
        diagnosed=programme.diagnosed,
        carried=generator.round.carried,
        pins=tuple(map(_text, programme.pins)),
        bans=tuple(programme.bans.items()),
        paused_channels=programme.paused_channels,
        minute=programme.minute,
        part=programme.snapshot.part,
        returned=programme.returned,
    )
    # Through bytes, so that tuples become lists and the value equals one read from a file.
    plain: dict[str, Json] = msgspec.json.decode(msgspec.json.encode(state))
    return plain


def load(state: Json, shelf_of: Callable[[ChannelState], Shelf]) -> Programme:
    """Restore the programme that gave `state`; raises `InvalidState` and `OtherContents`."""
    try:
        saved = msgspec.convert(state, State)
    except msgspec.ValidationError as trouble:
        raise InvalidState(
            f"Invalid state of a programme: {explain_validation_error(str(trouble), state, State)}"
        ) from None
    try:
        programme = _restored(saved, shelf_of)
        broken = [*_mismatched(saved, programme)] or [*broken_invariants(programme)]
    except (AssertionError, IndexError, Base64Error, ValueError) as trouble:
        raise InvalidState(f"Invalid state of a programme: {trouble}") from None
    if broken:
        raise InvalidState(f"Invalid state of a programme: {', '.join(broken)}", broken=broken)
    return programme


def _restored(saved: State, shelf_of: Callable[[ChannelState], Shelf]) -> Programme:
    programme = Programme((), seed=saved.seed)
    channels = tuple(Channel(row.id, _same_shelf(row, shelf_of(row)), row.gone) for row in saved.channels)
    programme.snapshot = Snapshot(channels, checked(saved.settings), saved.part)
    programme.epoch_id, programme.minute = saved.epoch_id, saved.minute
    programme.pins.extend(_sound(text) for text in saved.pins)
    programme.bans.update(saved.bans)
    programme.paused_channels = saved.paused_channels
    programme._unreadable = tuple(row.id for row in saved.channels if row.out == OUT_BEFORE)
    programme._begin(saved.counts)
    programme.diagnostics.clear()
    generator = programme.generator
    before = [row.picks for row in saved.channels] if saved.carried else None
    round = RoundRobin(generator.weights, saved.anchor, [row.credit for row in saved.channels], before=before)
    round.taken = saved.taken
    generator.resume(round, [row.cursor for row in saved.channels])
    for index, row in enumerate(saved.channels):
        generator.unreadable[index] |= row.out == OUT_NOW
        generator.barred[index] = row.out == BARRED
    generator.count_readable()
    generator.nae_draws = Pcg32(saved.nae_draws & MASK_64, generator.nae_draws.increment)
    generator.pick_draws = Pcg32(saved.pick_draws & MASK_64, generator.pick_draws.increment)
    generator.pool = _levels(saved.pool)
    generator.number, generator.last_id, generator.ordinal = saved.number, saved.last_id, saved.ordinal
    items = list(_items((*saved.history, *saved.lookahead), generator.names))
    programme.history.extend(items[: len(saved.history)])
    programme.lookahead.extend(items[len(saved.history) :])
    programme.behind, programme.batches, programme.resets = saved.behind, saved.batches, saved.resets
    programme.last_reset, programme.diagnosed = saved.last_reset, saved.diagnosed
    programme.returned = saved.returned
    return programme


def _same_shelf(row: ChannelState, shelf: Shelf) -> Shelf:
    if (shelf.count, shelf.generation) != (row.count, row.generation):
        raise OtherContents(f"Channel {row.id!r} holds other records than when the state was saved", channel=row.id)
    return shelf


def _mismatched(saved: State, programme: Programme) -> Iterator[str]:
    if len(saved.channels) > 64 or len({row.id for row in saved.channels}) != len(saved.channels):
        yield "channels_are_at_most_64_with_unique_ids"
    if not 0 <= saved.nae_draws <= MASK_64 or not 0 <= saved.pick_draws <= MASK_64:
        yield "generators_have_64_bits"
    if any(row.out not in (READABLE, OUT_BEFORE, OUT_NOW, BARRED) for row in saved.channels):
        yield "channels_are_readable_or_out"
    numbers = (saved.taken, saved.ordinal, saved.number, saved.batches, saved.resets, saved.diagnosed)
    if saved.returned is not None and not 0 <= saved.returned <= MASK_64:
        yield "ids_have_64_bits"
    if not 0 <= saved.anchor <= saved.taken or not 0 <= saved.epoch_id <= MASK_64:
        yield "numbers_are_in_range"
    if any(not 0 <= number < 1 << 62 for number in numbers):
        yield "counts_are_in_range"
    if any(not 0 <= row.cursor < max(1, row.count - len(row.gone)) for row in saved.channels):
        yield "cursors_within_their_channels"
    if len(saved.history) > saved.settings.history:
        yield "buffers_within_their_limits"
    for index, row in enumerate(saved.channels):
        if row.out in (OUT_NOW, BARRED) and index not in programme.generator.active:
            yield "only_active_channels_fail"
    yield from _mismatched_controls(saved, programme)
    if _anchor(programme) != saved.anchor:
        yield "anchor_before_the_oldest_item"


def _mismatched_controls(saved: State, programme: Programme) -> Iterator[str]:
    ids = [id for id, _ in saved.bans]
    if len(set(ids)) != len(ids) or any(not 0 <= id <= MASK_64 for id in ids) or len(ids) > BANS_MOST:
        yield "bans_are_unique_artworks"
    if len(saved.pins) > PINS_MOST or any(item.id in ids for item in programme.peek(len(saved.pins))):
        yield "pins_are_few_and_not_banned"
    paused = {*saved.paused_channels}
    if not paused <= {row.id for row in saved.channels} or len(paused) != len(saved.paused_channels):
        yield "paused_channels_are_followed"
    if saved.minute is not None and not 0 <= saved.minute < WEEK:
        yield "minutes_are_of_a_week"
    if saved.part != part_at(programme.snapshot.settings.day_parts, saved.minute):
        yield "day_part_follows_from_the_minute"


def _anchor(programme: Programme) -> int:
    """The step before the oldest item in history or lookahead; its credits can be explained after a restore."""
    round = programme.generator.round
    for item in (*programme.history, *programme.lookahead):
        if item.epoch_id == programme.epoch_id and item.step is not None:
            return max(first_step(item), round.anchor) if round.carried else first_step(item)
    return round.taken


def _out(programme: Programme, index: int) -> int:
    if programme.generator.barred[index]:
        return BARRED
    if not programme.generator.unreadable[index]:
        return READABLE
    return OUT_BEFORE if programme.generator.names[index] in programme._unreadable else OUT_NOW


def _pool_rows(pool: Levels, *, with_raw: bool) -> Iterator[PoolRow]:
    for priority, level in zip(new_artwork.PRIORITIES, pool, strict=True):
        for entry in level:
            yield PoolRow(priority, entry.number, entry.id, _text(entry.raw) if with_raw else "")


def _levels(rows: Iterable[PoolRow]) -> Levels:
    levels: dict[int, list[Entry]] = {priority: [] for priority in new_artwork.PRIORITIES}
    for row in rows:
        assert row.priority in levels, f"{row.priority} is not a priority"
        raw = b64decode(row.raw, validate=True)
        assert not raw or sound(raw), "a record of the pool is damaged"
        levels[row.priority].append(Entry(row.number, row.id, raw))
    return tuple(tuple(sorted(level)) for level in levels.values())


def _item_rows(items: Iterable[Item], epoch_id: int) -> Iterator[ItemRow]:
    before: Item | None = None
    for item in items:
        trace = item.trace
        row = None
        if trace is not None:
            pool = None if _follows(before, item) else tuple(_pool_rows(trace.pool, with_raw=False))
            row = TraceRow(trace.nae_draw, trace.picked, trace.skipped, trace.bad, trace.unreadable, pool)
        yield ItemRow(
            raw=_text(item.raw),
            channel=item.channel if item.epoch_id != epoch_id else None,
            channel_index=item.channel_index,
            at=item.at,
            origin=item.origin,
            epoch_id=item.epoch_id,
            ordinal=item.ordinal,
            step=item.step,
            trace=row,
        )
        before = item


def _items(rows: Iterable[ItemRow], names: tuple[str, ...]) -> Iterator[Item]:
    before: Item | None = None
    for row in rows:
        raw = b64decode(row.raw, validate=True)
        assert sound(raw), "a record of an item is damaged"
        name = row.channel
        if name is None and row.channel_index is not None:
            name = names[row.channel_index]
        trace = None
        if row.trace is not None:
            there = row.trace
            pool = _after(before) if there.pool is None else _levels(there.pool)
            trace = Trace(pool, there.nae_draw, there.picked, there.skipped, there.bad, there.unreadable)
        id = int.from_bytes(raw[:8], "little")
        facts = (row.channel_index, row.at, row.origin, row.epoch_id, row.ordinal, row.step, trace)
        before = Item(id, raw, name, *facts)
        yield before


def _follows(before: Item | None, item: Item) -> bool:
    """Whether the pool before an item is the pool after the previous item."""
    assert item.trace is not None
    return _bare(_after(before)) == _bare(item.trace.pool)


def _after(item: Item | None) -> Levels:
    """The pool after an item, without later insertions."""
    if item is None or item.trace is None:
        return new_artwork.EMPTY
    trace = item.trace
    if trace.nae_draw is None or not new_artwork.triggers(trace.nae_draw, trace.pool):
        return trace.pool
    return new_artwork.choose(trace.pool)[1]


def _bare(pool: Levels) -> list[list[tuple[int, int]]]:
    return [[(entry.number, entry.id) for entry in level] for level in pool]


def _sound(text: str) -> bytes:
    raw = b64decode(text, validate=True)
    assert sound(raw), "a record of a pin is damaged"
    return raw


def _text(raw: bytes) -> str:
    return b64encode(raw).decode()


def shelves_or_past(channels: Iterable[Channel]) -> Callable[[ChannelState], Shelf]:
    """Returns the shelf of a saved channel if its contents are the same, else a `PastShelf`."""
    shelves = {(one.id, one.shelf.count, one.shelf.generation): one.shelf for one in channels}
    return lambda row: shelves.get((row.id, row.count, row.generation), PastShelf(row.count, row.generation))


def shelves_by_id(channels: Iterable[Channel]) -> Callable[[ChannelState], Shelf]:
    """Returns the shelf of a saved channel; raises `OtherContents` for a channel that is not given."""
    shelves = {channel.id: channel.shelf for channel in channels}

    def shelf_of(row: ChannelState) -> Any:
        if row.id not in shelves:
            raise OtherContents(f"The state follows channel {row.id!r}, but the channel was not given", channel=row.id)
        return shelves[row.id]

    return shelf_of
