"""The questions and commands that a page offers for a player."""

from collections.abc import Iterator
from itertools import count

from pendula.playback import messages
from pendula.playback.engine import Player
from pendula.playback.model import MASK_64, Item
from pendula.server.runtime.scheduler_spec import ChoicesView, FormView, QuestionView, form

MOST_QUESTIONS = 24
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
