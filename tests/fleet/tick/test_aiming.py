"""Targets of trucks: never beyond the stop line."""

import pytest

from pendula.fleet.compiler.samples import FL_STD
from pendula.fleet.map.planner import AtNode
from pendula.fleet.tick.aiming import aim
from pendula.fleet.tick.params import TrafficParams
from pendula.fleet.tick.records import Record, Waiting
from pendula.fleet.tick.track import Ground, track_of
from tests.fleet.routes import route
from tests.fleet.sites import scene

SITE = scene("head-on-lane")


@pytest.mark.req("FLT-RTP-2")
def test_a_waiting_truck_seen_beyond_its_hold_point_gets_no_target_beyond_its_stop_line() -> None:
    node = SITE.node_number["A"]
    record = Record(SITE, 0, "R0", FL_STD, rest=SITE.node_number["B"], short_um=200_000, node=node)
    record.track = track_of(Ground(SITE), route(SITE, AtNode(node), "B", rest="B"), record.short_um, 0, {})
    record.acted, record.granted = len(record.track.acts) - 1, 1
    record.waiting = Waiting("WAIT_SPACING", None, None, None)
    # Its grant is too short to set out, and noise moves it forward.
    record.at_um = 17_500
    target = aim(record, 100, TrafficParams())

    assert target.target_um <= target.stop_um <= record.grant_um
