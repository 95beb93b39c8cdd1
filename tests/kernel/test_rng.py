"""Check vectors of the generators and streams, and the laws of jumping forward and back."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pendula.kernel.errors import WrongUsage
from pendula.kernel.rng import Pcg32, action_generator, action_seed, mix, stream, tick_generator, tick_seed

NAE = 0x4E414500
PICK = 0x5049434B

words = st.integers(0, 2**64 - 1)
generators = st.builds(Pcg32.seeded, words, words)


def hexadecimal(generator: Pcg32, count: int) -> str:
    return " ".join(f"{generator.next():08x}" for _ in range(count))


@pytest.mark.req("PLAY-RNG-1")
def test_pcg32_gives_the_published_check_vector() -> None:
    assert hexadecimal(Pcg32.seeded(42, 54), 6) == "a15c02b7 7b47f409 ba1d3330 83d2f293 bfa4784b cbed606e"


def test_mix_gives_the_published_vectors_of_splitmix64() -> None:
    assert mix(0) == 0xE220A8397B1DCDAF
    assert mix(0x9E3779B97F4A7C15) == 0x6E789E6AA1B965F4


@pytest.mark.req("PLAY-RNG-2")
@pytest.mark.parametrize(
    ("seed", "epoch", "constant", "first_four"),
    [
        (1, 0, NAE, "3d1886f0 f8c37610 e88168ec c8513012"),
        (1, 0, PICK, "e7286996 5cfb4e07 0907b393 9b9e63fd"),
        (1, 1, NAE, "3b88b7bb 36fed145 6baa575c f3410090"),
        (1, 1, PICK, "f5c3abd9 ca19a4ba b515f39b 5630a8eb"),
        (2, 0, NAE, "a7a1fc04 891800d7 caa09cab a3a172b0"),
        (2, 0, PICK, "d7ff19b8 f478fa2a 51216205 bed2e356"),
    ],
)
def test_streams_are_derived_from_seed_epoch_and_constant(
    seed: int, epoch: int, constant: int, first_four: str
) -> None:
    assert hexadecimal(stream(seed, epoch, constant), 4) == first_four


@pytest.mark.req("PLAY-RNG-5")
def test_the_epoch_wraps_at_64_bits() -> None:
    assert stream(1, 2**64, NAE).state == stream(1, 0, NAE).state
    assert stream(1, 2**64 - 1, NAE).state != stream(1, 0, NAE).state


@pytest.mark.req("PLAY-RNG-3")
def test_bounded_integers_give_the_golden_values() -> None:
    pick = stream(1, 0, PICK)

    assert [pick.bounded(5) for _ in range(20)] == [4, 1, 0, 3, 1, 1, 3, 4, 2, 2, 3, 2, 1, 3, 3, 3, 2, 0, 1, 3]


@pytest.mark.req("PLAY-RNG-3")
def test_a_bound_of_one_draws_nothing() -> None:
    generator = stream(1, 0, PICK)
    before = generator.state

    assert generator.bounded(1) == 0
    assert generator.state == before


@pytest.mark.req("PLAY-RNG-3")
def test_the_largest_bound_gives_the_number_itself() -> None:
    assert Pcg32.seeded(42, 54).bounded(2**32) == 0xA15C02B7


@pytest.mark.req("PLAY-RNG-3")
@given(generators, st.integers(2, 2**32))
def test_bounded_accepts_and_rejects_by_the_rule(generator: Pcg32, n: int) -> None:
    twin = Pcg32(generator.state, generator.increment)
    product = twin.next() * n
    while product % 2**32 < (2**32 - n) % n:
        product = twin.next() * n

    assert generator.bounded(n) == product // 2**32
    assert generator.state == twin.state


def test_rejection_happens_if_the_bound_does_not_divide() -> None:
    generator = Pcg32.seeded(42, 54)
    before = generator.state
    # Just above half of 2**32 nearly every other draw is rejected.
    drawn = [generator.bounded(2**31 + 1) for _ in range(64)]

    twin = Pcg32(before, generator.increment)
    twin.advance(64)
    assert all(0 <= value <= 2**31 for value in drawn)
    assert generator.state != twin.state


@pytest.mark.parametrize("n", [0, -1, 2**32 + 1])
def test_an_invalid_bound_is_refused(n: int) -> None:
    with pytest.raises(WrongUsage):
        Pcg32.seeded(1, 1).bounded(n)


@pytest.mark.req("PLAY-RNG-4")
@given(generators, st.integers(0, 50))
def test_back_inverts_next_exactly(generator: Pcg32, count: int) -> None:
    before = generator.state

    forward = [generator.next() for _ in range(count)]
    backward = [generator.back() for _ in range(count)]

    assert backward == forward[::-1]
    assert generator.state == before


@pytest.mark.req("PLAY-RNG-4")
@given(generators, st.integers(-60, 60))
def test_advance_equals_that_many_steps(generator: Pcg32, steps: int) -> None:
    twin = Pcg32(generator.state, generator.increment)

    generator.advance(steps)
    for _ in range(abs(steps)):
        twin.next() if steps > 0 else twin.back()

    assert generator.state == twin.state


@pytest.mark.req("PLAY-RNG-4")
@given(generators, st.integers(), st.integers())
def test_jumps_add_up_and_wrap_at_the_period(generator: Pcg32, first: int, second: int) -> None:
    twin = Pcg32(generator.state, generator.increment)

    generator.advance(first)
    generator.advance(second)
    twin.advance(first + second + 2**64)

    assert generator.state == twin.state


@pytest.mark.req("PLAY-RNG-4")
def test_drawing_from_one_stream_never_changes_the_other() -> None:
    nae, pick = stream(1, 0, NAE), stream(1, 0, PICK)

    for _ in range(100):
        pick.bounded(7)

    assert hexadecimal(nae, 4) == "3d1886f0 f8c37610 e88168ec c8513012"


@given(generators)
def test_a_generator_continues_from_its_saved_state(generator: Pcg32) -> None:
    generator.advance(17)
    saved = Pcg32(generator.state, generator.increment)

    assert hexadecimal(saved, 5) == hexadecimal(generator, 5)


@pytest.mark.parametrize(("state", "increment"), [(0, 2), (-1, 1), (2**64, 1), (0, -1), (0, 2**64 + 1)])
def test_an_invalid_state_is_refused(state: int, increment: int) -> None:
    with pytest.raises(WrongUsage):
        Pcg32(state, increment)


@pytest.mark.req("SIM-DET-5")
@pytest.mark.parametrize(
    ("seed", "tick", "expected"), [(42, 0, 42000126), (42, 1, 42000127), (1, 0, 1000003), (4294967295, 7, 4293967300)]
)
def test_the_seed_of_a_tick(seed: int, tick: int, expected: int) -> None:
    assert tick_seed(seed, tick) == expected


@pytest.mark.req("SIM-DET-4")
@pytest.mark.req("SIM-DET-5")
def test_the_first_draws_of_ticks() -> None:
    draws = [tick_generator(42, tick).random() for tick in (0, 1, 2)]

    assert draws == [0.7175559251697405, 0.5048639007963877, 0.5815068561101447]


@pytest.mark.req("SIM-DET-6")
def test_every_candidate_position_has_its_own_seed() -> None:
    assert [action_seed(tick_seed(42, 0), i) for i in (0, 1, 2)] == [4061780090, 4061780091, 4061780092]
    assert action_generator(42000126, 1).random() == random.Random(4061780091).random()


@pytest.mark.req("SIM-DET-7")
def test_generators_share_nothing_and_leave_the_module_alone() -> None:
    module_state = random.getstate()

    used = tick_generator(7, 3)
    used.random()
    fresh = tick_generator(7, 3)

    assert fresh.random() == tick_generator(7, 3).random()
    assert fresh.getstate() == used.getstate()
    assert random.getstate() == module_state
