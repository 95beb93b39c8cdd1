"""Reading scenarios: every member and form, all faults at once with their places, lenient reading."""

import copy
import json
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
import yaml

from pendula.credit.model import (
    NO_FLOW,
    OPEN_POLICY,
    AddParticipant,
    CreateTrustline,
    DatedClearing,
    DatedPayment,
    Drift,
    EventType,
    Flow,
    FreezeParticipant,
    InjectDebt,
    LineStatus,
    Multiplier,
    Participant,
    ParticipantStatus,
    ParticipantType,
    Policy,
    Scenario,
    TimelineEvent,
    Trustline,
    Warmup,
)
from pendula.credit.money import ATOMS
from pendula.credit.reading import Caution, read_scenario, read_with_warnings
from pendula.credit.runs.headless import Headless, plan_run
from pendula.credit.settings import Settings, change_settings
from pendula.documents import DocumentRefused, Format, from_value, read_bytes, read_file
from pendula.kernel.canonical import Json
from tests.credit.conftest import network
from tests.credit.networks import PUBLIC, public_scenario

SMALL: dict[str, Any] = {
    "schema_version": "scenario/1",
    "scenario_id": "small",
    "equivalents": ["UAH"],
    "participants": [{"id": "ann", "type": "person"}, {"id": "bea", "type": "business"}, {"id": "cid", "type": "hub"}],
    "trustlines": [{"from": "ann", "to": "bea", "limit": 5, "equivalent": "UAH"}],
}
LINE = SMALL["trustlines"][0]


def small(**members: Any) -> dict[str, Any]:
    """The small scenario with other members; None removes a member."""
    given = {**copy.deepcopy(SMALL), **members}
    return {name: value for name, value in given.items() if value is not None}


def read(given: Any, *, lenient: bool = False) -> Scenario:
    """Read through text, so that numbers are those of a file."""
    return read_scenario(read_bytes(json.dumps(given).encode()), lenient=lenient)


def faults(given: Any, *, lenient: bool = False) -> list[tuple[str, str]]:
    with pytest.raises(DocumentRefused) as refused:
        read(given, lenient=lenient)
    return [(fault.path, fault.code) for fault in refused.value.faults]


def cautions(given: Any, *, lenient: bool = False) -> list[tuple[str, str]]:
    _, warnings = read_with_warnings(read_bytes(json.dumps(given).encode()), lenient=lenient)
    return [(warning.code, warning.path) for warning in warnings]


def line(**members: Any) -> dict[str, Any]:
    return {**LINE, **members}


def events(*given: dict[str, Any]) -> tuple[TimelineEvent, ...]:
    return read(small(events=list(given))).events


FULL = """\
schema_version: scenario/1
scenario_id: full
name: Everything
description: every member there is
seed: 7
baseEquivalent: " uah "
equivalents: [hour, EUR]
participants:
  - {id: bea, type: business, name: Bea, status: frozen, groupId: shops, behaviorProfileId: calm, metadata: {any: 1}}
  - {id: ann, type: person}
groups: [{id: shops, label: Shops}]
behaviorProfiles:
  - {id: calm, extends: plain, props: {tx_rate: 0.5}, rules: [{trigger: payday, action: spend, params: {share: 0.5}}]}
  - {id: plain, props: {tx_rate: 1, mood: fine}}
trustlines:
  - {from: bea, to: ann, limit: 12.5, equivalent: hour}
  - {from: ann, to: bea, limit: "7.12345678"}
  - from: bea
    to: ann
    limit: 3
    policy: {auto_clearing: "No", can_be_intermediate: true, max_hop_usage: 0, blocked_participants: [x, a, x],
             daily_limit: 9, status: any, more: [1]}
events:
  - {time: 0, type: note, op: o, label: l, description: d, effects: [], params: {}, metadata: {by: me}}
settings:
  warmup: {ticks: 50, floor: 0.25}
  trust_drift: {enabled: true, growth_rate: 0.1, decay_rate: 0.2, max_growth: 3.5, min_limit_ratio: 0.4,
                overload_threshold: 0.9}
  flow: {enabled: true, default_affinity: 0.5, reciprocity_bonus: 0.25}
"""


