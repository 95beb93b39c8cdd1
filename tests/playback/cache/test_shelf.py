"""Cache files: their bytes, crash-safe writes, reads by block."""

import gc
import os
from hashlib import sha256
from pathlib import Path
from random import Random
from struct import pack, unpack_from
from zlib import crc32

import pytest

from pendula.kernel.disk import RealDisk
from pendula.playback.cache.shelf import (
    CacheUnreachable,
    cache_name,
    offset_of,
    open_cache,
    set_aside,
    write_cache,
)
from pendula.playback.choosing.programme import Programme
from pendula.playback.choosing.records import UNREADABLE, Channel, MemoryShelf, Row, Shelf
from pendula.playback.choosing.records import pack as packed
from pendula.playback.explain import stats
from pendula.playback.model import InvalidParameter, InvalidRecord, Record, TooManyChannels
from pendula.playback.settings import Pick, PickMode, Settings
from pendula.testing.faulty_disk import Crashed, Failure, FaultyDisk
from tests.playback.caches import cache_file, flipped, opened, put, raw, raws, shelf_of, touched
from tests.playback.shelves import shown

NAME = "a.pch"


# Bytes


@pytest.mark.req("PLAY-CACHE-4")
@pytest.mark.parametrize(
    ("at", "block_bytes", "offset"),
    [
        (0, 4096, 4096),
        (50, 4096, 8096),
        (51, 4096, 8192),
        (0, 8192, 8192),
        (101, 8192, 8192 + 101 * 80),
        (102, 8192, 16384),
    ],
)
def test_a_record_starts_at_the_documented_byte(at: int, block_bytes: int, offset: int) -> None:
    assert offset_of(at, block_bytes) == offset


@pytest.mark.req("PLAY-CACHE-2")
@pytest.mark.req("PLAY-CACHE-4")
def test_a_written_file_has_the_documented_bytes() -> None:
    disk = FaultyDisk()
    record = Record(2**64 - 1, -5, 7, 8, 9, 10, 11, b"k" * 16, b"p" * 32)

    write_cache(disk, NAME, "kanal ü", [packed(record)], k=8, generation=258)

    data = disk.read(NAME)
    assert len(data) == 8192
    assert unpack_from("<4sHHIIIIQ", data) == (b"PCH1", 1, 80, 4096, 8, 1, 0, 258)
    assert data[32:64] == sha256("kanal ü".encode()).digest()
    assert data[64:68] == pack("<I", crc32(data[:64]))
    assert not any(data[68:4096])
    assert data[4096:4172] == pack("<QqBBHII", 2**64 - 1, -5, 7, 8, 9, 10, 11) + b"k" * 16 + b"p" * 32
    assert data[4172:4176] == pack("<I", crc32(data[4096:4172]))
    assert not any(data[4176:])


@pytest.mark.req("PLAY-CACHE-4")
@pytest.mark.parametrize(("count", "block_bytes"), [(0, 4096), (51, 4096), (52, 4096), (102, 8192), (103, 8192)])
def test_no_record_crosses_a_block(count: int, block_bytes: int) -> None:
    disk = FaultyDisk()

    write_cache(disk, NAME, "a", raws(count), block_bytes=block_bytes, generation=1)

    assert disk.read(NAME) == cache_file("a", raws(count), block_bytes=block_bytes)


@pytest.mark.req("PLAY-CACHE-1")
@pytest.mark.req("PLAY-CACHE-4")
def test_a_full_file_of_8192_records_has_663552_bytes() -> None:
    disk = FaultyDisk()

    write_cache(disk, NAME, "a", raws(8192), k=8192)

    assert len(disk.read(NAME)) == 663_552 == 162 * 4096


@pytest.mark.req("PLAY-CACHE-3")
def test_records_are_sorted_by_time_and_id_newest_first() -> None:
    disk = FaultyDisk()
    mixed = [raw(1, 5), raw(9, -1), raw(2, 5), raw(0, 7), raw(2**64 - 1, 5)]

    write_cache(disk, NAME, "a", mixed, generation=1)

    in_order = [raw(0, 7), raw(2**64 - 1, 5), raw(2, 5), raw(1, 5), raw(9, -1)]
    assert disk.read(NAME) == cache_file("a", in_order)


