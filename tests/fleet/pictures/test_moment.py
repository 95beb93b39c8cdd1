"""A moment of a run as a picture."""

import xml.etree.ElementTree as ET

import pytest

from pendula.fleet.pictures.moment import moment_svg
from pendula.fleet.scenarios import Run, shipped


@pytest.mark.req("FLT-DCL-21", "FLT-OBS-10")
def test_a_moment_shows_every_truck_and_who_is_in_the_way_of_whom() -> None:
    run = Run(shipped("head-on"))
    run.run(30_000)
    trucks = run.shown_trucks()

    picture = moment_svg(run.site, trucks)

    titles = [one.text for one in ET.fromstring(picture).iter() if one.tag.endswith("title")]
    assert "R2: WAIT_SAFE_STATE" in titles
    assert "R1: GOING_TO_PARK" in titles
    assert next(one.blocker for one in trucks if one.robot_id == "R2") == "R1"
    assert moment_svg(run.site, trucks) == picture
