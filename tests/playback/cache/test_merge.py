"""Refreshing: merging, writing only changes, retry delays after failures."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pendula.playback.cache.merge import Page, back_off_of, merge, refresh_cache
from pendula.playback.choosing.records import pack
from pendula.playback.model import (
    InvalidParameter,
    InvalidRecord,
    Record,
)
from pendula.testing.faulty_disk import Crashed, FaultyDisk
from tests.playback.caches import cache_file, flipped, raw, raws
from tests.playback.shelves import listed

NAME = "a.pch"
MINUTE = 60_000


def bare(*ids: int) -> Page:
    return Page(listed(ids), len(ids))


# Merging


@pytest.mark.req("PLAY-CACHE-8")
def test_the_later_modified_record_wins_and_of_equals_the_stored_one() -> None:
    present = [raw(1, 10, modified=5, payload=b"old"), raw(2, 9, modified=5, payload=b"old")]
    incoming = [
        raw(1, 10, modified=6, payload=b"new"),
        raw(2, 9, modified=5, payload=b"new"),
        raw(3, 8, modified=0, payload=b"new"),
    ]

    merge_changes = merge(present, incoming, 8)

    assert merge_changes == [incoming[0], present[1], incoming[2]]


@pytest.mark.req("PLAY-CACHE-8")
def test_a_record_modified_earlier_changes_nothing() -> None:
    assert merge([raw(1, 10, modified=5)], [raw(1, 11, modified=4)], 8) == [raw(1, 10, modified=5)]


@pytest.mark.req("PLAY-CACHE-1")
@pytest.mark.req("PLAY-CACHE-8")
def test_beyond_k_the_oldest_are_dropped() -> None:
    assert merge(raws(8, 1), [raw(100, 2_000_000), raw(101, 0)], 8) == [raw(100, 2_000_000), *raws(7, 1)]


@pytest.mark.parametrize("k", [7, 8193])
def test_a_merge_into_a_k_outside_its_limits_is_refused(k: int) -> None:
    with pytest.raises(InvalidParameter):
        merge([], [], k)


def test_a_merge_accepts_records_and_refuses_values_that_fit_no_field() -> None:
    assert merge([], [Record(5, 6)], 8) == [pack(Record(5, 6))]
    with pytest.raises(InvalidRecord):
        merge([], [Record(2**64, 6)], 8)


records = st.builds(raw, st.integers(0, 20), st.integers(-3, 3), modified=st.integers(0, 3), payload=st.binary())


@pytest.mark.req("PLAY-CACHE-8")
@given(st.lists(records, max_size=30), st.lists(records, max_size=30))
def test_a_merge_is_sorted_unique_by_id_and_idempotent(present: list[bytes], incoming: list[bytes]) -> None:
    merge_changes = merge(present, incoming, 8)

    keys = [(record.ts, record.id) for record in (_facts(raw) for raw in merge_changes)]
    assert keys == sorted(keys, reverse=True)
    assert len({id for _, id in keys}) == len(keys) <= 8
    assert set(merge_changes) <= {*present, *incoming}
    for record in merge_changes:
        rivals = [other for other in (*present, *incoming) if other[:8] == record[:8]]
        newest = max(_facts(rival).modified_ts for rival in rivals)
        assert record == next(rival for rival in rivals if _facts(rival).modified_ts == newest)
    assert merge(merge_changes, [], 8) == merge_changes


def _facts(raw: bytes) -> Record:
    return Record(
        int.from_bytes(raw[:8], "little"),
        int.from_bytes(raw[8:16], "little", signed=True),
        modified_ts=int.from_bytes(raw[24:28], "little"),
    )


# The file


@pytest.mark.req("PLAY-CACHE-8")
def test_a_refresh_without_changes_writes_nothing() -> None:
    disk = FaultyDisk()
    first = refresh_cache(disk, NAME, "a", bare(1, 2, 3))
    before, calls = disk.read(NAME), len(disk.calls)

    second = refresh_cache(disk, NAME, "a", bare(3, 1))

    assert (first.written, second.written) == (True, False)
    assert (second.count, second.generation) == (3, first.generation)
    assert [call.operation for call in disk.calls[calls:]] == ["read"]
    assert disk.read(NAME) == before


@pytest.mark.req("PLAY-CACHE-7")
@pytest.mark.req("PLAY-CACHE-8")
def test_a_refresh_with_changes_writes_the_next_generation() -> None:
    disk = FaultyDisk(contents={NAME: cache_file("a", raws(3), generation=9)})

    done = refresh_cache(disk, NAME, "a", Page([Record(50, 2_000_000)], 1))

    assert (done.written, done.count, done.generation) == (True, 4, 10)
    assert disk.read(NAME) == cache_file("a", [pack(Record(50, 2_000_000)), *raws(3)], generation=10)


@pytest.mark.parametrize("other", [{"k": 8}, {"block_bytes": 8192}])
def test_another_layout_of_the_file_is_a_change(other: dict[str, int]) -> None:
    disk = FaultyDisk(contents={NAME: cache_file("a", raws(3), generation=9)})

    done = refresh_cache(disk, NAME, "a", Page([], 0), **other)

    assert (done.written, done.generation) == (True, 10)


@pytest.mark.req("PLAY-CACHE-9")
def test_a_corrupt_file_is_set_aside_and_rewritten() -> None:
    wrong = flipped(cache_file("a", raws(3), generation=9), 64)
    disk = FaultyDisk(contents={NAME: wrong})

    done = refresh_cache(disk, NAME, "a", bare(7, 8))

    assert (done.written, done.count) == (True, 2)
    assert [(diagnostic.code, diagnostic.facts["set_aside"]) for diagnostic in done.diagnostics] == [
        ("CorruptCache", f"{NAME}.bad")
    ]
    assert disk.read(f"{NAME}.bad") == wrong
    assert not refresh_cache(disk, NAME, "a", bare(7, 8)).written


def test_a_damaged_record_is_dropped_reported_and_restored_by_the_source() -> None:
    whole = cache_file("a", raws(3), generation=9)
    disk = FaultyDisk(contents={NAME: flipped(whole, 4096 + 80)})

    lost = refresh_cache(disk, NAME, "a", Page([], 0))
    healed = refresh_cache(disk, NAME, "a", Page([msgspec.structs.replace(listed([2])[0], ts=999_999)], 1))

    assert (lost.count, healed.count) == (2, 3)
    assert [(diagnostic.code, diagnostic.facts["at"]) for diagnostic in lost.diagnostics] == [("BadRecord", 1)]
    assert healed.diagnostics == ()


def test_an_invalid_incoming_record_is_skipped_and_reported() -> None:
    disk = FaultyDisk()

    done = refresh_cache(disk, NAME, "a", Page([Record(1, 5), Record(2, 6, kind=256)], 2))

    assert done.count == 1
    assert [
        (diagnostic.code, diagnostic.facts["id"], diagnostic.facts["field"]) for diagnostic in done.diagnostics
    ] == [("InvalidRecord", "2", "kind")]


def test_a_complete_page_removes_unlisted_records() -> None:
    disk = FaultyDisk(contents={NAME: cache_file("a", raws(3), generation=9)})

    kept = refresh_cache(disk, NAME, "a", Page(listed([1, 3]), 2))
    gone = refresh_cache(disk, NAME, "a", Page(listed([1, 3]), 2, complete=True))

    assert (kept.written, kept.count) == (False, 3)
    assert (gone.written, gone.count) == (True, 2)


@pytest.mark.req("PLAY-CACHE-7")
@pytest.mark.parametrize("wrong", [False, True])
def test_a_crash_at_each_disk_call_of_a_refresh_loses_nothing(wrong: bool) -> None:
    old = cache_file("a", raws(60), generation=9)
    if wrong:
        old = flipped(old, 64)
    whole = FaultyDisk(contents={NAME: old})
    refresh_cache(whole, NAME, "a", bare(*range(1000, 1100)))
    new = whole.read(NAME)

    for call in range(len(whole.calls) - 1):
        for seed in range(8):
            disk = FaultyDisk({call: "crash"}, contents={NAME: old})
            with pytest.raises(Crashed):
                refresh_cache(disk, NAME, "a", bare(*range(1000, 1100)))
            left = disk.after_crash(seed)
            there = {name: left.read(name) for name in left.list()}
            assert there.get(NAME, old) in (old, new), f"crash at call {call}, seed {seed}"
            assert old in (there.get(NAME), there.get(f"{NAME}.bad")) or (not wrong and there[NAME] == new)
            refresh_cache(left, NAME, "a", bare(*range(1000, 1100)))
            # A lost file starts another count.
            assert left.read(NAME)[4096:] == new[4096:]


# Retry delays


@pytest.mark.req("PLAY-CACHE-10")
def test_retry_delays_double_from_30_seconds_to_15_minutes_with_20_percent_jitter() -> None:
    plain = [30_000, 60_000, 120_000, 240_000, 480_000, 900_000, 900_000, 900_000]
    seen: dict[int, set[int]] = {}

    for number in range(300):
        back_off = back_off_of(1, f"channel {number}")
        for failure, wait in enumerate(plain):
            waited = back_off.failed()
            assert wait * 4 // 5 <= waited <= wait * 6 // 5
            seen.setdefault(failure, set()).add(waited)

    for failure, wait in enumerate(plain):
        assert min(seen[failure]) < wait * 82 // 100, "the lower end is reached"
        assert max(seen[failure]) > wait * 118 // 100, "the upper end is reached"


@pytest.mark.req("PLAY-CACHE-10")
def test_delays_depend_on_seed_and_channel_and_restart_after_a_success() -> None:
    one, two, other = back_off_of(7, "a"), back_off_of(7, "a"), back_off_of(8, "a")

    waits = [one.failed() for _ in range(100)]
    assert waits == [two.failed() for _ in range(100)]
    assert waits != [other.failed() for _ in range(100)]
    one.succeeded()
    assert 24_000 <= one.failed() <= 36_000
    assert one.failures == 1
