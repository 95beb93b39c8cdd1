"""Shares are exact fractions, integer weights sum to 65536, and the round robin meets them over every period."""

from decimal import Decimal, localcontext
from fractions import Fraction
from itertools import pairwise
from random import Random

import msgspec
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from pendula.playback.choosing.generator import integer_weights, shares
from pendula.playback.choosing.programme import Programme
from pendula.playback.choosing.swrr import RoundRobin
from pendula.playback.model import WSUM, InvalidParameter
from pendula.playback.settings import Exposure, Mode, Settings
from pendula.playback.settings import checked_exposure as checked
from tests.playback.arithmetic import integers, round_robin
from tests.playback.shelves import ids, manual

PAIR = (ids("a", *range(1, 9)), ids("b", 11, 12, 13))


@st.composite
def weights_of_short_periods(draw: st.DrawFn) -> list[int]:
    """Weights that sum to 65536 and repeat after at most 512 steps; some are 0."""
    period = 1 << draw(st.integers(0, 9))
    cuts = draw(st.lists(st.integers(0, period), max_size=63))
    edges = [0, *sorted(cuts), period]
    return [(right - left) * (WSUM // period) for left, right in pairwise(edges)]


def check_one_period(weights: list[int]) -> None:
    """Compare definition and table over a whole period and the start of the next."""
    by_table, credits, counts = RoundRobin(weights), [0] * len(weights), [0] * len(weights)
    for _ in range(by_table.period):
        chosen = round_robin(credits, weights)
        counts[chosen] += 1
        assert by_table.next() == chosen
        assert sum(credits) == 0
        assert max(map(abs, credits)) < 2**31
    assert not any(credits)
    assert counts == [weight * by_table.period // WSUM for weight in weights]
    assert bytes(by_table.table) == by_table.ahead(by_table.period)
    assert by_table.next() == round_robin(credits, weights)


@pytest.mark.req("PLAY-SWRR-3")
@pytest.mark.req("PLAY-SWRR-4")
@pytest.mark.req("PLAY-SWRR-5")
@given(weights_of_short_periods())
def test_the_table_follows_the_definition_and_a_period_is_exact(weights: list[int]) -> None:
    check_one_period(weights)


@pytest.mark.req("PLAY-SWRR-4")
@pytest.mark.parametrize("number", range(2))
def test_a_period_of_65536_steps_is_exact(number: int) -> None:
    random = Random(number)
    parts = [Fraction(random.randrange(1, 10**6)) for _ in range(3 + number)]

    check_one_period(integers([part / sum(parts) for part in parts]))


@pytest.mark.long
@pytest.mark.parametrize("number", range(20))
def test_a_period_of_up_to_64_channels_is_exact(number: int) -> None:
    random = Random(number)
    parts = [Fraction(random.choice((1, 7, 10**6)), random.randrange(1, 99)) for _ in range(random.randrange(1, 65))]

    check_one_period(integers([part / sum(parts) for part in parts]))


@pytest.mark.req("PLAY-SWRR-4")
@given(weights_of_short_periods(), st.integers(0, 2000), st.integers(0, 700))
def test_credits_are_steps_times_weights_minus_picks_also_from_an_anchor(
    weights: list[int], steps: int, more: int
) -> None:
    whole = RoundRobin(weights)
    picks = whole.ahead(steps + more)
    whole.taken = steps + more

    credits = whole.credits_at(steps)
    anchored = RoundRobin(weights, steps, credits)

    assert credits == [steps * weight - WSUM * picks[:steps].count(index) for index, weight in enumerate(weights)]
    assert anchored.ahead(more) == picks[steps:]
    anchored.taken = steps + more
    assert anchored.credits_at(steps + more) == whole.credits_at(steps + more)


@pytest.mark.req("PLAY-SWRR-5")
def test_the_table_is_built_only_as_far_as_requested() -> None:
    sequence = RoundRobin(integers([Fraction(part, 7) for part in (4, 2, 1)]))

    sequence.ahead(10)
    assert len(sequence.table) == 10
    sequence.next()
    assert len(sequence.table) == 10


@pytest.mark.req("PLAY-SWRR-1")
@pytest.mark.req("PLAY-SWRR-2")
@given(st.lists(st.fractions(0, 1000, max_denominator=10**6), min_size=1, max_size=64))
def test_integer_weights_sum_to_65536_and_are_positive(parts: list[Fraction]) -> None:
    assume(sum(parts) > 0)
    wanted = [part / sum(parts) for part in parts]

    weights = integer_weights(wanted)

    assert sum(weights) == WSUM
    assert all((weight > 0) == (part > 0) for weight, part in zip(weights, wanted, strict=True))
    assert weights == integers(wanted)


proportions = st.integers(1, 100).flatmap(
    lambda least: st.tuples(st.just(least), st.integers(least, 100), st.integers(0, 100))
)


@pytest.mark.req("PLAY-EXP-4")
@pytest.mark.req("PLAY-EXP-6")
@given(st.lists(st.tuples(st.integers(0, 10**6), st.integers(0, 10**6)), min_size=1, max_size=64), proportions)
def test_a_proportional_weight_stays_below_its_bound(
    counts: list[tuple[int, int]], hundredths: tuple[int, int, int]
) -> None:
    least, most, alpha = (Decimal(value) / 100 for value in hundredths)
    names = [str(index) for index in range(len(counts))]
    exposure = checked(
        Exposure(
            Mode.PRE,
            total_count={name: total for name, (total, _) in zip(names, counts, strict=True)},
            recent_count={name: recent for name, (_, recent) in zip(names, counts, strict=True)},
            alpha=alpha,
            p_min=least,
            p_max=most,
        )
    )

    parts, _ = shares(exposure, names)

    low, high = Fraction(least), Fraction(most)
    assert sum(parts) == 1
    assert max(parts) <= high / (high + (len(names) - 1) * low)


@pytest.mark.req("PLAY-EXP-6")
@pytest.mark.parametrize("n", [1, 2, 3, 5, 64])
def test_the_bound_of_a_proportional_weight_is_tight(n: int) -> None:
    names = [str(index) for index in range(n)]

    parts, _ = shares(checked(Exposure(Mode.PRE, total_count={"0": 1000})), names)

    assert parts[0] == Fraction(2, 5) / (Fraction(2, 5) + (n - 1) * Fraction(1, 50))


@pytest.mark.req("PLAY-EXP-5")
@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("alpha", "-0.01"), ("alpha", "1.01"), ("p_min", "0"), ("p_min", "-1"), ("p_min", "0.41"),
        ("p_max", "0.019"), ("p_max", "1.001"), ("p_max", "0"), ("alpha", "NaN"), ("p_max", "Infinity"),
    ],
)  # fmt: skip
def test_parameters_out_of_range_are_refused(field: str, value: str) -> None:
    with pytest.raises(InvalidParameter):
        checked(msgspec.structs.replace(Exposure(Mode.PRE), **{field: Decimal(value)}))


@pytest.mark.req("PLAY-EXP-5")
@pytest.mark.parametrize("edge", [("0", "0.02", "0.02"), ("1", "1", "1"), ("0.5", "0.000001", "1")])
def test_parameters_at_the_limits_are_accepted(edge: tuple[str, str, str]) -> None:
    alpha, least, most = map(Decimal, edge)

    taken = checked(Exposure(Mode.PRE, alpha=alpha, p_min=least, p_max=most))

    assert (taken.alpha, taken.p_min, taken.p_max) == (alpha, least, most)


@pytest.mark.req("PLAY-EXP-3")
def test_all_zero_manual_weights_fall_back_to_equal_ones_with_a_diagnostic() -> None:
    programme = Programme(PAIR, Settings(exposure=manual(a=0, b=-2)), seed=1)

    assert programme.generator.weights == [32768, 32768]
    assert [diagnostic.code for diagnostic in programme.diagnostics] == ["AllManualWeightsZero"]


@pytest.mark.req("PLAY-EXP-1")
def test_weights_are_exact_whatever_the_precision_of_the_caller() -> None:
    exposure = Exposure(Mode.MAE, {"a": Decimal("1.00000000000000000000000000001"), "b": Decimal("123456.789")})
    exact = checked(exposure)
    with localcontext() as context:
        context.prec = 3
        rounded = checked(exposure)

    assert exact == rounded
    assert exact.manual_weights == exposure.manual_weights