@pytest.mark.req("PLAY-CACHE-1")
def test_on_overflow_the_oldest_records_are_dropped() -> None:
    disk = FaultyDisk()

    write_cache(disk, NAME, "a", raws(12), k=8, generation=1)

    assert disk.read(NAME) == cache_file("a", raws(8), k=8)


@pytest.mark.req("PLAY-CACHE-1")
@pytest.mark.parametrize("k", [-1, 0, 7, 8193, True, "8"])
def test_k_outside_its_limits_is_refused_and_nothing_is_written(k: int) -> None:
    disk = FaultyDisk()

    with pytest.raises(InvalidParameter) as refused:
        write_cache(disk, NAME, "a", raws(1), k=k)

    assert (refused.value.parameter, refused.value.code) == ("k", "invalid_parameter")
    assert disk.list() == []


@pytest.mark.req("PLAY-CACHE-1")
@pytest.mark.parametrize("k", [8, 8192])
def test_k_at_its_limits_is_written(k: int) -> None:
    disk = FaultyDisk()

    write_cache(disk, NAME, "a", raws(1), k=k)

    assert unpack_from("<I", disk.read(NAME), 12) == (k,)


@pytest.mark.req("PLAY-CACHE-1")
def test_the_65th_cache_is_refused(tmp_path: Path) -> None:
    programme = Programme(seed=1)
    assert programme.next() is None
    for number in range(64):
        programme.follow(f"c{number}", shelf_of(tmp_path, raws(1), f"c{number}"))

    with pytest.raises(TooManyChannels):
        programme.follow("c64", shelf_of(tmp_path, raws(1), "c64"))


@pytest.mark.parametrize("wrong", [{"block_bytes": 2048}, {"generation": -1}, {"generation": 2**64}])
def test_other_numbers_outside_their_limits_are_refused(wrong: dict[str, int]) -> None:
    with pytest.raises(InvalidParameter):
        write_cache(FaultyDisk(), NAME, "a", raws(1), **wrong)


@pytest.mark.parametrize("wrong", [[raw(1, 5), raw(1, 6)], [flipped(raw(1, 5), 3)], [b"short"]])
def test_duplicate_ids_and_damaged_records_are_not_written(wrong: list[bytes]) -> None:
    disk = FaultyDisk()

    with pytest.raises(InvalidRecord):
        write_cache(disk, NAME, "a", wrong)

    assert disk.list() == []


@pytest.mark.parametrize("name", ["../a.pch", "", ".a", "a b", "x" * 125])
def test_a_name_that_escapes_the_directory_is_refused(name: str) -> None:
    with pytest.raises(InvalidParameter):
        write_cache(FaultyDisk(), name, "a", raws(1))


def test_every_channel_has_a_unique_plain_file_name() -> None:
    names = [cache_name(channel) for channel in ("a", "A", "../x", "ü" * 256, " ")]

    assert len(set(names)) == 5
    for name in names:
        write_cache(FaultyDisk(), name, "a", raws(1))


# Writes


@pytest.mark.req("PLAY-CACHE-7")
def test_every_write_raises_the_generation_by_one() -> None:
    disk = FaultyDisk()

    first = write_cache(disk, NAME, "a", raws(3), generation=41)
    second = write_cache(disk, NAME, "a", raws(4))
    third = write_cache(disk, NAME, "a", raws(4))

    assert (first, second, third) == (41, 42, 43)
    assert disk.read(NAME) == cache_file("a", raws(4), generation=43)


@pytest.mark.req("PLAY-CACHE-7")
def test_the_generation_wraps_around_after_the_largest() -> None:
    disk = FaultyDisk(contents={NAME: cache_file("a", raws(3), generation=2**64 - 1)})

    assert write_cache(disk, NAME, "a", raws(4)) == 0


