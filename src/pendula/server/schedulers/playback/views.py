"""The JSON of players: bodies of requests, views of a player, and the forms that a page offers.

All values are computed here from the engine or its journal, so that pages need not know the rules of the engine.
"""

from base64 import b64encode
from collections.abc import Callable, Iterable, Iterator
from decimal import Decimal
from itertools import count, islice
from typing import Annotated, Any

import msgspec
from msgspec import UNSET, Meta, Struct, UnsetType

from pendula.kernel.canonical import Json
from pendula.kernel.engine import Reason
from pendula.kernel.frames import read_input
from pendula.kernel.journal import Journal
from pendula.kernel.time import format_utc, parse_utc
from pendula.playback import explain, messages
from pendula.playback.choosing import new_artwork
from pendula.playback.choosing.records import unpack
from pendula.playback.engine import Player
from pendula.playback.messages import Signed64, Unsigned64, View
from pendula.playback.model import CHANNELS_MOST, MASK_64, WSUM, Diagnostic, Item
from pendula.playback.settings import Mode, PickMode, Refresh
from pendula.server.api.engines import LARGEST_N
from pendula.server.data_directory import NAME
from pendula.server.runtime.scheduler_spec import ChoicesView, FormView, QuestionView, form

# The reader checks the name with a message of its own. The lookahead excludes the line break that `$` allows.
NewName = Annotated[str, Meta(extra_json_schema={"pattern": rf"^{NAME.pattern}(?!\n)$"})]
Count = Annotated[int, Meta(ge=0, le=LARGEST_N)]
Ordinal = Annotated[int, Meta(ge=0, le=LARGEST_N)]
ArtworkId = Annotated[int, Meta(ge=0, extra_json_schema={"format": "uint64"})]
Names = Annotated[list[str], Meta(max_length=CHANNELS_MOST)]
Number = Annotated[Any, Meta(extra_json_schema={"type": "number"})]

MOST_ITEMS = 64
MILLION = 1_000_000
RECORDS_BACK = 8
MOST_QUESTIONS = 24


class ExposureForm(Struct, frozen=True, forbid_unknown_fields=True):
    mode: Mode | UnsetType = UNSET
    manual_weights: dict[str, Number] | UnsetType = UNSET
    total_count: dict[str, int] | UnsetType = UNSET
    recent_count: dict[str, int] | UnsetType = UNSET
    alpha: Number = UNSET
    p_min: Number = UNSET
    p_max: Number = UNSET


class PickForm(Struct, frozen=True, forbid_unknown_fields=True):
    mode: PickMode | UnsetType = UNSET
    r: int | UnsetType = UNSET


class NaeForm(Struct, frozen=True, forbid_unknown_fields=True):
    enabled: bool | UnsetType = UNSET
    cap: int | UnsetType = UNSET


class DayPartForm(Struct, frozen=True, forbid_unknown_fields=True):
    """A day part and its weights: from `start` to before `end`, HH:MM, on the days on which it begins."""

    name: str
    start: str
    end: str
    weights: dict[str, Number]
    days: list[str] = []


class SettingsForm(Struct, frozen=True, forbid_unknown_fields=True):
    """Settings; omitted members stay as they are."""

    exposure: ExposureForm | UnsetType = UNSET
    pick: PickForm | UnsetType = UNSET
    history: int | UnsetType = UNSET
    lookahead: int | UnsetType = UNSET
    nae: NaeForm | UnsetType = UNSET
    preserve_history: bool | UnsetType = UNSET
    refresh: Refresh | UnsetType = UNSET
    zone: str | UnsetType = UNSET
    day_parts: list[DayPartForm] | UnsetType = UNSET


class NewPlayer(Struct, frozen=True, forbid_unknown_fields=True):
    """A player: name, channels of the library in their order, seed (default random) and settings."""

    name: NewName
    channels: Names = []
    seed: int | None = None
    settings: SettingsForm = SettingsForm()
    dwell_ms: int = messages.DWELL_MS


class SettingsChange(SettingsForm, frozen=True, forbid_unknown_fields=True):
    """Settings to change. All but `dwell_ms`, the default dwell time of items, begin a new epoch."""

    dwell_ms: int | None = None


