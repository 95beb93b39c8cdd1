"""Fleets for maps without a fleet."""

import pytest

from pendula.fleet import certify, compile_map
from pendula.fleet.compiler.samples import FL_STD, Sketch
from pendula.fleet.map.liveness import fitting_fleet
from tests.fleet.sites import random_site, scene


@pytest.mark.req("FLT-LIVE-7")
@pytest.mark.parametrize("seed", range(6))
def test_a_fleet_found_for_a_random_map_is_live(seed: int) -> None:
    site = random_site(seed)

    found = fitting_fleet(site, FL_STD)

    if found is not None:
        certificate, _ = certify(site, found, [FL_STD])
        assert certificate is not None
        assert certificate.live
        assert found.streams


def test_fleets_are_found_for_most_random_maps() -> None:
    assert sum(fitting_fleet(random_site(seed), FL_STD) is not None for seed in range(6)) >= 4


def test_trucks_rest_in_parks_and_carry_between_stations_where_there_are_any() -> None:
    found = fitting_fleet(scene("reference-hall"), FL_STD, 2)

    assert found is not None
    assert [truck.park_node_id for truck in found.trucks] == ["P1", "P2"]
    assert (found.streams[0].pick_node_ids, found.streams[0].drop_node_ids) == (("EAST",), ("WEST",))


def test_a_map_without_ways_back_gets_no_fleet() -> None:
    sketch = Sketch("one-way")
    sketch.node("A", 0, 0)
    sketch.node("B", 20, 0)
    sketch.lane("A", "B", back=False)

    assert fitting_fleet(compile_map(sketch.done(), [FL_STD]), FL_STD) is None
