"""How many blocks of all channels stay in memory: those that were used last, and no more than a limit for the library.

A batch of random picks goes to and fro over a channel, and many players share one: blocks are kept where the next
question comes from anybody. Not safe for several threads at once.
"""

from pendula.playback.cache.shelf import CacheShelf
from pendula.playback.choosing.records import Row, Shelf

CACHED_BLOCKS = 4096  # 16 MiB of blocks of 4 KiB: twenty batches of 32 items, each of which read as much as it could


class BlockCache:
    """Reads records and keeps their blocks; beyond `most` the channel that was used longest ago keeps but a few."""

    def __init__(self, most: int = CACHED_BLOCKS) -> None:
        self._most = most
        self._blocks: dict[CacheShelf, int] = {}  # how many of each; the shelf used last comes last
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
        """Keep of this shelf no more than it keeps by itself."""
        if isinstance(shelf, CacheShelf):
            self._sum -= self._blocks.pop(shelf, 0)
            shelf.release_blocks()
