"""Selection of the next item. Pure: no clock, no file, no lock.

exposure         the share of each channel: three modes, in exact fractions
swrr             smooth weighted round robin
new_artwork      new artwork events: a small pool that interrupts the channels at random
records          records of 80 bytes with a checksum, newest first; shelves of records
shelf_guard      user-written shelves, checked on every call
outside_records  records asked of the outside, one at a time
carried_turns    credits and cursors kept across a change
dayparts         the day part of a minute
generator        the items of one epoch
viewer_controls  next, prev, pins, pauses and bans
snapshot         the channels and settings of an epoch
programme        history, lookahead, epochs and transactions around the generator of one epoch
"""

from pendula.playback.choosing.exposure import integer_weights, shares
from pendula.playback.choosing.records import MemoryShelf, Shelf, pack, unpack
from pendula.playback.choosing.snapshot import Channel
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
