"""Hold points move forward by whole steps and back at once."""

import pytest

from pendula.fleet.tick.aiming import steady_um

STEP = 200_000


@pytest.mark.req("FLT-OSC-7")
@pytest.mark.parametrize(
    ("grant", "reached", "expected"),
    [
        (5_100_000, False, 5_000_000),
        (5_200_000, False, 5_200_000),
        (5_100_000, True, 5_100_000),
        (4_900_000, False, 4_900_000),
    ],
    ids=["a little forward", "a step forward", "to a node", "back"],
)
def test_a_hold_point_changes_by_steps_at_nodes_or_for_safety(grant: int, reached: bool, expected: int) -> None:
    assert steady_um(5_000_000, grant, reached, STEP) == expected
