"""How long things take: effort, skill and modifiers, exactly."""

from decimal import Decimal
from fractions import Fraction
from typing import Any

import pytest

from pendula.actions.model import Effort
from pendula.actions.rules.duration import effective_minutes
from pendula.actions.rules.skills import SkillRule, derived
from tests.actions.arithmetic import level_from, minutes_taken
from tests.actions.worlds import codes, day, does, lasting, of

GOLDEN = """
 1 | 2 1 1 1     | 2 1 1 1      | 2 2 1 1
 5 | 6 5 4 4     | 7 5 5 4      | 7 6 5 4
15 | 17 14 12 10 | 19 15 13 11  | 21 17 15 12
45 | 51 41 35 29 | 57 45 39 32  | 62 50 43 35
50 | 57 45 39 32 | 63 50 43 35  | 69 55 47 39
60 | 68 54 46 38 | 75 60 51 42  | 83 66 57 47
90 | 102 81 69 57 | 113 90 77 63 | 124 99 85 70
"""
ROWS = [[list(map(int, cell.split())) for cell in row.split("|")] for row in GOLDEN.strip().splitlines()]
WEIGHTS: dict[str, Any] = {
    "clean": {"base": 1, "weights": {"care": "0.9", "patience": "0.4", "haste": "-0.6"}},
    "repair": {"base": 1, "weights": {"technique": "1.0", "calm": "0.3", "haste": "-0.5"}},
    "negotiate": {"base": 1, "weights": {"empathy": "0.6", "dominance": "0.3", "impulsive": "-0.5"}},
}


@pytest.mark.req("ACT-DUR-1", "ACT-DUR-3")
@pytest.mark.parametrize("row", ROWS, ids=lambda row: str(row[0][0]))
def test_golden_durations(row: list[list[int]]) -> None:
    (base,), *by_effort = row

    found = [[effective_minutes(base, effort, level) for level in range(4)] for effort in Effort]

    assert found == by_effort


@pytest.mark.req("ACT-DUR-2")
def test_every_ordinary_combination_is_exact() -> None:
    combinations = [(base, effort, level) for base in range(1, 1441) for effort in Effort for level in range(4)]

    assert len(combinations) == 17_280
    for base, effort, level in combinations:
        assert effective_minutes(base, effort, level) == minutes_taken(base, effort, level)


@pytest.mark.req("ACT-DUR-2")
@pytest.mark.parametrize(("base", "level", "minutes"), [(50, 1, 55), (200, 0, 275), (100, 1, 110)])
def test_high_effort_is_not_rounded_up_by_floats(base: int, level: int, minutes: int) -> None:
    result = day({"x": lasting(base, effort="high")}, does("A", 0, "x"), skills={"ann": {"x": level}})

    assert of(result, "start", "A").meta["d"] == minutes


@pytest.mark.req("ACT-DUR-2")
def test_modifiers_are_exact_fractions() -> None:
    for base in range(1, 400):
        for factor in ("0.1", "0.7", "1.1", "3.3", "9.99", "0.333"):
            assert effective_minutes(base, Effort.HIGH, 2, Fraction(factor)) == minutes_taken(
                base, "high", 2, [Fraction(factor)]
            )


@pytest.mark.req("ACT-DUR-4")
def test_only_modifiers_of_the_minute_the_verb_and_the_actor_apply() -> None:
    modifiers = [
        {"name": "night", "factor": "2", "to": 360},
        {"name": "rain", "factor": "1.5", "from": "2025-07-01T05:00:00", "to": "2025-07-01T06:00:00"},
        {"name": "saw", "factor": "0.5", "verbs": ["cut"]},
        {"name": "limp", "factor": "1.1", "actors": ["bob"]},
    ]
    times = {"A": 299, "B": 300, "C": 359, "D": 360}

    result = day(
        {"walk": lasting(100)},
        *(does(name, t, "walk") for name, t in times.items()),
        world_state={"modifiers": modifiers},
    )

    assert {name: of(result, "start", name).meta["d"] for name in times} == {"A": 200, "B": 300, "C": 300, "D": 100}
    assert of(result, "start", "B").meta["modifiers"] == {"names": ["night", "rain"], "f_mod": Decimal("3.0")}
    assert "modifiers" not in of(result, "start", "D").meta


@pytest.mark.req("ACT-DUR-4")
def test_two_modifiers_of_one_name_both_count() -> None:
    twice = [{"name": "rain", "factor": 2}, {"name": "rain", "factor": 3}]

    result = day({"walk": lasting(100)}, does("A", 0, "walk"), world_state={"modifiers": twice})

    assert of(result, "start", "A").meta["d"] == 600


@pytest.mark.req("ACT-DUR-4")
def test_modifiers_are_taken_at_submission_and_kept_for_all_segments() -> None:
    defs = {"walk": lasting(10, "path", interruptible=True), "block": lasting(40, "path")}
    rain = {"name": "rain", "factor": 3, "from": 5, "to": 6}

    result = day(
        defs,
        does("B", 0, "block"),
        does("A", 5, "walk"),
        interrupts=[{"t": 50, "target": "A", "priority": 1}],
        world_state={"modifiers": [rain]},
    )

    assert of(result, "start", "A").meta["d"] == 30
    assert of(result, "start", "A", 1).meta["d"] == 20
    assert "modifiers" in of(result, "start", "A").meta
    assert "modifiers" not in of(result, "start", "A", 1).meta


