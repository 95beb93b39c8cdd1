"""Damaged cache files and their players: no exception, no unreported loss."""

import os
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from random import Random

import pytest

from pendula.playback.cache.shelf import CacheShelf, Header, offset_of, open_cache, open_or_set_aside, read_header
from pendula.playback.choosing.programme import Programme
from pendula.playback.choosing.records import Channel
from pendula.playback.explain import stats
from pendula.playback.model import Diagnostic, Item
from pendula.playback.settings import Pick, PickMode, Settings
from tests.playback.caches import cache_file, flipped, header, opened, put, raws, shelf_of
from tests.playback.shelves import ids, shown

NAME = "a.pch"


# Damage to the header


def changed(**fields: object) -> Callable[[bytes], bytes]:
    """The file with another header and a valid checksum."""

    def change(data: bytes) -> bytes:
        count = fields.get("count", 60)
        others = {name: value for name, value in fields.items() if name not in ("count", "channel")}
        first = header(str(fields.get("channel", "a")), count, **others)  # type: ignore[arg-type]
        return first + data[68:]

    return change


WRONG: dict[str, tuple[Callable[[bytes], bytes], str]] = {
    "no bytes": (lambda data: b"", "begins with"),
    "too short for anything": (lambda data: data[:3], "begins with"),
    "too short for a header": (lambda data: data[:67], "bytes"),
    "header block cut": (lambda data: data[:4000], "bytes"),
    "magic": (changed(magic=b"PCH2"), "begins with"),
    "version": (changed(version=2), "version"),
    "record size": (changed(record_bytes=81), "record"),
    "block size": (changed(block_bytes=4095), "block"),
    "block size 0": (changed(block_bytes=0), "block"),
    "K too small": (changed(k=7, count=7), "K is 7"),
    "K too large": (changed(k=8193), "K is 8193"),
    "count above K": (changed(k=59), "more than K"),
    "zero": (changed(zero=1), "zero"),
    "checksum": (lambda data: flipped(data, 64), "checksum"),
    "generation without its checksum": (lambda data: flipped(data, 24), "checksum"),
    "rest of the header block": (lambda data: flipped(data, 4095), "not zero"),
    "first byte after the header": (lambda data: flipped(data, 68), "not zero"),
    "a byte is missing": (lambda data: data[:-1], "bytes"),
    "a block is missing": (lambda data: data[:-4096], "bytes"),
    "a byte too many": (lambda data: data + b"\0", "bytes"),
    "a block too many": (lambda data: data + bytes(4096), "bytes"),
    "fewer records than blocks": (changed(count=51), "bytes"),
}


@pytest.mark.req("PLAY-CACHE-9")
@pytest.mark.req("PLAY-API-5")
@pytest.mark.parametrize("case", WRONG)
def test_a_corrupt_file_is_reported_and_set_aside_and_its_channel_is_empty(tmp_path: Path, case: str) -> None:
    change, words = WRONG[case]
    wrong = change(cache_file("a", raws(60)))
    path = put(tmp_path / NAME, wrong)
    put(tmp_path / f"{NAME}.bad", b"older")

    found = open_or_set_aside(path, "a")

    assert found.diagnostic is not None
    assert found.diagnostic.code == "CorruptCache"
    assert words in found.diagnostic.sentence
    assert found.diagnostic.facts["set_aside"] == f"{NAME}.bad"
    assert sorted(entry.name for entry in tmp_path.iterdir()) == [f"{NAME}.bad"]
    assert (tmp_path / f"{NAME}.bad").read_bytes() == wrong
    programme = Programme([Channel("a", found.shelf), ids("b", 1, 2)], seed=1)
    assert programme.generator.active == (1,)
    assert shown(programme.take(3)) == [1, 2, 1]


@pytest.mark.req("PLAY-CACHE-9")
def test_every_flipped_bit_of_the_header_is_detected(tmp_path: Path) -> None:
    data = cache_file("a", raws(60))
    hashed = sha256(b"a").digest()

    for byte in range(68):
        for bit in range(8):
            assert not isinstance(read_header(flipped(data, byte, bit)[:8192], len(data), hashed), Header)

    assert isinstance(read_header(data[:8192], len(data), hashed), Header)


def test_a_sound_file_opens_without_a_diagnostic(tmp_path: Path) -> None:
    found = open_or_set_aside(put(tmp_path / NAME, cache_file("a", raws(60))), "a")

    assert isinstance(found.shelf, CacheShelf)
    assert found.diagnostic is None
    assert (tmp_path / NAME).exists()


@pytest.mark.req("PLAY-API-5")
def test_a_path_that_is_not_a_file_is_reported_and_not_changed(tmp_path: Path) -> None:
    (tmp_path / "folder.pch").mkdir()
    os.mkfifo(tmp_path / "pipe.pch")
    (tmp_path / "loop.pch").symlink_to(tmp_path / "loop.pch")

    codes = {
        name: open_or_set_aside(tmp_path / name, "a").diagnostic
        for name in ("missing.pch", "folder.pch", "pipe.pch", "loop.pch", "nul\0.pch", "missing/a.pch")
    }

    assert {name: diagnostic and diagnostic.code for name, diagnostic in codes.items()} == {
        "missing.pch": "MissingCache",
        "folder.pch": "UnreadableCache",
        "pipe.pch": "UnreadableCache",
        "loop.pch": "UnreadableCache",
        "nul\0.pch": "UnreadableCache",
        "missing/a.pch": "MissingCache",
    }
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["folder.pch", "loop.pch", "pipe.pch"]