def test_other_contents_after_a_lost_file_have_another_generation() -> None:
    one, other = FaultyDisk(), FaultyDisk()

    assert write_cache(one, NAME, "a", raws(3)) != write_cache(other, NAME, "a", raws(3, 100))


@pytest.mark.req("PLAY-CACHE-7")
@pytest.mark.parametrize("draft_lies_there", [False, True])
def test_a_crash_at_each_disk_call_leaves_the_old_or_the_new_file(draft_lies_there: bool) -> None:
    old, new = cache_file("a", raws(120), generation=7), cache_file("a", raws(200, 1000), generation=8)
    contents = {NAME: old} | ({f"{NAME}.tmp": b"torn"} if draft_lies_there else {})
    whole = FaultyDisk(contents=dict(contents))
    write_cache(whole, NAME, "a", raws(200, 1000))
    assert [call.operation for call in whole.calls][-4:] == ["append", "sync", "rename", "sync_dir"]
    seen = set()

    for call in range(len(whole.calls)):
        for seed in range(12):
            disk = FaultyDisk({call: "crash"}, contents=dict(contents))
            with pytest.raises(Crashed):
                write_cache(disk, NAME, "a", raws(200, 1000))
            left = disk.after_crash(seed).read(NAME)
            assert left in (old, new), f"crash at call {call}, seed {seed}"
            seen.add(left)

    assert seen == {old, new}
    assert whole.after_crash(0).read(NAME) == new


@pytest.mark.req("PLAY-CACHE-7")
@pytest.mark.parametrize("failure", ["io_error", "no_space"])
def test_after_a_failed_disk_call_the_file_is_old_or_new_and_the_next_write_succeeds(
    failure: Failure,
) -> None:
    old = cache_file("a", raws(60), generation=7)
    whole = FaultyDisk(contents={NAME: old})
    write_cache(whole, NAME, "a", raws(70))

    for call in range(len(whole.calls)):
        disk = FaultyDisk({call: failure}, contents={NAME: old})
        with pytest.raises(CacheUnreachable) as trouble:
            write_cache(disk, NAME, "a", raws(70))
        assert trouble.value.file == NAME
        assert disk.read(NAME) in (old, cache_file("a", raws(70), generation=8))
        write_cache(disk, NAME, "a", raws(80), generation=9)
        assert disk.after_crash(call).read(NAME) == cache_file("a", raws(80), generation=9)


@pytest.mark.req("PLAY-CACHE-9")
def test_a_file_being_set_aside_survives_a_crash_under_one_of_its_names() -> None:
    contents = {NAME: b"broken", f"{NAME}.bad": b"older"}
    for call in range(2):
        for seed in range(8):
            disk = FaultyDisk({call: "crash"}, contents=dict(contents))
            with pytest.raises(Crashed):
                set_aside(disk, NAME)
            left = disk.after_crash(seed)
            assert b"broken" in [left.read(name) for name in left.list()]

    disk = FaultyDisk(contents=dict(contents))
    assert set_aside(disk, NAME) == f"{NAME}.bad"
    left = disk.after_crash(0)
    assert left.list() == [f"{NAME}.bad"]
    assert left.read(f"{NAME}.bad") == b"broken"


def test_a_failed_set_aside_is_a_broken_world() -> None:
    with pytest.raises(CacheUnreachable):
        set_aside(FaultyDisk(), NAME)


# Reads


@pytest.mark.req("PLAY-CACHE-4")
@pytest.mark.parametrize(("block_bytes", "blocks"), [(4096, 21), (8192, 11)])
def test_a_shelf_returns_every_record_by_its_index(tmp_path: Path, block_bytes: int, blocks: int) -> None:
    records = raws(1024)
    shelf = opened(put(tmp_path / NAME, cache_file("a", records, block_bytes=block_bytes)))

    rows: list[Row] = []
    while len(rows) < shelf.count:
        rows += list(shelf.run(len(rows)))

    assert rows == [(place, 1 + place, record) for place, record in enumerate(records)]
    assert shelf.reads == blocks
    assert [shelf.record(at) for at in (0, 51, 102, 1023)] == [rows[at] for at in (0, 51, 102, 1023)]


