"""What comes next: shares, turns, new artwork, and the programme around them.

exposure       how much of the screen each channel gets: three modes, in exact fractions
generator      one epoch's stream of items: new artwork, else the channel whose turn it is, else its next record
new_artwork    new artwork events: a small pool that interrupts the channels now and then
programme      what is on: history, lookahead, epochs and settings around the generator of one epoch
records        records as bytes: 80 each, checksummed, newest first, 51 to a block of 4096 (102 to 8192)
swrr           smooth weighted round robin: who is next
"""
