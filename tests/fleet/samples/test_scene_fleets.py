"""Every fleet of a scene is LIVE on it."""

import pytest

from pendula.fleet import certify
from pendula.fleet.samples import FL_STD
from pendula.fleet.samples.scene_fleets import SCENE_FLEETS
from tests.fleet.sites import scene


@pytest.mark.parametrize("name", SCENE_FLEETS)
def test_the_fleet_of_a_scene_can_run_for_ever(name: str) -> None:
    certificate, findings = certify(scene(name), SCENE_FLEETS[name], [FL_STD])

    assert certificate is not None
    assert certificate.live, findings
