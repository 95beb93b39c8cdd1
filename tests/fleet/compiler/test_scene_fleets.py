"""Every fleet of a scene is LIVE on it."""

import pytest

from pendula.fleet import certify, compile_map
from pendula.fleet.compiler import samples
from pendula.fleet.compiler.samples import FL_STD, SCENE_FLEETS, SCENE_STARTS
from tests.fleet.sites import scene

HALLS = {"hall": samples.reference_hall, "warehouse": samples.warehouse, "large": samples.large}


@pytest.mark.parametrize("name", SCENE_FLEETS)
def test_the_fleet_of_a_scene_is_live(name: str) -> None:
    site = compile_map(HALLS[name](), [FL_STD]) if name in HALLS else scene(name)

    certificate, findings = certify(site, SCENE_FLEETS[name], [FL_STD])

    assert certificate is not None
    assert certificate.live, findings


def test_trucks_that_start_elsewhere_belong_to_the_fleet_of_their_scene() -> None:
    for name, starts in SCENE_STARTS.items():
        assert set(starts) <= {truck.robot_id for truck in SCENE_FLEETS[name].trucks}
        assert set(starts.values()) <= set(scene(name).node_number)
