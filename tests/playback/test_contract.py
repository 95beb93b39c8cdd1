"""The player satisfies the contract of all engines: the same bytes twice, restored, replayed, after any crash."""

from base64 import b64encode
from collections.abc import Sequence

import pytest

from pendula.kernel.canonical import Json
from pendula.playback.choosing.records import MemoryShelf
from pendula.playback.engine import Player
from pendula.playback.messages import (
    Advance,
    At,
    Ban,
    BanArtwork,
    Clock,
    Commands,
    Configure,
    Contents,
    Follow,
    Insert,
    Lift,
    Next,
    Pause,
    PauseChannel,
    Prev,
    Refresh,
    Reset,
    Resume,
    ResumeChannel,
    ShowNext,
    Take,
    Unfollow,
    Update,
)
from pendula.playback.model import Record
from pendula.playback.sentences import sentence_of
from pendula.testing import engine_contract
from tests.playback.shelves import listed

QUESTIONS: Sequence[Json] = ({"ordinal": 1}, {"ordinal": 3}, {"ordinal": 99}, {"now": True}, {"nonsense": 1})


class Library:
    """The records of channels by name; `gone` is unreadable, and one record of `torn` is damaged."""

    def __init__(self) -> None:
        self.shelves = {
            "a": MemoryShelf(listed(range(1, 9))),
            "b": MemoryShelf([Record(id, 5, dwell_ms=700) for id in (2, 12, 13)]),
            "torn": MemoryShelf(listed((21, 22, 23))),
            "gone": MemoryShelf(listed((31, 32))),
        }

    def ask(self, name: str, question: Json) -> Json:
        assert name == "record"
        assert isinstance(question, dict)
        channel, at = question["channel"], question["at"]
        assert isinstance(channel, str)
        assert isinstance(at, int)
        if channel == "gone":
            return None
        raw = self.shelves[channel].record(at)[2]
        if channel == "torn" and at == 1:
            raw = raw[:40] + b"?" + raw[41:]
        return b64encode(raw).decode()


CONFIG: Json = {
    "seed": 1,
    "channels": [{"id": "a", "count": 8}, {"id": "b", "count": 3, "generation": 7}],
    "settings": {"history": 4, "lookahead": 3},
    "dwell_ms": 1000,
}
SUNDAY_EVENING = 1_774_803_540_000  # 29 March 2026, 16:59 UTC
PARTS: Json = [
    {"name": "evening", "start": "18:00", "end": "20:00", "weights": {"a": 1}, "days": ["sun"]},
    {"name": "night", "start": "20:00", "end": "06:00", "weights": {"b": "0.5"}},
]
COMMANDS: Sequence[Commands] = (
    Insert(id=900, ts=1),
    Next(),
    Next(),
    Prev(),
    Prev(),
    Next(),
    Advance(2500),
    Insert(id=901, ts=1, payload="AAAA"),
    Insert(id=902),
    Take(9),
    Pause(),
    Advance(9000),
    Next(),
    Resume(),
    Advance(12_000),
    Configure({"pick": {"mode": "random", "r": 4}}),
    Configure({"pick": {"mode": "nonsense"}}),
    Configure(dwell_ms=500),
    Take(5),
    Update((Follow(Contents("torn", 3)), Follow(Contents("gone", 2)), Configure({"pick": {"mode": "recency"}}))),
    Take(12),
    Ban(),
    Advance(20_000),
    Refresh(Contents("gone", 0, 2), total_count=5, recent_count=1),
    Unfollow("nobody"),
    Unfollow("a"),
    Advance(19_000),
    At(20_500, Next()),
    At(20_600, Unfollow("nobody")),
    At(20_400, Next()),
    At(20_500, Pause()),
    At(25_000, Resume()),
    At(25_100, Advance(25_050)),
    At(39_000, Resume()),
    At(1 << 60, Next()),
    Update((Unfollow("b"), Unfollow("torn"), Unfollow("gone"))),
    Advance(40_000),
    Insert(id=903),
    Advance(60_000),
    Reset("enough"),
    Advance(60_001),
)
WISHES: Sequence[Commands] = (
    Configure({"refresh": "keep", "day_parts": PARTS}, dwell_ms=900_000),
    Take(2),
    ShowNext(id=950, ts=3),
    ShowNext(id=12, ts=3, payload="AAAA"),
    Next(),
    PauseChannel("a"),
    PauseChannel("x"),
    Next(),
    BanArtwork(12, for_ms=3000),
    BanArtwork(2),
    Insert(id=12),
    ShowNext(id=12),
    Advance(3000),
    ResumeChannel("a"),
    Lift(2),
    Clock(SUNDAY_EVENING, ((0, 3600), (SUNDAY_EVENING + 30_000, 7200))),
    Clock(0, ()),
    Refresh(Contents("a", 8, 1)),
    Advance(3_664_000),
    Next(),
)


@pytest.mark.campaign
@pytest.mark.req("PLAY-USE-1")
@pytest.mark.req("PLAY-USE-5")
def test_viewer_controls_satisfy_the_contract() -> None:
    engine_contract(Player, CONFIG, WISHES, QUESTIONS, Library())


@pytest.mark.req("PLAY-LOOK-7")
@pytest.mark.req("PLAY-API-7")
def test_the_player_satisfies_the_contract() -> None:
    engine_contract(Player, CONFIG, COMMANDS, QUESTIONS, Library())


def test_a_blank_screen_shows_an_item_when_a_channel_is_added() -> None:
    player = Player.create({"seed": 1, "dwell_ms": 60_000, "settings": {"lookahead": 1}})
    player.outside = Library()
    player.apply(Insert(id=900))
    for _ in range(60):
        player.apply(Next())
        if player.screen.item is None:
            break
    # The artwork is still in the pool and can be drawn later.
    assert any(player.programme.generator.pool)
    assert player.next_due() == 60_000

    player.apply(Follow(Contents("a", 8)))

    assert player.next_due() == player.now()


@pytest.mark.parametrize("to", [1 << 53, 10**30])
def test_time_beyond_its_limit_is_refused(to: int) -> None:
    player = Player.create(CONFIG)
    before = player.state()

    outcome = player.apply(Advance(to))

    assert outcome.refusal is not None
    assert outcome.refusal.code == "invalid_parameter"
    assert player.state() == before


def test_an_item_from_before_a_change_cannot_be_banned() -> None:
    player = Player.create(CONFIG)
    player.outside = Library()
    player.apply(Next())
    player.apply(Reset("asked for"))

    outcome = player.apply(Ban())

    assert outcome.refusal is not None
    assert outcome.refusal.code == "not_shown"
    assert "before the last change" in sentence_of(outcome.refusal.code, outcome.refusal.facts)


def test_partial_settings_keep_the_weights_of_other_channels() -> None:
    player = Player.create(CONFIG)
    player.apply(Configure({"exposure": {"mode": "MaE", "manual_weights": {"a": 3, "b": 1}}}))
    player.apply(Configure({"exposure": {"manual_weights": {"b": 3}}}))

    assert player.programme.generator.weights == [32768, 32768]
