"""Why a truck stands, in one sentence."""

import pytest

from pendula.fleet.explain import sentence
from pendula.fleet.samples import FL_STD, reference_fleet
from pendula.fleet.tick import OrderKind
from tests.fleet.health.troubled import Hall
from tests.fleet.sites import scene
from tests.fleet.tick.yard import Yard


@pytest.mark.req("FLT-OBS-7", "FLT-FAIL-14")
def test_a_truck_that_was_never_heard_has_not_reported_yet() -> None:
    yard = Yard(scene("reference-hall"), reference_fleet(3), [FL_STD])
    yard.drivers["R1"].mute = True
    yard.run(30)

    assert sentence(yard.traffic.why("R1")) == "R1 stops: it has not reported yet."


@pytest.mark.req("FLT-OBS-7", "FLT-FAIL-14")
def test_a_truck_that_was_not_heard_since_a_restart_is_said_to_be_so() -> None:
    hall = Hall()
    hall.first.mute = True
    hall.order(OrderKind.RESTARTED, None)

    assert sentence(hall.traffic.why("R1")) == "R1 stops: it has not reported since the restart."


@pytest.mark.req("FLT-OBS-7")
def test_a_truck_that_was_heard_a_while_ago_has_an_old_report() -> None:
    hall = Hall()
    hall.first.mute = True
    hall.run(8)

    assert sentence(hall.traffic.why("R1")) == "R1 stops: its last report is too old."
