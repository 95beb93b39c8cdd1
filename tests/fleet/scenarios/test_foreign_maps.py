"""Ordinary traffic on maps of other programs."""

import pytest

from pendula.fleet.scenarios import Run
from tests.campaigns import campaign_after
from tests.fleet.foreign_maps import READERS, live_scenario


@pytest.mark.req("FLT-OSC-10", "FLT-OSC-9")
@pytest.mark.parametrize("name", campaign_after(1, READERS))
def test_trucks_in_ordinary_traffic_on_a_foreign_map_do_not_swing(name: str) -> None:
    run = Run(live_scenario(name, seed=0, trucks=5, minutes=4))

    result = run.run()

    assert result.unmet == ()
    assert run.measures.swings.worst["goHoldChanges"][0] > 0
