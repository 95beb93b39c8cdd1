"""Each finding of the linter on its own, by code and place; no findings in a sound scenario."""

import copy
import json
from collections.abc import Iterator
from itertools import permutations
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pendula.credit.authoring.linting import has_circle, lint, marks_within, parts, reach, ways_of
from pendula.credit.authoring.villages import Profile as Kind
from pendula.credit.authoring.villages import village
from pendula.credit.model import Participant, ParticipantType, Profile, Scenario, Trustline
from pendula.credit.money import ATOMS
from pendula.credit.planning.planner import REACH_HOPS, REACH_MOST, Market
from pendula.credit.planning.profiles import behaviour
from pendula.credit.reading import Caution, read_scenario
from pendula.credit.runs.headless import Headless, plan_run
from pendula.credit.settings import Settings, change_settings
from pendula.credit.state.run_state import RunState
from pendula.credit.tick.phases import silenced_profiles
from pendula.documents import from_value, read_bytes
from tests.campaigns import fewer_examples
from tests.credit.mutations import as_text
from tests.credit.networks import MALFORMED, case, public_scenario

# A scenario takes a tenth of a second to make and to lint.
SCENARIOS = fewer_examples()
# Buyers pay shops, shops pay makers, makers pay buyers; a line runs from payee to payer.
RING = [("ann", "bea"), ("bea", "cid"), ("cid", "ann")]


def ring(**members: Any) -> dict[str, Any]:
    """Three participants that can pay in a circle: a scenario without findings."""
    given = {
        "schema_version": "scenario/1",
        "scenario_id": "ring",
        "equivalents": ["UAH"],
        "groups": [{"id": name, "label": name} for name in ("buyers", "makers", "shops")],
        "participants": [
            {"id": "ann", "type": "person", "groupId": "buyers", "behaviorProfileId": "calm"},
            {"id": "bea", "type": "business", "groupId": "shops", "behaviorProfileId": "calm"},
            {"id": "cid", "type": "business", "groupId": "makers", "behaviorProfileId": "calm"},
        ],
        "behaviorProfiles": [{"id": "calm", "props": {"tx_rate": 0.5}}],
        "trustlines": [line(payer, payee) for payer, payee in RING],
    }
    return {**given, **members}


def line(payer: str, payee: str, limit: Any = 50, code: str = "UAH", **policy: Any) -> dict[str, Any]:
    return {"from": payee, "to": payer, "limit": limit, "equivalent": code, "policy": policy}


def person(name: str, **members: Any) -> dict[str, Any]:
    return {"id": name, "type": "person", **members}


def findings(scenario: Any, **settings: str) -> tuple[Caution, ...]:
    return lint(read_scenario(read_bytes(json.dumps(scenario).encode())), change_settings(Settings(), settings))


def codes(scenario: Any, **settings: str) -> list[str]:
    return [caution.code for caution in findings(scenario, **settings)]


def only_caution(code: str, scenario: Any, **settings: str) -> Caution:
    (caution,) = [caution for caution in findings(scenario, **settings) if caution.code == code]
    return caution


def with_props(**props: Any) -> dict[str, Any]:
    return ring(behaviorProfiles=[{"id": "calm", "props": props}])


def test_a_sound_scenario_has_no_findings() -> None:
    assert codes(ring()) == []


@pytest.mark.req("SIM-SCN-15")
def test_participants_without_a_line_are_reported() -> None:
    scenario = ring()
    scenario["participants"] += [person("dan"), person("eva", status="left")]

    caution = only_caution("participant_without_line", scenario)

    assert caution.path == "$.participants[?@.id=='dan']"
    assert "dan" in caution.message
    assert "eva" not in caution.message


def test_a_long_list_is_counted_and_shortened() -> None:
    scenario = ring()
    scenario["participants"] += [person(f"p{number}") for number in range(9)]

    caution = only_caution("participant_without_line", scenario)

    assert caution.path == "$.participants"
    assert "9 participants (p0, p1, p2, p3, p4 and 4 more)" in caution.message


