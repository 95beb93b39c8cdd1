"""Names of audio files for the events of a run: `epoch03_slot14_pc.ogg`. No sound is recorded."""

from collections.abc import Iterable
from re import compile as regex

from msgspec import Struct

from pendula.actions.messages import WORLD_EVENTS, Event, WorldEvent

CHANNEL = regex(r"[a-z0-9-]{1,32}")
WORLD, PC = "world", "pc"


class AudioFile(Struct, frozen=True):
    """One file, with its epoch, slot, channel and event numbers."""

    name: str
    epoch: int
    slot: int
    channel: str
    events: tuple[int, ...]


def audio_name(epoch: int, slot: int, channel: str) -> str:
    """`epoch03_slot14_pc.ogg`; raises `ValueError` for an invalid channel."""
    if not isinstance(channel, str) or CHANNEL.fullmatch(channel) is None:
        raise ValueError(
            f"{channel!r} is not a channel; allowed are 1 to 32 characters of a-z, 0-9 and -, such as world or pc"
        )
    return f"epoch{epoch:02d}_slot{slot:02d}_{channel}.ogg"


def audio_names(events: Iterable[Event]) -> list[AudioFile]:
    """The files for these events, by epoch, slot and channel.

    Every event is in `world`, and in `pc` if the player learned of it. Events of an action with `params.channel` are in
    that channel, too.
    """
    own: dict[str, str] = {}  # channel by action, because only starts and ends have params
    files: dict[tuple[int, int, str], list[int]] = {}
    for event in events:
        if not isinstance(event, WORLD_EVENTS):
            continue
        channel = _channel_of(event)
        if channel is not None:
            own[event.action_id] = channel
        channels = {WORLD, *([PC] if event.pc else []), *([own[event.action_id]] if event.action_id in own else [])}
        for channel in channels:
            files.setdefault((event.epoch, event.slot, channel), []).append(event.seq)
    return [
        AudioFile(audio_name(epoch, slot, channel), epoch, slot, channel, tuple(seqs))
        for (epoch, slot, channel), seqs in sorted(files.items())
    ]


def _channel_of(event: WorldEvent) -> str | None:
    params = event.meta.get("params")
    channel = params.get("channel") if isinstance(params, dict) else None
    return channel if isinstance(channel, str) and CHANNEL.fullmatch(channel) else None
