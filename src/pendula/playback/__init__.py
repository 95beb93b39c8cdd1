"""What a display shows next, out of up to 64 channels: each one's share exact, nothing twice in a row, new things soon.

    model               records, items, settings, diagnostics
    exposure, swrr      how much each channel gets; whose turn it is
    nae                 new artwork: a small pool that interrupts the channels
    records             80 bytes each; shelves that hand them out
    generator           the stream of one epoch
    programme           history, lookahead, epochs, transactions
    saving, explain     the state at any moment; why an item came up
    scheduler           the library: a programme behind a lock
    events, engine      the player: a programme that keeps time, for journals and the server
    settings            settings changed in part
    layout, cache, repair
                        channels on disk: the form of a file, reading and writing it, mending it
    refresh, refresher, folder
                        new records merged in, by and by; a folder of media as a source
    mqtt                new artwork heard of over MQTT
    loading, schema, opening, running, recording, reasons
                        a file in, all its faults, its form; its channels; its calls, and why an item came
    gallery, showing    folders as channels; a player on a terminal

Public names:
"""

from pendula.playback.choosing.generator import Channel
from pendula.playback.choosing.records import MemoryShelf, Shelf
from pendula.playback.engine import Player
from pendula.playback.model import (
    Diagnostic,
    Exposure,
    InsertResult,
    Item,
    Mode,
    Nae,
    Origin,
    Pick,
    PickMode,
    Record,
    Settings,
)
from pendula.playback.scheduler import Scheduler

__all__ = [
    "Channel",  # a followed channel and its records
    "Diagnostic",  # something that went wrong and stopped nothing
    "Exposure",  # how much of the screen each channel gets
    "InsertResult",  # what became of a new artwork
    "Item",  # what is shown, and how it came up
    "MemoryShelf",  # records kept in memory
    "Mode",  # EqE, MaE, PrE
    "Nae",  # settings of new artwork events
    "Origin",  # base, nae, nae_fallback
    "Pick",  # how a channel gives its next record
    "PickMode",  # recency, random
    "Player",  # the engine: a programme that keeps time
    "Record",  # one artwork
    "Scheduler",  # next, prev, peek, safe for threads
    "Settings",  # all that can be set
    "Shelf",  # where records come from
]
