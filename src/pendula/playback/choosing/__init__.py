"""What comes next: shares, turns, new artwork, and the programme around them. Pure: no clock, no file, no lock.

exposure       how much of the screen each channel gets: three modes, in exact fractions
swrr           smooth weighted round robin: whose turn it is
new_artwork    new artwork events: a small pool that interrupts the channels now and then
records        records as bytes: 80 each, checksummed, newest first; shelves that hand them out
guard          shelves that anybody wrote, watched
asked          records that come from outside, one at a time
carrying       turns that go on over a change
dayparts       which part of the day holds
generator      one epoch's stream of items: new artwork, else the channel whose turn it is, else its next record
wishes         what somebody before the screen asks for: next, before, pins, rests, bans
snapshot       what the stream of an epoch follows from: channels and settings
programme      what is on: history, lookahead, epochs and transactions around the generator of one epoch
"""

from pendula.playback.choosing.exposure import integer_weights, shares
from pendula.playback.choosing.records import MemoryShelf, Shelf, pack, unpack
from pendula.playback.choosing.snapshot import Channel
from pendula.playback.choosing.swrr import RoundRobin, step

__all__ = [
    "Channel",  # a followed channel and its records
    "MemoryShelf",  # records kept in memory
    "RoundRobin",  # smooth weighted round robin
    "Shelf",  # where records come from
    "integer_weights",  # shares as integers that sum to 65536
    "pack",  # a record as its 80 bytes
    "shares",  # how much each channel gets, exactly
    "step",  # one turn, by definition
    "unpack",  # and back again
]
