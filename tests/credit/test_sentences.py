"""Sentences are rendered on display: rewording one changes no byte of a journal, a state or a digest."""

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from random import Random
from typing import Any

import pytest

from pendula.credit import sentences
from pendula.credit.commands import (
    Abandon,
    Clear,
    CloseLine,
    Commands,
    Configure,
    Freeze,
    OpenLine,
    Pause,
    Pay,
    Restart,
    Resume,
    SetIntensity,
    SetLimit,
    Stop,
    Tick,
)
from pendula.credit.engine import Run
from pendula.credit.events import Event, RunStatus, TxFailed
from pendula.credit.outside.payment_service import PaymentService
from pendula.credit.runs.headless import Headless, RunPlan, plan_run
from pendula.credit.settings import Settings, change_settings
from pendula.credit.tick import phases
from pendula.documents import from_value
from pendula.kernel.canonical import Json, decode
from pendula.kernel.driver import begin_recording
from pendula.kernel.engine import Outcome, Outside
from pendula.testing.faulty_disk import FaultyDisk
from tests.credit.conftest import network
from tests.credit.misbehaving import Act, serving
from tests.credit.misbehaving import network as ring
from tests.credit.networks import case

ENGINE: Json = {"code": "engine_failed", "url": "core/payments", "cause": "no_result", "status": 500}
HOP: Json = {"path": ["ann", "bea"], "amount": "1.00"}
# Valid and invalid answers of a payment service.
PAID: tuple[Json, ...] = (
    {"timeout": True},
    {"timeout": True, "trouble": ENGINE},
    {"status": "ABORTED", "error": {"code": "ROUTING_NO_CAPACITY"}},
    {"status": "ABORTED", "error": {"code": "INTERNAL_ERROR"}, "trouble": ENGINE},
    {"unclear": "http_500", "trouble": ENGINE},
    {"status": "COMMITTED", "routes": []},
    {"status": "COMMITTED", "routes": [HOP]},
    {"status": "COMMITTED", "routes": [{"path": ["ann"], "amount": "1.00"}]},
    {"status": "COMMITTED", "routes": [{"path": ["ann", "cid"], "amount": "1.00"}]},
    {"status": "COMMITTED", "routes": [{"path": ["ann", "bea"], "amount": "much"}]},
)
SOLVED: tuple[Json, ...] = (
    None,
    {"flows": ["9"]},
    {"flows": ["99", "9", "9"]},
    {"flows": ["1", "0", "0"]},
    {"flows": ["0"] * 3},
    {"refused": {"code": "missing_extra", "facts": {"extra": "optimal", "modules": ["ortools"]}}},
    {"refused": {"code": "amounts_too_large", "facts": {"value": "9", "unit": "1", "allowed": "2"}}},
    {"refused": {"code": "amounts_too_large", "facts": {}}},
)


class Sample:
    """The stored bytes of one run, and its rendered sentences."""

    def __init__(self) -> None:
        self.records: list[Any] = []
        self.states: list[bytes] = []
        self.digests: dict[str, str] = {}
        self.sentences: list[tuple[str, str]] = []  # code or kind, sentence

    def show(self, code: str, facts: Mapping[str, Json], sentence: str) -> None:
        self.sentences.append((str(facts.get("kind", code)), sentence))


class Answers:
    """An outside that returns its answers in turn to any question."""

    def __init__(self, answers: Sequence[Json]) -> None:
        self._answers = answers
        self._asked = 0

    def ask(self, name: str, question: Json) -> Json:
        self._asked += 1
        return self._answers[self._asked % len(self._answers)]


def record(plan: RunPlan, commands: Sequence[Commands], outside: Outside | None = None) -> Sample:
    """A run through a journal with a snapshot at the end."""
    sample, run = Sample(), Run.create(plan.json)
    driver = begin_recording(run, plan.json, FaultyDisk(), outside=outside)
    outcome: Outcome[Event] = Outcome()
    reader = Headless(plan, run, lambda _: outcome)
    for command in commands:
        ticket = driver.submit(command, by="test")
        driver.flush()
        outcome = ticket.outcome
        if outcome.refusal is None:
            reader.do(command)
        else:
            refusal = outcome.refusal
            sample.show(refusal.code, refusal.facts, run.sentence(refusal.code, refusal.facts))
        for event in outcome.events:
            match event:
                case TxFailed(error=failure):
                    sample.show(failure.code, failure.details, event.message)
                case RunStatus(last_error=error) if error is not None:
                    sample.show(error.code, error.details, error.message)
                case _:
                    pass
        sample.states.append(run.state())
    for diagnostic in reader.result().diagnostics:
        sample.show(diagnostic.code, {}, diagnostic.message)
    sample.digests = run.digests()
    sample.records = [decode(bytes(record.body)) for record in driver.journal.read()]
    driver.close()
    return sample


