"""Replanning while waiting: at limited rate, and only for a gain."""

import pytest

from pendula.fleet.tick.granting import may_replan, worth_taking


@pytest.mark.req("FLT-PLAN-9", "FLT-OSC-4")
@pytest.mark.parametrize(
    ("last", "changed", "may"),
    [(90_000, False, True), (90_001, False, False), (99_999, True, True), (None, False, True)],
)
def test_a_waiting_truck_replans_after_the_cooldown_or_for_another_blocker(
    last: int | None, changed: bool, may: bool
) -> None:
    assert may_replan(100_000, last, changed) is may


@pytest.mark.req("FLT-PLAN-9")
@pytest.mark.parametrize(
    ("new", "lost", "worth"),
    [(15_000_000, False, True), (15_000_001, False, False), (30_000_000, True, True), (30_000_000, False, False)],
)
def test_another_route_must_save_five_seconds_or_go_around_a_lost_truck(new: int, lost: bool, worth: bool) -> None:
    assert worth_taking(20_000_000, new, lost) is worth
