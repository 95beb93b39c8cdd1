"""Progress of a truck: `extend_um` only grows, `release_um` is a lower bound, jumps are reported."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from pendula.fleet import PoseJump, Progress, advanced, started
from pendula.fleet.compiler.samples import FL_STD
from pendula.fleet.map.routes import uncertainty_um


@pytest.mark.req("FLT-PLAN-15")
def test_creeping_back_becomes_a_jump() -> None:
    state: Progress | PoseJump = started(0, 10_000_000)
    for tick in range(1, 4):
        assert isinstance(state, Progress)
        state = advanced(state, 100 * tick, 10_000_000 - 150_000 * tick, FL_STD)
    assert isinstance(state, PoseJump)


def after(*samples: tuple[int, float]) -> Progress | PoseJump:
    state: Progress | PoseJump = started(samples[0][0], round(samples[0][1] * 1e6))
    for at_ms, s in samples[1:]:
        assert isinstance(state, Progress)
        state = advanced(state, at_ms, round(s * 1e6), FL_STD)
    return state


@pytest.mark.req("FLT-PLAN-14")
def test_a_forward_outlier_releases_nothing_and_extends_no_farther_than_possible() -> None:
    samples = [(0, 10.0), (100, 10.1), (200, 10.38), (300, 10.2)]

    values = [after(*samples[: k + 1]) for k in range(4)]

    for value in values:
        assert isinstance(value, Progress)
        assert value.release_um(100_000) <= 9_900_000
        assert value.extend_um <= 10_320_000
    assert isinstance(values[3], Progress)
    assert values[3].extend_um == 10_320_000


@pytest.mark.req("FLT-PLAN-14", "FLT-OSC-5")
@given(st.lists(st.integers(-100_000, 100_000), min_size=1, max_size=40))
def test_noise_never_pulls_back_what_extends(noise: list[int]) -> None:
    state: Progress | PoseJump = started(0, 5_000_000)
    for tick, error in enumerate(noise):
        assert isinstance(state, Progress)
        before = state.extend_um
        state = advanced(state, 100 * (tick + 1), 5_000_000 + error, FL_STD)
        assert isinstance(state, Progress)
        assert state.extend_um >= before
        assert state.release_um(100_000) <= 5_000_000
        assert len(state.raw_um) <= 5


@pytest.mark.req("FLT-PLAN-15")
@pytest.mark.parametrize(("s", "jump"), [(10.52, False), (10.53, True), (9.70, False), (9.69, True)])
def test_an_impossible_move_is_a_jump(s: float, jump: bool) -> None:
    # 1.2 m/s for 0.1 s and the jitter of 0.1 s, twice 0.1 m of localization, 0.08 m of tracking.
    assert isinstance(after((0, 10.0), (100, s)), PoseJump) is jump


@pytest.mark.req("FLT-PLAN-15")
@pytest.mark.parametrize(("jitter_ms", "most_um"), [(0, 500_000), (100, 520_000), (200, 640_000)])
def test_the_jitter_of_the_stamps_counts_and_the_least_threshold_holds(jitter_ms: int, most_um: int) -> None:
    profile = replace(FL_STD, stamp_jitter_ms=jitter_ms)
    state = started(0, 10_000_000)

    assert isinstance(advanced(state, 100, 10_000_000 + most_um, profile), Progress)
    assert isinstance(advanced(state, 100, 10_000_001 + most_um, profile), PoseJump)


@pytest.mark.req("FLT-PLAN-15")
def test_a_long_silence_does_not_excuse_driving_back() -> None:
    assert isinstance(after((0, 10.0), (5000, 9.6)), PoseJump)


@pytest.mark.req("FLT-COR-7")
def test_uncertainty_grows_with_the_age_of_the_telemetry() -> None:
    assert uncertainty_um(FL_STD, 400_000, 500) == 300_000
    assert uncertainty_um(replace(FL_STD), 400_000, 0) == 100_000
