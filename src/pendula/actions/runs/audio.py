"""Names of audio files for the events of a run: `epoch03_slot14_pc.ogg`. Nothing is recorded here."""

from collections.abc import Iterable
from re import compile as regex

from msgspec import Struct

from pendula.actions.events import WORLD_EVENTS, Event, WorldEvent

CHANNEL = regex(r"[a-z0-9-]{1,32}")
WORLD, PC = "world", "pc"


class AudioFile(Struct, frozen=True):
    """One file: the channel and slot that it is for, and the numbers of the events in it."""

    name: str
    epoch: int
    slot: int
    channel: str
    events: tuple[int, ...]


def audio_name(epoch: int, slot: int, channel: str) -> str:
    """`epoch03_slot14_pc.ogg`; raises `ValueError` for what is not a channel."""
    if not isinstance(channel, str) or CHANNEL.fullmatch(channel) is None:
        raise ValueError(f"{channel!r} is not a channel; allowed are 1 to 32 of a-z, 0-9 and -, such as world or pc")
    return f"epoch{epoch:02d}_slot{slot:02d}_{channel}.ogg"


def audio_names(events: Iterable[Event]) -> list[AudioFile]:
    """The files for these events, by epoch, slot and channel.

    Every event is in `world`, one that the player learned of in `pc`; an action whose params name a `channel` is in
    that one too, such as the call of a radio.
    """
    own: dict[str, str] = {}  # by action: only starts and ends have the params
    found: dict[tuple[int, int, str], list[int]] = {}
    for event in events:
        if not isinstance(event, WORLD_EVENTS):
            continue
        named = _named(event)
        if named is not None:
            own[event.action_id] = named
        channels = {WORLD, *([PC] if event.pc else []), *([own[event.action_id]] if event.action_id in own else [])}
        for channel in channels:
            found.setdefault((event.epoch, event.slot, channel), []).append(event.seq)
    return [
        AudioFile(audio_name(epoch, slot, channel), epoch, slot, channel, tuple(seqs))
        for (epoch, slot, channel), seqs in sorted(found.items())
    ]


def _named(event: WorldEvent) -> str | None:
    params = event.meta.get("params")
    channel = params.get("channel") if isinstance(params, dict) else None
    return channel if isinstance(channel, str) and CHANNEL.fullmatch(channel) else None