def chaos(seed: int, count: int = 40) -> list[Commands]:
    """Commands of every kind, many of them refused."""
    luck = Random(seed)
    names, codes = ("ann", "bea", "Zoe", "10", "9", "dan", "stranger"), ("UAH", "EUR", "HOUR", "NONE")
    amounts = ("1", "2.50", "0", "-3", "1e999", "0.000000001", "9" * 13, "lots", "nan", "400")
    variables = ("clearing_policy", "amount_cap", "routing_max_hops", "stop_grace_sec", "tick_ms_base", "unheard_of")

    def ends() -> tuple[str, str]:
        return luck.choice(names), luck.choice(names)

    def command() -> Commands:
        match luck.randrange(12):
            case 0:
                return Pay(*ends(), luck.choice(codes), luck.choice(amounts), luck.choice((None, "k1", "k2")))
            case 1:
                return OpenLine(*ends(), luck.choice(codes), luck.choice(amounts))
            case 2:
                return SetLimit(*ends(), luck.choice(codes), luck.choice(amounts))
            case 3:
                return CloseLine(*ends(), luck.choice(codes))
            case 4:
                return Freeze(luck.choice(names), lines=luck.random() < 0.5)
            case 5 | 6:
                return Configure({luck.choice(variables): luck.choice(("adaptive", "3", "none", "-5", "many"))})
            case 7:
                return Configure({"adaptive_max_depth_min": "6", "adaptive_max_depth_max": "5"})
            case 8:
                return Clear(luck.choice((None, *codes)), dry_run=luck.random() < 0.5)
            case 9 if luck.random() < 0.3:
                return luck.choice((Pause(), Resume(), SetIntensity(50), Stop("tests", "enough"), Restart(), Abandon()))
            case _:
                return Tick()

    return [command() for _ in range(count)]


def without_spaces(value: Any) -> Any:
    match value:
        case str():
            return value.replace(" ", "")
        case dict():
            return {name: without_spaces(member) for name, member in value.items()}
        case list():
            return [without_spaces(member) for member in value]
    return value


def plan_of(
    scenario: Any, settings: dict[str, str], seed: int = 1, intensity: int = 100, engine: str = "embedded"
) -> RunPlan:
    document = from_value(without_spaces(scenario))
    options = change_settings(Settings(), settings)
    return plan_run(document, seed=seed, intensity=intensity, settings=options, engine=engine)


def samples() -> Iterator[Sample]:
    """Runs that reach refusals, failed payments, notes and errors that end a run."""
    for seed in range(16):
        sample = case(seed)
        inject = {"enable_inject": "on" if seed % 3 else "off"}
        yield record(plan_of(sample.scenario, {**sample.settings, **inject}, sample.seed), [Tick(2), *chaos(seed)])
    circle = network(("B", "A", 9), ("C", "B", 9), ("A", "C", 9))
    optimal = {"clearing_mode": "optimal", "clearing_every_n_ticks": "1", "routing_max_hops": "1"}
    payments = [Pay(sender, receiver, "UAH", "5") for sender, receiver in ("AB", "BC", "CA")]
    for answer in SOLVED:
        yield record(plan_of(circle, optimal, intensity=0), [*payments, Clear(), Tick(2)], Answers([answer]))
    outside = {"actions_per_tick_max": "8", "amount_cap": "5", "max_timeouts_per_tick": "4", "clearing_enabled": "off"}
    for seed in range(6):
        plan = plan_of(ring(), outside, seed, engine="external")
        yield record(plan, [Tick()] * 4 + [Clear(), Pause(), Tick()], Answers(PAID[seed:] + PAID[:seed]))
    lost = plan_of(ring(), {}, engine="external")
    yield record(lost, [Tick(5), SetIntensity(1)], Answers([{"tick_failed": True}]))
    hasty = {"routing_timeout_ms": "1", "work_units_per_ms": "1", "max_errors_total": "3"}
    yield record(plan_of(case(3).scenario, hasty), [Tick(9), Tick()])