def test_participants_that_cannot_pay_or_cannot_be_paid_are_reported() -> None:
    scenario = ring()
    scenario["participants"] += [person("dan"), person("eva"), person("off", status="suspended")]
    scenario["trustlines"] += [line("ann", "dan"), line("dan", "off"), line("eva", "ann"), line("ann", "eva", limit=0)]

    assert only_caution("participant_cannot_pay", scenario).path == "$.participants[?@.id=='dan']"
    assert only_caution("participant_cannot_be_paid", scenario).path == "$.participants[?@.id=='eva']"


def test_a_limit_of_zero_is_reported() -> None:
    scenario = ring()
    scenario["trustlines"] += [line("bea", "ann", limit="0.00")]

    assert "ann to bea (UAH)" in only_caution("limit_of_zero", scenario).message
    assert codes(scenario) == ["limit_of_zero"]


def test_unknown_blocked_participants_are_reported() -> None:
    scenario = ring()
    scenario["trustlines"][0] = line("ann", "bea", blocked_participants=["cid", "Cid"])

    assert "Cid" in only_caution("blocked_unknown", scenario).message


def test_an_equivalent_without_a_live_line_is_reported() -> None:
    assert "EUR" in only_caution("equivalent_without_line", ring(equivalents=["UAH", "EUR"])).message


@pytest.mark.req("SIM-SCN-15")
def test_separate_parts_of_the_network_are_reported_by_equivalent() -> None:
    scenario = ring()
    others = ("dan", "eva", "fay", "gus")
    scenario["participants"] += [person(name) for name in others]
    scenario["trustlines"] += [line(payer, payee) for payer, payee in zip(others, others[1:] + others[:1], strict=True)]

    assert "UAH falls into 2 parts that no payment crosses (4 with dan, 3 with ann)" in (
        only_caution("separate_parts", scenario).message
    )
    assert codes(scenario) == ["separate_parts"]


@pytest.mark.req("SIM-SCN-15")
@pytest.mark.parametrize(
    ("lines", "settings", "expected"),
    [
        (RING[:2], {}, True),
        ([*RING[:2], ("bea", "ann"), ("cid", "bea")], {}, True),
        (RING, {}, False),
        (RING, {"clearing_max_depth": "2"}, True),
        (RING, {"clearing_max_depth": "3"}, False),
        (RING[:2], {"clearing_enabled": "off"}, False),
        (RING[:2], {"clearing_every_n_ticks": "0"}, False),
        (RING[:2], {"clearing_policy": "adaptive", "clearing_every_n_ticks": "0"}, True),
    ],
)
def test_clearing_that_can_never_help_is_reported(
    lines: list[tuple[str, str]], settings: dict[str, str], expected: bool
) -> None:
    scenario = ring(trustlines=[line(*ends) for ends in lines])

    assert ("no_cycle" in codes(scenario, **settings)) is expected


def test_lines_excluded_from_clearing_close_no_circle() -> None:
    scenario = ring()
    scenario["trustlines"][1]["policy"] = {"auto_clearing": False}

    assert codes(scenario) == ["no_cycle"]


def test_a_circle_longer_than_the_clearing_depth_helps_only_optimal_clearing() -> None:
    names = [f"p{number}" for number in range(8)]
    scenario = ring(
        participants=[person(name) for name in names],
        trustlines=[line(payer, payee) for payer, payee in zip(names, names[1:] + names[:1], strict=True)],
        groups=[],
        behaviorProfiles=[],
    )

    assert codes(scenario) == ["no_cycle"]
    assert codes(scenario, clearing_max_depth="8") == []
    assert codes(scenario, clearing_mode="optimal") == []


def test_empty_groups_are_reported() -> None:
    scenario = ring()
    scenario["groups"].append({"id": "agents", "label": "Agents"})

    assert "agents" in only_caution("group_unused", scenario).message


@pytest.mark.req("SIM-SCN-15")
@pytest.mark.req("SIM-GUARD-5")
def test_profiles_silenced_by_the_cap_are_reported_with_a_remedy() -> None:
    scenario = with_props(amount_model={"uah": {"min": 9, "p50": 12}})

    caution = only_caution("profile_silenced", scenario)

    assert caution.path == "$.behaviorProfiles[?@.id=='calm'].props.amount_model.UAH"
    assert "at least 9.00 UAH, above the cap of 3.00" in caution.message
    assert codes(scenario, amount_cap="9") == []
    assert codes(scenario, amount_cap="none") == []


