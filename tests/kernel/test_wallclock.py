"""The wall clock, driven by two dials: what the system says, and what the steady clock has counted."""

import time
from threading import Thread

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pendula.kernel.wallclock import ClockJump, SelfCheckingClock, WallClock, steady_ns

SECOND = 1_000_000
NOON = 1_771_675_200 * SECOND


class Dials:
    """A world with two clocks; real time passes on both, setting the clock moves one."""

    def __init__(self) -> None:
        self.wall_us = NOON
        self.steady_us = 5 * SECOND

    def clock(self) -> WallClock:
        return WallClock(lambda: self.wall_us * 1000, lambda: self.steady_us * 1000)

    def pass_time(self, us: int) -> None:
        self.wall_us += us
        self.steady_us += us

    def set_clock(self, by_us: int) -> None:
        self.wall_us += by_us


@pytest.fixture
def dials() -> Dials:
    return Dials()


def test_time_is_the_wall_time_at_start_plus_what_has_passed(dials: Dials) -> None:
    clock = dials.clock()

    dials.pass_time(90 * SECOND + 1)

    assert clock.now() == NOON + 90 * SECOND + 1


def test_without_a_jump_there_is_nothing_to_report(dials: Dials) -> None:
    clock = dials.clock()

    dials.pass_time(3600 * SECOND)

    assert clock.check() is None


@pytest.mark.parametrize("by", [SECOND, -SECOND, SECOND // 2])
def test_a_difference_of_up_to_a_second_is_no_jump(dials: Dials, by: int) -> None:
    clock = dials.clock()

    dials.set_clock(by)

    assert clock.check() is None
    assert clock.now() == NOON


@pytest.mark.parametrize("by", [SECOND + 1, 86_400 * SECOND])
def test_a_jump_forwards_is_reported_once_and_followed(dials: Dials, by: int) -> None:
    clock = dials.clock()
    dials.pass_time(10 * SECOND)

    dials.set_clock(by)
    jump = clock.check()

    assert jump == ClockJump(NOON + 10 * SECOND, NOON + 10 * SECOND + by)
    assert jump.by_us == by
    assert clock.check() is None
    assert clock.now() == dials.wall_us


def test_a_jump_has_no_effect_before_the_check(dials: Dials) -> None:
    clock = dials.clock()

    dials.set_clock(3600 * SECOND)

    assert clock.now() == NOON


def test_after_a_jump_backwards_time_runs_at_half_speed_until_the_system_has_caught_up(dials: Dials) -> None:
    clock = dials.clock()
    dials.pass_time(3600 * SECOND)
    one = NOON + 3600 * SECOND

    dials.set_clock(-60 * SECOND)
    jump = clock.check()

    assert jump == ClockJump(one, one - 60 * SECOND)
    assert jump.by_us == -60 * SECOND
    seen = []
    for _ in range(5):
        seen.append(clock.now() - one)
        assert clock.check() is None
        dials.pass_time(40 * SECOND)
    assert seen == [0, 20 * SECOND, 40 * SECOND, 60 * SECOND, 100 * SECOND]
    assert clock.now() == dials.wall_us


def test_small_steps_are_followed_when_they_add_up_to_more_than_a_second(dials: Dials) -> None:
    clock = dials.clock()

    dials.set_clock(600_000)
    assert clock.check() is None
    dials.set_clock(600_000)

    assert clock.check() == ClockJump(NOON, NOON + 1_200_000)


def test_the_lead_over_the_system_clock_shrinks_at_half_speed(dials: Dials) -> None:
    clock = dials.clock()
    dials.set_clock(3600 * SECOND)
    clock.check()
    ahead = [clock.now() - clock.machine()]
    dials.set_clock(-3600 * SECOND)
    clock.check()
    for _ in range(3):
        ahead.append(clock.now() - clock.machine())
        dials.pass_time(3600 * SECOND)

    assert ahead == [0, 3600 * SECOND, 1800 * SECOND, 0]
    assert clock.machine() == dials.wall_us


happenings = st.lists(
    st.one_of(
        st.tuples(st.just("pass"), st.integers(0, 5000 * SECOND)),
        st.tuples(st.just("set"), st.integers(-5000 * SECOND, 5000 * SECOND)),
        st.tuples(st.just("check"), st.just(0)),
    ),
    max_size=40,
)


@given(happenings)
def test_returned_time_never_goes_back_and_never_stops_for_long(story: list[tuple[str, int]]) -> None:
    dials = Dials()
    clock = dials.clock()
    before = clock.now()

    for what, us in story:
        match what:
            case "pass":
                dials.pass_time(us)
            case "set":
                dials.set_clock(us)
            case _:
                clock.check()
        now = clock.now()
        # Halves of a microsecond are cut off.
        assert now >= before + (us // 2 - 1 if what == "pass" else 0)
        before = now


@given(happenings)
def test_after_a_check_time_is_never_more_than_a_second_behind_the_system(story: list[tuple[str, int]]) -> None:
    dials = Dials()
    clock = dials.clock()

    for what, us in story:
        dials.pass_time(us) if what == "pass" else dials.set_clock(us)
        clock.check()

        assert clock.now() >= dials.wall_us - SECOND


def test_time_never_goes_back_across_threads(dials: Dials) -> None:
    clock = dials.clock()
    seen: list[list[int]] = [[] for _ in range(4)]

    def read(mine: list[int]) -> None:
        for _ in range(500):
            dials.set_clock(-2 * SECOND)
            clock.check()
            mine.append(clock.now())

    threads = [Thread(target=read, args=(mine,)) for mine in seen]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert all(mine == sorted(mine) for mine in seen)


def test_the_real_clock_returns_the_system_time() -> None:
    before = time.time_ns() // 1000

    clock = WallClock()
    first, second = clock.now(), clock.now()

    assert before <= first <= second
    assert clock.check() is None
    assert steady_ns() <= steady_ns()


def test_a_clock_that_checks_itself_follows_a_correction_either_way() -> None:
    wall, steady = 10**18, 0
    clock = SelfCheckingClock(lambda: wall, lambda: steady)
    assert clock.now() == 10**15

    wall, steady = wall + 3_600 * 10**9, steady + 2 * 10**9
    assert clock.now() == wall // 1000
    ahead = clock.now()
    wall, steady = 10**18 + 10 * 10**9, steady + 2 * 10**9
    assert clock.now() >= ahead  # never back
    for _ in range(10_000):
        wall, steady = wall + 10**9, steady + 10**9
        seen = clock.now()
    assert seen == wall // 1000  # and caught up
