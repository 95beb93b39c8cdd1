"""A fleet that falls behind raises one alert, and another when it keeps up again."""

import pytest

from pendula.server.schedulers.fleet.alerts import WINDOW, Punctuality, PunctualityChange

PERIOD_US = 100_000


def changes(punctuality: Punctuality, lost_us: int, ticks: int = WINDOW) -> list[PunctualityChange]:
    return [one for _ in range(ticks) if (one := punctuality.ticked(lost_us)) is not None]


@pytest.mark.req("FLT-FAIL-16")
def test_a_fleet_that_falls_behind_raises_one_alert_with_both_rates() -> None:
    punctuality = Punctuality(PERIOD_US)

    first, later = changes(punctuality, 200_000), changes(punctuality, 250_000, 3 * WINDOW)

    assert [one.message for one in first] == [
        "the fleet ticks 3.3 times a second instead of 10.0: the machine is too slow or too busy"
    ]
    assert later == []


def test_a_fleet_that_keeps_up_again_raises_one_alert() -> None:
    punctuality = Punctuality(PERIOD_US)
    changes(punctuality, 200_000)

    # A tenth of the time is lost: too little to fall behind, too much to keep up again.
    assert changes(punctuality, 10_000) == []
    assert [one.message for one in changes(punctuality, 0, 2 * WINDOW)] == ["the fleet ticks 10.0 times a second again"]


def test_one_long_tick_raises_no_alert() -> None:
    punctuality = Punctuality(PERIOD_US)

    assert changes(punctuality, 1_000_000, 1) + changes(punctuality, -50_000, WINDOW) == []