@pytest.mark.req("PLAY-API-5")
@pytest.mark.parametrize("data", [b"?", cache_file("a", raws(1))])
@pytest.mark.parametrize("name", ["my cache.pch", "See-\u00fc.pch", ".hidden.pch", "x" * 125])
def test_a_file_with_an_invalid_cache_name_is_not_opened(tmp_path: Path, name: str, data: bytes) -> None:
    found = open_or_set_aside(put(tmp_path / name, data), "a")

    assert found.diagnostic is not None
    assert found.diagnostic.code == "UnreadableCache"
    assert "use letters, digits" in found.diagnostic.sentence
    assert found.shelf.count == 0
    assert (tmp_path / name).read_bytes() == data


def test_a_corrupt_file_that_cannot_be_renamed_is_reported(tmp_path: Path) -> None:
    put(tmp_path / NAME, b"?")
    (tmp_path / f"{NAME}.bad").mkdir()

    found = open_or_set_aside(tmp_path / NAME, "a")

    assert found.diagnostic is not None
    assert (found.diagnostic.code, found.diagnostic.facts["set_aside"]) == ("CorruptCache", None)
    assert "could not be set aside" in found.diagnostic.sentence
    assert str(tmp_path) not in found.diagnostic.sentence
    assert found.shelf.count == 0


def test_a_sound_file_of_another_channel_stays_where_it_is(tmp_path: Path) -> None:
    data = cache_file("sea", raws(60))
    path = put(tmp_path / NAME, data)

    found = open_or_set_aside(path, "see")

    assert found.diagnostic is not None
    assert (found.diagnostic.code, found.diagnostic.facts["offset"]) == ("OtherChannel", 32)
    assert found.shelf.count == 0
    assert [entry.name for entry in tmp_path.iterdir()] == [NAME]
    assert path.read_bytes() == data


# Damage to records


def with_damage(count: int, *places: int) -> bytes:
    data = cache_file("a", raws(count))
    for place in places:
        data = flipped(data, offset_of(place, 4096) + place % 80, place % 8)
    return data


@pytest.mark.req("PLAY-CACHE-9")
def test_a_damaged_record_is_skipped_and_reported(tmp_path: Path) -> None:
    path = put(tmp_path / NAME, with_damage(60, 0, 2, 3, 55))
    programme = Programme([Channel("a", opened(path))], Settings(lookahead=4), seed=1)

    items = programme.take(56)

    assert shown(items) == [at + 1 for at in range(60) if at not in (0, 2, 3, 55)]
    assert [item.trace.bad for item in items if item.trace] == [(0,), (2, 3), (55,)]
    diagnostic = [(diagnostic.code, diagnostic.facts["at"]) for diagnostic in programme.diagnostics]
    assert diagnostic[:4] == [("BadRecord", 0), ("BadRecord", 2), ("BadRecord", 3), ("BadRecord", 55)]
    assert stats(programme)["repeats"] == 0


@pytest.mark.req("PLAY-CACHE-9")
@pytest.mark.req("PLAY-LOOK-6")
@pytest.mark.req("PLAY-SWRR-6")
def test_three_damaged_records_exclude_the_channel_and_lose_no_item(tmp_path: Path) -> None:
    path = put(tmp_path / NAME, with_damage(60, 5, 6, 7))
    channels = [Channel("a", opened(path)), ids("b", *range(100, 150)), ids("c", *range(200, 250))]
    programme = Programme(channels, Settings(lookahead=32, history=100), seed=1)

    items = programme.take(60)

    fair = [item for triple in zip(range(1, 6), range(100, 105), range(200, 205), strict=True) for item in triple]
    assert shown(items[:15]) == fair
    assert items[15].id == 105
    assert items[15].trace is not None
    assert items[15].trace.unreadable == (0,)
    assert items[15].step == 17
    assert {item.channel for item in items[15:]} == {"b", "c"}
    assert [item.ordinal for item in items] == [*range(1, 61)]
    assert [diagnostic.code for diagnostic in programme.diagnostics] == ["BadRecord"] * 3 + ["UnreadableChannel"]
    programme.reset("again")
    assert stats(programme)["weights"] == {"a": 0, "b": 32768, "c": 32768}