@pytest.mark.req("SIM-SCN-1")
@pytest.mark.req("SIM-SCN-2")
@pytest.mark.req("SIM-SCN-3")
def test_every_member_of_a_scenario_is_read() -> None:
    scenario = read_scenario(read_bytes(FULL.encode(), Format.YAML))

    assert (scenario.id, scenario.name, scenario.seed) == ("full", "Everything", 7)
    assert scenario.equivalents == ("EUR", "HOUR", "UAH")
    assert scenario.participants == (
        Participant("ann", ParticipantType.PERSON),
        Participant("bea", ParticipantType.BUSINESS, "Bea", ParticipantStatus.FROZEN, "shops", "calm"),
    )
    assert scenario.lines == (
        Trustline("HOUR", "bea", "ann", 1_250_000_000),
        Trustline("UAH", "ann", "bea", 712_345_678),
        Trustline("UAH", "bea", "ann", 3 * ATOMS, Policy(False, False, ("a", "x"))),
    )
    assert scenario.groups == ("shops",)
    assert scenario.profiles["calm"].props == {"tx_rate": Decimal("0.5"), "mood": "fine"}
    assert scenario.events == (TimelineEvent(0, EventType.NOTE, 0, "d", {"by": "me"}),)
    assert scenario.warmup == Warmup(50, Decimal("0.25"))
    assert scenario.drift == Drift(True, *map(Decimal, ("0.1", "0.2", "3.5", "0.4", "0.9")))
    assert scenario.flow == Flow(True, Decimal("0.5"), Decimal("0.25"))


def test_yaml_and_json_give_the_same_scenario() -> None:
    as_json = json.dumps(yaml.safe_load(FULL)).encode()

    assert read_scenario(read_bytes(as_json)) == read_scenario(read_bytes(FULL.encode(), Format.YAML))


def test_missing_members_have_their_defaults() -> None:
    scenario = read(SMALL)

    assert (scenario.name, scenario.seed, scenario.groups, scenario.profiles, scenario.events) == (
        None,
        None,
        (),
        {},
        (),
    )
    assert (scenario.warmup, scenario.drift, scenario.flow) == (Warmup(), Drift(), NO_FLOW)
    assert scenario.lines[0].policy is OPEN_POLICY


@pytest.mark.parametrize("flow", [{}, {"enabled": False}])
def test_the_bonus_has_its_default_only_where_flow_is_given(flow: dict[str, Any]) -> None:
    assert read(SMALL).flow.reciprocity_bonus == 0
    assert read(small(settings={"flow": flow})).flow.reciprocity_bonus == Decimal("0.15")
    assert read(small(settings={"flow": {"reciprocity_bonus": 0}})).flow.reciprocity_bonus == 0


@pytest.mark.req("SIM-SCN-1")
@pytest.mark.parametrize(
    ("place", "owner"),
    [
        ("$.mood", lambda scenario: scenario),
        ("$.participants[0].mood", lambda scenario: scenario["participants"][0]),
        ("$.trustlines[0].mood", lambda scenario: scenario["trustlines"][0]),
        ("$.groups[0].mood", lambda scenario: scenario["groups"][0]),
        ("$.behaviorProfiles[0].mood", lambda scenario: scenario["behaviorProfiles"][0]),
        ("$.behaviorProfiles[0].rules[0].mood", lambda scenario: scenario["behaviorProfiles"][0]["rules"][0]),
        ("$.events[0].mood", lambda scenario: scenario["events"][0]),
        ("$.events[0].effects[0].mood", lambda scenario: scenario["events"][0]["effects"][0]),
        ("$.settings.mood", lambda scenario: scenario["settings"]),
        ("$.settings.flow.mood", lambda scenario: scenario["settings"]["flow"]),
    ],
)
def test_unknown_members_are_faults_or_warnings_in_lenient_reading(place: str, owner: Any) -> None:
    given = small(
        groups=[{"id": "shops", "label": "Shops"}],
        behaviorProfiles=[{"id": "calm", "rules": [{"trigger": "t", "action": "a"}]}],
        events=[{"time": 0, "type": "inject", "effects": [{"op": "freeze_participant", "participant_id": "ann"}]}],
        settings={"flow": {}},
    )
    owner(given)["mood"] = "fine"

    assert faults(given) == [(place, "unknown_field")]
    assert cautions(given, lenient=True) == [("unknown_member", place.removesuffix(".mood"))]


