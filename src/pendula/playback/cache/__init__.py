"""Cache files of channels: format, reading, writing, merging and repair."""

from pendula.playback.cache.merge import Page, refresh_cache
from pendula.playback.cache.refresher import Feed, Refresher
from pendula.playback.cache.repair import inspect, verify
from pendula.playback.cache.shelf import (
    CacheShelf,
    cache_name,
    channel_hash,
    file_bytes,
    file_size,
    next_generation,
    offset_of,
    open_cache,
    open_or_set_aside,
    write_cache,
)

__all__ = [
    "CacheShelf",  # the records of an open cache file
    "Feed",  # a channel, its source and its file
    "Page",  # the answer of a source
    "Refresher",  # refreshes in the background
    "cache_name",  # the file name for a channel
    "channel_hash",  # the channel in the header of a file
    "file_bytes",  # the bytes of a cache file
    "file_size",  # its size
    "inspect",  # header and blocks of a file
    "next_generation",  # the number of an edition, from its records
    "offset_of",  # where a record begins
    "open_cache",  # a shelf, or a diagnostic
    "open_or_set_aside",  # a shelf; a corrupt file is set aside
    "refresh_cache",  # merge and write
    "verify",  # the faults of a file
    "write_cache",  # write atomically
]
