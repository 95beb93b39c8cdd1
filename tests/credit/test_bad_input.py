"""Bad input: a broken scenario or command leads to a clear rejection or a correct run, never to a crash."""

import copy
import json
from collections.abc import Iterator
from decimal import Decimal
from random import Random
from typing import Any

import msgspec
import pytest

from pendula.credit.authoring.linting import lint
from pendula.credit.commands import (
    Clear,
    CloseLine,
    Commands,
    Configure,
    Freeze,
    OpenLine,
    Pay,
    SetIntensity,
    SetLimit,
    Stop,
    Tick,
)
from pendula.credit.engine import InvalidRun, Run
from pendula.credit.money import InvalidAmount, atoms
from pendula.credit.reading import read_scenario
from pendula.credit.runs.headless import Headless, RunPlan, RunRefused, plan_run
from pendula.credit.sentences import sentence_of
from pendula.credit.settings import TABLE, Settings, change_settings
from pendula.documents import Document, DocumentRefused, from_value, read_bytes
from pendula.kernel.errors import InputRefused
from tests.campaigns import campaign_after
from tests.credit.conftest import headless, network
from tests.credit.mutations import STRANGE, TEXTS, as_text, mutated, plain
from tests.credit.networks import CODES, IDS, Case, case

TICKS = 3

SMALL: dict[str, Any] = {
    "schema_version": "scenario/1",
    "scenario_id": "small",
    "equivalents": ["UAH"],
    "participants": [{"id": "ann", "type": "person"}, {"id": "bea", "type": "business"}],
    "trustlines": [
        {"from": "ann", "to": "bea", "limit": 5, "equivalent": "UAH"},
        {"from": "bea", "to": "ann", "limit": 5, "equivalent": "UAH"},
    ],
}


def small(**members: Any) -> dict[str, Any]:
    return {**copy.deepcopy(SMALL), **members}


def run_of(document: Document, sample: Case, **options: Any) -> Headless:
    settings = change_settings(Settings(), {**sample.settings, "enable_inject": "on"})
    return Headless(plan_run(document, seed=sample.seed, intensity=sample.intensity, settings=settings, **options))


def refused_or_right(scenario: Any, sample: Case, luck: Random, *, by_a_program: bool) -> str:
    """Pass the scenario as a file or as a program would; a rejection has its place, a run keeps its invariants."""
    try:
        document = from_value(plain(scenario)) if by_a_program else read_bytes(as_text(scenario))
        headless = run_of(document, sample, lenient=luck.random() < 0.2)
    except InputRefused as refused:
        check_refusal(refused)
        return "refused"
    lint(headless.run.scenario, headless.run.settings)
    headless.step(TICKS)
    assert list(headless.run.broken()) == []
    assert headless.run.tick == TICKS
    return "ran"


def check_refusal(refused: InputRefused) -> None:
    assert refused.message
    if isinstance(refused, DocumentRefused):
        assert refused.faults
        assert refused.render()
        assert all(fault.path.startswith("$") and fault.message and fault.code for fault in refused.faults)


def fuzz(seeds: range) -> dict[str, int]:
    results = {"refused": 0, "ran": 0}
    for seed in seeds:
        luck, sample = Random(seed), case(seed)
        by_a_program = seed % 4 == 3
        scenario = mutated(sample.scenario, luck, strange=by_a_program)
        try:
            results[refused_or_right(scenario, sample, luck, by_a_program=by_a_program)] += 1
        except Exception as trouble:
            trouble.add_note(f"the scenario of seed {seed}")
            raise
    return results


@pytest.mark.req("SIM-SCN-4")
@pytest.mark.parametrize("part", campaign_after(1, range(5)))
def test_a_thousand_mutated_scenarios_are_rejected_or_run_correctly(part: int) -> None:
    results = fuzz(range(200 * part, 200 * (part + 1)))

    assert min(results.values()) > 20, "the mutations must reach both rejections and runs"


@pytest.mark.long
def test_ten_thousand_mutated_scenarios_are_rejected_or_run_correctly() -> None:
    fuzz(range(1000, 11_000))


