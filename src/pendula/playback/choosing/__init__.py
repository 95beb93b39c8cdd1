"""Selection of the next item. Pure: no clock, no file, no lock."""

from pendula.playback.choosing.generator import integer_weights, shares
from pendula.playback.choosing.records import Channel, MemoryShelf, Shelf, pack, unpack
from pendula.playback.choosing.swrr import RoundRobin, step

__all__ = [
    "Channel",  # a followed channel and its records
    "MemoryShelf",  # records in memory
    "RoundRobin",  # smooth weighted round robin
    "Shelf",  # the records of one channel
    "integer_weights",  # shares as integers that sum to 65536
    "pack",  # a record as its 80 bytes
    "shares",  # the exact share of each channel
    "step",  # one step, by definition
    "unpack",  # a record from its 80 bytes
]
