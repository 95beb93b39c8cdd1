"""What a display shows next, out of up to 64 channels: each one's share exact, nothing twice in a row, new things soon.

    model               records, items, settings, diagnostics
    settings            what they may be; changed in part
    choosing            what comes next: shares, turns, new artwork, and the programme around them
    invariants          the laws that hold at any moment
    sentences           sentences of codes and facts, where they are shown
    saving, explain     the state at any moment; why an item came up
    statistics          what was done, in figures
    clocks              time of day in a place, for those who keep a clock
    scheduler           the library: a programme behind a lock, safe for threads
    events, engine      the player: a programme that keeps time, for journals and the server
    screening, daytime  its screen; the clock on the wall as it knows it
    cache               channels on disk
    sources             folders of media, new artwork over MQTT
    runs                one file: read, opened, its calls made, with a journal or without
    player              folders played on a terminal
    example             a picture frame that follows three channels

Public names:
"""

from pendula.playback.choosing.asked import FromShelves
from pendula.playback.choosing.guard import NoShelf
from pendula.playback.choosing.records import MemoryShelf, Shelf
from pendula.playback.choosing.snapshot import Channel
from pendula.playback.clocks import UnknownZone, clock_at
from pendula.playback.engine import Player
from pendula.playback.model import (
    Banned,
    DayPart,
    Diagnostic,
    Exposure,
    InsertResult,
    InvalidRecord,
    InvalidWeight,
    Item,
    Mode,
    Nae,
    Origin,
    Pick,
    PickMode,
    Record,
    Refresh,
    Settings,
    UnknownChannel,
)
from pendula.playback.scheduler import Scheduler

__all__ = [
    "Banned",  # the artwork may not be shown
    "Channel",  # a followed channel and its records
    "DayPart",  # weights for a time of day
    "Diagnostic",  # something that went wrong and stopped nothing
    "Exposure",  # how much of the screen each channel gets
    "FromShelves",  # what a player asks, out of shelves
    "InsertResult",  # what became of a new artwork
    "InvalidRecord",  # an artwork that cannot be
    "InvalidWeight",  # a manual weight that is not a number
    "Item",  # what is shown, and how it came up
    "MemoryShelf",  # records kept in memory
    "Mode",  # EqE, MaE, PrE
    "Nae",  # settings of new artwork events
    "NoShelf",  # what was handed in can give no records
    "Origin",  # base, nae, nae_fallback, pinned
    "Pick",  # how a channel gives its next record
    "PickMode",  # recency, random
    "Player",  # the engine: a programme that keeps time
    "Record",  # one artwork
    "Refresh",  # whether turns begin anew or go on over a change
    "Scheduler",  # next, prev, peek, safe for threads
    "Settings",  # all that can be set
    "Shelf",  # where records come from
    "UnknownChannel",  # nobody follows it
    "UnknownZone",  # no such place
    "clock_at",  # what to tell a player of the time
]