@pytest.mark.req("PLAY-LOOK-6")
@pytest.mark.req("PLAY-SWRR-6")
@pytest.mark.parametrize("pick", [Pick(), Pick(PickMode.RANDOM, 8192)])
def test_a_file_that_fails_during_play_loses_no_item(tmp_path: Path, pick: Pick) -> None:
    shelf = shelf_of(tmp_path, raws(200))
    programme = Programme([Channel("a", shelf), ids("b", *range(1000, 1050))], Settings(pick=pick), seed=1)
    first = programme.take(10)

    os.truncate(tmp_path / NAME, 4096)
    items = programme.take(600)

    assert len(items) == 600
    assert [item.ordinal for item in (*first, *items)] == [*range(1, 611)]
    assert {item.channel for item in items[-100:]} == {"b"}
    assert "UnreadableChannel" in [diagnostic.code for diagnostic in programme.diagnostics]


@pytest.mark.req("PLAY-LOOK-6")
@pytest.mark.req("PLAY-API-5")
def test_without_any_channel_left_next_gives_none_and_raises_nothing(tmp_path: Path) -> None:
    shelf = shelf_of(tmp_path, raws(200))
    programme = Programme([Channel("a", shelf)], Settings(lookahead=4), seed=1)
    shelf.close()

    assert [programme.next() for _ in range(3)] == [None, None, None]
    assert programme.take(5) == []
    assert [diagnostic.code for diagnostic in programme.diagnostics] == ["UnreadableChannel"]


def test_an_unreadable_channel_is_tried_again_after_a_refresh(tmp_path: Path) -> None:
    path = put(tmp_path / NAME, cache_file("a", raws(60)))
    broken = opened(path)
    programme = Programme([Channel("a", broken)], seed=1)
    broken.close()
    assert programme.next() is None

    programme.refresh("a", opened(path))

    assert programme.epoch_id == 1
    assert shown(programme.take(2)) == [1, 2]


def test_a_diagnostic_gives_the_place_in_the_file(tmp_path: Path) -> None:
    diagnostic = open_cache(put(tmp_path / NAME, flipped(cache_file("a", raws(3)), 64)), "a")

    assert isinstance(diagnostic, Diagnostic)
    assert diagnostic.facts == {"channel": "a", "file": str(tmp_path / NAME), "place": "header", "offset": 64}


# Arbitrary damage


def mangled(data: bytes, luck: Random) -> bytes:
    """The file after random damage."""
    match luck.randrange(7):
        case 0:
            return data[: luck.randrange(len(data))]
        case 1:
            return data + luck.randbytes(luck.choice((1, 80, 4096)))
        case 2:
            start = luck.randrange(len(data))
            return data[:start] + bytes(min(512, len(data) - start)) + data[start + 512 :]
        case 3:
            start, size = luck.randrange(len(data)), luck.randrange(1, 300)
            return (data[:start] + luck.randbytes(size) + data[start + size :])[: len(data)]
        case _:
            for _ in range(luck.choice((1, 1, 2, 3, 20))):
                data = flipped(data, luck.choice((luck.randrange(80), luck.randrange(len(data)))), luck.randrange(8))
            return data


def survives(path: Path, case: int, whole: bytes, records: list[bytes]) -> None:
    luck = Random(case)
    put(path, whole)
    broken = mangled(whole, luck)
    while_open = luck.random() < 0.4
    put(path, whole if while_open else broken)
    found = open_or_set_aside(path, "a")
    if while_open:
        put(path, broken)
    pick = Pick() if luck.random() < 0.8 else Pick(PickMode.RANDOM, 64)
    programme = Programme(
        [Channel("a", found.shelf), ids("b", 10_001, 10_002, 10_003)],
        Settings(lookahead=luck.choice((1, 8, 32)), pick=pick),
        seed=case,
    )

    items: list[Item | None] = list(programme.take(2 * len(records) + 4))
    items += [programme.next() for _ in range(4)]

    given = [item.raw for item in items if item is not None and item.channel == "a"]
    assert len(given) == sum(item is not None and item.channel == "a" for item in items)
    assert None not in items, "the other channel can always give an item"
    assert not set(given) - set(records), "nothing may be shown that was never written"
    if pick.mode is PickMode.RECENCY and set(records) - set(given):
        assert found.diagnostic is not None or programme.diagnosed, "a record was lost without a diagnostic"
    if isinstance(found.shelf, CacheShelf):
        found.shelf.close()


def fuzz(folder: Path, cases: range) -> None:
    files = [(cache_file("a", records), records) for records in map(raws, (0, 1, 3, 51, 52, 130))]
    for case in cases:
        whole, records = files[case % len(files)]
        try:
            survives(folder / NAME, case, whole, records)
        except BaseException as trouble:
            trouble.add_note(f"repeat with case {case}")
            raise


@pytest.mark.req("PLAY-CACHE-9")
@pytest.mark.req("PLAY-API-5")
def test_no_damage_makes_a_player_fail_or_goes_unreported(tmp_path: Path) -> None:
    fuzz(tmp_path, range(1000))


@pytest.mark.long
@pytest.mark.req("PLAY-CACHE-9")
@pytest.mark.req("PLAY-API-5")
def test_no_damage_of_ten_thousand_makes_a_player_fail_or_goes_unreported(tmp_path: Path) -> None:
    fuzz(tmp_path, range(1000, 11_000))
