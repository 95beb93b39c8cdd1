"""What the stream of an epoch follows from: the channels in their order, and the settings."""

from difflib import get_close_matches

from msgspec import Struct

from pendula.playback.choosing.generator import Channel
from pendula.playback.model import NAME_MOST, Settings, UnknownChannel, unfit


class Snapshot(Struct, frozen=True):
    """All that the stream of an epoch follows from, besides the seed and the epoch's number."""

    channels: tuple[Channel, ...] = ()
    settings: Settings = Settings()

    def same(self, other: "Snapshot") -> bool:
        return (
            self.settings == other.settings
            and len(self.channels) == len(other.channels)
            and all(left.same(right) for left, right in zip(self.channels, other.channels, strict=True))
        )


def index_of(snapshot: Snapshot, channel: str) -> int:
    """The place of a channel in the order; raises `UnknownChannel`."""
    for index, there in enumerate(snapshot.channels):
        if there.id == channel:
            return index
    followed = [there.id for there in snapshot.channels]
    raise UnknownChannel(
        f"Channel {channel!r} is not followed; followed are {', '.join(followed) or 'none'}",
        channel=channel,
        followed=followed,
    )


def check_names(snapshot: Snapshot, before: Snapshot) -> None:
    """Raise `UnknownChannel` for a weight or count of a channel that is not followed, unless it was there before.

    Who follows a channel no more keeps its weight, for the day it is followed again.
    """
    followed = [channel.id for channel in snapshot.channels]
    for field in ("manual_weights", "total_count", "recent_count"):
        noted = getattr(before.settings.exposure, field)
        for name in getattr(snapshot.settings.exposure, field):
            if name not in followed and name not in noted:
                near = get_close_matches(name, followed, 1)
                meant = f"; did you mean {near[0]!r}?" if near else f"; followed are {', '.join(followed) or 'none'}"
                raise UnknownChannel(
                    f"{field} names {name!r}, and no channel of that id is followed{meant}",
                    channel=name,
                    followed=followed,
                )


def check_id(channel: str) -> None:
    """Raise `InvalidParameter` for what cannot be the id of a channel."""
    if not isinstance(channel, str) or not 1 <= len(channel) <= NAME_MOST or not _is_text(channel):
        raise unfit("channel", channel, f"an id of 1 to {NAME_MOST} characters")


def _is_text(name: str) -> bool:
    """Whether a name can be written down: half a character cannot."""
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True
