"""The oracle against the golden values of the requirements."""

from fractions import Fraction
from hashlib import sha256
from random import Random

import pytest

from tests.credit.networks import public_scenario
from tests.credit.oracle.amount import acceptance
from tests.credit.oracle.examples import owing, scenario, shown
from tests.credit.oracle.money import text
from tests.credit.oracle.plan import Planned, action_seed, budget, plan, tick_seed
from tests.credit.oracle.routes import NO_CAPACITY
from tests.credit.oracle.run import run
from tests.credit.oracle.timeline import apply_due, stressed_rate
from tests.credit.oracle.world import Participant, world_of

GREENFIELD = "greenfield-village-100-realistic-v2"
CAP_500 = {"SIMULATOR_REAL_AMOUNT_CAP": "500"}


def in_short(planned: list[Planned]) -> list[tuple[str, str, str]]:
    return [(sender, receiver, amount) for _, sender, receiver, _, amount in planned]


def plan_digest(name: str, ticks: int) -> tuple[int, str]:
    """Count and digest of the plans of the first ticks, each against empty books."""
    loaded, count, digest = public_scenario(name), 0, sha256()
    for tick in range(ticks):
        for action in plan(loaded, 42, tick, 70, CAP_500):
            digest.update(("|".join(str(part) for part in (tick, *action)) + "\n").encode())
            count += 1
    return count, digest.hexdigest()


@pytest.mark.req("SIM-DET-5", "SIM-DET-6")
def test_seeds_of_ticks_and_positions_are_golden() -> None:
    assert [tick_seed(*pair) for pair in ((42, 0), (42, 1), (1, 0), (4294967295, 7))] == [
        42000126,
        42000127,
        1000003,
        4293967300,
    ]
    assert [Random(tick_seed(42, tick)).random() for tick in range(3)] == [
        0.7175559251697405,
        0.5048639007963877,
        0.5815068561101447,
    ]
    assert [action_seed(42, 0, position) for position in range(3)] == [4061780090, 4061780091, 4061780092]


@pytest.mark.req("SIM-INT-1")
def test_the_budget_is_floored() -> None:
    world = world_of(scenario("AB", []), {})

    assert [budget(world, 0, percent) for percent in (0, 4, 5, 50, 65, 99, 100)] == [0, 0, 1, 10, 13, 19, 20]


@pytest.mark.req("SIM-INT-4")
def test_warm_up_ramps_the_budget() -> None:
    world = world_of(scenario("AB", [], settings={"warmup": {"ticks": 50, "floor": 0.1}}), {})

    assert [budget(world, tick, 70) for tick in (0, 10, 25, 49, 50)] == [1, 3, 7, 13, 14]


@pytest.mark.req("SIM-PROF-16")
def test_the_plan_of_minimal_is_golden() -> None:
    planned = plan(public_scenario("minimal"), 42, 0)

    assert [action[:4] for action in planned] == [(seq, "p2", "p1", "UAH") for seq in range(20)]
    assert [action[4] for action in planned[:4]] == ["2.13", "2.59", "0.23", "0.76"]


@pytest.mark.req("SIM-PROF-12", "SIM-DET-9")
def test_the_golden_plan_of_the_clearing_demo_is_a_prefix_of_the_full_one() -> None:
    demo = public_scenario("clearing-demo-10")

    planned = plan(demo, 42, 0, 25)

    assert in_short(planned) == [
        ("bob", "farmer", "1.09"),
        ("shop", "alice", "1.94"),
        ("shop", "bakery", "1.84"),
        ("bob", "dmytro", "1.18"),
        ("shop", "bakery", "0.72"),
    ]
    whole = plan(demo, 42, 0, 100)
    assert len(whole) == 20
    assert whole[:5] == planned


@pytest.mark.req("SIM-PROF-8")
def test_the_plans_of_the_village_are_golden() -> None:
    village = public_scenario(GREENFIELD)

    assert in_short(plan(village, 42, 0, 70, CAP_500)) == [("PID_U0094_185eaefe", "PID_U0044_3188ea6c", "96.25")]
    later = in_short(plan(village, 42, 60, 70, CAP_500))
    assert len(later) == 14
    assert later[:2] == [
        ("PID_U0043_935170bb", "PID_U0059_76c90bcb", "402.52"),
        ("PID_U0093_7a27354d", "PID_U0040_b8ab03a8", "389.81"),
    ]


