"""Envelopes, lead and trail, the turning radius and the distances that follow, for the reference truck."""

import pytest
from msgspec.structs import replace

from pendula.fleet import envelope_of, largest_envelope
from pendula.fleet.compiler.samples import FL_STD
from pendula.fleet.map.trucks import allowed_speed_um_s, braking_um, stop_distance_um
from pendula.fleet.model import MoveStyle
from pendula.fleet.pictures.map import envelope_corners

FORWARD, BACKWARD = MoveStyle.FORWARD, MoveStyle.BACKWARD
ENVELOPE = envelope_of(FL_STD)


@pytest.mark.req("FLT-GEO-6")
def test_the_inflation_is_the_sum_of_the_errors() -> None:
    assert FL_STD.inflation_um == 200_000


@pytest.mark.req("FLT-GEO-7")
def test_the_envelope_contains_every_margin_once() -> None:
    assert (ENVELOPE.front_um, ENVELOPE.rear_um, ENVELOPE.side_um) == (2_100_000, 2_300_000, 900_000)
    assert envelope_corners(ENVELOPE, 1, 2, 0)[0] == (3.1, 2.9)


@pytest.mark.req("FLT-GEO-9")
def test_backward_the_tail_leads() -> None:
    assert (ENVELOPE.lead_um(FORWARD), ENVELOPE.trail_um(FORWARD)) == (2_100_000, 2_300_000)
    assert (ENVELOPE.lead_um(BACKWARD), ENVELOPE.trail_um(BACKWARD)) == (2_300_000, 2_100_000)


@pytest.mark.req("FLT-GEO-10")
def test_the_turning_radius_reaches_the_farthest_corner() -> None:
    assert ENVELOPE.turn_radius_um == 2_469_818
    assert envelope_of(replace(FL_STD, tail_um=0)).turn_radius_um == 2_284_732


@pytest.mark.req("FLT-GEO-10")
def test_a_whole_root_is_not_rounded_up() -> None:
    exact = replace(ENVELOPE, front_um=4_000_000, rear_um=1, side_um=3_000_000)

    assert exact.turn_radius_um == 5_000_000


@pytest.mark.req("FLT-RES-15")
@pytest.mark.parametrize(
    ("leader", "follower", "spacing"),
    [(FORWARD, FORWARD, 4_900_000), (FORWARD, BACKWARD, 5_100_000), (BACKWARD, FORWARD, 4_700_000)],
)
def test_spacing_depends_on_both_driving_styles(leader: MoveStyle, follower: MoveStyle, spacing: int) -> None:
    assert ENVELOPE.spacing_um(leader, follower) == spacing


@pytest.mark.req("FLT-COR-2")
@pytest.mark.parametrize(
    ("speed", "distance"), [(0, 200_000), (400_000, 480_000), (800_000, 960_000), (1_200_000, 1_640_000)]
)
def test_stopping_distances_of_the_reference_truck(speed: int, distance: int) -> None:
    assert stop_distance_um(FL_STD, speed) == distance


@pytest.mark.req("FLT-RTP-6")
@pytest.mark.parametrize(
    ("distance", "speed"),
    [(0, 0), (300_000, 421_000), (500_000, 604_000), (1_000_000, 955_000), (1_440_000, 1_200_000)],
)
def test_allowed_speeds_of_the_reference_truck(distance: int, speed: int) -> None:
    allowed = allowed_speed_um_s(FL_STD, distance)

    assert round(allowed, -3) == speed
    assert braking_um(FL_STD, allowed) <= distance


@pytest.mark.req("FLT-MAP-20")
def test_several_types_are_compiled_for_the_greatest_of_each_measure() -> None:
    long = replace(FL_STD, profile_id="LONG", tail_um=3_000_000, width_um=800_000)
    wide = replace(FL_STD, profile_id="WIDE", width_um=1_600_000)

    both = largest_envelope([long, wide])

    assert (both.front_um, both.rear_um, both.side_um) == (2_100_000, 3_600_000, 1_200_000)
    assert both == largest_envelope([wide, long])


@pytest.mark.req("FLT-EVO-16")
def test_a_heading_error_widens_the_envelope() -> None:
    swaying = envelope_of(replace(FL_STD, heading_error_urad=26_180))

    assert swaying.side_um - ENVELOPE.side_um == pytest.approx(60_000, abs=300)


@pytest.mark.req("FLT-GEO-14")
def test_the_following_gap_is_no_part_of_the_envelope() -> None:
    keeping = envelope_of(replace(FL_STD, min_following_gap_um=3_000_000))

    assert replace(keeping, gap_um=ENVELOPE.gap_um) == ENVELOPE


@pytest.mark.req("FLT-MAP-20")
def test_every_measure_has_its_own_maximum() -> None:
    a = replace(FL_STD, tail_um=3_000_000, safety_rear_um=100_000)
    b = replace(FL_STD, tail_um=1_000_000, safety_rear_um=1_000_000)
    assert largest_envelope([a, b]).rear_um == 3_000_000 + 1_000_000 + 200_000