@pytest.mark.req("SIM-SCN-1")
def test_open_objects_accept_any_members() -> None:
    given = small(
        behaviorProfiles=[{"id": "calm", "props": {"": [None], "x": {"y": 1}}, "rules": []}],
        events=[{"time": 0, "type": "stress", "effects": [{"?": 1}], "params": {"a": []}, "metadata": {"b": {}}}],
    )
    given["participants"][0]["metadata"] = {"anything": [1, None]}
    given["trustlines"][0]["policy"] = {"anything": 1}

    assert read(given).profiles["calm"].props == {"": [None], "x": {"y": 1}}


@pytest.mark.req("SIM-SCN-1")
@pytest.mark.parametrize("name", ["schema_version", "scenario_id", "participants", "trustlines"])
def test_missing_required_members_are_reported(name: str) -> None:
    assert faults(small(**{name: None})) == [(f"$.{name}", "missing_field")]


@pytest.mark.req("SIM-SCN-1")
@pytest.mark.parametrize("given", [[], "scenario", 5, None, True])
def test_a_scenario_is_an_object(given: Any) -> None:
    assert faults(given) == [("$", "invalid_field")]


@pytest.mark.req("SIM-SCN-1")
@pytest.mark.parametrize("id", ["", "a b", "é", "x" * 201, "a/b", 5, None])
def test_ids_have_1_to_200_letters_digits_and_signs(id: Any) -> None:
    given = small(groups=[{"id": id, "label": "Shops"}])

    assert faults(given) == [("$.groups[0].id", "invalid_field")]
    assert read(small(groups=[{"id": "x" * 200, "label": ""}, {"id": "A9_.:-", "label": ""}])).groups[1] == "A9_.:-"


@pytest.mark.req("SIM-SCN-2")
@pytest.mark.parametrize("code", ["", " ", "U-H", "ГРН", "X" * 17, "A B", 5, None])
def test_codes_have_1_to_16_capitals_digits_and_underlines(code: Any) -> None:
    assert faults(small(baseEquivalent=code) | {"baseEquivalent": code}) == [("$.baseEquivalent", "invalid_field")]
    assert faults(small(equivalents=["UAH", code])) == [("$.equivalents[1]", "invalid_field")]
    if code is not None:
        assert faults(small(trustlines=[line(equivalent=code)])) == [("$.trustlines[0].equivalent", "invalid_field")]


@pytest.mark.req("SIM-SCN-2")
def test_the_equivalents_are_those_listed_the_base_and_those_of_the_lines() -> None:
    scenario = read(small(equivalents=[" hour "], baseEquivalent="\teur", trustlines=[line(equivalent="uah_2")]))

    assert scenario.equivalents == ("EUR", "HOUR", "UAH_2")
    assert read(small(equivalents=None, baseEquivalent="eur", trustlines=[])).equivalents == ("EUR",)


@pytest.mark.req("SIM-SCN-2")
def test_an_equivalent_in_two_spellings_is_a_duplicate() -> None:
    assert faults(small(equivalents=["UAH", "EUR", " uah"])) == [("$.equivalents[2]", "not_unique")]
    assert faults(small(equivalents=[])) == [("$.equivalents", "invalid_field")]


@pytest.mark.req("SIM-SCN-3")
def test_a_line_without_code_takes_the_base_or_is_invalid() -> None:
    bare = {name: value for name, value in LINE.items() if name != "equivalent"}

    assert read(small(baseEquivalent="hour", trustlines=[bare])).lines[0].equivalent == "HOUR"
    assert faults(small(trustlines=[bare])) == [("$.trustlines[0].equivalent", "missing_field")]


