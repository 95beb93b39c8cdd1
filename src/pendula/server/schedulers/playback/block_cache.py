"""The blocks of all channels that stay in memory: least recently used channels are reduced beyond a limit.

Random picks jump between the blocks of a channel, and many players share a channel, so blocks are kept between
questions. Not thread-safe.
"""

from pendula.playback.cache.shelf import CacheShelf
from pendula.playback.choosing.records import Row, Shelf

CACHED_BLOCKS = 4096  # 16 MiB in blocks of 4 KiB


class BlockCache:
    """Reads records and keeps their blocks; beyond `most` the least recently used channel keeps only a few."""

    def __init__(self, most: int = CACHED_BLOCKS) -> None:
        self._most = most
        self._blocks: dict[CacheShelf, int] = {}  # blocks by shelf, ordered by last use
        self._sum = 0

    def record(self, shelf: Shelf, at: int) -> Row:
        """The record at a place of a shelf."""
        if not isinstance(shelf, CacheShelf):
            return shelf.record(at)
        before = self._blocks.pop(shelf, None)
        if before is None:
            shelf.hold()
        row = shelf.record(at)
        self._blocks[shelf] = shelf.blocks_in_memory
        self._sum += shelf.blocks_in_memory - (before or 0)
        while self._sum > self._most and len(self._blocks) > 1:
            self.forget(next(iter(self._blocks)))
        return row

    def forget(self, shelf: Shelf) -> None:
        """Keep only the blocks that the shelf keeps by itself."""
        if isinstance(shelf, CacheShelf):
            self._sum -= self._blocks.pop(shelf, 0)
            shelf.release_blocks()
