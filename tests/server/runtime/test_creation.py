"""Folders of engines are moved durably or not at all."""

import errno
import os
from pathlib import Path

import pytest

from pendula.kernel.errors import WorldBroken
from pendula.server import data_directory


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """The folder of an engine in a data directory."""
    place = tmp_path / "schedulers" / "tally" / "demo"
    place.mkdir(parents=True)
    (place / "00000000.journal").write_bytes(b"what it was")
    return place


def test_set_aside_syncs_the_source_folder_too(tmp_path: Path, place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    synced: list[tuple[int, bool]] = []
    aside = tmp_path / "aside" / "tally-demo-1"
    monkeypatch.setattr(os, "fsync", lambda handle: synced.append((os.fstat(handle).st_ino, aside.exists())))

    data_directory.set_engine_aside(place, aside)

    folders = [(tmp_path, False), (aside.parent, True), (place.parent, True)]
    assert synced == [(folder.stat().st_ino, moved) for folder, moved in folders]


def test_a_failed_sync_undoes_set_aside(tmp_path: Path, place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    left = place.parent.stat().st_ino

    def failing(handle: int) -> None:
        if os.fstat(handle).st_ino == left:
            raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr(os, "fsync", failing)
    with pytest.raises(WorldBroken, match="cannot be set aside: Input/output error"):
        data_directory.set_engine_aside(place, tmp_path / "aside" / "tally-demo-1")

    assert (place / "00000000.journal").read_bytes() == b"what it was"
