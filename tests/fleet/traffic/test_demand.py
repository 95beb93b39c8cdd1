import pytest

from pendula.fleet.traffic.lock_state import Demand


def test_rows_are_kept_in_order_and_without_repetitions() -> None:
    demand = Demand.of_rows([[3], [1, 0, 1], [3]], [[3], [1], [3]], [False, True, False])

    assert demand.last == 2
    assert demand.needs(0, 1).tolist() == [0, 1]
    assert demand.needs(0, 2).tolist() == [0, 1, 3]
    assert demand.stands(1).tolist() == [1]
    assert demand.need_positions().tolist() == [0, 1, 1, 2]


def test_a_standing_set_with_a_resource_that_was_never_taken_is_rejected() -> None:
    with pytest.raises(ValueError, match="position 1 keeps"):
        Demand.of_rows([[0], [1]], [[0], [1, 2]])


def test_a_truck_keeps_what_it_held_at_the_start_until_it_is_released() -> None:
    demand = Demand.of_rows([[0, 5], [1], [2]], [[0, 5], [1, 5], [2]])

    assert demand.stands(1).tolist() == [1, 5]


@pytest.mark.parametrize("stand", [[[0], []], [[0]]], ids=["nowhere", "fewer positions"])
def test_a_truck_has_a_standing_set_at_every_position(stand: list[list[int]]) -> None:
    with pytest.raises(ValueError, match="position"):
        Demand.of_rows([[0], [1]], stand)