@pytest.mark.req("SIM-SCN-5")
def test_participants_are_unique() -> None:
    twice = [*SMALL["participants"], {"id": "ann", "type": "hub"}]

    assert faults(small(participants=twice)) == [("$.participants[3].id", "not_unique")]


@pytest.mark.req("SIM-SCN-5")
def test_the_ends_of_a_line_exist_and_differ() -> None:
    given = [line(to="Bea"), line(**{"from": "stranger"}), line(to="ann")]

    assert faults(small(trustlines=given)) == [
        ("$.trustlines[0].to", "unknown_participant"),
        ("$.trustlines[1].from", "unknown_participant"),
        ("$.trustlines[2]", "self_line"),
    ]


@pytest.mark.req("SIM-SCN-5")
def test_a_line_is_unique_in_its_equivalent_and_direction() -> None:
    given = [line(), line(equivalent="eur"), {**LINE, "from": "bea", "to": "ann"}, line(equivalent=" uah", limit=9)]

    assert faults(small(trustlines=given)) == [("$.trustlines[3]", "not_unique")]
    assert len(read(small(trustlines=given[:3])).lines) == 3


@pytest.mark.req("SIM-SCN-5")
@pytest.mark.parametrize(
    "limit",
    [-1, "-0.01", "", "five", "NaN", "Infinity", "1e400", 10**12, "1000000000000", 0.123456789, "1,5", "0x10", True,
     None, [], {}],
    ids=repr,
)  # fmt: skip
def test_a_limit_is_a_finite_decimal_not_below_0(limit: Any) -> None:
    reported = faults(small(trustlines=[line(limit=limit)]))

    assert [path for path, _ in reported] == ["$.trustlines[0].limit"]
    assert reported[0][1] in ("invalid_amount", "invalid_field")


@pytest.mark.req("SIM-SCN-5")
@pytest.mark.parametrize(
    ("limit", "atoms"),
    [
        (0, 0),
        ("0.00", 0),
        ("-0", 0),
        (1000, 1000 * ATOMS),
        (12.34, 1_234_000_000),
        (0.1, 10_000_000),
        ("0.1", 10_000_000),
        (" 7.50 ", 750_000_000),
        ("7.12345678", 712_345_678),
        (1e3, 1000 * ATOMS),
        ("1e3", 1000 * ATOMS),
        ("999999999999.99999999", 10**20 - 1),
    ],
    ids=repr,
)
def test_limits_are_read_by_their_decimal_text(limit: Any, atoms: int) -> None:
    assert read(small(trustlines=[line(limit=limit)])).lines[0].limit == atoms


@pytest.mark.req("SIM-SCN-5")
def test_undeclared_groups_and_profiles_are_warnings() -> None:
    people = [
        {"id": "ann", "type": "person", "groupId": "shops", "behaviorProfileId": "calm"},
        {"id": "bea", "type": "person", "groupId": "stalls", "behaviorProfileId": "wild"},
        {"id": "cid", "type": "person", "behaviorProfileId": "household"},
    ]
    given = small(participants=people, groups=[{"id": "shops", "label": ""}], behaviorProfiles=[{"id": "calm"}])

    assert cautions(given) == [("unknown_group", "$.participants[1]"), ("unknown_profile", "$.participants[1]")]


@pytest.mark.req("SIM-PROF-3")
def test_props_are_merged_by_key_and_own_values_win() -> None:
    profiles = [
        {"id": "a", "extends": "b", "props": {"x": 1}},
        {"id": "b", "extends": "c", "props": {"x": 2, "y": {"p": 2}}},
        {"id": "c", "props": {"x": 3, "y": {"q": 3}, "z": 3}},
    ]
    merged = read(small(behaviorProfiles=profiles)).profiles

    assert merged["a"].props == {"x": 1, "y": {"p": 2}, "z": 3}
    assert merged["b"].props == {"x": 2, "y": {"p": 2}, "z": 3}


