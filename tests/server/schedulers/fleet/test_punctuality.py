"""A fleet that cannot keep up says so once, and once more when it can again."""

import pytest

from pendula.server.schedulers.fleet.alerts import WINDOW, Punctuality, Told

PERIOD_US = 100_000


def told(punctuality: Punctuality, lost_us: int, ticks: int = WINDOW) -> list[Told]:
    return [one for _ in range(ticks) if (one := punctuality.ticked(lost_us)) is not None]


@pytest.mark.req("FLT-FAIL-16")
def test_a_fleet_that_falls_behind_says_so_once_with_both_rates() -> None:
    punctuality = Punctuality(PERIOD_US)

    first, later = told(punctuality, 200_000), told(punctuality, 250_000, 3 * WINDOW)

    assert [one.message for one in first] == [
        "the fleet ticks 3.3 times a second instead of 10.0: this machine does not keep up with it"
    ]
    assert later == []


def test_a_fleet_that_keeps_up_again_says_so_once() -> None:
    punctuality = Punctuality(PERIOD_US)
    told(punctuality, 200_000)

    # A tenth of the time is lost: not enough to be told of, too much to be well again.
    assert told(punctuality, 10_000) == []
    assert [one.message for one in told(punctuality, 0, 2 * WINDOW)] == ["the fleet ticks 10.0 times a second again"]


def test_one_long_tick_is_no_trouble() -> None:
    punctuality = Punctuality(PERIOD_US)

    assert told(punctuality, 1_000_000, 1) + told(punctuality, -50_000, WINDOW) == []
