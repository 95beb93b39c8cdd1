"""Laws of new artwork: what an insertion can change, how long it lasts, and what it never changes."""

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pendula.playback import saving
from pendula.playback.choosing import new_artwork
from pendula.playback.choosing.programme import Programme
from pendula.playback.choosing.records import pack
from pendula.playback.choosing.swrr import RoundRobin
from pendula.playback.model import (
    Entry,
    InsertResult,
    Item,
    Origin,
    Record,
)
from pendula.playback.settings import Nae, Pick, PickMode, Settings
from tests.playback.shelves import ids, manual

PAIR = (ids("a", *range(1, 9)), ids("b", 11, 12, 13))


def chosen(item: Item) -> Entry | None:
    """The new artwork drawn for this item, shown or not."""
    trace = item.trace
    if trace is None or trace.nae_draw is None or not new_artwork.triggers(trace.nae_draw, trace.pool):
        return None
    return new_artwork.choose(trace.pool)[0]


def entries(programme: Programme) -> list[Entry]:
    return sorted(entry for level in programme.generator.pool for entry in level)


@pytest.mark.req("PLAY-NAE-2")
@pytest.mark.req("PLAY-NAE-5")
@given(st.integers(0, 2**64 - 1), st.lists(st.integers(0, 6), min_size=1, max_size=25), st.integers(1, 5))
def test_an_insertion_is_selected_at_most_five_times(seed: int, gaps: list[int], lookahead: int) -> None:
    programme = Programme(PAIR, Settings(lookahead=lookahead, nae=Nae(cap=64)), seed=seed)
    selected: Counter[int] = Counter()
    for number, gap in enumerate(gaps):
        programme.nae_insert(Record(900 + number, 0))
        selected.update(entry.number for item in programme.take(gap) if (entry := chosen(item)))
    selected.update(entry.number for item in programme.take(600) if (entry := chosen(item)))

    assert max(selected.values()) <= 5
    # Entries that left the pool were selected exactly five times: nothing else removes them.
    left = {entry.number for entry in entries(programme)} | {
        entry.number for item in programme.lookahead if (entry := chosen(item))
    }
    assert all(selected[number] == 5 for number in range(len(gaps)) if number not in left)


@pytest.mark.req("PLAY-NAE-1")
@pytest.mark.req("PLAY-NAE-3")
@pytest.mark.req("PLAY-EDGE-2")
@pytest.mark.parametrize("cap", [1, 32, 64])
def test_a_burst_of_10_000_never_exceeds_the_cap_of_the_pool(cap: int) -> None:
    programme = Programme(PAIR, Settings(nae=Nae(cap=cap), lookahead=1), seed=1)
    for number in range(10_000):
        assert programme.nae_insert(Record(1000 + number, 0)) is InsertResult.INSERTED
        assert new_artwork.size(programme.generator.pool) == min(cap, number + 1)
        # The new one is never evicted.
        assert programme.generator.pool[0][-1].id == 1000 + number
        if number % 97 == 0:
            programme.next()


@pytest.mark.req("PLAY-EDGE-2")
def test_a_full_pool_interrupts_every_step_until_its_chance_is_below_one() -> None:
    programme = Programme(PAIR, Settings(lookahead=1), seed=1)
    for number in range(32):
        programme.nae_insert(Record(900 + number, 0))
    quiet = 0
    for _ in range(400):
        certain = (
            sum(p * len(level) for p, level in zip(new_artwork.PRIORITIES, programme.generator.pool, strict=True)) >= 64
        )
        item = programme.next()
        assert item is not None
        assert not certain or chosen(item) is not None
        quiet += chosen(item) is None
    assert quiet > 0


@pytest.mark.req("PLAY-NAE-8")
def test_an_insertion_after_the_second_call_shows_at_item_65_at_the_earliest() -> None:
    earliest = []
    for seed in range(40):
        plain, inserted = Programme(PAIR, seed=seed), Programme(PAIR, seed=seed)
        inserted.take(2)
        for number in range(32):
            inserted.nae_insert(Record(900 + number, 0))
        items = inserted.take(100)
        assert [item.id for item in items[:62]] == [item.id for item in plain.take(64)[2:]]
        earliest.append(next(item.ordinal for item in items if item.origin is Origin.NAE))

    assert set(earliest) == {65}