def test_profiles_above_every_limit_are_reported() -> None:
    scenario = with_props(amount_model={"UAH": {"min": 51}})

    assert codes(scenario, amount_cap="none") == ["profile_above_limits"]
    assert codes(with_props(amount_model={"UAH": {"min": 50}}), amount_cap="none") == []


def test_an_unused_profile_is_not_checked() -> None:
    scenario = ring()
    scenario["behaviorProfiles"].append({"id": "spare", "props": {"amount_model": {"UAH": {"min": 9}}}})

    assert codes(scenario) == []


@pytest.mark.parametrize("model", [{"min": 2, "max": 1}, {"max": 0.001}])
def test_an_amount_model_that_allows_no_amount_is_reported(model: dict[str, Any]) -> None:
    assert codes(with_props(amount_model={"UAH": model})) == ["no_amount_possible"]


def test_a_cap_of_zero_is_reported() -> None:
    assert codes(ring(), amount_cap="0") == ["cap_of_zero"]


def test_weights_and_models_of_unknown_equivalents_are_reported() -> None:
    scenario = with_props(equivalent_weights={"uah": 1, "UHA": 2}, amount_model={"EUR": {}})

    assert [caution.path for caution in findings(scenario) if caution.code == "unknown_equivalent"] == [
        "$.behaviorProfiles[?@.id=='calm'].props.equivalent_weights",
        "$.behaviorProfiles[?@.id=='calm'].props.amount_model",
    ]


@pytest.mark.parametrize("weights", [{}, {"UAH": 0}, {"UHA": 1}])
def test_a_profile_that_pays_in_no_equivalent_is_reported(weights: dict[str, Any]) -> None:
    assert "profile_without_equivalent" in codes(with_props(equivalent_weights=weights))


@pytest.mark.parametrize(("key", "value"), [(key, value) for key, values in MALFORMED.items() for value in values])
def test_a_prop_replaced_by_its_default_is_reported(key: str, value: Any) -> None:
    caution = only_caution("prop_ignored", with_props(**{key: value}))

    assert caution.path == f"$.behaviorProfiles[?@.id=='calm'].props.{key}"
    assert "the profile calm" in caution.message


@pytest.mark.parametrize("model", [{"min": 0}, {"p50": "9"}, [], None, {"p90": True}, {"max": -3}])
def test_a_dropped_entry_of_an_amount_model_is_reported(model: Any) -> None:
    assert codes(with_props(amount_model={"UAH": {"min": 1}, "uah ": model})) == ["prop_ignored"]


@SCENARIOS
@given(st.integers(0, 10**6))
def test_a_prop_is_reported_exactly_where_the_planner_takes_the_default(seed: int) -> None:
    """A value that the planner uses differs from the default for an invalid value, or equals that default."""
    scenario = read_scenario(read_bytes(as_text(case(seed).scenario)))
    rubbish = "rubbish"
    named = {
        caution.path.rpartition(".")[2] for caution in lint(scenario, Settings()) if caution.code == "prop_ignored"
    }

    for profile in scenario.profiles.values():
        for key, value in profile.props.items():
            if key in MALFORMED and key not in named and key != "amount_model":
                spoilt = {key: Profile(key, {key: rubbish}), "": Profile("", {key: value})}
                default, used = behaviour(key, spoilt, False), behaviour("", spoilt, False)
                assert used != default or value in (1, [], {}) or _same_as_default(key, value)


def _same_as_default(key: str, value: Any) -> bool:
    clamped = key == "tx_rate" and value >= 1
    return clamped or (key == "recipient_group_weights" and not any(value.values()))


def test_a_rate_outside_0_to_1_is_reported() -> None:
    assert codes(with_props(tx_rate=1.7)) == codes(with_props(tx_rate=-0.1)) == ["rate_clamped"]
    assert codes(with_props(tx_rate=0)) == codes(with_props(tx_rate=1)) == []


def test_a_misspelt_prop_is_reported_with_a_suggestion() -> None:
    assert "did you mean tx_rate?" in only_caution("prop_misspelt", with_props(tx_rat=0.5)).message
    assert codes(with_props(mood="fine")) == []


