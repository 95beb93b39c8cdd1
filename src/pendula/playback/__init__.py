"""What a display shows next, from up to 64 channels: exact shares, no repeats in a row, new artwork soon.

    model               records, items, settings, diagnostics
    settings            validation and partial changes of settings
    messages            commands, events and item views of a player
    choosing            selection of the next item: shares, round robin, new artwork, the programme around them
    sentences           sentences rendered from codes and facts
    saving, explain     save and restore a programme; why an item was selected, and counters
    clocks              time of day in a zone, for callers with a clock
    scheduler           the library: a programme behind a lock, safe for threads
    engine              the player: a programme that keeps time, for journals and the server
    cache               channels on disk
    sources             folders of media, new artwork over MQTT
    runs                run a playback file, with or without a journal
    player              play folders on a terminal

Public names:
"""

from pendula.playback.choosing.records import Channel, MemoryShelf, NoShelf, Shelf
from pendula.playback.clocks import UnknownZone, clock_at
from pendula.playback.engine import FromShelves, Player
from pendula.playback.model import (
    Banned,
    Diagnostic,
    InsertResult,
    InvalidRecord,
    InvalidWeight,
    Item,
    Origin,
    Record,
    UnknownChannel,
)
from pendula.playback.scheduler import Scheduler
from pendula.playback.settings import DayPart, Exposure, Mode, Nae, Pick, PickMode, Refresh, Settings

__all__ = [
    "Banned",  # the artwork is banned
    "Channel",  # a followed channel and its records
    "DayPart",  # weights for a time of day
    "Diagnostic",  # a problem that did not stop playback
    "Exposure",  # the share of each channel
    "FromShelves",  # answers the record questions of a player from shelves
    "InsertResult",  # the result of inserting a new artwork
    "InvalidRecord",  # a record with a field out of range
    "InvalidWeight",  # a manual weight that is not a number
    "Item",  # a record to show, and how it was selected
    "MemoryShelf",  # records kept in memory
    "Mode",  # EqE, MaE, PrE
    "Nae",  # settings of new artwork events
    "NoShelf",  # an object that does not implement Shelf
    "Origin",  # base, nae, nae_fallback, pinned
    "Pick",  # how the next record of a channel is picked
    "PickMode",  # recency, random
    "Player",  # the engine: a programme that keeps time
    "Record",  # one artwork
    "Refresh",  # whether a change restarts the round robin or keeps it
    "Scheduler",  # next, prev, peek, safe for threads
    "Settings",  # all settings
    "Shelf",  # the records of one channel
    "UnknownChannel",  # the channel is not followed
    "UnknownZone",  # no such time zone
    "clock_at",  # the clock command for a zone and time
]