CONTRADICTIONS: list[tuple[dict[str, Any], str]] = [
    (small(participants=[]), "$.participants"),
    (small(equivalents=[]), "$.equivalents"),
    (small(equivalents=["UAH", "uah"]), "$.equivalents[1]"),
    (small(participants=[*SMALL["participants"], SMALL["participants"][0]]), "$.participants[2].id"),
    (small(trustlines=[*SMALL["trustlines"], SMALL["trustlines"][0]]), "$.trustlines[2]"),
    (small(trustlines=[{**SMALL["trustlines"][0], "to": "ann"}]), "$.trustlines[0]"),
    (small(behaviorProfiles=[{"id": "a"}, {"id": "a"}]), "$.behaviorProfiles[1].id"),
    (small(behaviorProfiles=[{"id": "a", "extends": "a"}]), "$.behaviorProfiles[0].extends"),
    (small(events=[{"type": "inject", "time": 0, "effects": []}]), "$.events[0].effects"),
]


@pytest.mark.req("SIM-SCN-5")
@pytest.mark.parametrize(("scenario", "path"), CONTRADICTIONS, ids=[path for _, path in CONTRADICTIONS])
def test_a_contradictory_scenario_is_rejected_with_its_place(scenario: dict[str, Any], path: str) -> None:
    with pytest.raises(DocumentRefused) as refused:
        plan_run(from_value(scenario))

    assert [fault.path for fault in refused.value.faults] == [path]


HUGE = [
    "1e400",
    "1e9999999999999999999999",
    "-1e9999999999999999999999",
    "1e-9999999999999999999999",
    "9" * 300,
    "9" * 13,
]
NOT_FINITE = ["NaN", "nan", "sNaN", "Infinity", "-Infinity", "inf"]
NO_NUMBER = ["", " ", "five", "1,5", "0x10", "1_000", "٣", "１", "--1", "1e", "e5", ".", "1 2", "½", "\u0000"]


@pytest.mark.req("SIM-SCN-5")
@pytest.mark.parametrize("amount", [*HUGE, *NOT_FINITE, *NO_NUMBER], ids=repr)
def test_an_invalid_amount_is_rejected(amount: str) -> None:
    with pytest.raises(InvalidAmount):
        atoms(amount)


@pytest.mark.parametrize(
    "amount", [value for value in STRANGE if isinstance(value, int | Decimal) and value], ids=range(10)
)
def test_a_number_beyond_any_file_is_rejected_as_an_amount(amount: int | Decimal) -> None:
    with pytest.raises(InvalidAmount) as refused:
        atoms(amount)

    assert len(refused.value.message) < 200


@pytest.mark.parametrize("value", STRANGE, ids=range(len(STRANGE)))
@pytest.mark.parametrize(
    "place",
    [
        ("seed",), ("scenario_id",), ("name",), ("participants",), ("participants", 0, "id"),
        ("trustlines", 0, "limit"), ("trustlines", 0, "equivalent"), ("trustlines", 0, "policy", "auto_clearing"),
        ("trustlines", 0, "policy", "max_hop_usage"), ("behaviorProfiles", 0, "props", "tx_rate"),
        ("behaviorProfiles", 0, "props", "amount_model", "UAH", "min"), ("events", 0, "time"),
        ("events", 0, "metadata", "duration_ms"), ("events", 0, "effects", 0, "value"),
        ("events", 1, "effects", 0, "op"), ("events", 1, "effects", 0, "amount"),
        ("events", 1, "metadata", "max_total_amount"),
        ("settings", "warmup", "ticks"), ("settings", "warmup", "floor"), ("settings", "trust_drift", "max_growth"),
    ],
    ids=lambda place: ".".join(map(str, place)),
)  # fmt: skip
def test_values_beyond_any_file_are_rejected_or_harmless(place: tuple[str | int, ...], value: Any) -> None:
    effect = {"op": "inject_debt", "from": "ann", "to": "bea", "equivalent": "UAH", "amount": 1}
    scenario: Any = small(
        behaviorProfiles=[{"id": "calm", "props": {"amount_model": {"UAH": {}}}}],
        events=[
            {"type": "stress", "time": 0, "metadata": {}, "effects": [{"op": "mult", "field": "tx_rate"}]},
            {"type": "inject", "time": 0, "metadata": {}, "effects": [effect]},
        ],
        settings={"warmup": {"ticks": 2}, "trust_drift": {"enabled": True}},
    )
    scenario["trustlines"][0]["policy"] = {}
    for participant in scenario["participants"]:
        participant["behaviorProfileId"] = "calm"
    inner = scenario
    for step in place[:-1]:
        inner = inner[step]
    inner[place[-1]] = value

    try:
        headless = run_of(from_value(scenario), Case(scenario, 1, 3, 100))
    except InputRefused as refused:
        check_refusal(refused)
        return

    headless.step(TICKS)
    assert list(headless.run.broken()) == []


