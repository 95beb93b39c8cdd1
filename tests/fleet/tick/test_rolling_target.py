"""Rolling targets: ahead of the truck, never beyond the stop line, never back."""

import pytest

from pendula.fleet.tick.aiming import Lookahead, target_um

USUAL = Lookahead(ahead_um=3_000_000, advance_um=1_500_000, buffer_um=100_000)


def target(at: float, stop: float, before: float = 100.0, *, exact: bool = False) -> float:
    """In metres. The last target is far ahead unless given, so that the advance is no limit."""
    at_um, stop_um = round(at * 1e6), round(stop * 1e6)
    return target_um(at_um, stop_um, min(round(before * 1e6), stop_um), exact, USUAL) / 1e6


@pytest.mark.req("FLT-RTP-2", "FLT-DCL-13")
@pytest.mark.parametrize(
    ("stop", "exact", "expected"), [(20.0, False, 13.0), (12.0, False, 11.9), (12.0, True, 12.0), (10.05, False, 10.0)]
)
@pytest.mark.req("FLT-API-5")
def test_the_target_is_the_lookahead_or_the_stop_line_less_the_buffer(
    stop: float, exact: bool, expected: float
) -> None:
    assert target(10.0, stop, 11.9, exact=exact) == expected


@pytest.mark.req("FLT-OSC-8")
def test_the_target_does_not_move_back_when_the_lookahead_ends_before_it() -> None:
    assert target(10.0, 20.0, 14.0) == 14.0


@pytest.mark.req("FLT-OSC-8")
def test_the_target_moves_back_when_the_stop_line_does() -> None:
    assert target(10.0, 12.0, 14.0) == 11.9


@pytest.mark.req("FLT-OSC-8")
def test_one_command_moves_the_target_by_one_advance_at_most() -> None:
    assert target(10.0, 20.0, 10.5) == 12.0
