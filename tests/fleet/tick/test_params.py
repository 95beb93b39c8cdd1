"""Parameters that contradict each other or the trucks are named before anything moves."""

from typing import Any

import pytest
from msgspec.structs import replace

from pendula.fleet.compiler.samples import FL_STD
from pendula.fleet.map.trucks import RobotProfile
from pendula.fleet.model import CompileParams
from pendula.fleet.tick.params import TrafficParams, asked_um, contract_name, faults, off_route_um, spelled_out

# Its inflation is 0.15 m.
EXACT = replace(FL_STD, profile_id="FL-EXACT", localization_error=replace(FL_STD.localization_error, value_um=50_000))


def codes(**changed: int) -> list[str]:
    found = faults(replace(TrafficParams(), **changed), [FL_STD], CompileParams())
    return [fault.partition(":")[0] for fault in found]


def test_the_defaults_are_in_order() -> None:
    assert codes() == []


@pytest.mark.req("FLT-COR-4")
@pytest.mark.parametrize(("lookahead_um", "expected"), [(5_260_000, []), (5_259_999, ["LOOKAHEAD_TOO_SHORT"])])
def test_the_lookahead_covers_target_stopping_distance_cell_and_tick(lookahead_um: int, expected: list[str]) -> None:
    assert codes(lookahead_um=lookahead_um) == expected


@pytest.mark.req("FLT-COR-7")
@pytest.mark.parametrize(("lookback_um", "expected"), [(900_000, []), (899_999, ["LOOKBACK_TOO_SHORT"])])
def test_the_lookback_covers_the_uncertainty_of_a_moving_truck(lookback_um: int, expected: list[str]) -> None:
    assert codes(lookback_um=lookback_um) == expected


@pytest.mark.parametrize(
    ("off_route_um", "fine"), [(179_999, False), (180_000, True), (200_000, True), (200_001, False)]
)
def test_the_off_route_threshold_lies_between_the_errors_and_the_inflation(off_route_um: int, fine: bool) -> None:
    assert codes(off_route_um=off_route_um) == ([] if fine else ["OFF_ROUTE_THRESHOLD"])


@pytest.mark.req("FLT-FAIL-8")
@pytest.mark.parametrize("profile", [FL_STD, EXACT], ids=lambda profile: profile.profile_id)
def test_the_off_route_threshold_is_the_inflation_of_the_truck_unless_it_is_given(profile: RobotProfile) -> None:
    given = TrafficParams(off_route_um=140_000)

    assert faults(TrafficParams(), [FL_STD, EXACT], CompileParams()) == ()
    assert off_route_um(profile, TrafficParams()) == profile.inflation_um
    assert off_route_um(profile, given) == 140_000


@pytest.mark.parametrize(
    ("given", "profiles", "expected"),
    [
        (None, [FL_STD], 200_000),
        (None, [EXACT, EXACT], 150_000),
        (None, [FL_STD, EXACT], None),
        (180_000, [FL_STD], 180_000),
        (140_000, [FL_STD, EXACT], 140_000),
    ],
)
def test_a_threshold_that_all_trucks_have_in_common_is_spelled_out(
    given: int | None, profiles: list[RobotProfile], expected: int | None
) -> None:
    usual = TrafficParams(off_route_um=given)

    assert spelled_out(usual, profiles) == replace(usual, off_route_um=expected)


@pytest.mark.req("FLT-RTP-9")
@pytest.mark.parametrize(
    "changed",
    [{"starve_ms": 30_000}, {"aged_rank_cap": 19}, {"max_status_age_ms": 2_000}, {"rtp_timeout_ms": 199}],
    ids=lambda changed: next(iter(changed)),
)
def test_parameters_that_contradict_each_other_are_named(changed: dict[str, int]) -> None:
    assert codes(**changed) == ["PARAMETERS_CONTRADICT"]


@pytest.mark.parametrize(
    ("changed", "sentence"),
    [
        ({"starve_ms": 30_000}, "starveMs (30000) must be longer than fairnessCapMs (30000)"),
        ({"ack_timeout_ms": 150}, "ackTimeoutMs (150) must last at least two ticks of tickPeriodMs (100)"),
        (
            {"wait_warn_ms": 40_000},
            "waitWarnMs (40000), waitRerouteMs (30000), waitAlertMs (90000) must each be longer than the one before",
        ),
        ({"rtp_lookahead_um": 1_500_000}, "rtpLookaheadM is 1.5, allowed are 2 to 5"),
        ({"heading_tol_urad": 4_000_000}, "snapHeadingTolRad is 4, allowed are 0.000001 to 3.141593"),
    ],
)
def test_faults_use_the_names_and_units_of_files(changed: dict[str, int], sentence: str) -> None:
    (found,) = faults(replace(TrafficParams(), **changed), [FL_STD], CompileParams())

    assert found.partition(": ")[2] == sentence


def test_a_value_out_of_its_range_is_named() -> None:
    assert codes(tick_period_ms=250) == ["PARAMETER_OUT_OF_RANGE"]


def test_other_parameters_have_another_hash() -> None:
    assert TrafficParams().digest() != TrafficParams(starve_ms=61_000).digest()


@pytest.mark.parametrize(
    "changed",
    [
        {"cooldown_ms": -1},
        {"lookahead_um": 8e6},
        {"starve_ms": float("nan")},
        {"search_nodes": None},
        {"heading_tol_urad": 0},
        {"rtp_max_advance_um": 0},
        {"tick_period_ms": 99},
        {"tick_period_ms": 201},
    ],
)
def test_an_impossible_parameter_is_rejected_with_a_sentence(changed: dict[str, Any]) -> None:
    (name,) = changed

    assert [fault.split(" is ")[0] for fault in faults(TrafficParams(**changed), [FL_STD], CompileParams())] == [
        f"PARAMETER_OUT_OF_RANGE: {contract_name(name)}"
    ]


@pytest.mark.parametrize(
    ("changes", "expected_um"),
    [
        ({}, 3_420_000),
        ({"rtp_lookahead_um": 2_000_000}, 2_420_000),
        # Below its stopping distance a truck would crawl.
        ({"rtp_lookahead_um": 1_000_000}, 2_060_000),
        ({"lookahead_um": 3_000_000}, 3_000_000),
    ],
)
def test_a_request_reaches_as_far_as_target_and_speed_can_use(changes: dict[str, int], expected_um: int) -> None:
    assert asked_um(FL_STD, replace(TrafficParams(), **changes)) == expected_um


@pytest.mark.req("FLT-TEST-47")
@pytest.mark.parametrize(("stop_line_tol_um", "expected"), [(100_000, []), (99_999, ["STOP_LINE_TOLERANCE"])])
def test_the_tolerance_of_a_stop_line_covers_the_position_error(stop_line_tol_um: int, expected: list[str]) -> None:
    assert codes(stop_line_tol_um=stop_line_tol_um) == expected


@pytest.mark.req("FLT-PLAN-15")
@pytest.mark.parametrize(("progress_regress_um", "expected"), [(280_000, []), (279_999, ["PROGRESS_TOLERANCE"])])
def test_two_reports_of_a_standing_truck_are_no_backward_motion(progress_regress_um: int, expected: list[str]) -> None:
    assert codes(progress_regress_um=progress_regress_um) == expected


def test_a_search_of_more_branches_than_it_can_nest_is_refused() -> None:
    assert codes(search_nodes=201) == ["PARAMETER_OUT_OF_RANGE"]