def test_chains_without_flow_are_reported() -> None:
    chained = with_props(flow_chains=[["buyers", "shops"]])

    assert codes(chained) == ["flow_switched_off"]
    assert codes({**chained, "settings": {"flow": {"enabled": True}}}) == []


@pytest.mark.req("SIM-SCN-15")
def test_a_group_that_no_sender_reaches_is_reported() -> None:
    scenario = with_props(recipient_group_weights={"shops": 1, "makers": 0})
    scenario["participants"][2]["behaviorProfileId"] = scenario["participants"][1]["behaviorProfileId"] = "other"
    scenario["behaviorProfiles"].append({"id": "other"})
    turned = copy.deepcopy(scenario)
    turned["trustlines"] = [line("bea", "ann"), line("cid", "bea"), line("ann", "dan")]
    turned["participants"].append(person("dan", behaviorProfileId="other"))

    caution = only_caution("group_out_of_reach", turned)

    assert "group_out_of_reach" not in codes(scenario)
    assert caution.path == "$.behaviorProfiles[?@.id=='calm'].props.recipient_group_weights"
    assert "the group shops within 3 hops" in caution.message


def test_a_group_with_the_sender_alone_is_out_of_reach() -> None:
    assert codes(with_props(recipient_group_weights={"buyers": 1})) == []
    scenario = with_props(recipient_group_weights={"buyers": 1})
    for other in scenario["participants"][1:]:
        del other["behaviorProfileId"]

    assert codes(scenario) == ["group_out_of_reach"]


def test_an_empty_group_is_out_of_reach_unless_a_preset_names_it() -> None:
    scenario = ring(behaviorProfiles=[])
    for participant in scenario["participants"]:
        participant["behaviorProfileId"] = "household"

    assert codes(scenario) == []
    assert codes(with_props(recipient_group_weights={"retail": 1})) == ["group_out_of_reach"]


def test_a_chain_is_checked_from_its_own_group() -> None:
    flow = {"flow": {"enabled": True}}
    chained = {
        **with_props(flow_chains=[["buyers", "buyers"], ["agents", "shops"], ["shops", "makers"]]),
        "settings": flow,
    }

    caution = only_caution("group_out_of_reach", chained)

    assert caution.path.endswith(".props.flow_chains")
    assert "in the group 'buyers' can reach the group buyers" in caution.message


def test_injections_that_are_switched_off_are_reported() -> None:
    effect = {"op": "freeze_participant", "participant_id": "ann"}
    scenario = ring(events=[{"time": 0, "type": "note"}, {"time": 0, "type": "inject", "effects": [effect]}])

    assert only_caution("injection_switched_off", scenario).path == "$.events[1]"
    assert codes(scenario, enable_inject="on") == []


INJECTED = {"equivalent": "UAH", "limit": 5}


@pytest.mark.parametrize(
    "effect",
    [
        {"op": "freeze_participant", "participant_id": "stranger"},
        {"op": "add_participant", "participant": {"id": "ann", "type": "hub"}},
        {"op": "create_trustline", "from": "ann", "to": "stranger", **INJECTED},
        {"op": "create_trustline", "from": "ann", "to": "cid", "equivalent": "EUR", "limit": 5},
        {"op": "create_trustline", "from": "ann", "to": "bea", **INJECTED, "limit": -1},
        {"op": "inject_debt", "from": "ann", "to": "bea", "equivalent": "UAH", "amount": 1},
        {"op": "inject_debt", "from": "bea", "to": "ann", "equivalent": "UAH", "amount": 0.001},
    ],
)
def test_an_injection_that_cannot_apply_is_reported(effect: dict[str, Any]) -> None:
    good = {"op": "inject_debt", "from": "bea", "to": "ann", "equivalent": "UAH", "amount": 1}
    scenario = ring(events=[{"time": 0, "type": "inject", "effects": [good, effect]}])

    assert "the effect 1 cannot apply" in only_caution("injection_impossible", scenario, enable_inject="on").message


def test_injected_lines_and_participants_count_where_injections_are_on() -> None:
    newcomer = {"op": "add_participant", "participant": person("dan"), "initial_trustlines": [
        {"sponsor": "ann", "equivalent": "UAH", "limit": 5},
        {"sponsor": "bea", "equivalent": "UAH", "limit": 5, "direction": "new_credits_sponsor"},
    ]}  # fmt: skip
    closing = {"op": "create_trustline", "from": "ann", "to": "cid", **INJECTED}
    scenario = ring(events=[{"time": 0, "type": "inject", "effects": [newcomer, closing]}])
    del scenario["trustlines"][2]

    assert codes(scenario, enable_inject="on") == []
    assert {"no_cycle", "injection_switched_off"} <= set(codes(scenario))


