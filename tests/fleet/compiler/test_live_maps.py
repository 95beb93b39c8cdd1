"""Maps that are LIVE by construction are LIVE, with any part of their parks in use."""

import pytest

from pendula.fleet import certify, compile_map
from pendula.fleet.compiler.generated_maps import Sample, live_map, spur_grid
from pendula.fleet.compiler.samples import FL_STD
from tests.campaigns import campaign_after


def is_live(sample: Sample) -> bool:
    made, _ = certify(compile_map(sample.source, [FL_STD]), sample.fleet, [FL_STD])
    assert made is not None
    return made.live


@pytest.mark.req("FLT-LIVE-7")
@pytest.mark.parametrize("seed", campaign_after(8, range(24)))
def test_a_live_map_is_live_for_every_seed(seed: int) -> None:
    assert is_live(live_map(seed, 2 + seed % 7, (25, 50, 100)[seed % 3]))


@pytest.mark.long
@pytest.mark.parametrize("seed", range(100, 300))
def test_a_live_map_of_any_size_is_live(seed: int) -> None:
    assert is_live(live_map(seed, 1 + seed % 20, (25, 50, 100)[seed % 3]))


@pytest.mark.parametrize(("percent", "trucks"), [(25, 5), (50, 10), (100, 20)])
def test_a_grid_with_spurs_is_live_with_a_part_of_its_parks_and_with_all(percent: int, trucks: int) -> None:
    sample = spur_grid(percent=percent)

    assert len(sample.fleet.trucks) == trucks
    assert is_live(sample)


def test_the_same_seed_gives_the_same_map_and_fleet() -> None:
    assert live_map(5) == live_map(5)
    assert live_map(5) != live_map(6)
