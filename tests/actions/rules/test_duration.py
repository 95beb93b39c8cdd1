"""Durations from effort and skill, exactly."""

from fractions import Fraction

import pytest

from pendula.actions.model import Effort
from pendula.actions.rules.duration import effective_minutes
from tests.actions.arithmetic import minutes_taken
from tests.actions.worlds import day, does, lasting, of

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
