"""A moment of a run as a picture."""

import xml.etree.ElementTree as ET
from collections import Counter
from dataclasses import replace

import pytest

from pendula.fleet.compiler.samples import FL_STD
from pendula.fleet.pictures.map import ShownTruck, moment_svg
from pendula.fleet.scenarios import Run, shipped
from tests.fleet.sites import scene


@pytest.mark.req("FLT-DCL-21", "FLT-OBS-10")
def test_a_moment_shows_every_truck_and_its_blocker() -> None:
    run = Run(shipped("head-on"))
    run.run(30_000)
    trucks = run.shown_trucks()

    picture = moment_svg(run.site, trucks)

    titles = [element.text for element in ET.fromstring(picture).iter() if element.tag.endswith("title")]
    assert "R2: WAIT_SAFE_STATE" in titles
    assert "R1: GOING_TO_PARK" in titles
    assert next(truck.blocker for truck in trucks if truck.robot_id == "R2") == "R1"
    assert moment_svg(run.site, trucks) == picture


@pytest.mark.req("FLT-DCL-21")
def test_a_stop_line_and_an_arrow_to_the_blocker_are_drawn_where_there_are_any() -> None:
    site = scene("reference-hall")
    plain = ShownTruck("R1", FL_STD, 1.0, 0.0, 0.0)
    other = ShownTruck("R2", FL_STD, 9.0, 0.0, 0.0)

    def shapes(truck: ShownTruck) -> Counter[str]:
        drawn = ET.fromstring(moment_svg(site, [truck, other]))
        return Counter(each.tag.rpartition("}")[2] for each in drawn.iter())

    bare = shapes(plain)
    assert shapes(replace(plain, stop_um=(3_000_000, 0))) - bare == Counter(circle=1)
    # The line and its head.
    assert shapes(replace(plain, blocker="R2")) - bare == Counter(path=2)
    assert shapes(replace(plain, blocker="R-hidden")) - bare == Counter()