def test_effects_beyond_the_most_are_reported() -> None:
    effect = {"op": "inject_debt", "from": "bea", "to": "ann", "equivalent": "UAH", "amount": 0.01}
    scenario = ring(events=[{"time": 0, "type": "inject", "effects": [effect] * 501}])

    assert codes(scenario, enable_inject="on") == ["injection_too_long"]


def test_a_dated_payment_of_an_unknown_participant_is_reported() -> None:
    payment = {"from": "bea", "to": "stranger", "amount": 1, "equivalent": "UAH"}

    assert codes(ring(events=[{"time": 0, "type": "payment", "params": payment}])) == ["payment_impossible"]
    assert codes(ring(events=[{"time": 0, "type": "payment", "params": {**payment, "to": "ann"}}])) == []
    assert codes(ring(events=[{"time": 0, "type": "clearing"}])) == []


def stress(time: int = 0, duration: int = 0, **effect: Any) -> dict[str, Any]:
    multiplier = {"op": "mult", "field": "tx_rate", "value": 2, **effect}
    return {"time": time, "type": "stress", "effects": [multiplier], "metadata": {"duration_ms": duration}}


@pytest.mark.parametrize(
    ("event", "expected"),
    [
        (stress(), []),
        (stress(scope="group:shops"), []),
        (stress(scope="profile:calm"), []),
        (stress(scope="group:shop"), ["stress_without_target"]),
        (stress(scope="profile:wild"), ["stress_without_target"]),
        (stress(value=0), ["stress_without_effect"]),
        (stress(field="limit"), ["stress_without_effect"]),
        (stress(time=1500), ["stress_between_ticks"]),
        (stress(time=1500, duration=500), ["stress_between_ticks"]),
        (stress(time=1500, duration=501), []),
        (stress(time=2000, duration=1), []),
    ],
)
def test_a_stress_that_changes_nothing_is_reported(event: dict[str, Any], expected: list[str]) -> None:
    assert codes(ring(events=[event])) == expected


@pytest.mark.parametrize("kind", list(Kind))
def test_generated_networks_have_no_serious_findings(kind: Kind) -> None:
    scenario = read_scenario(from_value(village(100, 1, profile=kind)))

    harmless = {"participant_cannot_pay", "participant_cannot_be_paid"}
    assert {caution.code for caution in lint(scenario, change_settings(Settings(), {"amount_cap": "500"}))} <= harmless


@pytest.mark.req("SIM-GUARD-5")
def test_the_public_village_is_silenced_under_the_usual_cap_and_sound_above_it() -> None:
    scenario = public_scenario("greenfield-village-100-realistic-v2")

    assert codes(scenario).count("profile_silenced") == 10
    assert "profile_silenced" not in codes(scenario, amount_cap="500")
    assert "no_cycle" not in codes(scenario)


@pytest.mark.parametrize(
    ("seeds", "least"), [(range(10, 20), 3), pytest.param(range(60), 5, marks=pytest.mark.campaign)]
)
def test_the_linter_names_the_same_silenced_profiles_as_the_run(seeds: range, least: int) -> None:
    count = 0

    for seed in seeds:
        scenario = case(seed).scenario
        plan = plan_run(read_bytes(as_text(scenario)), seed=1)
        warned = {
            (facts["profile"], facts["equivalent"]) for facts in silenced_profiles(RunState(plan.config, plan.scenario))
        }
        linted = {caution.path for caution in lint(plan.scenario, Settings()) if caution.code == "profile_silenced"}

        assert linted <= {f"$.behaviorProfiles[?@.id=='{name}'].props.amount_model.{code}" for name, code in warned}
        count += len(linted)

    assert count >= least


