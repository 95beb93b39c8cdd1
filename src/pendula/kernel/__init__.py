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
_HOMES = {
    "Disk": "disk:Disk",
    "Driver": "driver:Driver",
    "Engine": "engine:Engine",
    "FileJournal": "journal:FileJournal",
    "Header": "frames:Header",
    "InputRefused": "errors:InputRefused",
    "Json": "canonical:Json",
    "MissingExtra": "errors:MissingExtra",
    "NoOutside": "engine:NoOutside",
    "NotCanonical": "errors:NotCanonical",
    "Outcome": "engine:Outcome",
    "Outside": "engine:Outside",
    "PendulaError": "errors:PendulaError",
    "RealDisk": "disk:RealDisk",
    "Reason": "engine:Reason",
    "Record": "frames:Record",
    "Refusal": "engine:Refusal",
    "WorldBroken": "errors:WorldBroken",
    "WrongUsage": "errors:WrongUsage",
    "action_seed": "rng:action_seed",
    "begin_recording": "driver:begin_recording",
    "decode": "canonical:decode",
    "digest": "canonical:digest",
    "encode": "canonical:encode",
    "format_utc": "time:format_utc",
    "parse_utc": "time:parse_utc",
    "record_body": "frames:record_body",
    "replay_journal": "replay:replay",
    "seal": "frames:seal",
    "seal_header": "frames:seal_header",
    "send": "driver:send",
    "tick_generator": "rng:tick_generator",
    "tick_seed": "rng:tick_seed",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module, _, member = _HOMES[name].partition(":")
    return getattr(import_module(f"{__name__}.{module}"), member)
