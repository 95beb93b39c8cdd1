"""Channels on disk: the form of a file, reading, writing, merging and mending it.

layout       a cache file as bytes: a header block, then data blocks of whole records, newest first
shelf        caches on disk: written whole and at once, read by blocks, set aside when they cannot be trusted
merge        new contents for a cache: what a source lists, merged by id into what is there
refresher    channels kept fresh in the background: at most two at once, the oldest refresh first
repair       what is in a cache file, what is wrong with it, and a sound file in its place
"""

from pendula.playback.cache.layout import channel_hash, file_bytes, file_size, offset_of
from pendula.playback.cache.merge import Page, refresh_cache
from pendula.playback.cache.refresher import Feed, Refresher
from pendula.playback.cache.repair import inspect, verify
from pendula.playback.cache.shelf import CacheShelf, cache_name, open_cache, open_or_set_aside, write_cache

__all__ = [
    "CacheShelf",  # the records of an open cache file
    "Feed",  # a channel, its source and its file
    "Page",  # what a source lists
    "Refresher",  # refreshes in the background
    "cache_name",  # a plain file name for any channel
    "channel_hash",  # by which a file knows its channel
    "file_bytes",  # a whole cache file
    "file_size",  # how long it is
    "inspect",  # what is in a file
    "offset_of",  # where a record begins
    "open_cache",  # a shelf, or what is wrong with the file
    "open_or_set_aside",  # a shelf in any case
    "refresh_cache",  # merge and write
    "verify",  # what is wrong with a file
    "write_cache",  # write whole and at once
]
