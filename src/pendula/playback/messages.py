"""The configuration, commands, item views and events of a player."""

from base64 import b64encode
from typing import Annotated, Self, TypeAlias

from msgspec import Meta, Struct
from msgspec.structs import asdict

from pendula.kernel.canonical import Json
from pendula.playback.model import ArtworkId, Record, ResetReason
from pendula.playback.sentences import diagnostic_sentence
from pendula.playback.settings import FollowedName, Settings

DWELL_MS = 10_000


class Contents(Struct, frozen=True, forbid_unknown_fields=True):
    """The contents of a channel: number of records and edition."""

    id: str
    count: int
    generation: int = 0


class Config(Struct, frozen=True, forbid_unknown_fields=True):
    """The configuration of a player; `seed` from 0 to 2^64 - 1."""

    seed: int
    channels: tuple[Contents, ...] = ()
    settings: Settings = Settings()
    dwell_ms: int = DWELL_MS


class Command(Struct, frozen=True, forbid_unknown_fields=True):
    """Base of all commands; unknown members are refused."""


class Next(Command, frozen=True, tag="next"):
    """Show the next item now."""


class Prev(Command, frozen=True, tag="prev"):
    """Show the previous item of the history."""


class Take(Command, frozen=True, tag="take"):
    """Return the next `n` items and show the last one; for devices that keep time themselves."""

    n: int


class RecordCommand(Command, frozen=True):
    """A command about one record. `storage_key` and `payload` are base64, of 16 and 32 bytes."""

    id: int | None = None
    ts: int = 0
    kind: int = 0
    format: int = 0
    flags: int = 0
    dwell_ms: int = 0
    modified_ts: int = 0
    storage_key: str | None = None
    payload: str | None = None

    @classmethod
    def of(cls, record: Record) -> Self:
        facts = asdict(record)
        return cls(**facts | {name: b64encode(facts[name]).decode() for name in ("storage_key", "payload")})


class Insert(RecordCommand, frozen=True, tag="insert"):
    """A new artwork."""


class Follow(Command, frozen=True, tag="follow"):
    channel: Contents


class Unfollow(Command, frozen=True, tag="unfollow"):
    channel: str


class Refresh(Command, frozen=True, tag="refresh"):
    """Replace the contents of a channel; counts are for proportional exposure."""

    channel: Contents
    total_count: int | None = None
    recent_count: int | None = None


class Configure(Command, frozen=True, tag="configure"):
    """Change settings: each given member replaces that member. `dwell_ms` alone resets nothing."""

    settings: dict[str, Json] = {}
    dwell_ms: int | None = None


class Reset(Command, frozen=True, tag="reset"):
    reason: str


class Update(Command, frozen=True, tag="update"):
    """Several changes with one reset; if one is refused, none is made."""

    changes: tuple["Follow | Unfollow | Refresh | Configure | Reset", ...]


class Ban(Command, frozen=True, tag="ban"):
    """Hide an item until its channel gets other contents; by default the current one."""

    ordinal: int | None = None


class Pause(Command, frozen=True, tag="pause"):
    pass


class Resume(Command, frozen=True, tag="resume"):
    pass


class ShowNext(RecordCommand, frozen=True, tag="show_next"):
    """Show this record next, once."""


class PauseChannel(Command, frozen=True, tag="pause_channel"):
    """Pause a channel; it keeps its credit and cursor."""

    channel: FollowedName


class ResumeChannel(Command, frozen=True, tag="resume_channel"):
    channel: FollowedName


class BanArtwork(Command, frozen=True, tag="ban_artwork"):
    """Ban an artwork in all channels, for `for_ms` milliseconds or until the ban is lifted."""

    id: ArtworkId
    for_ms: int | None = None


class Lift(Command, frozen=True, tag="lift"):
    """Lift the ban of an artwork."""

    id: ArtworkId


class Clock(Command, frozen=True, tag="clock"):
    """Set the wall clock: milliseconds since 1970, and the UTC offsets of the player's zone as pairs of a start in
    milliseconds and seconds east. Day parts follow from it."""

    utc_ms: int
    offsets: tuple[tuple[int, int], ...] = ((0, 0),)


class Advance(Command, frozen=True, tag="advance"):
    """Advance time; stops after 10 000 items."""

    to: int


Change: TypeAlias = Follow | Unfollow | Refresh | Configure | Reset
ViewerCommand: TypeAlias = ShowNext | PauseChannel | ResumeChannel | BanArtwork | Lift | Clock
Untimed: TypeAlias = Next | Prev | Take | Insert | Change | Update | Ban | Pause | Resume | Advance | ViewerCommand


class At(Command, frozen=True, tag="at"):
    """A command at a time. It is refused as a whole: if something is due by then, send `advance` first."""

    at: int
    command: Untimed


Commands: TypeAlias = Untimed | At


# The format tells readers without wide integers that a double cannot hold all values.
Unsigned64 = Annotated[int, Meta(extra_json_schema={"format": "uint64"})]
Signed64 = Annotated[int, Meta(extra_json_schema={"format": "int64"})]


class View(Struct, frozen=True):
    """An item. `dwell_ms` is how long it stays, with the default filled in; `at` is its place in the channel."""

    id: Unsigned64
    channel: str | None
    origin: str
    epoch_id: Unsigned64
    ordinal: int
    ts: Signed64
    kind: int
    format: int
    flags: int
    dwell_ms: int
    storage_key: str
    payload: str
    at: int | None


class Shown(Struct, frozen=True, tag="shown"):
    """The item is shown. `cause` is next, prev, take or time; `ends_at` is null while the player is paused."""

    item: View
    started_at: int
    ends_at: int | None
    cause: str


class Blank(Struct, frozen=True, tag="blank"):
    """There is nothing left to show."""

    at: int


class EpochBegan(Struct, frozen=True, tag="epoch_began"):
    """A new epoch began, because of a material change."""

    epoch_id: int
    reason: ResetReason
    weights: dict[str, int]
    at: int

    @property
    def message(self) -> str:
        return self.reason.sentence


class Inserted(Struct, frozen=True, tag="inserted"):
    id: int | None
    result: str
    at: int


class Banned(Struct, frozen=True, tag="banned"):
    item: View
    at: int


class Pinned(Struct, frozen=True, tag="pinned"):
    """The artwork is shown next."""

    id: int
    at: int


class ChannelPaused(Struct, frozen=True, tag="channel_paused"):
    channel: str
    weights: dict[str, int]
    at: int


class ChannelResumed(Struct, frozen=True, tag="channel_resumed"):
    channel: str
    weights: dict[str, int]
    at: int


class ArtworkBanned(Struct, frozen=True, tag="artwork_banned"):
    """`until` is the player's time at which the ban ends; null if it has to be lifted."""

    id: int
    until: int | None
    at: int


class Lifted(Struct, frozen=True, tag="lifted"):
    id: int
    at: int


class Paused(Struct, frozen=True, tag="paused"):
    at: int


class Resumed(Struct, frozen=True, tag="resumed"):
    at: int


class Diagnosed(Struct, frozen=True, tag="diagnosed"):
    """A problem that did not stop playback."""

    code: str
    facts: dict[str, Json]
    at: int

    @property
    def message(self) -> str:
        return diagnostic_sentence(self.code, self.facts)


ViewerEvent: TypeAlias = Pinned | ChannelPaused | ChannelResumed | ArtworkBanned | Lifted
Event: TypeAlias = Shown | Blank | EpochBegan | Inserted | Banned | Paused | Resumed | Diagnosed | ViewerEvent