def test_an_unknown_equivalent_is_skipped_in_an_injection_and_rejected_in_a_command() -> None:
    effects = [
        {"op": "inject_debt", "from": "ann", "to": "bea", "equivalent": "EUR", "amount": 1},
        {"op": "create_trustline", "from": "ann", "to": "bea", "equivalent": "EUR", "limit": 1},
    ]
    scenario = small(events=[{"type": "inject", "time": 0, "effects": effects}])
    headless = run_of(from_value(scenario), Case(scenario, 1, 1, 0))

    headless.step(1)

    (note,) = [diagnostic.facts for diagnostic in headless.diagnostics if diagnostic.code == "inject"]
    assert (note["applied"], note["skipped"]) == (0, 2)
    refusal = headless.run.apply(Pay("ann", "bea", "EUR", "1")).refusal
    assert refusal is not None
    assert refusal.code == "EQUIVALENT_NOT_FOUND"


@pytest.mark.parametrize("limit", ["999999999999.99999999", "0.00000001", "0"])
def test_the_largest_and_the_smallest_limits_run(limit: str) -> None:
    lines = [{**line, "limit": limit} for line in SMALL["trustlines"]]
    drift = {"trust_drift": {"enabled": True, "growth_rate": 1, "max_growth": 10**30}}
    scenario = small(trustlines=lines, settings=drift)
    headless = Headless(
        plan_run(from_value(scenario), seed=1, settings=change_settings(Settings(), {"amount_cap": "none"}))
    )

    headless.step(10)

    assert list(headless.run.broken()) == []


@pytest.mark.parametrize(
    "config",
    [None, [], {}, {"scenario": SMALL}, {"scenario": SMALL, "seed": -1, "run_id": "r"},
     {"scenario": SMALL, "seed": 1, "run_id": ""}, {"scenario": SMALL, "seed": 1, "run_id": "r", "mood": 1},
     {"scenario": SMALL, "seed": 1, "run_id": "r", "intensity_percent": 101},
     {"scenario": SMALL, "seed": 1, "run_id": "r", "settings": {"tick_ms_base": "x"}},
     {"scenario": SMALL, "seed": "1", "run_id": "r"}],
)  # fmt: skip
def test_an_invalid_configuration_is_rejected(config: Any) -> None:
    with pytest.raises(InvalidRun):
        Run.create(config)


@pytest.mark.parametrize("scenario", [None, [], 5, "small", {}, {"scenario_id": "x"}])
def test_a_configuration_without_a_scenario_is_rejected(scenario: Any) -> None:
    with pytest.raises(DocumentRefused):
        Run.create({"scenario": scenario, "seed": 1, "run_id": "r"})


ODD = (*TEXTS, "5.00", "0.005", "0.00000001", "2", "0", "999999999999.99999999", "\ud800")


def commands(luck: Random, run: Run) -> Iterator[Commands]:
    """Random commands with partly valid ids, codes and amounts; many are about existing lines."""
    people, codes = run.network.people.names, list(run.network.ledgers)
    lines = [(line.creditor, line.debtor, line.equivalent) for line in run.scenario.lines] or [("ann", "bea", "UAH")]

    def who() -> str:
        return luck.choice(people) if luck.random() < 0.8 else luck.choice((*ODD, *IDS))

    def code() -> str:
        return luck.choice(codes) if luck.random() < 0.9 else luck.choice((*ODD, *CODES))

    def amount() -> str:
        return luck.choice(ODD) if luck.random() < 0.6 else f"{luck.uniform(0, 30):.2f}"

    names = [setting.name for setting in TABLE if setting.name != "actions_per_tick_max"] + [
        "speed",
        "ROUTING_MAX_HOPS",
        "",
    ]
    while True:
        yield luck.choice(
            (
                Pay(who(), who(), code(), amount(), luck.choice((None, None, "k1", "k2", "k3"))),
                Pay(who(), who(), code(), amount()),
                OpenLine(who(), who(), code(), amount()),
                SetLimit(who(), who(), code(), amount()),
                SetLimit(*luck.choice(lines), amount()),
                CloseLine(who(), who(), code()),
                CloseLine(*luck.choice(lines)),
                Freeze(who(), luck.random() < 0.5),
                Clear(luck.choice((None, code())), luck.choice((1, 3, 6, 12)), luck.random() < 0.5),
                Configure({luck.choice(names): luck.choice(ODD) for _ in range(luck.randint(0, 2))}),
            )
        )