@pytest.mark.req("SIM-PROF-3")
def test_profiles_that_extend_unknown_ones_or_themselves_are_rejected() -> None:
    profiles = [{"id": "a", "extends": "b"}, {"id": "b", "extends": "a"}, {"id": "c", "extends": "stranger"}]

    assert [path for path, _ in faults(small(behaviorProfiles=profiles))] == [
        "$.behaviorProfiles[0].extends",
        "$.behaviorProfiles[1].extends",
        "$.behaviorProfiles[2].extends",
    ]


@pytest.mark.req("SIM-SCN-4")
def test_all_faults_are_reported_at_once_with_their_places() -> None:
    given = small(
        seed=-1,
        equivalents=["U-H"],
        participants=[{"id": "ann"}, {"id": "a b", "type": "robot", "status": "gone"}],
        trustlines=[{"from": "ann", "to": "zoe", "limit": "x"}, 5],
        settings={"warmup": {"ticks": 1.5, "floor": 2}, "trust_drift": {"max_growth": 0}},
        events=[{"time": -1, "type": "storm"}, {"type": "inject", "time": 0}],
    )

    assert set(faults(given)) == {
        ("$.seed", "invalid_field"),
        ("$.equivalents[0]", "invalid_field"),
        ("$.participants[0].type", "missing_field"),
        ("$.participants[1].id", "invalid_field"),
        ("$.participants[1].type", "invalid_enum"),
        ("$.participants[1].status", "invalid_enum"),
        ("$.trustlines[0].to", "unknown_participant"),
        ("$.trustlines[0].limit", "invalid_amount"),
        ("$.trustlines[0].equivalent", "missing_field"),
        ("$.trustlines[1]", "invalid_field"),
        ("$.settings.warmup.ticks", "invalid_field"),
        ("$.settings.warmup.floor", "invalid_field"),
        ("$.settings.trust_drift.max_growth", "invalid_field"),
        ("$.events[0].time", "invalid_field"),
        ("$.events[0].type", "invalid_enum"),
        ("$.events[1].effects", "missing_field"),
    }


@pytest.mark.req("SIM-SCN-4")
def test_faults_name_line_and_column_of_the_file() -> None:
    text = '{\n "schema_version": "scenario/1",\n "scenario_id": "",\n "equivalents": [], "participants": 3}'

    with pytest.raises(DocumentRefused) as refused:
        read_scenario(read_bytes(text.encode(), source_name="village.json"))

    assert [(fault.line, fault.path) for fault in refused.value.faults] == [
        (1, "$.trustlines"),
        (3, "$.scenario_id"),
        (4, "$.equivalents"),
        (4, "$.participants"),
    ]
    assert "village.json:3:" in refused.value.render()


@pytest.mark.req("SIM-SCN-8")
def test_a_time_in_words_is_accepted_with_one_warning_and_never_comes() -> None:
    given = small(events=[{"time": "day_10", "type": "note"}, {"time": "x" * 50, "type": "stress"}])

    assert [event.time for event in read(given).events] == [None, None]
    assert cautions(given) == [("time_not_in_ms", "$.events[0].time"), ("time_not_in_ms", "$.events[1].time")]
    assert faults(small(events=[{"time": "x" * 51, "type": "note"}])) == [("$.events[0].time", "invalid_field")]
    assert faults(small(events=[{"time": "", "type": "note"}])) == [("$.events[0].time", "invalid_field")]


@pytest.mark.req("SIM-SCN-8")
def test_dated_payments_and_clearings_are_read_from_params_and_effects() -> None:
    payment: dict[str, Json] = {"from": "ann", "to": "bea", "amount": "2.50"}
    events: list[Json] = [
        {"time": 0, "type": "payment", "params": payment, "effects": [{**payment, "amount": 1}]},
        {"time": 0, "type": "clearing", "params": {"equivalent": "uah"}},
        {"time": 0, "type": "clearing"},
    ]

    actions = [event.actions for event in read(small(events=events, baseEquivalent="UAH")).events]

    payments = tuple(DatedPayment("ann", "bea", "UAH", amount) for amount in (250_000_000, 100_000_000))
    assert actions == [payments, (DatedClearing("UAH"),), (DatedClearing("UAH"),)]


