"""A folder of media files as a source of records."""

import os
from hashlib import sha256
from pathlib import Path

import pytest

from pendula.playback.cache.merge import Page, SourceFailed
from pendula.playback.cache.refresher import Feed, Refresher
from pendula.playback.cache.shelf import open_or_set_aside
from pendula.playback.choosing.programme import Programme
from pendula.playback.choosing.records import Channel, MemoryShelf
from pendula.playback.model import Record
from pendula.playback.scheduler import Scheduler
from pendula.playback.sources import folder as folders
from pendula.playback.sources.folder import AUDIO, MEDIA, PICTURE, VIDEO, FolderSource, available, missing, record_of
from tests.playback.shelves import ids, shown


def media(root: Path, *names: str, at: int = 1_000_000) -> Path:
    """Files, each one second older than the previous."""
    for number, name in enumerate(names):
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"?")
        os.utime(path, ns=((at - number) * 10**9 + 999_999_999, (at - number) * 10**9 + 999_999_999))
    return root


def id_of(relative: str) -> int:
    return int.from_bytes(sha256(relative.encode()).digest()[:8], "little")


def listed(page: Page) -> list[str]:
    return [record.payload.rstrip(b"\0").decode() for record in page.records]


def test_a_file_becomes_the_documented_record(tmp_path: Path) -> None:
    page = FolderSource(media(tmp_path, "sea/boat.JPG", at=1234)).fetch()

    digest = sha256(b"sea/boat.JPG").digest()
    assert page.records == (
        Record(
            id=int.from_bytes(digest[:8], "little"),
            ts=1234,
            kind=1,
            format=1,
            flags=0,
            dwell_ms=0,
            modified_ts=1234,
            storage_key=digest[:16],
            payload=b"sea/boat.JPG" + bytes(20),
        ),
    )


@pytest.mark.parametrize(
    ("seconds", "modified"), [(-5, 0), (0, 0), (2**32 - 1, 2**32 - 1), (2**32, 2**32 - 1), (2**40, 2**32 - 1)]
)
def test_the_modification_time_is_clamped_to_its_field(seconds: int, modified: int) -> None:
    record = record_of("a.png", seconds * 10**9 + 5)

    assert (record.ts, record.modified_ts) == (seconds, modified)


@pytest.mark.parametrize(
    ("name", "payload"),
    [
        ("a.png", b"a.png" + bytes(27)),
        ("x" * 28 + ".png", b"x" * 28 + b".png"),
        ("x" * 31 + "y.png", b"x" * 31 + b"y"),
        ("x" * 31 + "ü.png", b"x" * 31 + b"\0"),
        ("x" * 30 + "ü.png", b"x" * 30 + "ü".encode()),
        ("€" * 11 + ".png", "€".encode() * 10 + bytes(2)),
        ("x" * 29 + "😀.png", b"x" * 29 + bytes(3)),
    ],
)
def test_the_payload_is_the_start_of_the_path_in_whole_characters(name: str, payload: bytes) -> None:
    assert record_of(name, 0).payload == payload


def test_every_format_belongs_to_one_kind() -> None:
    kinds: dict[int, set[int]] = {}
    for extension, medium in MEDIA.items():
        assert extension.startswith(".")
        assert extension == extension.lower()
        kinds.setdefault(medium.format, set()).add(medium.kind)

    assert {kind for found in kinds.values() for kind in found} == {PICTURE, VIDEO, AUDIO}
    assert all(len(found) == 1 for found in kinds.values())
    assert all(0 < format < 256 for format in kinds)
    assert [(MEDIA[name].kind, MEDIA[name].format) for name in (".png", ".mp4", ".mp3")] == [(1, 2), (2, 64), (3, 128)]


@pytest.mark.req("PLAY-EXP-4")
def test_a_folder_counts_its_files_but_none_as_recent(tmp_path: Path) -> None:
    page = FolderSource(media(tmp_path, "a.png", "b/c.mp4", "b/d.flac")).fetch()

    assert (page.total_count, page.recent_count, page.complete, page.diagnostics) == (3, 0, True, ())


def test_files_are_ordered_by_path_and_other_entries_ignored(tmp_path: Path) -> None:
    media(tmp_path, "b.png", "a/z.png", "a.png", "B.png", "a-.png", "a/b/c.gif")
    media(tmp_path, "notes.txt", "png", "x.png~", ".hidden.png", ".git/x.png", "a/.b/x.png")
    (tmp_path / "folder.png").mkdir()

    page = FolderSource(tmp_path).fetch()

    assert listed(page) == ["B.png", "a-.png", "a.png", "a/b/c.gif", "a/z.png", "b.png"]
    assert page.diagnostics == ()


def test_symlinks_out_of_the_folder_are_ignored_and_others_are_files(tmp_path: Path) -> None:
    outside = media(tmp_path / "outside", "secret.png", "deep/secret.png")
    root = media(tmp_path / "root", "a.png", "in/b.png")
    (root / "same.png").symlink_to(root / "a.png")
    (root / "leaves.png").symlink_to(outside / "secret.png")
    (root / "climbs.png").symlink_to("../outside/secret.png")
    (root / "leaves").symlink_to(outside / "deep", target_is_directory=True)
    (root / "round").symlink_to(root, target_is_directory=True)

    page = FolderSource(root).fetch()

    assert listed(page) == ["a.png", "in/b.png", "same.png"]
    assert page.diagnostics == ()


def test_a_symlinked_folder_is_read(tmp_path: Path) -> None:
    media(tmp_path / "real", "a.png")
    (tmp_path / "link").symlink_to(tmp_path / "real", target_is_directory=True)

    assert listed(FolderSource(tmp_path / "link").fetch()) == ["a.png"]