@pytest.mark.req("PLAY-NAE-8")
@pytest.mark.req("PLAY-SNAP-3")
def test_an_insertion_does_not_change_the_lookahead_and_the_epoch() -> None:
    programme = Programme(PAIR, seed=1)
    programme.take(3)
    before = saving.save(programme)

    programme.nae_insert(Record(900, 0))

    after = saving.save(programme)
    assert {name for name in after if after[name] != before[name]} == {"pool", "number", "counts"}


@pytest.mark.req("PLAY-NAE-7")
@pytest.mark.parametrize("pick", [Pick(), Pick(PickMode.RANDOM, 4)])
def test_a_new_artwork_changes_no_weight_credit_or_cursor(pick: Pick) -> None:
    programme = Programme(PAIR, Settings(exposure=manual(a=3, b=1), pick=pick, lookahead=1), seed=2)
    seen: Counter[Origin] = Counter()
    steps = 0
    for call in range(600):
        if call % 5 == 0:
            programme.nae_insert(Record(900 + call % 3, 0))
        generator = programme.generator
        before = (generator.weights, generator.round.taken, list(generator.cursors), generator.pick_draws.state)
        item = programme.next()
        assert item is not None
        seen[item.origin] += 1
        if item.origin is Origin.NAE:
            assert (generator.weights, generator.round.taken, generator.cursors, generator.pick_draws.state) == before
        else:
            steps += 1
            assert item.step == generator.round.taken == steps
            assert item.channel_index == RoundRobin(generator.weights).ahead(steps)[-1]
    assert set(seen) == set(Origin) - {Origin.PINNED}  # no pins in this run


@pytest.mark.req("PLAY-NAE-3")
def test_a_merge_updates_data_and_priority_but_keeps_the_sequence_number() -> None:
    programme = Programme(PAIR, Settings(lookahead=1), seed=1)
    programme.nae_insert(Record(900, 1))
    programme.nae_insert(Record(901, 1))
    while programme.generator.pool[0]:
        programme.next()
    again = Record(900, 2, payload=b"\1" * 32)

    assert programme.nae_insert(again) is InsertResult.MERGED

    assert programme.generator.pool[0] == (Entry(0, 900, pack(again)),)
    assert [entry.number for entry in entries(programme)] == [0, 1]


@pytest.mark.req("PLAY-NAE-10")
def test_disabled_or_invalid_insertions_change_nothing() -> None:
    off = Programme(PAIR, Settings(nae=Nae(enabled=False)), seed=1)
    on = Programme(PAIR, seed=1)
    good = pack(Record(1, 1))
    flipped = bytes((good[0] ^ 1, *good[1:]))
    before = [saving.save(programme) for programme in (off, on)]

    assert [off.nae_insert(record) for record in (Record(1, 1), good, b"")] == [InsertResult.DISABLED] * 3
    for record in (b"", good[:79], good + b"\0", flipped, Record(-1, 0), Record(2**64, 0), Record(1, 2**63)):
        assert on.nae_insert(record) is InsertResult.REJECTED
    for field in ({"payload": bytes(31)}, {"storage_key": bytes(17)}, {"kind": 256}, {"dwell_ms": -1}, {"id": None}):
        assert on.nae_insert(Record(**{"id": 1, "ts": 1, **field})) is InsertResult.REJECTED  # type: ignore[arg-type]

    assert [saving.save(programme) for programme in (off, on)] == before


@pytest.mark.req("PLAY-NAE-6")
def test_without_a_channel_the_last_artwork_is_repeated() -> None:
    programme = Programme(settings=Settings(lookahead=64), seed=1)
    programme.nae_insert(Record(900, 0))

    items = programme.take(5)

    assert len(items) >= 2
    assert {(item.id, item.origin) for item in items} == {(900, Origin.NAE)}
