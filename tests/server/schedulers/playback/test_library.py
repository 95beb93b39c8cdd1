"""The channels on disk: editions, counts and their limit."""

from pathlib import Path
from typing import Any

import pytest

from pendula.playback.cache.merge import Page
from pendula.playback.model import TooManyChannels
from pendula.server.schedulers.playback import library as library_module
from pendula.server.schedulers.playback.library import Library
from tests.playback.shelves import listed


def test_a_running_epoch_reads_the_edition_it_started_with(tmp_path: Path) -> None:
    library = Library(tmp_path)
    library.put("a", Page(listed((1, 2)), 2))
    old = library.contents("a")
    library.put("a", Page(listed((3,)), 3))
    new = library.contents("a")

    def read(edition: int, at: int) -> Any:
        return library.ask("record", {"channel": "a", "generation": edition, "at": at})

    assert (old.count, new.count, new.generation) == (2, 3, old.generation + 1)
    assert all(read(old.generation, at) for at in range(2))
    assert [read(old.generation, 2), read(new.generation, 3), read(new.generation, -1), read(77, 0)] == [None] * 4
    library.release("a")
    assert read(old.generation, 0) is None
    assert read(new.generation, 2) is not None
    assert [library.ask("other", {"at": 0}), library.ask("record", "nonsense")] == [None, None]
    library.close()
    assert read(new.generation, 0) is None


def test_an_invalid_file_of_counts_is_ignored(tmp_path: Path) -> None:
    library = Library(tmp_path)
    library.put("a", Page(listed((1, 2)), 9))
    library.close()
    (tmp_path / "counts.json").write_bytes(b'{"a": 9}')

    library = Library(tmp_path)

    assert library.held("a").total_count == 2
    library.close()


def test_the_number_of_channels_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(library_module, "CHANNELS_KEPT", 1)
    library = Library(tmp_path)
    library.put("a", Page(listed((1,)), 1))

    with pytest.raises(TooManyChannels, match="at most 1"):
        library.put("b", Page(listed((1,)), 1))

    library.put("a", Page(listed((2,)), 1))
    assert library.names() == ["a"]
    library.close()
