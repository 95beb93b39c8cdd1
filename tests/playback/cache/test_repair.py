"""Inspecting, verifying and repairing cache files."""

from pathlib import Path
from random import Random

import pytest

from pendula.kernel.disk import RealDisk
from pendula.playback.cache.repair import BlockFacts, exchange, inspect, repair, verify
from pendula.playback.cache.shelf import CacheShelf, CacheUnreachable, Place, offset_of, open_cache, write_cache
from pendula.playback.model import InvalidParameter
from pendula.testing.faulty_disk import Crashed, FaultyDisk
from tests.playback.caches import cache_file, flipped, header, put, raw, raws

NAME = "a.pch"
SOUND = cache_file("a", raws(120), generation=5)


def names(folder: Path) -> list[str]:
    return sorted(entry.name for entry in folder.iterdir())


def ids_in(path: Path) -> list[int | None]:
    shelf = open_cache(path, "a")
    assert isinstance(shelf, CacheShelf), shelf
    found = [shelf.record(at)[1] for at in range(shelf.count)]
    shelf.close()
    return found


def test_a_sound_file_shows_its_header_and_its_blocks(tmp_path: Path) -> None:
    facts = inspect(put(tmp_path / NAME, SOUND), "a")

    assert facts.header is not None
    assert (facts.header.count, facts.header.k, facts.header.generation) == (120, 1024, 5)
    assert facts.header.block_bytes == 4096
    assert facts.size == 4 * 4096
    assert facts.faults == ()
    assert facts.blocks == (BlockFacts(1, 51, 0), BlockFacts(2, 51, 0), BlockFacts(3, 18, 0))
    assert facts.records == 120


def test_written_files_have_no_fault(tmp_path: Path) -> None:
    disk = RealDisk(tmp_path)
    for count, block_bytes in ((0, 4096), (51, 4096), (52, 8192), (300, 8192)):
        write_cache(disk, NAME, "a", raws(count), block_bytes=block_bytes)

        assert verify(tmp_path / NAME, "a") == []
    disk.close()


@pytest.mark.req("PLAY-CACHE-9")
def test_damaged_records_are_found_with_their_place_and_byte(tmp_path: Path) -> None:
    data = flipped(flipped(SOUND, offset_of(3, 4096) + 79), offset_of(60, 4096))
    path = put(tmp_path / NAME, data)

    found = verify(path)

    assert [(fault.place, fault.record, fault.offset) for fault in found] == [
        (Place.RECORD, 3, 4096 + 240),
        (Place.RECORD, 60, 8192 + 720),
    ]
    assert inspect(path).blocks == (BlockFacts(1, 51, 1), BlockFacts(2, 51, 1), BlockFacts(3, 18, 0))


@pytest.mark.req("PLAY-CACHE-3")
def test_wrong_order_and_repeated_ids_are_found(tmp_path: Path) -> None:
    records = [raw(1, 9), raw(2, 7), raw(3, 8), raw(1, 6), raw(5, 6), raw(4, 5)]
    path = put(tmp_path / NAME, cache_file("a", records))

    found = verify(path)

    assert [(fault.place, fault.record) for fault in found] == [
        (Place.ORDER, 2),
        (Place.DUPLICATE, 3),
        (Place.ORDER, 4),
    ]
    assert "record 0" in found[1].sentence


def test_equal_times_are_in_order_of_their_ids(tmp_path: Path) -> None:
    assert verify(put(tmp_path / NAME, cache_file("a", [raw(3, 5), raw(2, 5), raw(1, 5)]))) == []
    assert len(verify(put(tmp_path / NAME, cache_file("a", [raw(2, 5), raw(3, 5), raw(1, 5)])))) == 1


def test_bytes_between_the_records_are_zero(tmp_path: Path) -> None:
    data = flipped(flipped(SOUND, 8190), len(SOUND) - 1)

    found = verify(put(tmp_path / NAME, data))

    assert [(fault.place, fault.offset) for fault in found] == [
        (Place.PADDING, 4096 + 51 * 80),
        (Place.PADDING, 3 * 4096 + 18 * 80),
    ]


def test_all_faults_of_a_header_are_found(tmp_path: Path) -> None:
    first = header("b", 120, version=3, zero=9)
    data = first + b"x" + SOUND[69:] + b"y"

    found = verify(put(tmp_path / NAME, data), "a")

    assert [fault.offset for fault in found] == [4, 20, 32, 68, 4 * 4096]
    assert {fault.place for fault in found} == {Place.HEADER, Place.SIZE}


def test_a_sound_file_is_unchanged(tmp_path: Path) -> None:
    done = repair(put(tmp_path / NAME, SOUND))

    assert (done.kept, done.generation, done.written, done.dropped) == (120, 5, False, ())
    assert names(tmp_path) == [NAME]
    assert (tmp_path / NAME).read_bytes() == SOUND