@pytest.mark.req("SIM-SCN-10")
@pytest.mark.parametrize(
    ("metadata", "params", "duration"),
    [
        ({"duration_ms": 500}, {"duration_ms": 900}, 500),
        ({}, {"duration_ms": 900}, 900),
        ({"duration_ms": "500"}, {"duration_ms": 900}, 900),
        ({"duration_ms": 0}, {"duration_ms": 900}, 0),
        ({"duration_ms": -5}, {}, 0),
        ({"duration_ms": 500.0}, {}, 500),
        ({}, {}, 0),
    ],
)
def test_the_duration_of_a_stress_comes_from_its_metadata_or_its_params(
    metadata: dict[str, Any], params: dict[str, Any], duration: int
) -> None:
    (event,) = events({"time": 0, "type": "stress", "metadata": metadata, "params": params})

    assert event.duration == duration


@pytest.mark.req("SIM-SCN-10")
def test_a_stress_multiplies_rates_and_other_effects_are_ignored() -> None:
    good = {"op": "mult", "field": "tx_rate", "value": 1.5}
    (event,) = events(
        {
            "time": 0,
            "type": "stress",
            "effects": [
                good,
                {**good, "scope": "group:shops"},
                {**good, "scope": "profile:calm", "value": 25},
                {**good, "op": "add"},
                {**good, "field": "limit"},
                {**good, "scope": "village"},
                *({**good, "value": value} for value in (0, -1, "2", True, None)),
                {},
            ],
        }
    )

    assert event.multipliers == (
        Multiplier("all", 1.5),
        Multiplier("group:shops", 1.5),
        Multiplier("profile:calm", 10.0),
    )


@pytest.mark.req("SIM-SCN-1")
def test_every_injection_is_read() -> None:
    (event,) = events(
        {
            "time": 0,
            "type": "inject",
            "metadata": {"max_total_amount": "12.5"},
            "effects": [
                {
                    "op": "add_participant",
                    "participant": {"id": "dan", "type": "hub", "name": "Dan", "status": "left", "groupId": "g"},
                    "initial_trustlines": [
                        {"sponsor": "ann", "equivalent": "uah", "limit": "5"},
                        {"sponsor": "bea", "equivalent": "EUR", "limit": -1, "direction": "new_credits_sponsor"},
                    ],
                },
                {"op": "create_trustline", "from": "ann", "to": "cid", "equivalent": "UAH", "limit": 2.5},
                {"op": "freeze_participant", "participant_id": "ann"},
                {"op": "freeze_participant", "participant_id": "ann", "freeze_trustlines": False},
                {"op": "inject_debt", "from": "ann", "to": "bea", "equivalent": "UAH", "amount": "4.5678"},
                {"op": "inject_debt", "creditor": "ann", "debtor": "bea", "equivalent": "UAH", "amount": 3},
            ],
        }
    )

    assert event.most == 1_250_000_000
    assert event.effects == (
        AddParticipant(
            Participant("dan", ParticipantType.HUB, "Dan", ParticipantStatus.LEFT, "g"),
            (Trustline("UAH", "ann", "dan", 5 * ATOMS), Trustline("EUR", "dan", "bea", -ATOMS)),
        ),
        CreateTrustline(Trustline("UAH", "ann", "cid", 250_000_000)),
        FreezeParticipant("ann"),
        FreezeParticipant("ann", freeze_lines=False),
        InjectDebt("ann", "bea", "UAH", 456_000_000),
        InjectDebt("ann", "bea", "UAH", 3 * ATOMS),
    )


DEBT = {"op": "inject_debt", "from": "ann", "to": "bea", "equivalent": "UAH", "amount": 1}


