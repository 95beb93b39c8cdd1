"""No journal, state or digest contains a sentence: rewording one changes no outcome."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from msgspec import Struct

from pendula.actions import Advance, Diagnostic, Instance, Rejection, Request, Submit, World, explain, sentences
from pendula.actions.messages import Command
from pendula.actions.runs.batch import config_of
from pendula.kernel.canonical import Json, decode
from pendula.kernel.disk import RealDisk
from pendula.kernel.driver import begin_recording, send
from pendula.kernel.engine import Outside, Reason, refusal_sentence
from tests.actions import test_engine
from tests.actions.scenarios import Hook, commands_of, declared, scenario, watched
from tests.actions.worlds import EPOCH, does, lasting

# A value without canonical bytes is refused before it is recorded.
UNRECORDED = {"not_canonical"}


class Case(Struct):
    config: Any
    commands: Sequence[Command]
    questions: Sequence[Json] = ()
    outside: Outside | None = None


class Run(Struct):
    """The bytes written by one case, and the texts rendered from it."""

    records: list[bytes]  # their bodies
    states: list[bytes]
    reasons: set[str]
    texts: list[str]


class Answers:
    """User code with invalid answers."""

    def ask(self, name: str, question: Json) -> Json:
        assert isinstance(question, dict)
        if name == "modifiers":
            factors: dict[str, Json] = {"A2": 11, "A3": "x"}
            return {"wild": factors.get(str(question["action_id"]), 1)}
        if question["process"] == "again":
            return [{"wait": [{"minute": 0}], "process": "again"}]
        return [{"id": f"F{n}", "actor": "ann", "verb": "nap"} for n in range(4)]


def faulty() -> Case:
    """A world with every fault."""
    defs = {
        "nap": lasting(10),
        "endless": lasting(525_600, effort="high"),
        "dull": lasting(0),
        "broken": {**lasting(5), "effort": "hihg"},
        "greedy": lasting(5, resources=[{"name": "wood", "amount": "-1"}]),
        "poor": lasting(5, resources=[{"name": "wood", "amount": "2.50"}]),
        "hall": lasting(60, "hall"),
        "soft": lasting(60, interruptible=True, priority=3, resume="manual"),
        "dash": lasting(5, "hall", wait="fail"),
        "alarm": lasting(5, "hall", preempts=True, priority=2),
        "siren": lasting(5, preempts=True, priority=1, interrupts="*"),
        "thirsty": lasting(
            5, "hall", preempts=True, priority=9, on_shortage="wait", resources=[{"name": "oil", "amount": 1}]
        ),
        "locked": lasting(5, "vault"),
        "crowded": lasting(5, *(f"l{n}" for n in range(4))),
        "tell": lasting(5, may_trigger_event=True),
        "watch": lasting(60, interruptible=True),
        "knock": lasting(1, preempts=True, priority=8, interrupts=["watch"]),
    }
    config = {
        "epoch": EPOCH,
        "action_defs": defs,
        "resources": {"wood": "1.50"},
        "skills": {
            "bob": {"nap": 7},
            "cid": 3,
            "dan": {"matrix": {"care": 2}},
            "eve": {"matrix": {"care": "x"}},
            "fay": {"matrix": {"care": 1}},
            "gus": {"matrix": {"care": 1}},
        },
        "skill_weights": {"hall": {"base": "x"}, "tell": {"base": "Infinity"}},
        "options": {
            "ask_modifiers": True,
            "follow_ups": True,
            "strict_locks": ["hall", "l0", "l1", "l2", "l3"],
            "limits": {"locks_each": 3, "follow_ups": 3},
        },
    }
    submissions: list[Any] = [
        {"id": "X"},
        7,
        does("A1", 0, "nap", priority="high"),
        does("A4", 0, "nap", visibility={"scop": "public"}),
        does("A5", 0, "nap", mood="glad"),
        does("A6", 0, "fly"),
        does("A7", 0, "dull"),
        does("A8", 0, "broken"),
        does("A9", 0, "greedy"),
        does("A2", 0, "nap"),
        does("A3", 0, "nap"),
        does("B1", 0, "endless", actor="zoe"),
        does("B2", 0, "nap", actor="bob"),
        does("B3", 0, "nap", actor="cid"),
        does("B4", 0, "nap", actor="dan"),
        does("B5", 0, "nap", actor="eve"),
        does("B6", 0, "hall", actor="fay"),
        does("B7", 0, "tell", actor="gus"),
        does("B8", "2025-07-01T08:05", "nap"),
        does("B9", "2025-07-01T08:05:00Z", "nap"),
        does("C1", "9999-01-01T00:00:00", "nap"),
        does("C2", 10**12, "nap"),
        does("A5", 0, "nap"),
        does("C3", 500, "nap"),
        does("C4", 0, "locked"),
        does("C5", 0, "poor"),
        does("C6", 0, "crowded"),
        does("D1", 1, "hall"),
        does("D2", 2, "dash"),
        does("D3", 3, "alarm"),
        does("D4", 4, "thirsty"),
        does("D5", 5, "alarm"),
        does("E1", 100, "soft"),
        does("E2", 101, "siren"),
        does("E3", 102, "tell"),
        does("V", 300, "watch"),
        {"wait": [{"minute": 3}]},
        {"wait": [], "process": "p"},
        {"wait": [{"noon": 3}], "process": "p"},
        {"wait": [{"minute": "x"}], "process": "p"},
        {"wait": [{"minute": 10**12}], "process": "p"},
        {"wait": [{"minute": 0}], "process": "again"},
    ]
    interrupts: list[Any] = [
        {"t": 2, "target": "D1", "priority": 9, "source": "bell"},
        {"t": 3, "target": "D2", "priority": 9},
        {"t": 3, "target": "D3", "priority": 9},
        {"t": 110, "target": "E1", "priority": 3},
        {"t": 310, "target": "V", "priority": 9},
        {"target": "E1", "priority": 3},
        {"t": -1, "target": "E1", "priority": 3},
        {"at": "noon", "target": "E1", "priority": 3},
        {"t": 5, "target": "E1", "priority": "x"},
    ]
    commands: list[Any] = [
        {"t": 3, "cancel": "C3"},
        {"t": 3, "cancel": "Z"},
        {"t": 3, "cancel": "D1"},
        {"t": 3, "resume": "D1"},
        {"t": 3, "resume": "D1", "force": True},
        {"t": 3, "cancel": "D1", "resume": "D1"},
        {"t": 3, "cancel": 7},
    ]
    script: list[Command] = [
        Submit(tuple(submissions)),
        Request(tuple(interrupts), tuple(commands)),
        Advance(4),
        Advance(1),
        Advance(10**12),
        Advance("x"),  # type: ignore[arg-type]
        Submit((Instance("I", "ann", "nap", t=10**12),)),
        Advance(310),
        Submit((does("K", 310, "knock"),)),  # V started for the second time in this minute; K ends in the next
        Advance(2000),
    ]
    names = ("A2", "C3", "D1", "D3", "D4", "D5", "E1", "nobody")
    questions: list[Json] = [*({"action": name} for name in names), {"lock": "hall"}, {"odd": 1}]
    return Case(config, script, questions, Answers())


def cases() -> dict[str, Case]:
    random = {f"{make.__name__}-{seed}": make(seed) for make in (scenario, watched, declared) for seed in (1, 2)}
    return {
        "faulty": faulty(),
        "engine": Case(test_engine.CONFIG, test_engine.COMMANDS, [{"action": name} for name in "ABCDERF"], Hook({})),
        **{
            name: Case(config_of(case.document), commands_of(case, 10), [{"action": "A0"}], Hook(case.follow))
            for name, case in random.items()
        },
    }


def run(case: Case, folder: Path) -> Run:
    world = World.create(case.config)
    driver = begin_recording(world, case.config, RealDisk(folder), outside=case.outside, snapshot_every=3)
    found = Run([], [], set(), [])
    for command in case.commands:
        outcome = send(driver, command, "test")
        found.states.append(world.state())
        if outcome.refusal is not None:
            found.texts.append(refusal_sentence(World, outcome.refusal))
        for event in outcome.events:
            if isinstance(event, Rejection | Diagnostic):
                found.reasons.add(event.reason)
                found.texts.append(event.message)
        for question in case.questions:
            found.texts += [reason.sentence for reason in all_of(world.why(question))]
    found.records = [bytes(record.body) for record in driver.journal.read(0)]
    driver.close()
    return found


def all_of(reason: Reason) -> Iterator[Reason]:
    yield reason
    for inner in reason.because:
        yield from all_of(inner)


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Run]:
    folder = tmp_path_factory.mktemp("journals")
    return {name: run(case, folder / name) for name, case in cases().items()}


@pytest.mark.parametrize("name", sorted(cases()))
def test_other_sentences_give_the_same_bytes(
    name: str, runs: dict[str, Run], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain = runs[name]
    for table in ("REASONS", "REFUSALS"):
        bare = {code: lambda _, code=code: code for code in getattr(sentences, table)}
        monkeypatch.setattr(sentences, table, bare)
    monkeypatch.setattr(
        explain, "Reason", lambda code, _, facts=None, because=(): Reason(code, code, facts or {}, because)
    )

    reworded = run(cases()[name], tmp_path / "reworded")

    assert (reworded.records, reworded.states) == (plain.records, plain.states)
    assert reworded.texts != plain.texts
    assert not any(" " in text for text in reworded.texts)


def strings(value: Any) -> Iterator[str]:
    """Every string value in JSON, keys left out."""
    match value:
        case str():
            yield value
        case dict():
            for member in value.values():
                yield from strings(member)
        case list():
            for member in value:
                yield from strings(member)


@pytest.mark.parametrize("name", sorted(cases()))
def test_no_stored_text_contains_a_space(name: str, runs: dict[str, Run]) -> None:
    """The inputs have no spaces, so a text that has one is a sentence."""
    found = runs[name]

    assert [text for data in (*found.records, *found.states) for text in strings(decode(data)) if " " in text] == []


def test_the_cases_cover_every_reason(runs: dict[str, Run]) -> None:
    reached = {reason for run in runs.values() for reason in run.reasons}

    assert set(sentences.REASONS) - reached == UNRECORDED