class ChannelNames(Struct, frozen=True, forbid_unknown_fields=True):
    channels: Names


class RecordForm(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One artwork. Times are Unix seconds; `storage_key` and `payload` are base64, of 16 and 32 bytes."""

    id: int
    ts: int
    kind: int = 0
    format: int = 0
    flags: int = 0
    dwell_ms: int = 0
    modified_ts: int = 0
    storage_key: str | None = None
    payload: str | None = None


class Artwork(RecordForm, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A new artwork. `storage_key` and `payload` are base64, of 16 and 32 bytes."""

    ts: int = 0


class Upload(Struct, frozen=True, forbid_unknown_fields=True):
    """Records for a channel, merged by id; the newest `k` are kept, by default as many as before.

    `complete` means that other records are removed. `total_count` and `recent_count` are for proportional exposure; by
    default the records are counted.
    """

    records: list[RecordForm]
    complete: bool = False
    k: int | None = None
    total_count: Count | None = None
    recent_count: Count = 0


class BanRequest(Struct, frozen=True, forbid_unknown_fields=True):
    """Hide an item, by ordinal or the current one, until its channel is refreshed.

    With `id`, ban that artwork in all channels, for `for_ms` milliseconds or until the ban is lifted.
    """

    ordinal: Ordinal | None = None
    id: ArtworkId | None = None
    for_ms: Count | None = None


class ArtworkReference(Struct, frozen=True, forbid_unknown_fields=True):
    id: ArtworkId


class ChannelReference(Struct, frozen=True, forbid_unknown_fields=True):
    channel: str


class ResetRequest(Struct, frozen=True, forbid_unknown_fields=True):
    """Why a new epoch begins."""

    reason: Annotated[str, Meta(min_length=1, max_length=256)]


def given(form: SettingsForm) -> dict[str, Any]:
    """The given members, with exact numbers."""
    members: dict[str, Any] = msgspec.to_builtins(form, builtin_types=(Decimal,))
    return members


OF_THE_LIBRARY = ("block_reads", "cache_hits")

# The wall-clock time of a moment of the player, if known.
WallTime = Callable[[int], str | None]


class ItemView(View, frozen=True):
    """An item. `dwell_ms` is how long it stays, `at` its place in the channel, `payload` 32 bytes in base64."""


class ExposureView(Struct, frozen=True):
    """One followed channel: its target and actual share in this epoch, in millionths.

    `weight` is of 65536; `shown` counts items shown, the current one included; `actual_ppm` is null before the first.
    """

    channel: str
    weight: int
    target_ppm: int
    shown: int
    actual_ppm: int | None
    records: int
    banned: int
    generation: Unsigned64
    readable: bool
    paused: bool


class BanView(Struct, frozen=True):
    """A banned artwork; `until` is the player's time at which the ban ends, or null."""

    id: Unsigned64
    until: int | None


class PooledView(Struct, frozen=True):
    """A new artwork of the pool; its priority is in 64ths."""

    id: Unsigned64
    number: int
    priority_64: int
    ts: Signed64
    payload: str


class DiagnosticView(Struct, frozen=True):
    """A problem that did not stop playback."""

    code: str
    sentence: str
    facts: dict[str, Any]


class PlayerNow(Struct, frozen=True):
    """A player after record `n`, at its time `t`; `clock` is its time now. Times are in milliseconds.

    `started_utc` and `ends_utc` are wall-clock times. A paused player has no end, but `left_ms`. `coming` begins with
    the next item, `before` with the previous one. `day_part` is the day part that applies. `new_shown` counts new
    artwork shown in this epoch.
    """

    n: int
    t: int
    clock: int
    next_due: int | None
    broken: list[str]
    paused: bool
    item: ItemView | None
    started_at: int
    started_utc: str | None
    ends_at: int | None
    ends_utc: str | None
    left_ms: int | None
    epoch_id: Unsigned64
    last_reset: str | None
    coming: list[ItemView]
    before: list[ItemView]
    exposure: list[ExposureView]
    new_shown: int
    pool: list[PooledView]
    probability_64: int
    bans: list[BanView]
    day_part: str | None
    diagnostics: list[DiagnosticView]
    settings: dict[str, Any]
    dwell_ms: int


class PeekView(Struct, frozen=True):
    items: list[ItemView]


class ItemWhy(Struct, frozen=True):
    """An item of history or lookahead, or null, and why it was selected."""

    item: ItemView | None
    why: Reason


def now_of(player: Player, n: int, clock: int, wall_time: WallTime) -> PlayerNow:
    """The present state of a player."""
    programme, screen = player.programme, player.screen
    generator, exposure = programme.generator, _exposure(player)
    pool = generator.pool
    before, coming = _around(player)
    return PlayerNow(
        n=n,
        t=player.now(),
        clock=clock,
        next_due=player.next_due(),
        broken=list(player.broken()),
        paused=player.paused,
        item=None if screen.item is None else _same(screen.item),
        started_at=screen.started_at,
        started_utc=wall_time(screen.started_at),
        ends_at=screen.ends_at,
        ends_utc=None if screen.ends_at is None else wall_time(screen.ends_at),
        left_ms=screen.left_ms,
        epoch_id=programme.epoch_id,
        last_reset=None if programme.last_reset is None else programme.last_reset.sentence,
        coming=coming,
        before=before,
        exposure=exposure,
        new_shown=generator.ordinal - len(programme.lookahead) - sum(one.shown for one in exposure),
        pool=_pool(player),
        probability_64=new_artwork.probability(pool),
        bans=[BanView(id, until) for id, until in programme.bans.items()],
        day_part=programme.snapshot.part,
        diagnostics=diagnostics_of(programme.diagnostics),
        settings=msgspec.to_builtins(programme.snapshot.settings, builtin_types=(Decimal,)),
        dwell_ms=player.dwell_ms,
    )


def peek(player: Player, n: int) -> PeekView:
    return PeekView([_same(view) for view in player.peek(n)])


def why(player: Player, ordinal: int) -> ItemWhy:
    """Why the item with this ordinal of the present epoch was selected."""
    item = explain.by_ordinal(player.programme, ordinal)
    return ItemWhy(None if item is None else _view(player, item), player.why({"ordinal": ordinal}))


def stats(player: Player) -> dict[str, Json]:
    """The counters of a player, without those of blocks: all players share the library, which reads them."""
    return {name: value for name, value in explain.stats(player.programme).items() if name not in OF_THE_LIBRARY}


def diagnostics_of(diagnostics: Iterable[Diagnostic]) -> list[DiagnosticView]:
    return [DiagnosticView(one.code, one.sentence, one.facts) for one in diagnostics]


def wall_time_then(journal: Journal, n: int) -> WallTime:
    """Wall-clock times around record `n`, from the time of the last input up to it."""
    noted: tuple[int, int] | None = None
    for record in islice(journal.read(max(journal.first_n, n - RECORDS_BACK)), RECORDS_BACK + 1):
        at = read_input(record.body).meta.at if record.kind == "input" and record.n <= n else None
        if at is not None:
            noted = record.t, parse_utc(at)
    if noted is None:
        return lambda _: None
    t, micros = noted
    return lambda moment: format_ms(micros + (moment - t) * 1000)


def format_ms(micros: int) -> str:
    """UTC to the millisecond."""
    return format_utc(micros - micros % 1000)


def _around(player: Player) -> tuple[list[ItemView], list[ItemView]]:
    """The items before the current one, newest first; and the next ones, including those after a step back."""
    programme = player.programme
    newest_first = [_view(player, item) for item in islice(reversed(programme.history), programme.behind + MOST_ITEMS)]
    ahead = newest_first[: programme.behind][::-1]
    coming = [*ahead, *(_view(player, item) for item in programme.peek(MOST_ITEMS))]
    return newest_first[programme.behind + 1 :], coming[:MOST_ITEMS]


def _exposure(player: Player) -> list[ExposureView]:
    programme, generator = player.programme, player.programme.generator
    turns = generator.round.picks_at(generator.round.taken)
    for item in programme.lookahead:
        if item.channel_index is not None and item.step is not None:
            turns[item.channel_index] -= 1
    whole = sum(turns)
    return [
        ExposureView(
            channel=channel.id,
            weight=generator.weights[index],
            target_ppm=generator.weights[index] * MILLION // WSUM,
            shown=turns[index],
            actual_ppm=turns[index] * MILLION // whole if whole else None,
            records=channel.shelf.count,
            banned=len(channel.gone),
            generation=channel.shelf.generation,
            readable=not generator.unreadable[index],
            paused=channel.id in programme.paused_channels,
        )
        for index, channel in enumerate(programme.snapshot.channels)
    ]


def _pool(player: Player) -> list[PooledView]:
    return [
        PooledView(entry.id, entry.number, priority, record.ts, b64encode(record.payload).decode())
        for priority, level in zip(new_artwork.PRIORITIES, player.programme.generator.pool, strict=True)
        for entry in level
        for record in (unpack(entry.raw),)
    ]


def _view(player: Player, item: Item) -> ItemView:
    return _same(player.view(item))


def _same(view: View) -> ItemView:
    return ItemView(*msgspec.structs.astuple(view))


OF_A_RECORD = ("id", "ts", "dwell_ms", "payload")


def choices(player: Player) -> ChoicesView:
    """For the present state of a player."""
    return ChoicesView([QuestionView("Why is this shown", {"now": True}), *_items(player)], _forms(player))


def _items(player: Player) -> list[QuestionView]:
    """The lookahead, then the history, newest first; ordinals of earlier epochs are not unique."""
    programme = player.programme
    found = [*programme.lookahead, *reversed(programme.history)]
    shown = [item for item in found if item.epoch_id == programme.epoch_id and item.ordinal]
    return [QuestionView(f"Why item {item.ordinal}, {_named(item)}", {"ordinal": item.ordinal}) for item in shown][
        :MOST_QUESTIONS
    ]


def _named(item: Item) -> str:
    return f"{item.id} of {item.channel}" if item.channel else f"new artwork {item.id}"


def _forms(player: Player) -> list[FormView]:
    """Forms for channels, items and bans are offered only if there are any."""
    on = player.screen.item
    artwork = 1 if on is None else on.id
    return [
        form("Show the next item", messages.Next),
        form("Show the previous item", messages.Prev),
        form("Show this next", messages.ShowNext, {"id": _free(player, artwork), "ts": 0}, only=OF_A_RECORD),
        form("Insert a new artwork", messages.Insert, {"id": _free(player, artwork + 1), "ts": 0}, only=OF_A_RECORD),
        form("Resume", messages.Resume) if player.paused else form("Pause", messages.Pause),
        *_about_items(player),
        form("Ban an artwork in all channels", messages.BanArtwork, {"id": artwork, "for_ms": 60_000}),
        *_about_bans(player),
        *_about_channels(player),
        form("Change settings", messages.Configure, {"settings": {"lookahead": 32}, "dwell_ms": player.dwell_ms}),
        form("Begin a new epoch", messages.Reset, {"reason": "requested"}),
    ]


def _free(player: Player, id: int) -> int:
    """The first artwork id from `id` that is not banned."""
    return next(one % MASK_64 for one in count(id) if one % MASK_64 not in player.programme.bans)


def _about_items(player: Player) -> Iterator[FormView]:
    programme = player.programme
    made = [one.ordinal for one in programme.lookahead if one.ordinal and one.epoch_id == programme.epoch_id]
    if made:
        yield form("Hide an item until its channel changes", messages.Ban, {"ordinal": made[0]})


def _about_bans(player: Player) -> Iterator[FormView]:
    banned = [str(id) for id in player.programme.bans]
    if banned:
        yield form("Lift a ban", messages.Lift, {"id": int(banned[0])}, {"id": banned})


def _about_channels(player: Player) -> Iterator[FormView]:
    paused_channels = list(player.programme.paused_channels)
    channels = [channel.id for channel in player.programme.snapshot.channels]
    playing = [name for name in channels if name not in paused_channels]
    for title, command, names in (
        ("Pause a channel", messages.PauseChannel, playing),
        ("Resume a channel", messages.ResumeChannel, paused_channels),
        ("Unfollow a channel", messages.Unfollow, channels),
    ):
        if names:
            yield form(title, command, {"channel": names[0]}, {"channel": names})
