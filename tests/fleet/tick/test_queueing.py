"""Waiters bar others from what they need next, but never those they wait for."""

import numpy as np
import pytest

from pendula.fleet.tick.params import TrafficParams
from pendula.fleet.tick.turns import Queue, pause_ms


def queue(waits: dict[int, set[int]], ripe: int = 0, around: frozenset[int] = frozenset({7})) -> Queue:
    return Queue(waits, [(ripe, around)])


def unit(*resources: int) -> np.ndarray:
    return np.array(resources, dtype=np.int64)


@pytest.mark.req("FLT-RES-10", "FLT-RES-9")
def test_a_ripe_waiter_bars_a_lower_ranked_truck_from_what_it_needs() -> None:
    assert queue({0: {1}}).barred_by(2, unit(5, 7)) == (0, 7)


@pytest.mark.req("FLT-RES-10")
def test_a_waiter_does_not_bar_the_truck_it_waits_for_through_others() -> None:
    assert queue({0: {1}, 1: {2}}).barred_by(2, unit(7)) is None


@pytest.mark.req("FLT-RES-10")
def test_a_bar_counts_as_an_edge_for_the_next_bar() -> None:
    drawn = queue({0: {1}})
    drawn.wait(2, (0,))
    drawn.ripe.append((3, frozenset({9})))
    drawn.wait(3, (2,))

    assert drawn.barred_by(1, unit(9)) is None


@pytest.mark.req("FLT-RES-10")
def test_a_wait_known_only_from_the_last_tick_keeps_a_bar_from_closing_a_cycle() -> None:
    drawn = Queue({0: {1}}, [(0, frozenset({7}))], before={1: (2,)})

    assert drawn.barred_by(2, unit(7)) is None


@pytest.mark.req("FLT-RES-10")
def test_a_waiter_bars_no_truck_from_what_it_does_not_need() -> None:
    assert queue({0: {1}}).barred_by(2, unit(5)) is None


@pytest.mark.req("FLT-OSC-3")
@pytest.mark.parametrize(
    ("since_ms", "expected_ms"),
    [(None, 500), (9_900, 500), (9_000, 1_000), (8_000, 2_000), (0, 4_000)],
    ids=["other trucks", "just now", "a while", "longer", "long ago"],
)
def test_the_pauses_between_checks_of_the_same_refusal_double(since_ms: int | None, expected_ms: int) -> None:
    assert pause_ms(TrafficParams(), 10_000, since_ms) == expected_ms
