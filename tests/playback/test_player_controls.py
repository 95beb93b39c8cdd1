"""Viewer controls of a player: each one is a command with its events; the current item changes if necessary."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from pendula.kernel.canonical import Json
from pendula.kernel.disk import RealDisk
from pendula.kernel.driver import begin_recording
from pendula.kernel.journal import FileJournal
from pendula.kernel.replay import replay
from pendula.playback import Channel, FromShelves
from pendula.playback.choosing.records import Row
from pendula.playback.engine import Player
from pendula.playback.messages import (
    Advance,
    ArtworkBanned,
    BanArtwork,
    Blank,
    ChannelPaused,
    ChannelResumed,
    Diagnosed,
    Insert,
    Lift,
    Lifted,
    Next,
    Pause,
    PauseChannel,
    Pinned,
    Reset,
    ResumeChannel,
    Shown,
    ShowNext,
    Take,
)
from pendula.playback.sentences import sentence_of
from tests.playback.shelves import ids
from tests.playback.test_contract import CONFIG, Library


def playing() -> Player:
    player = Player.create(CONFIG)
    player.outside = Library()
    player.apply(Next())
    return player


@pytest.mark.req("PLAY-USE-1")
def test_a_pinned_record_is_an_event_and_shown_next_for_its_own_dwell() -> None:
    player = playing()

    pinned = player.apply(ShowNext(id=77, ts=3, dwell_ms=250))
    shown = player.apply(Advance(1000)).events

    assert (pinned.events, pinned.answer) == ((Pinned(77, 0),), {"pinned": [77]})
    [event] = shown
    assert isinstance(event, Shown)
    assert (event.item.id, event.item.origin, event.started_at, event.ends_at) == (77, "pinned", 1000, 1250)
    assert not list(player.broken())


def test_why_of_a_pinned_item_works_in_a_later_epoch() -> None:
    player = playing()
    player.apply(ShowNext(id=77, ts=3, dwell_ms=250))
    player.apply(Advance(1000))

    player.apply(Reset("requested"))

    assert player.why({"now": True}).sentence == "It was pinned."


def test_why_of_an_item_of_an_earlier_epoch_says_so() -> None:
    player = playing()

    player.apply(Reset("requested"))

    assert player.why({"now": True}).sentence == "It is from epoch 0; the weights of that epoch are no longer known."


@pytest.mark.req("PLAY-USE-1")
def test_a_pin_fills_a_blank_screen_and_an_invalid_one_is_refused() -> None:
    player = Player.create({"seed": 1})
    refused = player.apply(ShowNext(id=5, payload="not base64"))
    assert refused.refusal is not None
    assert "16 and 32 bytes in base64" in sentence_of(refused.refusal.code, refused.refusal.facts)

    player.apply(ShowNext(id=5))

    assert player.next_due() == 0
    [event] = player.apply(Advance(0)).events
    assert isinstance(event, Shown)
    assert player.apply(Insert(id=900)).answer == {"result": "INSERTED"}


@pytest.mark.req("PLAY-USE-2")
def test_a_paused_channel_is_an_event_with_the_new_weights() -> None:
    player = playing()

    paused = player.apply(PauseChannel("a"))
    again = player.apply(PauseChannel("a"))
    resumed = player.apply(ResumeChannel("a"))

    assert paused.events == (ChannelPaused("a", {"a": 0, "b": 65536}, 0),)
    assert (again.events, again.answer) == ((), {"paused_channels": ["a"]})
    assert resumed.events == (ChannelResumed("a", {"a": 32768, "b": 32768}, 0),)


@pytest.mark.req("PLAY-USE-2")
def test_a_screen_is_blank_until_a_channel_plays_again() -> None:
    player = playing()
    for name in "ab":
        player.apply(PauseChannel(name))
    assert player.apply(Advance(5000)).events == (Blank(1000),)
    assert player.next_due() is None

    player.apply(ResumeChannel("b"))

    assert player.next_due() == 5000
    assert isinstance(player.apply(Advance(5000)).events[0], Shown)


@pytest.mark.req("PLAY-USE-3")
def test_a_banned_current_item_is_replaced_at_once_and_the_ban_expires() -> None:
    player = playing()
    assert player.screen.item is not None
    on = player.screen.item.id

    banned, shown = player.apply(BanArtwork(on, for_ms=2500)).events

    assert banned == ArtworkBanned(on, 2500, 0)
    assert isinstance(shown, Shown)
    assert shown.item.id != on
    player.apply(Pause())
    assert player.next_due() == 2500
    assert player.apply(Advance(2500)).events == (Lifted(on, 2500),)
    assert player.apply(Lift(on)).events == ()


@pytest.mark.parametrize("for_ms", [0, -5, 1 << 60])
def test_a_ban_of_zero_duration_is_refused(for_ms: int) -> None:
    player = playing()
    before = player.state()

    outcome = player.apply(BanArtwork(5, for_ms=for_ms))

    assert outcome.refusal is not None
    assert player.state() == before


class RemovedShelf:
    """A shelf on a removed card."""

    count, generation = 3, 9

    def run(self, at: int) -> Iterable[Row]:
        raise OSError("the card is gone")

    def record(self, at: int) -> Row:
        raise OSError("the card is gone")


@pytest.mark.req("PLAY-USE-6")
def test_a_player_with_a_journal_continues_when_a_shelf_raises(tmp_path: Path) -> None:
    channels = [ids("a", 1, 2), Channel("gone", RemovedShelf())]
    contents: list[Json] = [
        {"id": channel.id, "count": channel.shelf.count, "generation": channel.shelf.generation} for channel in channels
    ]
    config: Json = {"seed": 1, "channels": contents}
    driver = begin_recording(Player.create(config), config, RealDisk(tmp_path), outside=FromShelves(channels))

    ticket = driver.submit(Take(9), "me")
    driver.close()

    answer: Any = ticket.outcome.answer
    assert [item["channel"] for item in answer] == ["a"] * 9
    assert any(isinstance(event, Diagnosed) and event.facts["channel"] == "gone" for event in ticket.outcome.events)
    report = replay(FileJournal.open(RealDisk(tmp_path)), lambda _: Player)
    assert report.first_difference is None


@pytest.mark.parametrize(
    "question",
    [
        {"channel": "a", "generation": 1, "at": 0},
        {"channel": "b", "generation": 0, "at": 0},
        {"channel": "a", "generation": ids("a", 1).shelf.generation, "at": 1},
        {"channel": "a"},
        None,
    ],
)
def test_an_unknown_record_or_question_is_null(question: Json) -> None:
    answers = FromShelves([ids("a", 1)])

    assert answers.ask("record", question) is None
    assert answers.ask("weather", {"channel": "a", "generation": ids("a", 1).shelf.generation, "at": 0}) is None
    answers.put(ids("b", 2))
    assert answers.ask("record", {"channel": "b", "generation": ids("b", 2).shelf.generation, "at": 0}) is not None
