"""The channels, in order, and the settings of an epoch."""

from collections.abc import Iterator, Mapping

from msgspec import Struct
from msgspec.structs import force_setattr

from pendula.playback.choosing.records import MaskedShelf, Shelf
from pendula.playback.choosing.shelf_guard import guarded
from pendula.playback.model import NAME_MOST, Settings, UnknownChannel, invalid_parameter, refused


class Channel(Struct, frozen=True):
    """A followed channel: its id, its records, and the places of banned ones. Raises `NoShelf`."""

    id: str
    shelf: Shelf
    gone: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        force_setattr(self, "shelf", guarded(self.id, self.shelf))

    @property
    def visible(self) -> Shelf:
        return MaskedShelf(self.shelf, self.gone) if self.gone else self.shelf

    def same(self, other: "Channel") -> bool:
        left, right = self.shelf, other.shelf
        return (self.id, left.count, left.generation, self.gone) == (
            other.id,
            right.count,
            right.generation,
            other.gone,
        )


class Snapshot(Struct, frozen=True):
    """What determines the items of an epoch, besides the seed and the number of the epoch."""

    channels: tuple[Channel, ...] = ()
    settings: Settings = Settings()
    part: str | None = None  # the day part that applies

    def same(self, other: "Snapshot") -> bool:
        return (
            self.settings == other.settings
            and self.part == other.part
            and len(self.channels) == len(other.channels)
            and all(left.same(right) for left, right in zip(self.channels, other.channels, strict=True))
        )


def index_of(snapshot: Snapshot, channel: str) -> int:
    """The place of a channel in the order; raises `UnknownChannel`."""
    for index, there in enumerate(snapshot.channels):
        if there.id == channel:
            return index
    raise refused(UnknownChannel, channel=channel, followed=[there.id for there in snapshot.channels])


def check_names(snapshot: Snapshot, before: Snapshot) -> None:
    """Raise `UnknownChannel` for a weight or count of a channel that is not followed, unless it was there before.

    The weight of an unfollowed channel is kept, in case it is followed again.
    """
    followed = [channel.id for channel in snapshot.channels]
    noted_before = dict(_named(before.settings))
    for field, names in _named(snapshot.settings):
        noted = noted_before.get(field, {})
        for name in names:
            if name not in followed and name not in noted:
                raise refused(UnknownChannel, field=field, channel=name, followed=followed)


def _named(settings: Settings) -> Iterator[tuple[str, Mapping[str, object]]]:
    """Each setting by channel, with the name of its field."""
    exposure = settings.exposure
    yield "manual_weights", exposure.manual_weights
    yield "total_count", exposure.total_count
    yield "recent_count", exposure.recent_count
    for part in settings.day_parts:
        yield f"day_parts.{part.name}", part.weights


def check_id(channel: str) -> None:
    """Raise `InvalidParameter` if this cannot be the id of a channel."""
    if not isinstance(channel, str) or not 1 <= len(channel) <= NAME_MOST or not _is_text(channel):
        raise invalid_parameter("channel", channel, "channel_id")


def _is_text(name: str) -> bool:
    """Whether a name can be encoded; a lone surrogate cannot."""
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True
