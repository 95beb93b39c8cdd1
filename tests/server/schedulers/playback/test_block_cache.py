"""The block cache of the library: enough for a batch of every player, never above its limit."""

from pathlib import Path

import pytest

from pendula.kernel.canonical import Json
from pendula.playback.cache.shelf import CacheShelf
from pendula.playback.choosing.records import MemoryShelf
from pendula.playback.engine import Player
from pendula.playback.messages import Next
from pendula.server.schedulers.playback.library import BlockCache, Library
from tests.playback.caches import cache_file, put, raws, shelf_of, touched


def player_of(library: Library, r: int, seed: int) -> Player:
    contents = [library.contents(name) for name in library.names()]
    channels: list[Json] = [{"id": one.id, "count": one.count, "generation": one.generation} for one in contents]
    player = Player.create(
        {"seed": seed, "channels": channels, "settings": {"lookahead": 32, "pick": {"mode": "random", "r": r}}}
    )
    player.outside = library
    return player


def newest(library: Library, channel: str) -> CacheShelf:
    shelf = library._editions[channel][-1]
    assert isinstance(shelf, CacheShelf)
    return shelf


def three_shelves(folder: Path) -> list[CacheShelf]:
    """Of ten blocks each."""
    for name in "abc":
        (folder / name).mkdir()
    return [shelf_of(folder / name, raws(500)) for name in "abc"]


@pytest.mark.req("PLAY-LOOK-8")
@pytest.mark.parametrize("r", [64, 256, 1024])
def test_a_batch_of_a_served_player_reads_no_block_twice(tmp_path: Path, r: int) -> None:
    put(tmp_path / "a.pch", cache_file("a", raws(500)))
    put(tmp_path / "b.pch", cache_file("b", raws(400, 1001)))
    library = Library(tmp_path)
    programme = (player := player_of(library, r, seed=1)).programme
    a, b = newest(library, "a"), newest(library, "b")

    for _ in range(20):
        while len(programme.lookahead) >= 32:
            player.apply(Next())
        before = (a.reads, b.reads)
        player.apply(Next())
        batch = [*programme.history, *programme.lookahead][-32:]
        assert a.reads - before[0] <= len(touched(batch, 0))
        assert b.reads - before[1] <= len(touched(batch, 1))

    library.close()


def test_players_that_share_a_channel_read_each_of_its_blocks_once(tmp_path: Path) -> None:
    put(tmp_path / "a.pch", cache_file("a", raws(500)))
    library = Library(tmp_path)
    players = [player_of(library, 500, seed) for seed in range(3)]

    for _ in range(200):
        for player in players:
            player.apply(Next())

    assert newest(library, "a").reads <= 10
    library.close()


def test_beyond_the_limit_the_channel_used_longest_ago_keeps_but_two_blocks(tmp_path: Path) -> None:
    shelves = three_shelves(tmp_path)
    blocks = BlockCache(20)

    for shelf in shelves:
        for at in range(0, 500, 51):
            assert blocks.record(shelf, at)[1] == at + 1

    assert [shelf.blocks_in_memory for shelf in shelves] == [2, 10, 10]


def test_a_channel_in_use_again_is_counted_again(tmp_path: Path) -> None:
    shelves = three_shelves(tmp_path)
    blocks = BlockCache(12)

    for _ in range(3):
        for shelf in shelves:
            for at in range(0, 500, 51):
                blocks.record(shelf, at)
                assert sum(one.blocks_in_memory for one in shelves) <= 12 + 2 * len(shelves)


def test_a_forgotten_channel_frees_space_for_others(tmp_path: Path) -> None:
    shelves = three_shelves(tmp_path)
    blocks = BlockCache(20)
    for shelf in shelves[:2]:
        for at in range(0, 500, 51):
            blocks.record(shelf, at)

    blocks.forget(shelves[1])
    for at in range(0, 500, 51):
        blocks.record(shelves[2], at)

    assert [shelf.blocks_in_memory for shelf in shelves] == [10, 2, 10]


def test_records_already_in_memory_need_no_block() -> None:
    assert BlockCache(0).record(MemoryShelf(raws(3)), 2)[1] == 3
