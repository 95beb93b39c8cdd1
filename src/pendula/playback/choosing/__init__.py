"""Selection of the next item. Pure: no clock, no file, no lock.

records          records of 80 bytes with a checksum, shelves of records, the channels of an epoch
swrr             smooth weighted round robin
new_artwork      new artwork events: a small pool that interrupts the channels at random
dayparts         the day part of a minute, the wall clock of a player
generator        the share of each channel, and the items of one epoch
viewer_controls  next, prev, pins, pauses and bans; credits and cursors kept across a change
programme        history, lookahead, epochs and transactions around the generator of one epoch
"""

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
