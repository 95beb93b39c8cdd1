"""Skill of an actor: levels, behaviour, overrides."""

from decimal import Decimal
from typing import Any

import pytest

from pendula.actions.rules.duration import SkillRule, derived
from tests.actions.arithmetic import level_from
from tests.actions.worlds import codes, day, does, lasting, of

WEIGHTS: dict[str, Any] = {
    "clean": {"base": 1, "weights": {"care": "0.9", "patience": "0.4", "haste": "-0.6"}},
    "repair": {"base": 1, "weights": {"technique": "1.0", "calm": "0.3", "haste": "-0.5"}},
    "negotiate": {"base": 1, "weights": {"empathy": "0.6", "dominance": "0.3", "impulsive": "-0.5"}},
}
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
def test_an_invalid_weight_rejects_only_its_instances(weight: str) -> None:
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