@SCENARIOS
@given(st.integers(0, 10**6))
def test_any_scenario_can_be_linted_and_each_finding_has_a_message(seed: int) -> None:
    sample = case(seed)
    scenario, settings = (
        read_scenario(read_bytes(as_text(sample.scenario))),
        change_settings(Settings(), sample.settings),
    )

    cautions = lint(scenario, settings)

    assert cautions == lint(scenario, settings)
    for caution in cautions:
        assert caution.code.isidentifier()
        assert caution.path.startswith("$")
        assert len(caution.message) > 20


def pairs_of(seed: int) -> list[tuple[str, str]]:
    luck = Random(seed)
    names = [f"p{number}" for number in range(luck.randint(2, 9))]
    share = luck.choice((0.05, 0.15, 0.3))
    return [pair for pair in permutations(names, 2) if luck.random() < share]


def circles(pairs: list[tuple[str, str]], most: int) -> Iterator[tuple[str, ...]]:
    names = sorted({end for pair in pairs for end in pair})
    for length in range(3, most + 1):
        for order in permutations(names, length):
            if all((order[place], order[(place + 1) % length]) in pairs for place in range(length)):
                yield order


@given(st.integers(0, 10**6), st.integers(2, 6))
def test_circles_are_found_exactly_where_there_are_any(seed: int, most: int) -> None:
    pairs = pairs_of(seed)

    assert has_circle(pairs, most) is (next(circles(pairs, most), None) is not None)


def test_a_search_for_circles_stops_when_its_steps_are_used_up() -> None:
    names = [f"p{number}" for number in range(20)]
    ring_of_twenty = list(zip(names, names[1:] + names[:1], strict=True))

    assert has_circle(ring_of_twenty, 6) is False
    assert has_circle(ring_of_twenty, 6, steps=3) is None
    assert has_circle(ring_of_twenty, 20) is True


@given(st.integers(0, 10**6))
def test_reach_equals_that_of_the_planner(seed: int) -> None:
    run = Headless(plan_run(read_bytes(as_text(case(seed).scenario)), seed=1)).run
    names = run.network.people.names
    for ledger in run.network.ledgers.values():
        book = ledger.book
        live = [h for h in range(len(book)) if book.live(h) and book.limit[h] > 0]
        ways = ways_of((names[book.debtor[h]], names[book.creditor[h]]) for h in live)
        for node, name in enumerate(names):
            market = Market(book)
            market.refresh()
            members = [names[other] for other in market.members(node, None)]
            assert sorted(reach(ways, name, REACH_HOPS, REACH_MOST)) == members


def test_reach_stops_at_the_most_that_the_planner_sees() -> None:
    ways = ways_of(("hub", f"p{number:03}") for number in range(500))

    assert len(list(reach(ways, "hub", 3, 200))) == 199


def test_marks_spread_as_far_as_the_hops_allow() -> None:
    ways = ways_of([("a", "b"), ("b", "c"), ("c", "d"), ("d", "e")])

    assert marks_within(ways, {"c": 1, "d": 2, "e": 4}, 3) == {"a": 3, "b": 7, "c": 6, "d": 4}


def test_parts_are_listed_largest_first() -> None:
    assert parts([("x", "y"), ("b", "a"), ("b", "c")]) == [["a", "b", "c"], ["x", "y"]]


@pytest.mark.long
def test_ten_thousand_participants_are_linted_within_the_step_limit() -> None:
    """Seven one-way layers have no circle of six; proving that takes the most work."""
    luck, count = Random(1), 10_000
    people = tuple(
        Participant(f"p{number:05}", ParticipantType.PERSON, group=f"g{number % 8}", profile="calm")
        for number in range(count)
    )
    ends = {
        (luck.randrange(count // 8) * 8 + (debtor + 1) % 8, debtor) for debtor in map(luck.randrange, [count] * 50_000)
    }
    lines = tuple(
        Trustline("UAH", people[creditor].id, people[debtor].id, 9 * ATOMS) for creditor, debtor in sorted(ends)
    )
    weights = {f"g{number}": 1 for number in range(9)}
    profiles = {"calm": Profile("calm", {"recipient_group_weights": weights})}

    cautions = lint(Scenario("large", ("UAH",), people, lines, profiles=profiles), Settings())

    warned = {caution.code: caution.message for caution in cautions}
    assert {"no_cycle", "group_out_of_reach"} <= warned.keys()
    assert "the group g8 within" in warned["group_out_of_reach"]