def test_unreadable_files_are_reported_and_the_rest_is_listed(tmp_path: Path) -> None:
    root = media(tmp_path, "a.png")
    (root / "nowhere.png").symlink_to(root / "missing.png")
    (root / "self.png").symlink_to(root / "self.png")
    (root / os.fsdecode(b"\xff.png")).write_bytes(b"?")

    page = FolderSource(root).fetch()

    assert listed(page) == ["a.png"]
    assert sorted(diagnostics.facts["file"] for diagnostics in page.diagnostics) == [
        "\\udcff.png",
        "nowhere.png",
        "self.png",
    ]


def test_an_unreadable_file_is_skipped_and_no_file_counts_as_deleted(tmp_path: Path) -> None:
    root = media(tmp_path, "a.png", "closed.png")
    (root / "closed.png").chmod(0)
    readable = os.access(root / "closed.png", os.R_OK)

    page = FolderSource(root).fetch()

    assert listed(page) == (["a.png", "closed.png"] if readable else ["a.png"])
    assert page.complete == readable
    assert [diagnostics.code for diagnostics in page.diagnostics] == ([] if readable else ["UnreadableMedia"])


@pytest.mark.parametrize("name", ["missing", "file.png", "nul\0"])
def test_a_path_other_than_a_folder_fails_as_a_source(tmp_path: Path, name: str) -> None:
    media(tmp_path, "file.png")
    source = FolderSource(tmp_path / name)

    with pytest.raises(SourceFailed):
        source.fetch()
    assert source.path_of(1) is None
    assert not source.is_there(1)


def test_an_item_can_be_traced_to_its_file(tmp_path: Path) -> None:
    source = FolderSource(media(tmp_path, "sea/boat.jpg", "hut.png"))

    assert source.path_of(id_of("sea/boat.jpg")) == tmp_path / "sea/boat.jpg"
    assert source.path_of(id_of("hut.png")) == tmp_path / "hut.png"
    assert source.path_of(1) is None


def test_of_two_files_with_one_id_the_smaller_path_wins(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Short:
        """A digest of the extension alone: collisions of a real one cannot be produced."""

        def __init__(self, data: bytes) -> None:
            self.data = data

        def digest(self) -> bytes:
            return self.data[-4:].ljust(32, b"\0")

    monkeypatch.setattr(folders, "sha256", Short)
    source = FolderSource(media(tmp_path, "b.png", "a.png", "c.gif"))

    page = source.fetch()

    assert listed(page) == ["a.png", "c.gif"]
    assert [
        (diagnostics.code, diagnostics.facts["file"], diagnostics.facts["same_id_as"])
        for diagnostics in page.diagnostics
    ] == [("SameId", "b.png", "a.png")]
    assert source.path_of(page.records[0].id) == tmp_path / "a.png"
    assert (page.total_count, page.complete) == (2, True)


# Availability mask


@pytest.mark.req("PLAY-CACHE-11")
def test_records_whose_files_are_missing_are_masked(tmp_path: Path) -> None:
    source = FolderSource(media(tmp_path, "a.png", "b.png", "c.png"))
    shelf = MemoryShelf(source.fetch().records)
    (tmp_path / "b.png").unlink()

    masked = available(shelf, source.is_there)

    assert missing(shelf, source.is_there) == (1,)
    assert masked.count == 2
    assert shown(Programme([Channel("f", masked)], seed=1).take(3)) == [id_of("a.png"), id_of("c.png"), id_of("a.png")]


@pytest.mark.req("PLAY-CACHE-11")
def test_an_empty_mask_equals_the_shelf_and_other_masks_are_other_contents() -> None:
    shelf = ids("a", *range(1, 130)).shelf

    assert available(shelf, lambda id: True) is shelf
    one, two = available(shelf, lambda id: id != 5), available(shelf, lambda id: id != 120)
    assert one.count == two.count == 128
    assert len({shelf.generation, one.generation, two.generation}) == 3
    assert available(shelf, lambda id: False).count == 0


@pytest.mark.req("PLAY-CACHE-11")
def test_a_banned_record_is_gone_until_the_next_refresh() -> None:
    programme = Programme([ids("a", 1, 2, 3)], seed=1)
    first = programme.next()
    assert first is not None

    programme.ban(first)
    assert shown(programme.take(3)) == [2, 3, 2]
    programme.refresh("a", ids("a", 9, 1, 2, 3).shelf)

    assert shown(programme.take(4)) == [9, 1, 2, 3]


# From folder to screen


def test_a_folder_is_played_through_its_cache_and_follows_its_files(tmp_path: Path) -> None:
    root = media(tmp_path / "pictures", "a.png", "b.png", "c.png")
    path = tmp_path / "caches" / "f.pch"
    source = FolderSource(root)
    scheduler = Scheduler([Channel("f", open_or_set_aside(path, "f").shelf)], seed=1)
    refresher = Refresher(lambda channel, shelf, _: scheduler.refresh(channel, shelf), seed=1, clock=lambda: 0)
    refresher.add("f", Feed(source, path, k=8))

    def played(count: int) -> list[str]:
        refresher.request("f")
        refresher.run_due()
        paths = [source.path_of(item.id) for item in scheduler.take(count)]
        return [found.name for found in paths if found is not None]

    assert played(4) == ["a.png", "b.png", "c.png", "a.png"]
    media(root, "new.png", at=2_000_000)
    assert played(4) == ["new.png", "a.png", "b.png", "c.png"]
    (root / "a.png").unlink()
    assert played(3) == ["new.png", "b.png", "c.png"]
    assert refresher.stats() == {"refreshes": 3, "writes": 3, "failures": 0}
