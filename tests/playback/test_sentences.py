"""No sentence enters a journal, a state or a digest: rewording one changes no byte of any outcome."""

import json
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from random import Random
from typing import Any

import msgspec
import pytest

from pendula.kernel.canonical import Json, encode
from pendula.kernel.disk import RealDisk
from pendula.kernel.driver import begin_recording
from pendula.kernel.engine import Reason
from pendula.kernel.journal import FileJournal
from pendula.playback import explain, sentences
from pendula.playback.engine import Player
from pendula.playback.explain import stats
from pendula.playback.messages import (
    Advance,
    Ban,
    BanArtwork,
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
)
from tests.playback.test_contract import COMMANDS, CONFIG, QUESTIONS, WISHES, Library

Render = Callable[..., str]

# Commands that are refused, each for another reason; no text in them has a space.
REFUSED: Sequence[Commands] = (
    Take(100_001),
    Take(-1),
    Advance(-1),
    Advance(1 << 53),
    Ban(99),
    BanArtwork(-1),
    BanArtwork(7, for_ms=0),
    ShowNext(),
    ShowNext(id=5, kind=256),
    ShowNext(id=5, payload="AAAA"),
    Follow(Contents("a", 8)),
    Follow(Contents("", 8)),
    Follow(Contents("many", 9000)),
    Refresh(Contents("unknown", 1)),
    Unfollow("unknown"),
    PauseChannel("unknown"),
    Configure({"exposure": {"manual_weights": {"a": "much"}}}),
    Configure({"exposure": {"manual_weights": {"a": "NaN"}}}),
    Configure({"exposure": {"mode": "MaE", "manual_weights": {"aa": 1}}}),
    Configure({"exposure": {"alpha": 2, "p_min": 0}}),
    Configure({"exposure": None}),
    Configure({"lookahed": 5}),
    Configure({"history": 10**90}),
    Configure({"zone": "?"}),
    Configure({"day_parts": [{"name": "x"}]}),
    Configure({"day_parts": [{"name": "x", "start": "25:00", "end": "26:00", "weights": {}}]}),
    Configure({"exposure": {"mode": "MaE", "manual_weights": {"a": 0}}}),
    Configure(dwell_ms=0),
)


def drawn(seed: int) -> list[Commands]:
    """A random history over the channels of the fixture, some of whose commands are refused."""
    random = Random(seed)
    channels = ("a", "b", "torn", "gone", "unknown")
    made: list[Commands] = []
    now = 0
    for _ in range(60):
        channel, id = random.choice(channels), random.choice((1, 2, 12, 22, 900, 901, 2**64))
        now += random.choice((0, 500, 3000))
        made.append(
            random.choice(
                (
                    Next(), Next(), Prev(), Take(random.randrange(20)), Insert(id=id), Advance(now), Pause(), Resume(),
                    Follow(Contents(channel, random.randrange(4))), Unfollow(channel), Ban(random.randrange(1, 30)),
                    Refresh(Contents(channel, random.randrange(4), random.randrange(3))), Reset("again"),
                    ShowNext(id=id), PauseChannel(channel), ResumeChannel(channel), BanArtwork(id), Lift(id),
                    Configure({"pick": {"mode": random.choice(("recency", "random", "newest"))}}),
                    Configure({"exposure": {"mode": "MaE", "manual_weights": {channel: random.randrange(3)}}}),
                )
            )
        )  # fmt: skip
    return made


HISTORIES: dict[str, Sequence[Commands]] = {
    "commands": COMMANDS,
    "viewers": WISHES,
    "refused": REFUSED,
    **{f"seed-{seed}": drawn(seed) for seed in range(12)},
}


class Outcomes(msgspec.Struct):
    """The stored bytes of a run, and the sentences rendered beside them."""

    journal: list[bytes]
    states: list[bytes]
    answers: list[bytes]
    rendered: list[str]


def run(commands: Sequence[Commands], directory: Path) -> Outcomes:
    player = Player.create(CONFIG)
    outcomes = Outcomes([], [], [], [])
    driver = begin_recording(player, CONFIG, RealDisk(directory), outside=Library())
    for command in commands:
        ticket = driver.submit(command, "test")
        driver.flush()
        outcome = ticket.outcome
        outcomes.states.append(player.state())
        outcomes.answers.append(encode([outcome.answer, [msgspec.to_builtins(event) for event in outcome.events]]))
        if outcome.refusal is not None:
            outcomes.rendered.append(player.sentence(outcome.refusal.code, outcome.refusal.facts))
        outcomes.rendered += [str(event.message) for event in outcome.events if hasattr(event, "message")]
    outcomes.rendered += [player.why(question).sentence for question in QUESTIONS]
    outcomes.rendered += [json.dumps(stats(player.programme)["diagnostics"])]
    driver.close()
    journal = FileJournal.open(RealDisk(directory))
    outcomes.journal = [bytes(record.body) for record in journal.read(journal.first_n)]
    journal.close()
    return outcomes


def bare_codes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every renderer returns the code alone."""
    for table in (sentences.REFUSALS, sentences.DIAGNOSTICS, sentences.RESETS):
        for code in table:
            monkeypatch.setitem(table, code, lambda *_, code=code: code)
    monkeypatch.setattr(explain, "Reason", lambda code, _, *rest: Reason(code, code, *rest))


@pytest.mark.parametrize("name", HISTORIES)
def test_other_sentences_change_no_byte_of_an_outcome(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain = run(HISTORIES[name], tmp_path / "plain")
    bare_codes(monkeypatch)
    bare = run(HISTORIES[name], tmp_path / "bare")

    assert bare.journal == plain.journal
    assert bare.states == plain.states
    assert bare.answers == plain.answers
    assert bare.rendered != plain.rendered


def texts(value: Json) -> Iterator[str]:
    """All strings among the values of a JSON value."""
    match value:
        case str():
            yield value
        case dict():
            for member in value.values():
                yield from texts(member)
        case list():
            for member in value:
                yield from texts(member)


@pytest.mark.parametrize("name", HISTORIES)
def test_no_text_of_an_outcome_has_a_space(name: str, tmp_path: Path) -> None:
    outcomes = run(HISTORIES[name], tmp_path / "run")

    spaced = [
        text
        for data in (*outcomes.journal, *outcomes.states, *outcomes.answers)
        for text in texts(json.loads(data))
        if " " in text
    ]

    assert spaced == []


def test_the_histories_cover_refusals_diagnostics_and_resets(tmp_path: Path) -> None:
    reached: dict[str, set[Any]] = {"refusal": set(), "diagnosed": set(), "epoch_began": set()}
    for name, commands in HISTORIES.items():
        for data in run(commands, tmp_path / name).journal:
            body = json.loads(data)
            if body.get("refusal"):
                reached["refusal"].add(body["refusal"]["code"])
            for event in body.get("events") or ():
                if event["type"] == "diagnosed":
                    reached["diagnosed"].add(event["code"])
                if event["type"] == "epoch_began":
                    reached["epoch_began"].add(event["reason"]["code"])

    assert reached["refusal"] >= set(sentences.REFUSALS) - {"too_many_channels", "too_many_controls"}
    assert reached["diagnosed"] == set(sentences.DIAGNOSTICS)
    assert reached["epoch_began"] >= {"asked_for", "snapshot_changed", "day_part_began"}