def spaced(value: Any) -> Iterator[str]:
    """Every string value that has a space."""
    match value:
        case str():
            if " " in value:
                yield value
        case dict():
            for member in value.values():
                yield from spaced(member)
        case list():
            for member in value:
                yield from spaced(member)


def silence(patch: pytest.MonkeyPatch) -> None:
    """Let every renderer return the bare code, in every module that uses it."""
    silent: dict[str, Callable[..., str | None]] = {
        "sentence_of": lambda code, facts: str(facts.get("kind", code)),
        "note_sentence": lambda kind, *_: kind if kind in sentences.NOTES else None,
        "no_result_sentence": lambda engine: str(engine["code"]),
        "cause_text": lambda engine: str(engine["cause"]),
        "allowed_values": lambda facts: str(facts["type"]),
    }
    renderers = {name: getattr(sentences, name) for name in silent}
    public = {name for name, value in vars(sentences).items() if getattr(value, "__module__", "") == sentences.__name__}
    assert {name for name in public if not name.startswith("_")} == set(silent)
    for name, module in list(sys.modules.items()):
        if name.startswith("pendula."):
            for member, value in list(vars(module).items()):
                if member in renderers and value is renderers[member]:
                    patch.setattr(module, member, silent[member])


def test_rewording_changes_no_byte_of_a_journal_a_state_or_a_digest(monkeypatch: pytest.MonkeyPatch) -> None:
    spoken = list(samples())
    silence(monkeypatch)
    silent = list(samples())

    assert [sample.records for sample in silent] == [sample.records for sample in spoken]
    assert [sample.states for sample in silent] == [sample.states for sample in spoken]
    assert [sample.digests for sample in silent] == [sample.digests for sample in spoken]
    rendered = {pair for sample in spoken for pair in sample.sentences}
    unrendered = {pair for sample in silent for pair in sample.sentences}
    assert {kind for kind, _ in rendered} == {kind for kind, _ in unrendered}
    kinds = {kind for kind, sentence in rendered - unrendered if " " in sentence}
    assert len(kinds) > 35, "many kinds of refusals and failures are reached"


def test_journals_and_states_contain_no_sentence() -> None:
    for sample in samples():
        assert list(spaced(sample.records)) == []
        for state in sample.states:
            assert list(spaced(decode(state))) == []


def test_a_sentence_in_an_event_is_detected(monkeypatch: pytest.MonkeyPatch) -> None:
    def chatty(run: Any, draft: Any) -> None:
        draft.note({"kind": "chatty", "message": "a sentence"})

    monkeypatch.setattr(phases, "PHASES", (*phases.PHASES, chatty))

    sample = record(plan_of(case(0).scenario, {}), [Tick()])

    assert list(spaced(sample.records)) == ["a sentence"]


@pytest.mark.parametrize("act", [Act.DISCONNECT, Act.NOT_HTTP, Act.NOT_JSON, Act.FAIL, Act.REDIRECT, Act.REFUSE])
def test_recorded_answers_of_a_payment_service_contain_no_sentence(act: Act) -> None:
    question: dict[str, Json] = {"from": "ann", "to": "bea", "equivalent": "UAH", "amount": "2.50"}
    with serving(forever=act) as service:
        payments = PaymentService(service.url)
        answer = payments.ask("pay", {**question, "idempotency_key": "k1"})

    gone = payments.ask("pay", {**question, "idempotency_key": "k2"})

    assert list(spaced([answer, gone])) == []


@pytest.mark.parametrize("table", [sentences.CAUSES, sentences.IGNORED, sentences.WITHOUT_EFFECT])
def test_every_word_has_its_text(table: Mapping[str, str]) -> None:
    assert all(" " not in word and text for word, text in table.items())


def test_facts_that_do_not_fit_render_as_the_code() -> None:
    assert sentences.sentence_of("amounts_too_large", {}) == "amounts_too_large"
    assert sentences.sentence_of("missing_extra", {"modules": 3, "extra": None}) == "missing_extra"
    assert sentences.sentence_of("no_such_code", {"kind": "no_such_kind"}) == "no_such_code"