@pytest.mark.req("SIM-DET-13")
@pytest.mark.parametrize(
    ("name", "digest"),
    [
        (GREENFIELD, "e5d258caa541bbaa8dbdfe5691218c87b7f00dfb44b87dfc864e42a1f6dc9cd9"),
        ("riverside-town-50-realistic-v2", "272781dafd8707ddd595e8db6f67a7dab9144fe58aeb04a2d1e323a0c180683a"),
    ],
)
def test_the_digest_of_eighty_ticks_is_golden(name: str, digest: str) -> None:
    assert plan_digest(name, 80) == (770, digest)


@pytest.mark.req("SIM-GUARD-5")
def test_the_village_is_silent_under_the_default_cap() -> None:
    village = public_scenario(GREENFIELD)

    assert [plan(village, 42, tick, 70) for tick in (0, 30, 60)] == [[], [], []]


@pytest.mark.req("SIM-PROF-15")
def test_the_plan_of_the_decaying_line_is_golden() -> None:
    decaying = public_scenario("trust-drift-decay-minimal")

    assert in_short(plan(decaying, 1, 0, 100, CAP_500)) == [("bob", "alice", "9.00")] * 20
    assert plan(decaying, 1, 0, 100) == []


@pytest.mark.req("SIM-TEST-13", "SIM-CLR-22")
def test_a_decaying_line_falls_to_its_debt_and_no_further() -> None:
    ran = run(public_scenario("trust-drift-decay-minimal"), 1, 8, 100, CAP_500)

    limits = [text(tick.lines["UAH", "alice", "bob"].limit, 2) for tick in ran.ticks]
    assert limits == ["9.80", "9.60", "9.40", "9.21", "9.02", "9.00", "9.00", "9.00"]
    assert [outcome.code for outcome in ran.ticks[0].outcomes] == [None] + [NO_CAPACITY] * 19
    assert [len(tick.plan) for tick in ran.ticks[1:]] == [0] * 7


@pytest.mark.req("SIM-TEST-5")
def test_minimal_makes_a_hundred_attempts_in_five_ticks() -> None:
    assert run(public_scenario("minimal"), 42, 5).counters.attempts_total == 100


@pytest.mark.req("SIM-PROF-18")
def test_twice_the_median_is_half_as_frequent() -> None:
    assert acceptance(1.5, 24.0, 12.0) == pytest.approx(0.490, abs=0.0005)


@pytest.mark.req("SIM-SCN-10")
def test_stress_multiplies_and_is_clamped() -> None:
    effects = [
        {"op": "mult", "field": "tx_rate", "scope": "group:households", "value": 1.5},
        {"op": "mult", "field": "tx_rate", "value": 0.7},
        {"op": "mult", "field": "tx_rate", "scope": "profile:bold", "value": 1.8},
    ]
    stress = {"time": 2000, "type": "stress", "effects": effects, "params": {"duration_ms": 3000}}
    world = world_of(scenario("AB", [], events=[stress]), {})
    household = Participant(group="households")

    rates = [stressed_rate(world, household, 0.09, time) for time in (1000, 2000, 4000, 5000)]

    assert rates == pytest.approx([0.09, 0.0945, 0.0945, 0.09])
    effects[1]["value"] = 1
    assert stressed_rate(world_of(scenario("AB", [], events=[stress]), {}), Participant(profile="bold"), 0.8, 2000) == 1


@pytest.mark.req("SIM-SCN-12")
def test_an_injection_above_the_limit_is_skipped() -> None:
    effect = {"op": "inject_debt", "from": "B", "to": "A", "equivalent": "UAH", "amount": 20}
    injection = {"time": 0, "type": "inject", "effects": [effect, {**effect, "amount": "10.009"}]}
    world = world_of(scenario("AB", [("B", "A", 100)], events=[injection]), {"SIMULATOR_REAL_ENABLE_INJECT": "1"})
    world.debts = owing({"A>B": 90})

    assert apply_due(world, 0) == [(0, 1, 1, Fraction(10))]
    assert shown(world.debts) == {"A>B": "100.00"}


@pytest.mark.req("SIM-SCN-3")
def test_a_line_without_code_takes_the_base_equivalent() -> None:
    written = scenario("AB", [("B", "A", 5)], baseEquivalent=" uah ")
    del written["trustlines"][0]["equivalent"]

    assert sorted(world_of(written, {}).lines) == [("UAH", "B", "A")]