@pytest.mark.req("SIM-SCN-1")
@pytest.mark.parametrize(
    ("effect", "member"),
    [
        ({"op": "steal"}, ".op"),
        ({}, ".op"),
        ({"op": None}, ".op"),
        (5, ""),
        ({"op": "freeze_participant"}, ".participant_id"),
        ({"op": "freeze_participant", "participant_id": "ann", "freeze_trustlines": "no"}, ".freeze_trustlines"),
        ({"op": "create_trustline", "from": "ann", "to": "bea", "equivalent": "UAH"}, ".limit"),
        ({name: value for name, value in DEBT.items() if name != "from"}, ".from"),
        ({**DEBT, "to": ""}, ".to"),
        ({**DEBT, "creditor": 5}, ".creditor"),
        ({**DEBT, "amount": "1e400"}, ".amount"),
        ({**DEBT, "amount": None}, ".amount"),
        ({**DEBT, "equivalent": "U-H"}, ".equivalent"),
        ({"op": "add_participant", "participant": {"id": "dan", "type": "robot"}}, ".participant.type"),
    ],
)
def test_an_injection_of_an_unknown_form_is_a_fault(effect: Any, member: str) -> None:
    reported = faults(small(events=[{"time": 0, "type": "inject", "effects": [effect]}]))

    assert [path for path, _ in reported] == [f"$.events[0].effects[0]{member}"]


@pytest.mark.req("SIM-SCN-1")
@pytest.mark.parametrize("kind", ["note", "payment", "clearing", "stress"])
def test_the_effects_of_any_event_are_objects(kind: str) -> None:
    assert faults(small(events=[{"time": 0, "type": kind, "effects": 5}])) == [("$.events[0].effects", "invalid_field")]
    assert faults(small(events=[{"time": 0, "type": kind, "effects": [5]}])) == [
        ("$.events[0].effects[0]", "invalid_field")
    ]


@pytest.mark.parametrize("word", [False, 0, "0", "false", "no", "off", " OFF "])
def test_a_policy_is_switched_off_by_any_false_word(word: Any) -> None:
    policy = read(small(trustlines=[line(policy={"auto_clearing": word, "can_be_intermediate": word})])).lines[0].policy

    assert (policy.auto_clearing, policy.mediates) == (False, False)


@pytest.mark.parametrize("word", [True, 1, "1", "true", "Yes", "on", None])
def test_a_policy_is_on_by_any_true_word_or_null(word: Any) -> None:
    policy = read(small(trustlines=[line(policy={"auto_clearing": word, "can_be_intermediate": word})])).lines[0].policy

    assert policy is OPEN_POLICY


@pytest.mark.parametrize("word", [2, -1, 0.5, "maybe", "", [], {}])
def test_a_policy_that_is_neither_on_nor_off_is_a_fault(word: Any) -> None:
    given = small(trustlines=[line(policy={"auto_clearing": word})])

    assert faults(given) == [("$.trustlines[0].policy.auto_clearing", "invalid_field")]


@pytest.mark.req("SIM-DET-8")
def test_the_order_of_lists_in_the_file_does_not_matter() -> None:
    given = yaml.safe_load(FULL)
    turned = {**given, **{name: given[name][::-1] for name in ("participants", "trustlines", "equivalents")}}

    assert read(turned) == read(given)


@pytest.mark.req("SIM-SCN-5")
def test_lenient_reading_accepts_older_files_with_warnings() -> None:
    given = {
        "id": "older",
        "equivalents": ["UAH"],
        "behavior_profiles": [],
        "participants": SMALL["participants"],
        "trustlines": [line(status="frozen"), line(to="cid", limit="0.123456789", status="active")],
    }

    scenario, warnings = read_with_warnings(read_bytes(json.dumps(given).encode()), lenient=True)

    assert scenario.id == "older"
    assert [(line.limit, line.status) for line in scenario.lines] == [
        (5 * ATOMS, LineStatus.FROZEN),
        (12_345_678, LineStatus.ACTIVE),
    ]
    assert [(warning.code, warning.path) for warning in warnings] == [
        ("id_for_scenario_id", "$.id"),
        ("no_schema_version", "$"),
        ("unknown_member", "$"),
        ("amount_rounded", "$.trustlines[1].limit"),
    ]
    assert all(isinstance(warning, Caution) and warning.message for warning in warnings)
    assert {path for path, _ in faults(given)} >= {"$.id", "$.scenario_id", "$.trustlines[0].status"}