@pytest.mark.req("SIM-PAY-3")
def test_odd_commands_are_rejected_without_a_trace_or_applied_correctly() -> None:
    count: dict[str, int] = {}
    for seed in range(60):
        luck, sample = Random(seed), case(seed)
        headless = run_of(read_bytes(as_text(sample.scenario)), sample)
        headless.step(2)
        run = headless.run
        commands_at_random = commands(luck, run)
        for _ in range(25):
            before, command = run.state(), next(commands_at_random)
            refusal = run.apply(command).refusal
            word = refusal.code if refusal else "done"
            count[word] = count.get(word, 0) + 1
            if refusal is not None:
                assert sentence_of(refusal.code, refusal.facts)
                assert run.state() == before, command
        assert list(run.broken()) == []
        headless.step(1)
        assert list(run.broken()) == []
        assert Run.from_state(headless.plan.json, run.state()).state() == run.state()

    assert count["done"] > 100
    assert {
        "INVALID_INPUT",
        "PARTICIPANT_NOT_FOUND",
        "EQUIVALENT_NOT_FOUND",
        "CONFLICT",
        "TRUSTLINE_LIMIT_EXCEEDED",
        "TRUSTLINE_REJECTED",
        "TRUSTLINE_NOT_ACTIVE",
        "invalid_setting",
    } <= count.keys()


FORMS: list[Any] = [
    {"type": "pay"}, {"type": "pay", "from": 1, "to": "b", "equivalent": "UAH", "amount": "1"}, {"type": "steal"}, [],
    {"type": "pay", "from": "a", "to": "b", "equivalent": "UAH", "amount": 5}, {"type": "tick", "count": 0},
    {"type": "tick", "count": 1001}, {"type": "tick", "count": 1.5}, {"type": "set_intensity", "percent": 101},
    {"type": "set_intensity", "percent": -1}, {"type": "set_intensity", "percent": "50"},
    {"type": "pause", "now": True},
    {"type": "clear", "max_depth": 13}, {"type": "clear", "max_depth": 0}, {"type": "configure", "settings": {"a": 1}},
    {"type": "pay", "from": "a", "to": "b", "equivalent": "U", "amount": "1", "key": "a b"}, None, "tick", 5, {},
]  # fmt: skip


@pytest.mark.req("SIM-INT-6")
@pytest.mark.parametrize("form", FORMS, ids=lambda form: json.dumps(form)[:40])
def test_invalid_forms_are_not_read_as_commands(form: Any) -> None:
    with pytest.raises(msgspec.ValidationError):
        msgspec.convert(form, Commands)


def test_a_finished_run_rejects_every_change() -> None:
    plan: RunPlan = plan_run(from_value(SMALL), seed=1)
    headless = Headless(plan)
    headless.run.apply(Stop())
    before = headless.run.state()

    for command in (
        Pay("ann", "bea", "UAH", "1"), OpenLine("ann", "bea", "UAH", "1"), SetLimit("ann", "bea", "UAH", "1"),
        CloseLine("ann", "bea", "UAH"), Freeze("ann"), Clear(), Configure({}),
    ):  # fmt: skip
        refusal = headless.run.apply(command).refusal
        assert refusal is not None
        assert refusal.code == "run_conflict"
    assert headless.run.state() == before


def test_reading_and_running_leave_a_scenario_unchanged() -> None:
    given = case(7).scenario
    document = read_bytes(as_text(given))
    before = copy.deepcopy(document.value)

    run_of(document, case(7)).step(3)

    assert document.value == before
    assert read_scenario(document) == read_scenario(read_bytes(as_text(given)))


@pytest.mark.req("SIM-INT-6")
@pytest.mark.req("SIM-PAY-18")
@pytest.mark.parametrize(
    "command",
    [
        SetIntensity(150),
        SetIntensity(-1),
        SetIntensity(True),
        Tick(0),
        Clear(max_depth=0),
        Pay("a", "b", "UAH", 1.5),  # type: ignore[arg-type]
        Pay("a", "b", "UAH", "1", "bad key \n"),
        Pay("a", "b", "UAH", "1", ""),
        Stop("\ud800"),
    ],
)
def test_malformed_commands_are_rejected_without_a_trace(command: Commands) -> None:
    run = headless(network(("a", "b", 10)))
    before = run.run.state()

    with pytest.raises(RunRefused):
        run.do(command)

    assert run.run.state() == before
