"""The contract of a disk, over the real one and the faulty one."""

import gc
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from pendula.kernel.disk import Disk, RealDisk, replace
from pendula.testing import FaultyDisk


@pytest.fixture(params=["real", "faulty"])
def disk(request: pytest.FixtureRequest, tmp_path: Path) -> Disk:
    makers: dict[str, Callable[[], Disk]] = {"real": lambda: RealDisk(tmp_path / "a" / "b"), "faulty": FaultyDisk}
    return makers[request.param]()


def test_appended_bytes_are_read_back_in_order(disk: Disk) -> None:
    disk.create("x")
    disk.append("x", b"one ")
    disk.append("x", b"two")
    disk.sync("x")

    assert disk.read("x") == b"one two"


def test_a_name_is_created_once(disk: Disk) -> None:
    disk.create("x")

    with pytest.raises(FileExistsError):
        disk.create("x")


@pytest.mark.parametrize("operation", ["read", "append", "remove", "sync"])
def test_a_missing_file_is_an_error(disk: Disk, operation: str) -> None:
    with pytest.raises(FileNotFoundError):
        if operation == "append":
            disk.append("x", b"1")
        else:
            getattr(disk, operation)("x")


def test_a_rename_replaces_and_the_old_handle_follows_the_file(disk: Disk) -> None:
    disk.create("old")
    disk.append("old", b"kept")
    disk.create("new")
    disk.append("new", b"gone")

    disk.rename("old", "new")
    disk.append("new", b" on")

    assert disk.read("new") == b"kept on"
    assert disk.list() == ["new"]


def test_names_are_listed_sorted(disk: Disk) -> None:
    for name in ("b", "a", "c"):
        disk.create(name)
    disk.remove("b")

    assert disk.list() == ["a", "c"]


def test_replace_leaves_no_draft_and_takes_over_an_abandoned_one(disk: Disk) -> None:
    disk.create("x.tmp")
    disk.append("x.tmp", b"abandoned")

    replace(disk, "x", b"first")
    replace(disk, "x", b"second")

    assert disk.read("x") == b"second"
    assert disk.list() == ["x"]


def test_free_space_is_known(disk: Disk) -> None:
    assert disk.free_bytes() > 0


@pytest.mark.parametrize("name", ["", "..", "a/b", "/etc", ".hidden", "a" * 200, "a\0b"])
def test_the_real_disk_takes_plain_names_only(tmp_path: Path, name: str) -> None:
    disk = RealDisk(tmp_path)

    with pytest.raises(ValueError, match="not a plain file name"):
        disk.create(name)


def test_files_are_private_to_their_owner(tmp_path: Path) -> None:
    disk = RealDisk(tmp_path / "data")
    disk.create("x")

    assert (tmp_path / "data").stat().st_mode & 0o777 == 0o700
    assert (tmp_path / "data" / "x").stat().st_mode & 0o777 == 0o600


def test_a_short_write_is_continued(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    disk = RealDisk(tmp_path)
    disk.create("x")
    write = os.write
    monkeypatch.setattr(os, "write", lambda handle, data: write(handle, bytes(data)[:3]))

    disk.append("x", b"0123456789")

    assert disk.read("x") == b"0123456789"


def test_the_real_disk_syncs_what_it_says_it_syncs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    synced: list[str] = []

    def note(handle: int) -> None:
        synced.append(Path(f"/proc/self/fd/{handle}").readlink().name)

    monkeypatch.setattr(os, "fdatasync", note)
    monkeypatch.setattr(os, "fsync", note)
    disk = RealDisk(tmp_path / "new" / "data")
    disk.create("x")
    disk.append("x", b"1")
    disk.sync("x")
    disk.sync_dir()

    assert synced == [tmp_path.name, "new", "x", "data"]


def test_a_directory_is_claimed_by_one_disk_until_it_is_released_or_closed(tmp_path: Path) -> None:
    one, other = RealDisk(tmp_path), RealDisk(tmp_path)

    assert one.claim()
    assert not other.claim()
    one.release()
    assert other.claim()
    assert not one.claim()
    other.close()
    assert one.claim()


def test_an_unreferenced_disk_releases_its_claim(tmp_path: Path) -> None:
    held = [RealDisk(tmp_path)]
    assert held[0].claim()

    held.clear()
    gc.collect()

    assert RealDisk(tmp_path).claim()


def test_releasing_a_closed_disk_does_nothing(tmp_path: Path) -> None:
    disk = RealDisk(tmp_path)
    disk.close()

    disk.release()

    assert RealDisk(tmp_path).claim()


@pytest.mark.parametrize("again", [True, False])
def test_a_renamed_directory_is_not_claimed(tmp_path: Path, again: bool) -> None:
    disk = RealDisk(tmp_path / "draft")
    (tmp_path / "draft").rename(tmp_path / "whole")
    if again:
        (tmp_path / "draft").mkdir()

    assert not disk.claim()
    assert RealDisk(tmp_path / "whole").claim()
