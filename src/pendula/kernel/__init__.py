"""The deterministic kernel, readable in an evening. Standard library and msgspec, nothing else.

    errors, limits      exceptions with codes; named limits
    canonical           canonical JSON, digests and digest chains
    wording             explains why a value is invalid
    time                integer instants; naive and offset times never mix
    queue, rng          total order of events; reproducible random numbers
    engine              the protocol of an engine: commands in, outcomes out, a reason for everything; its questions
    frames              the bytes and the contents of a record
    cancellation        cancels long reads between two steps

    disk, journal       file access; segments of framed, checksummed, chained records with group commit
    replay, stream      applies a journal to a fresh engine and compares the outcomes; event subscriptions
    driver, commit      runs a live engine with its journal; one flush for many callers
    wallclock           the only module that reads a clock

The modules of the second group do I/O; no decision module may import them.

Public names:
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pendula.kernel.canonical import Json, decode, digest, encode
    from pendula.kernel.disk import Disk, RealDisk
    from pendula.kernel.driver import Driver, begin_recording, send
    from pendula.kernel.engine import Engine, NoOutside, Outcome, Outside, Reason, Refusal
    from pendula.kernel.errors import InputRefused, MissingExtra, NotCanonical, PendulaError, WorldBroken, WrongUsage
    from pendula.kernel.frames import Header, Record, record_body, seal, seal_header
    from pendula.kernel.journal import FileJournal
    from pendula.kernel.replay import replay as replay_journal
    from pendula.kernel.rng import action_seed, tick_generator, tick_seed
    from pendula.kernel.time import format_utc, parse_utc

__all__ = [
    "Disk",
    "Driver",
    "Engine",
    "FileJournal",
    "Header",
    "InputRefused",
    "Json",
    "MissingExtra",
    "NoOutside",
    "NotCanonical",
    "Outcome",
    "Outside",
    "PendulaError",
    "RealDisk",
    "Reason",
    "Record",
    "Refusal",
    "WorldBroken",
    "WrongUsage",
    "action_seed",
    "begin_recording",
    "decode",
    "digest",
    "encode",
    "format_utc",
    "parse_utc",
    "record_body",
    "replay_journal",
    "seal",
    "seal_header",
    "send",
    "tick_generator",
    "tick_seed",
]

# Loaded on first use: `pendula --version` needs only errors, and a plain run needs neither files nor threads.
_NAMES = {
    "canonical": ("Json", "decode", "digest", "encode"),
    "disk": ("Disk", "RealDisk"),
    "driver": ("Driver", "begin_recording", "send"),
    "engine": ("Engine", "NoOutside", "Outcome", "Outside", "Reason", "Refusal"),
    "errors": ("InputRefused", "MissingExtra", "NotCanonical", "PendulaError", "WorldBroken", "WrongUsage"),
    "frames": ("Header", "Record", "record_body", "seal", "seal_header"),
    "journal": ("FileJournal",),
    "replay": ("replay_journal",),
    "rng": ("action_seed", "tick_generator", "tick_seed"),
    "time": ("format_utc", "parse_utc"),
}
_HOMES = {name: module for module, names in _NAMES.items() for name in names}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), "replay" if name == "replay_journal" else name)
