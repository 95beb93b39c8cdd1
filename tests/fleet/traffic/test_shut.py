"""Where a way reaches a place that operators have closed."""

import pytest

from pendula.fleet.traffic.lock_state import Demand, Met, Shut, first_shut

# Five positions, each stands on one resource and needs the next one.
WAY = Demand.of_rows([[0], [1], [2], [3], [4]], [[0], [1], [2], [3], [4]])
ONE_AND_TWO, THREE = Shut(frozenset({1, 2}), frozenset({0})), Shut(frozenset({3}), frozenset({1}), called=9)


@pytest.mark.req("FLT-PLAN-8")
@pytest.mark.parametrize(
    ("shut", "position", "met"),
    [
        ((), 0, None),
        ((ONE_AND_TWO,), 0, Met(0, 1)),
        # A truck that stands in it leaves it.
        ((ONE_AND_TWO,), 1, None),
        ((ONE_AND_TWO,), 2, None),
        ((THREE,), 0, Met(2, 9)),
        # Leaving one closed place does not allow entering another.
        ((ONE_AND_TWO, THREE), 1, Met(2, 9)),
        ((THREE,), 4, None),
    ],
)
def test_a_way_ends_before_the_first_closed_place_that_the_truck_does_not_stand_in(
    shut: tuple[Shut, ...], position: int, met: Met | None
) -> None:
    assert first_shut(shut, WAY, position) == met


@pytest.mark.req("FLT-PLAN-8")
def test_a_way_that_leaves_a_closed_place_does_not_lead_into_it_again() -> None:
    there_and_back = Demand.of_rows([[0], [1], [2], [1]], [[0], [1], [2], [1]])

    assert first_shut((Shut(frozenset({1}), frozenset()),), there_and_back, 1) == Met(2, 1)