@pytest.mark.req("ACT-DUR-4")
@pytest.mark.parametrize("factor", [0, -1, "10.0000001", 11, "NaN", "-Infinity"])
def test_a_factor_outside_its_range_rejects_those_it_applies_to(factor: object) -> None:
    modifiers = [{"name": "odd", "factor": factor, "verbs": ["walk"]}]

    result = day(
        {"walk": lasting(5), "sit": lasting(5)},
        does("A", 0, "walk"),
        does("B", 0, "sit"),
        world_state={"modifiers": modifiers},
    )

    assert codes(result) == {"A": "InvalidDuration"}
    assert of(result, "start", "B").t == 0


@pytest.mark.req("ACT-DUR-4")
def test_ten_is_the_largest_factor() -> None:
    result = day({"walk": lasting(5)}, does("A", 0, "walk"), world_state={"modifiers": [{"name": "mud", "factor": 10}]})

    assert of(result, "start", "A").meta["d"] == 50


@pytest.mark.req("ACT-DUR-5")
def test_whoever_nothing_is_known_about_is_ordinary() -> None:
    defs = {"walk": lasting(100), "swim": lasting(100, skill="water")}
    skills = {"ann": {"water": 3}}

    result = day(defs, does("A", 0, "walk"), does("B", 0, "swim"), does("C", 0, "swim", actor="bob"), skills=skills)

    assert [of(result, "start", name).meta["d"] for name in "ABC"] == [100, 70, 100]


@pytest.mark.req("ACT-DUR-6")
def test_noise_is_small_recorded_and_the_same_every_time() -> None:
    actions = [does(f"A{n}", 0, "walk") for n in range(50)]

    first, second = (day({"walk": lasting(1000)}, *actions, options={"noise_seed": 7}) for _ in range(2))
    other = day({"walk": lasting(1000)}, *actions, options={"noise_seed": 8})

    durations = [event.meta["d"] for event in first.events if "d" in event.meta]
    assert first.events == second.events
    assert [event.meta["d"] for event in other.events if "d" in event.meta] != durations
    assert 900 <= min(durations) < max(durations) <= 1100
    assert all("noise" in event.meta for event in first.events if "d" in event.meta)


@pytest.mark.req("ACT-DUR-6")
def test_there_is_no_noise_unless_it_is_asked_for() -> None:
    result = day({"walk": lasting(1000)}, does("A", 0, "walk"))

    assert of(result, "start", "A").meta["d"] == 1000


MATRICES = [
    ("clean", {"care": "0.8", "patience": "0.5", "haste": "0.2"}, None, 2),
    ("repair", {"technique": "0.5"}, None, 2),
    ("repair", {"technique": 1, "calm": 1, "haste": -1}, None, 3),
    ("repair", {"technique": 1, "calm": 1, "haste": -1}, 2, 3),
    ("negotiate", {"empathy": -1, "dominance": -1, "impulsive": 1}, None, 0),
    ("clean", {}, None, 1),
]


@pytest.mark.req("ACT-SKILL-1")
@pytest.mark.parametrize(("skill", "matrix", "base", "level"), MATRICES)
def test_golden_skills(skill: str, matrix: dict[str, Any], base: int | None, level: int) -> None:
    rule = {**WEIGHTS[skill], **({} if base is None else {"base": base})}

    result = day(
        {skill: lasting(100)},
        does("A", 0, skill),
        skills={"ann": {"matrix": matrix}},
        skill_weights={skill: rule},
    )

    assert of(result, "start", "A").meta["d"] == (125, 100, 85, 70)[level]


@pytest.mark.req("ACT-SKILL-1")
def test_levels_are_rounded_half_up_in_exact_decimals() -> None:
    for tenths in range(-100, 101):
        for weight in ("0.1", "0.35", "-0.5", "1.5"):
            value = Decimal(tenths) / 100
            rule = {"base": "1", "weights": {"care": weight}}

            found = derived(SkillRule(Decimal(1), {"care": Decimal(weight)}), {"care": value})

            assert found == level_from(rule, {"care": value})


@pytest.mark.req("ACT-SKILL-1")
@pytest.mark.parametrize("value", ["1.0001", -2, "NaN", "Infinity", "much"])
def test_a_matrix_out_of_range_rejects_the_actions_of_its_actor(value: object) -> None:
    result = day(
        {"clean": lasting(100)},
        does("A", 0, "clean"),
        does("B", 0, "clean", actor="bob"),
        skills={"ann": {"matrix": {"care": value}}},
        skill_weights=WEIGHTS,
    )

    assert codes(result) == {"A": "InvalidMatrix"}


@pytest.mark.req("ACT-SKILL-1")
@pytest.mark.parametrize("weight", ["NaN", "Infinity", "-Infinity"])
def test_a_weight_that_is_no_number_rejects_and_disturbs_nobody(weight: str) -> None:
    result = day(
        {"clean": lasting(100)},
        does("A", 0, "clean"),
        does("B", 0, "clean", actor="bob"),
        skills={"ann": {"matrix": {"care": "0.5"}}},
        skill_weights={"clean": {"base": 1, "weights": {"care": weight}}},
    )

    assert codes(result) == {"A": "InvalidMatrix"}


@pytest.mark.req("ACT-SKILL-2")
def test_an_override_wins_and_is_reported() -> None:
    result = day(
        {"clean": lasting(100)},
        does("A", 0, "clean"),
        does("B", 0, "clean", actor="bob"),
        skills={
            "ann": {"matrix": {"care": 1}, "override": {"clean": 0}},
            "bob": {"matrix": {"care": 1}, "override": {"repair": 0}},
        },
        skill_weights=WEIGHTS,
    )

    assert of(result, "start", "A").meta["d"] == 125
    assert of(result, "start", "A").meta["skill_override"] == 0
    assert of(result, "start", "B").meta["d"] == 85
    assert "skill_override" not in of(result, "start", "B").meta
