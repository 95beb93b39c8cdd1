"""The maps of our own are what they say, and compile without an error."""

import pytest

from pendula.fleet import Severity, examine
from pendula.fleet.maps.halls import grid, large, reference_hall, warehouse
from pendula.fleet.maps.random_maps import random_map
from pendula.fleet.maps.scenes import FL_STD
from tests.fleet.sites import SCENES, scene


@pytest.mark.parametrize("name", SCENES)
def test_scenes_compile(name: str) -> None:
    assert len(scene(name).cells) > 0


def test_the_reference_hall_has_twelve_nodes_and_nothing_to_say_about_it() -> None:
    assert len(reference_hall().nodes) == 12
    assert scene("reference-hall").findings == ()


def test_the_warehouse_has_three_hundred_nodes_and_six_hundred_edges() -> None:
    report = examine(warehouse(), [FL_STD])

    assert report.compiled is not None
    assert len(report.compiled.network.nodes) == 300
    assert len(report.compiled.network.edges) == 600


def test_the_large_map_has_a_thousand_nodes() -> None:
    assert (len(large().nodes), len(large().edges)) == (1000, 2000)


def test_a_grid_has_its_lanes() -> None:
    assert len(grid(4, 3).edges) == 2 * (4 * 2 + 3 * 3)


@pytest.mark.parametrize("seed", range(20))
def test_random_maps_are_reproducible_and_compile(seed: int) -> None:
    source = random_map(seed)

    report = examine(source, [FL_STD])

    assert source == random_map(seed)
    assert 4 <= len(source.nodes) <= 25
    errors = {one.code.value for one in report.findings if one.severity is Severity.ERROR}
    assert errors <= {"NODE_UNREACHABLE"}
