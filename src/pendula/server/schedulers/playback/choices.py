"""What can be asked of a player, to choose from: why each item came or comes, and wishes that it would grant."""

from collections.abc import Iterator
from itertools import count

from pendula.playback import events
from pendula.playback.engine import Player
from pendula.playback.model import MASK_64, Item
from pendula.server.hosting.choices import ChoicesView, FormView, QuestionView, form

MOST_QUESTIONS = 24
OF_A_RECORD = ("id", "ts", "dwell_ms", "payload")


def choices(player: Player) -> ChoicesView:
    """For a player as it stands."""
    return ChoicesView([QuestionView("Why this is on", {"now": True}), *_items(player)], _forms(player))


def _items(player: Player) -> list[QuestionView]:
    """What comes, then what was, the latest first; items of earlier epochs are known by other numbers."""
    programme = player.programme
    found = [*programme.lookahead, *reversed(programme.history)]
    shown = [item for item in found if item.epoch_id == programme.epoch_id and item.ordinal]
    return [QuestionView(f"Why item {item.ordinal}, {_named(item)}", {"ordinal": item.ordinal}) for item in shown][
        :MOST_QUESTIONS
    ]


def _named(item: Item) -> str:
    return f"{item.id} of {item.channel}" if item.channel else f"new artwork {item.id}"


def _forms(player: Player) -> list[FormView]:
    """What concerns a channel, an item or a ban, only where there is one."""
    on = player.screen.item
    artwork = 1 if on is None else on.id
    return [
        form("Show the next item", events.Next),
        form("Show the one before", events.Prev),
        form("Show this next", events.ShowNext, {"id": _free(player, artwork), "ts": 0}, only=OF_A_RECORD),
        form("Insert a new artwork", events.Insert, {"id": _free(player, artwork + 1), "ts": 0}, only=OF_A_RECORD),
        form("Resume", events.Resume) if player.paused else form("Pause", events.Pause),
        *_about_items(player),
        form("Ban an artwork from every channel", events.BanArtwork, {"id": artwork, "for_ms": 60_000}),
        *_about_bans(player),
        *_about_channels(player),
        form("Change settings", events.Configure, {"settings": {"lookahead": 32}, "dwell_ms": player.dwell_ms}),
        form("Begin a new epoch", events.Reset, {"reason": "somebody asked for it"}),
    ]


def _free(player: Player, id: int) -> int:
    """An artwork that is not banned, from this one on."""
    return next(one % MASK_64 for one in count(id) if one % MASK_64 not in player.programme.bans)


def _about_items(player: Player) -> Iterator[FormView]:
    programme = player.programme
    made = [one.ordinal for one in programme.lookahead if one.ordinal and one.epoch_id == programme.epoch_id]
    if made:
        yield form("Hide an item until its channel changes", events.Ban, {"ordinal": made[0]})


def _about_bans(player: Player) -> Iterator[FormView]:
    banned = [str(id) for id in player.programme.bans]
    if banned:
        yield form("Lift a ban", events.Lift, {"id": int(banned[0])}, {"id": banned})


def _about_channels(player: Player) -> Iterator[FormView]:
    paused_channels = list(player.programme.paused_channels)
    channels = [channel.id for channel in player.programme.snapshot.channels]
    playing = [name for name in channels if name not in paused_channels]
    for title, command, names in (
        ("Let a channel rest", events.PauseChannel, playing),
        ("Let a channel play again", events.ResumeChannel, paused_channels),
        ("Follow a channel no more", events.Unfollow, channels),
    ):
        if names:
            yield form(title, command, {"channel": names[0]}, {"channel": names})
