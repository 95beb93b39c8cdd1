"""Whole files: goldens through calls, channels from records, caches and folders, the same run with a journal."""

from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from pendula.documents import Document, DocumentRefused, Format, from_value, read_bytes
from pendula.kernel.canonical import encode
from pendula.kernel.disk import RealDisk
from pendula.kernel.errors import WrongUsage
from pendula.kernel.journal import FileJournal
from pendula.kernel.replay import replay
from pendula.playback.cache.shelf import write_cache
from pendula.playback.choosing.records import pack
from pendula.playback.engine import Player
from pendula.playback.model import Record
from pendula.playback.runs.loading import ChannelSpec, Spec, read_spec
from pendula.playback.runs.opening import ChannelUnreachable, open_channels, opening_of
from pendula.playback.runs.script import (
    RunResult,
    UnknownItem,
    calls_of,
    reason_in,
    run_document,
    run_spec,
    seed_of,
)
from pendula.playback.runs.stage import Stage
from tests.playback.program import HIST, NAE_E, PICK_D, media

A: Any = {"id": "a", "records": [{"id": 1, "ts": 2}, {"id": 2, "ts": 1}]}


def document(text: str) -> Document:
    return read_bytes(text.encode(), Format.YAML, "file")


def ids(items: Any) -> list[int | None]:
    return [None if item is None else item["id"] for item in items]


def kept(folder: Path, channel: str, *numbers: int) -> Path:
    """A cache file with these records, newest first."""
    disk = RealDisk(folder)
    write_cache(disk, f"{channel}.pch", channel, [pack(Record(id, -at)) for at, id in enumerate(numbers)])
    disk.close()
    return folder / f"{channel}.pch"


@pytest.mark.req("PLAY-NAE-8")
@pytest.mark.req("PLAY-FILE-3")
def test_golden_nae_e_end_to_end() -> None:
    result = run_document(document(NAE_E))

    nae = [item["id"] if item["origin"] == "base" else -item["id"] for item in _items(result)]
    assert nae == [
        *(-900, 1, 11, 2, -901, -900, -901, 12, -900, 3, -901, 13),
        *(4, 11, -900, 1, 12, 2, 13, 3, 11, 4, -901, 12),
    ]
    assert {item["channel"] for item in _items(result)} == {"a", "b", None}
    assert all((item["channel"] is None) == (item["origin"] == "nae") for item in _items(result))
    assert [item["ordinal"] for item in _items(result)] == list(range(1, 25))


@pytest.mark.req("PLAY-PICK-2")
def test_golden_pick_d() -> None:
    result = run_document(document(PICK_D), count=24)

    expected = "4 2 11 3 2 3 13 3 2 3 12 4 2 1 11 3 2 4 11 3 4 3 13 2"
    assert ids(result.items) == [int(id) for id in expected.split()]


@pytest.mark.req("PLAY-HIST-2")
@pytest.mark.req("PLAY-HIST-3")
def test_golden_hist_through_calls() -> None:
    first, back, on = [call["items"] for call in _calls(run_document(document(HIST)))]

    assert ids(first)[-4:] == [302, 103, 203, 303]
    assert ids(back) == [203, 103, 302, None, None]
    assert ids(on) == [103, 203, 303, 104, 204]


@pytest.mark.req("PLAY-FILE-3")
def test_every_call_has_its_name_and_its_result() -> None:
    calls: list[Any] = [
        "next",
        {"prev": 1},
        {"peek": 2},
        {"nae_insert": {"id": 9, "ts": 0}},
        {"reset": "now"},
        {"set": {}},
    ]
    more: list[Any] = [
        {"set": {"history": 5}},
        {"nae_insert": {}},
        {"set": {"nae": {"enabled": False}}},
        {"nae_insert": {}},
    ]

    result = run_document(from_value({"seed": 1, "channels": [A], "calls": calls + more}))

    assert [call["call"] for call in _calls(result)] == [
        *("next", "prev", "peek", "nae_insert", "reset", "set", "set", "nae_insert", "set", "nae_insert")
    ]
    assert ids(_calls(result)[1]["items"]) == [None]
    assert ids(_calls(result)[2]["items"]) == [2, 1]
    assert [call["result"] for call in _calls(result)[3:]] == [
        *("INSERTED", {"epoch_id": 1}, {"epoch_id": 1}, {"epoch_id": 2}, "REJECTED", {"epoch_id": 3}, "DISABLED")
    ]
    assert sorted(result.as_json()) == ["calls", "items", "stats"]


@pytest.mark.req("PLAY-LOOK-5")
def test_without_anything_to_show_every_next_is_none() -> None:
    result = run_document(from_value({"seed": 1, "channels": []}), count=3)

    assert result.calls == [{"call": "next", "items": [None, None, None]}]
    assert result.items == []