def test_a_cache_file_satisfies_the_shelf_protocol(tmp_path: Path) -> None:
    shelf = opened(put(tmp_path / NAME, cache_file("a", raws(3), generation=77)))

    assert isinstance(shelf, Shelf)
    assert (shelf.count, shelf.generation) == (3, 77)


@pytest.mark.req("PLAY-CACHE-5")
@pytest.mark.parametrize("blocks", [1, 2, 3])
def test_a_shelf_caches_the_most_recently_used_blocks(tmp_path: Path, blocks: int) -> None:
    shelf = shelf_of(tmp_path, raws(300), blocks=blocks)
    luck = Random(5)
    used: list[int] = []
    reads = hits = 0

    for _ in range(200):
        at = luck.randrange(300)
        if at // 51 in used:
            used.remove(at // 51)
            hits += 1
        else:
            reads += 1
        used = [*used, at // 51][-blocks:]
        assert shelf.record(at)[1] == at + 1
        assert (list(shelf.held), shelf.reads, shelf.hits) == (used, reads, hits)


@pytest.mark.req("PLAY-CACHE-5")
def test_two_blocks_are_cached_by_default(tmp_path: Path) -> None:
    shelf = shelf_of(tmp_path, raws(300))

    for at in range(0, 300, 51):
        shelf.record(at)

    assert shelf.held == (4, 5)


@pytest.mark.parametrize("blocks", [0, -1, True, "2"])
def test_a_shelf_without_blocks_is_refused(tmp_path: Path, blocks: int) -> None:
    with pytest.raises(InvalidParameter):
        open_cache(put(tmp_path / NAME, cache_file("a", raws(1))), "a", blocks=blocks)


def test_a_rewrite_does_not_change_what_a_running_epoch_reads(tmp_path: Path) -> None:
    disk = RealDisk(tmp_path)
    write_cache(disk, NAME, "a", raws(120), generation=1)
    before = opened(tmp_path / NAME)

    write_cache(disk, NAME, "a", raws(120, 1000))

    after = opened(tmp_path / NAME)
    disk.close()
    assert [before.record(at)[1] for at in (0, 60, 119)] == [1, 61, 120]
    assert [after.record(at)[1] for at in (0, 60, 119)] == [1000, 1060, 1119]
    assert (before.generation, after.generation) == (1, 2)


@pytest.mark.req("PLAY-LOOK-6")
@pytest.mark.parametrize("size", [0, 4096, 4096 + 80, 8191, 8192 + 4095])
def test_a_file_that_shrinks_while_it_is_open_becomes_unreadable(tmp_path: Path, size: int) -> None:
    shelf = shelf_of(tmp_path, raws(120))

    os.truncate(tmp_path / NAME, size)

    last = 119
    assert shelf.record(last) == UNREADABLE
    assert list(shelf.run(last)) == [UNREADABLE]
    assert shelf.trouble is not None
    assert "shrunk" in shelf.trouble


def test_a_closed_shelf_and_an_index_out_of_range_are_unreadable(tmp_path: Path) -> None:
    shelf = shelf_of(tmp_path, raws(60))

    assert [shelf.record(at) for at in (-1, 60, 1000)] == [UNREADABLE] * 3
    assert [list(shelf.run(at)) for at in (-1, 60, 1000)] == [[UNREADABLE]] * 3
    assert shelf.reads == 0
    shelf.close()
    shelf.close()
    assert shelf.record(0) == UNREADABLE
    assert shelf.trouble is not None


def test_an_unreferenced_shelf_closes_its_file(tmp_path: Path) -> None:
    shelf = shelf_of(tmp_path, raws(60))
    handle = shelf._handle
    os.fstat(handle)

    del shelf
    gc.collect()

    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(handle)


# Reads of a playing programme


@pytest.mark.req("PLAY-CACHE-6")
@pytest.mark.parametrize("lookahead", [1, 32, 1024])
def test_a_pass_over_1024_records_reads_21_blocks(tmp_path: Path, lookahead: int) -> None:
    shelf = shelf_of(tmp_path, raws(1024))
    programme = Programme([Channel("a", shelf)], Settings(lookahead=lookahead), seed=1)

    while programme.generator.ordinal < 1024:
        programme.next()

    assert programme.generator.ordinal == 1024
    assert stats(programme)["block_reads"] == shelf.reads == 21
    assert stats(programme)["cache_hits"] == 0


@pytest.mark.req("PLAY-CACHE-6")
def test_every_pass_reads_each_block_once(tmp_path: Path) -> None:
    shelf = shelf_of(tmp_path, raws(1024))
    programme = Programme([Channel("a", shelf)], Settings(lookahead=1), seed=1)

    items = [item.id for item in programme.take(5 * 1024)]

    assert items == [*range(1, 1025)] * 5
    assert shelf.reads == 5 * 21


@pytest.mark.req("PLAY-CACHE-5")
@pytest.mark.req("PLAY-HIST-5")
def test_prev_and_peek_read_nothing(tmp_path: Path) -> None:
    shelf = shelf_of(tmp_path, raws(1024))
    programme = Programme([Channel("a", shelf)], Settings(history=200, lookahead=200), seed=1)
    for _ in range(200):
        programme.next()
    reads, hits, kept = shelf.reads, shelf.hits, list(programme.history)
    shelf.close()

    back = [programme.prev() for _ in range(200)]
    ahead = programme.peek(150)
    forward = [programme.next() for _ in range(199)]

    assert shown(back) == [*range(199, 0, -1), None]
    assert shown(ahead) == [*range(201, 351)]
    assert shown(forward) == [*range(2, 201)]
    assert (shelf.reads, shelf.hits) == (reads, hits)
    assert list(programme.history) == kept


@pytest.mark.req("PLAY-LOOK-8")
@pytest.mark.parametrize(
    ("pick", "blocks"),
    [
        (Pick(), 2),
        (Pick(PickMode.RANDOM, 64), 2),
        (Pick(PickMode.RANDOM, 256), 2),
        (Pick(PickMode.RANDOM, 256), 1),
        (Pick(PickMode.RANDOM, 1024), 10),
        (Pick(PickMode.RANDOM, 8192), 2),
    ],
)
def test_a_batch_reads_no_block_twice(tmp_path: Path, pick: Pick, blocks: int) -> None:
    left, right = cache_file("a", raws(500)), cache_file("b", raws(400, 1))
    left = flipped(flipped(left, offset_of(3, 4096)), offset_of(130, 4096))
    a = opened(put(tmp_path / "a.pch", left), "a", blocks=blocks)
    b = opened(put(tmp_path / "b.pch", right), "b", blocks=blocks)
    programme = Programme([Channel("a", a), Channel("b", b)], Settings(lookahead=32, pick=pick), seed=1)
    skips = 0

    for _ in range(60):
        while len(programme.lookahead) >= 32:
            programme.next()
        there, before = len(programme.lookahead), (a.reads, b.reads)
        programme.next()
        # Earlier items of the lookahead have moved up by the one that was shown.
        batch = [*programme.history, *programme.lookahead][-32:]
        assert [item.ordinal for item in batch] == [*range(batch[-1].ordinal - 31, batch[-1].ordinal + 1)]
        assert len(programme.lookahead) == there + 31
        skips += sum(bool(item.trace and item.trace.skipped) for item in batch)
        assert a.reads - before[0] <= len(touched(batch, 0))
        assert b.reads - before[1] <= len(touched(batch, 1))
        assert max(len(a.held), len(b.held)) <= blocks

    assert skips > 0 or pick.mode is PickMode.RANDOM


def test_memory_and_disk_give_the_same_programme(tmp_path: Path) -> None:
    for pick in (Pick(), Pick(PickMode.RANDOM, 500)):
        disk = Programme([Channel("a", shelf_of(tmp_path, raws(300)))], Settings(pick=pick), seed=3)
        memory = Programme([Channel("a", MemoryShelf(raws(300)))], Settings(pick=pick), seed=3)

        assert disk.take(1000) == memory.take(1000)