@pytest.mark.req("PLAY-CACHE-9")
def test_a_repair_keeps_the_sound_records_and_the_old_file(tmp_path: Path) -> None:
    data = flipped(flipped(SOUND, offset_of(3, 4096)), offset_of(60, 4096))
    path = put(tmp_path / NAME, data)

    done = repair(path)

    assert (done.kept, done.generation, done.old) == (118, 6, f"{NAME}.bad")
    assert [fault.record for fault in done.dropped] == [3, 60]
    assert ids_in(path) == [id for id in range(1, 121) if id not in (4, 61)]
    assert verify(path, "a") == []
    assert (tmp_path / f"{NAME}.bad").read_bytes() == data
    assert names(tmp_path) == [NAME, f"{NAME}.bad"]


def test_a_repair_sorts_and_keeps_the_later_modified_record_of_an_id(tmp_path: Path) -> None:
    records = [raw(1, 9, modified=1), raw(2, 7), raw(3, 8), raw(1, 6, modified=2), raw(3, 8)]
    path = put(tmp_path / NAME, cache_file("a", records))

    done = repair(path)

    assert (tmp_path / NAME).read_bytes() == cache_file(
        "a", [raw(3, 8), raw(2, 7), raw(1, 6, modified=2)], generation=2
    )
    assert [(fault.place, fault.record) for fault in done.dropped] == [(Place.DUPLICATE, 0), (Place.DUPLICATE, 4)]


@pytest.mark.parametrize("block_bytes", [4096, 8192])
def test_records_are_found_without_a_header(tmp_path: Path, block_bytes: int) -> None:
    whole = cache_file("a", raws(150), block_bytes=block_bytes)
    path = put(tmp_path / NAME, bytes(68) + whole[68:])

    with pytest.raises(InvalidParameter) as refused:
        repair(path)
    done = repair(path, "a")

    assert refused.value.parameter == "channel"
    assert (done.kept, done.dropped) == (150, ())
    assert ids_in(path) == [*range(1, 151)]
    assert inspect(path, "a").faults == ()


def test_a_truncated_file_returns_the_rest_and_reports_the_loss(tmp_path: Path) -> None:
    path = put(tmp_path / NAME, SOUND[: offset_of(100, 4096) + 5])

    done = repair(path)

    assert ids_in(path) == [*range(1, 101)]
    assert [fault.record for fault in done.dropped] == [*range(100, 120)]


def test_a_file_far_too_large_is_moved_and_its_records_kept(tmp_path: Path) -> None:
    data = SOUND + bytes(1_000_000)
    path = put(tmp_path / NAME, data)

    done = repair(path)

    assert done.kept == 120
    assert ids_in(path) == [*range(1, 121)]
    assert (tmp_path / f"{NAME}.bad").read_bytes() == data


@pytest.mark.req("PLAY-CACHE-7")
@pytest.mark.parametrize("copied", [True, False])
def test_a_crash_at_each_disk_call_of_a_repair_loses_nothing(copied: bool) -> None:
    old, new = SOUND[:-1], SOUND
    whole = FaultyDisk(contents={NAME: old})
    exchange(whole, NAME, old if copied else None, new)

    for call in range(len(whole.calls)):
        for seed in range(8):
            disk = FaultyDisk({call: "crash"}, contents={NAME: old})
            with pytest.raises(Crashed):
                exchange(disk, NAME, old if copied else None, new)
            left = disk.after_crash(seed)
            there = {name: left.read(name) for name in left.list()}
            assert there.get(NAME, new) in (old, new), f"crash at call {call}, seed {seed}"
            assert NAME in there or not copied
            assert old in (there.get(NAME), there.get(f"{NAME}.bad"))


def test_an_empty_file_becomes_an_empty_cache(tmp_path: Path) -> None:
    path = put(tmp_path / NAME, b"")

    assert inspect(path).header is None
    assert repair(path, "a").kept == 0
    assert verify(path, "a") == []


def test_a_missing_file_or_an_invalid_name_is_refused(tmp_path: Path) -> None:
    for look in (inspect, verify, repair):
        with pytest.raises(CacheUnreachable):
            look(tmp_path / "missing.pch")
        with pytest.raises(CacheUnreachable):
            look(tmp_path)
    with pytest.raises(InvalidParameter):
        repair(put(tmp_path / "my cache.pch", SOUND[:-1]))
    assert names(tmp_path) == ["my cache.pch"]


@pytest.mark.req("PLAY-CACHE-9")
def test_a_repair_makes_any_file_sound_and_keeps_every_sound_record(tmp_path: Path) -> None:
    path = tmp_path / NAME
    for case in range(150):
        luck = Random(case)
        data = SOUND
        for _ in range(luck.choice((1, 3, 30))):
            data = flipped(data, luck.randrange(len(data)), luck.randrange(8))
        put(path, data)
        whole = [place for place in range(120) if raws(120)[place] == data[offset_of(place, 4096) :][:80]]

        repair(path, "a")

        assert ids_in(path) == [place + 1 for place in whole], f"case {case}"
        assert verify(path, "a") == [], f"case {case}"