@pytest.mark.req("PLAY-LOOK-5")
def test_none_is_listed_in_the_call_and_not_among_the_items() -> None:
    # The first of two artworks is certain; later draws are random, and a missed one gives no item.
    calls: list[Any] = [
        {"nae_insert": {"id": 8, "ts": 0}},
        {"nae_insert": {"id": 9, "ts": 0}},
        {"next": 12},
        {"next": 2},
    ]

    result = run_document(from_value({"seed": 1, "channels": [], "lookahead": 1, "calls": calls}))

    given = ids(_calls(result)[2]["items"])
    assert len(given) == 12
    assert None in given[: given.index(next(id for id in reversed(given) if id is not None))]
    assert ids(result.items) == [id for id in given + ids(_calls(result)[3]["items"]) if id is not None]


@pytest.mark.req("PLAY-FILE-2")
def test_count_and_calls_are_mutually_exclusive() -> None:
    with pytest.raises(WrongUsage, match="The file has calls"):
        run_document(document(NAE_E), count=3)
    for count in (None, -1, 10_000_001):
        with pytest.raises(WrongUsage, match="--count"):
            run_document(document(PICK_D), count=count)


def test_batches_of_a_run_do_not_change_its_output(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = run_document(document(PICK_D), count=100)
    diagnostics: list[int] = []
    monkeypatch.setattr("pendula.playback.runs.script.STEP", 7)

    spec = read_spec(document(PICK_D))
    handful = run_spec(spec, calls_of(spec, 100), Path(), advance=diagnostics.append)

    assert handful == whole
    assert diagnostics == [*range(7, 100, 7), 100]


@pytest.mark.req("PLAY-RNG-5")
def test_a_file_without_a_seed_reports_the_drawn_one() -> None:
    seeds = {run_document(from_value({"channels": [A]}), count=1).stats["global_seed"] for _ in range(4)}

    assert len(seeds) > 1


def test_channels_are_made_from_records_caches_and_folders(tmp_path: Path) -> None:
    kept(tmp_path, "b", 11, 12)
    media(tmp_path / "pictures", "new.jpg", "old.png")
    channels: list[Any] = [A, {"id": "b", "cache": "b.pch"}, {"id": "c", "folder": "pictures"}]

    result = run_document(from_value({"seed": 1, "channels": channels}), tmp_path, 6)

    assert [item["channel"] for item in _items(result)] == ["a", "b", "c"] * 2
    assert ids(result.items)[:2] == [1, 11]
    assert result.stats["block_reads"] == 1


@pytest.mark.req("PLAY-CACHE-9")
def test_a_corrupt_cache_is_set_aside_and_the_others_continue(tmp_path: Path) -> None:
    path = kept(tmp_path, "b", 11, 12)
    path.write_bytes(b"XXXX" + path.read_bytes()[4:])
    channels: list[Any] = [A, {"id": "b", "cache": str(path)}]

    result = run_document(from_value({"seed": 1, "channels": channels}), count=4)

    diagnostics: Any = result.stats["diagnostics"]
    assert ids(result.items) == [1, 2, 1, 2]
    assert result.stats["weights"] == {"a": 65536, "b": 0}
    assert [(diagnostic["code"], diagnostic["facts"]["channel"]) for diagnostic in diagnostics] == [
        ("CorruptCache", "b")
    ]
    assert [one.name for one in tmp_path.iterdir()] == ["b.pch.bad"]


def test_all_missing_files_are_reported_at_once_and_nothing_is_changed(tmp_path: Path) -> None:
    corrupt = kept(tmp_path, "b", 11)
    corrupt.write_bytes(b"?")
    specs = [
        ChannelSpec("b", cache="b.pch"),
        ChannelSpec("gone", cache="gone.pch"),
        ChannelSpec("folder", cache="."),
        ChannelSpec("far", folder="far"),
        ChannelSpec("file", folder="b.pch"),
        ChannelSpec("zero", cache="a\0b"),
        ChannelSpec("zero too", folder="a\0b"),
    ]

    with pytest.raises(ChannelUnreachable) as refused:
        open_channels(specs, tmp_path)

    assert [channel["channel"] for channel in refused.value.channels] == [spec.id for spec in specs[1:]]
    assert refused.value.channels[0]["path"] == str(tmp_path / "gone.pch")
    assert "channel 'gone'" in refused.value.message
    assert corrupt.read_bytes() == b"?"


@pytest.mark.req("PLAY-EXP-4")
def test_folders_provide_their_size_for_proportional_exposure(tmp_path: Path) -> None:
    media(tmp_path / "large", *(f"{number}.jpg" for number in range(9)))
    media(tmp_path / "small", "1.jpg")
    channels: list[Any] = [{"id": "l", "folder": "large"}, {"id": "s", "folder": "small"}]
    exposure: dict[str, Any] = {"mode": "PrE", "p_max": 1}

    def weights(exposure: Any, *calls: Any) -> Any:
        file = {"seed": 1, "channels": channels, "exposure": exposure, "calls": [*calls]}
        return run_document(from_value(file), tmp_path).stats["weights"]

    assert weights(exposure) == {"l": 58982, "s": 6554}
    assert weights({**exposure, "total_count": {"l": 1}}) == {"l": 32768, "s": 32768}
    assert weights({**exposure, "mode": "EqE"}, {"set": {"exposure": {"mode": "PrE"}}}) == {"l": 58982, "s": 6554}


def test_skipped_files_of_a_folder_are_reported_with_its_channel(tmp_path: Path) -> None:
    media(tmp_path, "a.jpg")
    (tmp_path / "b.jpg").symlink_to(tmp_path / "nowhere.jpg")

    channels, diagnostics = open_channels([ChannelSpec("c", folder=".")], tmp_path)

    assert channels[0].shelf.count == 1
    assert [(diagnostic.facts["channel"], diagnostic.facts["file"]) for diagnostic in diagnostics] == [("c", "b.jpg")]


@pytest.mark.req("PLAY-LOOK-7")
@pytest.mark.parametrize("text", [NAE_E, HIST, PICK_D.replace("seed: 1\n", "seed: 1\ncalls: [{next: 200}]\n")])
def test_a_journal_changes_nothing_and_is_verified_by_replay(text: str, tmp_path: Path) -> None:
    spec = read_spec(document(text + "preserve_history: true\n"))

    recorded(spec, tmp_path)


@pytest.mark.req("PLAY-LOOK-7")
def test_a_journal_of_caches_with_damage_folders_and_every_call(tmp_path: Path) -> None:
    path = kept(tmp_path, "b", *range(100, 220))
    data = bytearray(path.read_bytes())
    for at in (3, 60, 61, 62):
        data[4096 * (1 + at // 51) + at % 51 * 80] ^= 1
    path.write_bytes(data)
    media(tmp_path / "pictures", "1.jpg", "2.jpg")
    calls: list[Any] = [
        *({"next": 150}, {"prev": 40}, {"peek": 9}, "next", {"reset": "x"}, {"next": 70}, {"nae_insert": {"id": 1}}),
        *({"nae_insert": {"id": 7, "ts": 1, "dwell_ms": 5}}, {"nae_insert": {"id": -7}}, {"set": {"lookahead": 3}}),
        *({"set": {"pick": {"mode": "random"}, "exposure": {"mode": "PrE", "alpha": Decimal("0.25")}}}, {"next": 90}),
    ]
    channels: list[Any] = [A, {"id": "b", "cache": "b.pch"}, {"id": "c", "folder": "pictures"}]
    spec = read_spec(from_value({"seed": 3, "channels": channels, "calls": calls}))

    result = recorded(spec, tmp_path)

    diagnostics: Any = result.stats["diagnostics"]
    assert {diagnostic["code"] for diagnostic in diagnostics} == {"BadRecord", "UnreadableChannel"}


@pytest.mark.parametrize("pick", [{"mode": "recency"}, {"mode": "random", "r": 2}, {"mode": "random", "r": 300}])
def test_a_journal_does_not_change_how_many_blocks_are_read(pick: Any, tmp_path: Path) -> None:
    """With random picks a place often follows the last one by chance, and is read nevertheless."""
    kept(tmp_path, "b", *range(100, 400))
    channels: list[Any] = [{"id": "b", "cache": "b.pch"}]
    spec = read_spec(from_value({"seed": 3, "channels": channels, "pick": pick, "calls": [{"next": 200}]}))

    result = recorded(spec, tmp_path)

    read: Any = (result.stats["block_reads"], result.stats["cache_hits"])
    assert sum(read) > (2 if pick["mode"] == "recency" else 200)


def recorded(spec: Any, base: Path) -> RunResult:
    """The run with a journal: the same bytes as without, and a replay that agrees."""
    calls = calls_of(spec, None)
    plain = run_spec(spec, calls, base)
    kept = run_spec(spec, calls, base, journal=base / "journal")
    assert encode(kept.as_json()) == encode(plain.as_json())
    report = replay(FileJournal.open(RealDisk(base / "journal")), lambda _: Player)
    assert report.first_difference is None
    assert report.commands > 0
    return plain


@pytest.mark.parametrize(("epoch", "ordinal"), [(0, 1), (0, 9), (0, 24), (0, 32), (1, 2)])
def test_an_item_is_explained_whenever_it_was_shown(epoch: int, ordinal: int) -> None:
    spec = read_spec(document(NAE_E + "  - reset: x\n  - next: 2\nhistory: 1\n"))

    found = reason_in(stage_of(spec), calls_of(spec, None), epoch, ordinal)

    assert (found.item.epoch_id, found.item.ordinal) == (epoch, ordinal)
    assert found.reason.facts["id"] == found.item.id
    assert found.reason.code == ("new_artwork" if found.item.channel is None else "turn_of_channel")


@pytest.mark.parametrize(("epoch", "ordinal"), [(0, 0), (0, -1), (0, 33), (1, 1)])
def test_an_item_that_was_never_shown_is_unknown(epoch: int, ordinal: int) -> None:
    spec = read_spec(document(NAE_E))

    with pytest.raises(UnknownItem, match="32 of epoch 0"):
        reason_in(stage_of(spec), calls_of(spec, None), epoch, ordinal)


def stage_of(spec: Spec) -> Stage:
    return Stage(opening_of(spec, Path()), seed_of(spec))


def _items(result: RunResult) -> list[Any]:
    return list(result.items)


def _calls(result: RunResult) -> list[Any]:
    return list(result.calls)


WISHES: dict[str, Any] = {
    "seed": 1,
    "channels": [
        {"id": "sea", "records": [{"id": n, "ts": 100 - n} for n in range(1, 9)]},
        {"id": "hills", "records": [{"id": n, "ts": 100 - n} for n in (3, 11, 12)]},
    ],
    "lookahead": 4,
    "refresh": "keep",
    "zone": "Europe/Berlin",
    "day_parts": [{"name": "evening", "start": "18:00", "end": "24:00", "weights": {"sea": 3, "hills": 1}}],
    "calls": [
        {"next": 3},
        {"show_next": {"id": 77, "ts": 5}},
        {"peek": 2},
        "next",
        {"pause_channel": "sea"},
        {"next": 4},
        {"resume_channel": "sea"},
        {"ban_artwork": 3},
        {"show_next": {"id": 3, "ts": 5}},
        {"nae_insert": {"id": 3}},
        {"next": 6},
        {"lift": 3},
        {"clock": "2026-03-29T16:00:00Z"},
        {"next": 8},
    ],
}


@pytest.mark.req("PLAY-USE-1")
@pytest.mark.req("PLAY-USE-2")
@pytest.mark.req("PLAY-USE-3")
@pytest.mark.req("PLAY-USE-5")
def test_viewer_calls_of_a_file_work_with_and_without_a_journal(tmp_path: Path) -> None:
    result = recorded(read_spec(from_value(WISHES)), tmp_path)

    answers = [call.get("result") or ids(call["items"]) for call in _calls(result)]
    assert answers[:10] == [
        [1, 3, 2],
        {"pinned": [77]},
        [77, 11],
        [77],
        {"paused_channels": ["sea"]},
        [11, 12, 3, 11],
        {"paused_channels": []},
        {"banned": [{"id": 3, "until": None}]},
        {"refused": "artwork_banned"},
        "BANNED",
    ]
    assert 3 not in answers[10]
    assert answers[11:13] == [{"banned": []}, {"day_part": "evening", "epoch_id": 1}]
    assert [item["channel"] for item in _calls(result)[13]["items"]].count("sea") == 6


@pytest.mark.parametrize(
    ("change", "path", "words"),
    [
        ({"refresh": "kep"}, "$.refresh", "reset"),
        ({"zone": "Europe/Berlln"}, "$.zone", "did you mean Europe/Berlin"),
        (
            {"day_parts": [{"name": "x", "start": "25:00", "end": "24:00", "weights": {}}]},
            "$.day_parts[0].start",
            "23:59",
        ),
        (
            {"day_parts": [{"name": "x", "start": "01:00", "end": "24:00", "weights": {"see": 1}}]},
            "$.day_parts[0].weights.see",
            "did you mean sea",
        ),
        (
            {"day_parts": [{"name": "x", "start": "01:00", "end": "24:00", "weights": {}, "days": ["mo"]}]},
            "$.day_parts[0].days[0]",
            "did you mean mon",
        ),
        ({"calls": [{"pause_channel": "see"}]}, "$.calls[0].pause_channel", "did you mean sea"),
        ({"calls": [{"clock": "half past six"}]}, "$.calls[0].clock", ""),
        ({"calls": [{"ban_artwork": -1}]}, "$.calls[0].ban_artwork", ""),
    ],
)
def test_invalid_viewer_calls_and_day_parts_are_faults_with_their_place(
    change: dict[str, Any], path: str, words: str
) -> None:
    with pytest.raises(DocumentRefused) as refused:
        read_spec(from_value({**WISHES, **change}))

    [fault] = refused.value.faults
    assert fault.path == path
    assert words in f"{fault.message} {fault.allowed}"