@pytest.mark.req("SIM-SCN-5")
@pytest.mark.parametrize(
    "given",
    [
        small(scenario_id=None),
        small(equivalents=None),
        small(participants=[]),
        small(trustlines=[line(to="stranger")]),
        small(trustlines=[line(limit="x")]),
        small(trustlines=[line(limit=-1)]),
        small(trustlines=[line(status="odd")]),
        small(behaviorProfiles=[{"id": "a", "extends": "a"}]),
    ],
)
def test_lenient_reading_rejects_invalid_scenarios(given: dict[str, Any]) -> None:
    assert faults(given, lenient=True)


@pytest.mark.req("SIM-TEST-1")
@pytest.mark.req("SIM-SCN-1")
@pytest.mark.parametrize(
    ("name", "participants", "lines", "codes", "events"),
    [
        ("minimal", 2, 1, ("UAH",), 0),
        ("clearing-demo-10", 10, 17, ("UAH",), 1),
        ("trust-drift-decay-minimal", 2, 1, ("UAH",), 0),
        ("greenfield-village-100-realistic-v2", 100, 432, ("UAH",), 4),
        ("riverside-town-50-realistic-v2", 50, 218, ("UAH",), 4),
        ("_archive/greenfield-village-100", 100, 439, ("EUR", "HOUR", "UAH"), 0),
        ("_archive/riverside-town-50", 50, 222, ("EUR", "HOUR", "UAH"), 0),
        ("_archive/golden-7_2-like", 4, 5, ("UAH",), 1),
        ("_archive/clearing-demo-manual", 5, 6, ("UAH",), 1),
    ],
)
def test_public_scenarios_load_unchanged(
    name: str, participants: int, lines: int, codes: tuple[str, ...], events: int
) -> None:
    scenario = read(public_scenario(name))

    assert (len(scenario.participants), len(scenario.lines), scenario.equivalents) == (participants, lines, codes)
    assert len(scenario.events) == events


@pytest.mark.req("SIM-TEST-1")
@pytest.mark.req("SIM-SCN-4")
@pytest.mark.parametrize(
    ("name", "path", "words"),
    [
        ("missing_scenario_id", "$.scenario_id", "'scenario_id' is missing"),
        ("missing_equivalent_fields", "$", "one of equivalents and baseEquivalent is needed"),
    ],
)
def test_public_negatives_are_rejected_with_readable_places(name: str, path: str, words: str) -> None:
    file = PUBLIC / "negative" / f"{name}.json"
    if not file.is_file():
        pytest.skip(f"the public scenario {name} is not beside this checkout")

    with pytest.raises(DocumentRefused) as refused:
        read_scenario(read_file(file))

    assert [(fault.path, fault.code) for fault in refused.value.faults] == [(path, "missing_field")]
    assert words in refused.value.render()


def test_a_regression_file_of_the_reference_loads_only_leniently() -> None:
    file = Path(PUBLIC / "trust_drift_decay_regression.json")
    if not file.is_file():
        pytest.skip("the public scenario trust_drift_decay_regression is not beside this checkout")

    with pytest.raises(DocumentRefused):
        read_scenario(read_file(file))
    assert len(read_scenario(read_file(file), lenient=True).lines) == 3


@pytest.mark.req("SIM-DET-14")
def test_floats_of_a_program_equal_the_decimals_of_a_file() -> None:
    def state_of(rate: Any, limit: Any) -> Any:
        scenario: Any = network(("b", "a", limit), behaviorProfiles=[{"id": "payer", "props": {"tx_rate": rate}}])
        scenario["participants"][0]["behaviorProfileId"] = "payer"
        run = Headless(
            plan_run(from_value(scenario), seed=1, settings=change_settings(Settings(), {"amount_cap": "2"}))
        )
        run.step(5)
        return run.run.state()

    assert state_of(0.25, 12.3) == state_of(Decimal("0.25"), "12.3")
    assert state_of(0.25, 12.3) != state_of(1, "12.3")
    with pytest.raises(DocumentRefused, match="more than 8 digits after the point"):
        state_of(0.25, 0.1 + 0.2)
