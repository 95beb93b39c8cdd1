"""Every state of tiny maps: under the rule none is a deadlock, and with each planted mistake some are."""

import pytest

from tests.campaigns import campaign_after
from tests.fleet.traffic import mistakes
from tests.fleet.traffic.exhaustive import Explorer, Report
from tests.fleet.traffic.tiny_maps import tiny_map

# Numbers of tiny maps in every run of the tests, and in the long campaign, which searches them to the end.
MAPS, MANY_MAPS = 200, 2_000
CLEAN = {"deadlocks": 0, "unsafe": 0, "broken_witnesses": 0, "overlaps": 0, "withheld": 0}


def wrong(report: Report) -> dict[str, int]:
    return {name: getattr(report, name) for name in CLEAN}


def explore(seeds: range, limit: int) -> None:
    for seed in seeds:
        report = Explorer(tiny_map(seed), limit=limit).run()
        assert wrong(report) == CLEAN, f"tiny map {seed}"


@pytest.mark.req("FLT-LIVE-4", "FLT-LIVE-8", "FLT-LIVE-13", "FLT-TEST-45", "FLT-TEST-51", "FLT-DCL-15", "FLT-EVO-12")
@pytest.mark.parametrize("part", campaign_after(1, range(MAPS // 50)))
def test_no_state_that_the_rule_admits_is_a_deadlock(part: int) -> None:
    explore(range(50 * part, 50 * part + 50), limit=150)


@pytest.mark.long
@pytest.mark.req("FLT-LIVE-8")
@pytest.mark.parametrize("part", range(MANY_MAPS // 100))
def test_no_state_of_two_thousand_maps_is_a_deadlock(part: int) -> None:
    explore(range(100 * part, 100 * part + 100), limit=100_000)


def test_a_tiny_map_is_searched_to_the_end() -> None:
    report = Explorer(tiny_map(4), limit=100_000).run()

    assert report.complete
    assert report.states > 100


def test_few_units_are_refused_that_brute_force_finds_safe() -> None:
    reports = [Explorer(tiny_map(seed), limit=150).run() for seed in range(1000, 1030)]

    assert sum(report.over_strict for report in reports) * 100 <= sum(report.safe_units for report in reports)


@pytest.mark.req("FLT-DCL-16", "FLT-LIVE-3", "FLT-LIVE-5", "FLT-RES-10")
@pytest.mark.parametrize(
    ("mistake", "seeds"),
    [
        pytest.param(mistakes.rule_off, (0, 1, 3), id="locks alone"),
        pytest.param(mistakes.direction_lock, (3, 5, 10), id="a direction lock beside the relation"),
        pytest.param(mistakes.literal_barring, (0, 1, 2), id="literal queue barring"),
        pytest.param(mistakes.skips_refuges, (53, 83, 88), id="a refuge of equal blocking skipped"),
    ],
)
def test_a_planted_mistake_is_found_as_a_deadlock(mistake: mistakes.Mistake, seeds: tuple[int, ...]) -> None:
    found = [Explorer(tiny_map(seed), extend=mistake, limit=800).run().deadlocks for seed in seeds]

    assert all(found)


@pytest.mark.req("FLT-LIVE-4")
def test_routes_accepted_without_a_check_are_found_as_a_deadlock() -> None:
    found = [Explorer(tiny_map(seed), accept=mistakes.unchecked, limit=800).run().deadlocks for seed in (1, 3, 5)]

    assert all(found)
