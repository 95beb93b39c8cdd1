"""Reports in metres and radians: exact conversion, and refusal of impossible numbers."""

import decimal
from decimal import Decimal
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs

from pendula.fleet.contracts import Phase, RobotState, RobotStatus, parse
from pendula.fleet.gateway import Received, ReportRefused, read_gateway, report_of, state_of
from pendula.fleet.tick.observing import TruckReport
from pendula.fleet.units import metres, micro

B1 = (Path(__file__).parents[3] / "examples/specifications/fleet-robot-state.json5").read_text(encoding="utf-8")


def b1(**members: Any) -> RobotState:
    state = parse("RobotState", B1)
    assert isinstance(state, RobotState)
    return structs.replace(state, **members)


@pytest.mark.req("FLT-API-3")
def test_a_report_equals_the_example() -> None:
    assert report_of(b1()) == TruckReport(
        "R1", 123_456_789, -20_900_000, 1_250_000, 0, 400_000, RobotStatus.OK, Phase.TO_PICK
    )


@pytest.mark.req("FLT-API-3")
@pytest.mark.parametrize(
    ("text", "micros"),
    [
        ("0.0000005", 0),
        ("0.0000015", 2),
        ("-0.0000005", 0),
        ("0.00000050000000000000000000000000000000001", 1),
        ("0.1", 100_000),
        ("99999.9999995", 100_000_000_000),
        ("1e-999999999", 0),
    ],
)
def test_a_decimal_is_rounded_once_half_to_even(text: str, micros: int) -> None:
    assert micro(Decimal(text)) == micros


@pytest.mark.req("FLT-API-3")
def test_the_decimal_context_of_the_program_has_no_effect() -> None:
    with decimal.localcontext(prec=3, rounding=decimal.ROUND_UP):
        assert micro(Decimal("12345.6789015")) == 12_345_678_902
        assert metres(12_345_678_902) == Decimal("12345.678902")


@pytest.mark.req("FLT-API-3")
@given(st.integers(-(10**11), 10**11))
def test_a_conversion_to_metres_and_back_is_exact(micros: int) -> None:
    assert micro(metres(micros)) == micros


@pytest.mark.req("FLT-API-3")
def test_a_float_is_read_as_the_decimal_that_python_prints() -> None:
    state = msgspec.convert({**msgspec.to_builtins(b1()), "pose": {"x": 0.1, "y": 1e-7, "yaw": 2.5e-6}}, RobotState)

    report = read_gateway(Received((state,))).reports[0]

    assert (report.x_um, report.y_um, report.yaw_urad) == (100_000, 0, 2)


@pytest.mark.req("FLT-API-3", "FLT-FAIL-17")
@pytest.mark.parametrize(
    ("state", "said"),
    [
        (b1(v=Decimal("NaN")), "v: NaN is not a finite number; allowed is -100 to 100 m/s"),
        (b1(v=Decimal("-100.0000001")), "v: -100.0000001 is out of range; allowed is -100 to 100 m/s"),
        (b1(nowMs=-1), "nowMs: -1 is out of range; allowed is 0 to 9007199254740992 ms"),
        (b1(lastAckSeq=10**400), "lastAckSeq: about 10\\^401 is out of range"),
        (b1(lastAckSeq=10**5000), "lastAckSeq: about 10\\^5001 is out of range"),
        (b1(contractVersion="2.0.0"), r"contractVersion: version 2.0.0 is not supported; allowed is 1\.x\.y"),
        (
            b1(pose=structs.replace(b1().pose, x=Decimal("1e999999999"), yaw=Decimal("Infinity"))),
            r"pose\.x: 1E\+999999999 is out of range.*pose\.yaw: Infinity is not a finite number",
        ),
    ],
)
def test_an_impossible_number_is_refused_with_its_member(state: RobotState, said: str) -> None:
    with pytest.raises(ReportRefused, match=said):
        report_of(state)


@pytest.mark.req("FLT-API-3")
def test_a_report_survives_a_round_trip() -> None:
    report = TruckReport(
        *("R1", 5, -1, 123_456_789, -3_141_593, 400_001, RobotStatus.FAULT, Phase.LOADING, 7, True, True, 970_000)
    )

    assert report_of(state_of(report)) == report


@pytest.mark.req("FLT-API-3")
def test_the_time_of_the_measurement_takes_precedence() -> None:
    assert report_of(b1(lastStatusMs=123_456_740)).at_ms == 123_456_740
