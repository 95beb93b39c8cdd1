"""How much of the screen each channel gets: three modes, in exact fractions, and integer weights that sum to 65536."""

from collections.abc import Sequence
from decimal import Decimal, InvalidOperation
from fractions import Fraction

import msgspec

from pendula.playback.model import WSUM, Exposure, InvalidWeight, Mode, said, unfit

ZERO, ONE = Fraction(0), Fraction(1)
DIGITS_MOST = 30  # of a weight or fraction, before and after the point
COUNT_MOST = (1 << 63) - 1


def checked(exposure: Exposure) -> Exposure:
    """The same with every number exact; raises `InvalidWeight` and `InvalidParameter`."""
    weights = {name: _weight(name, value) for name, value in exposure.manual_weights.items()}
    # 0 is what a channel nobody mentions has: to write it down is no change. Less than 0 counts as 0.
    weights = {name: weight for name, weight in weights.items() if weight > 0}
    for field, counts in (("total_count", exposure.total_count), ("recent_count", exposure.recent_count)):
        for name, count in counts.items():
            if isinstance(count, bool) or not isinstance(count, int) or not 0 <= count <= COUNT_MOST:
                raise unfit(f"{field}.{name}", count, "an integer from 0 to 2^63 - 1")
    alpha, least, most = (_fraction(name, getattr(exposure, name)) for name in ("alpha", "p_min", "p_max"))
    if not 0 <= alpha <= 1:
        raise unfit("alpha", alpha, "a number from 0 to 1")
    if not 0 < least <= 1:
        raise unfit("p_min", least, "a number above 0, at most p_max")
    if not least <= most <= 1:
        raise unfit("p_max", most, "a number from p_min to 1")
    return msgspec.structs.replace(
        exposure,
        mode=_mode(exposure.mode),
        manual_weights=weights,
        total_count={name: count for name, count in exposure.total_count.items() if count},
        recent_count={name: count for name, count in exposure.recent_count.items() if count},
        alpha=alpha,
        p_min=least,
        p_max=most,
    )


def _mode(value: object) -> Mode:
    try:
        return Mode(value)  # type: ignore[arg-type]
    except ValueError:
        raise unfit("mode", value, "EqE, MaE or PrE") from None


def _weight(name: str, value: object) -> Decimal:
    number = exact(value)
    if number is None:
        raise InvalidWeight(
            f"The weight of channel {name!r} is {said(value)}; allowed are finite numbers of {DIGITS_MOST} digits",
            channel=name,
            value=said(value),
        )
    return number


def _fraction(name: str, value: object) -> Decimal:
    number = exact(value)
    if number is None:
        raise unfit(name, value, f"a finite number of at most {DIGITS_MOST} digits")
    return number


def exact(value: object) -> Decimal | None:
    """A number by its decimal text, so that 0.1 is a tenth; None for what is none, not finite or far too long."""
    if isinstance(value, bool) or not isinstance(value, int | float | Decimal | str):
        return None
    if isinstance(value, int) and value.bit_length() > 4 * DIGITS_MOST:
        return None
    try:
        number = Decimal(str(value)) if not isinstance(value, Decimal) else value
    except InvalidOperation:
        return None
    if not number.is_finite():
        return None
    sign, digits, exponent = number.as_tuple()
    assert isinstance(exponent, int)
    if len(digits) + max(exponent, 0) > DIGITS_MOST or -exponent > DIGITS_MOST:
        return None
    return _plain(sign, digits, exponent)


def _plain(sign: int, digits: tuple[int, ...], exponent: int) -> Decimal:
    """One form for one number, so that 0.50 is no change after 0.5; whatever precision the caller's context has."""
    kept = len(digits)
    while kept > 1 and digits[kept - 1] == 0:
        kept -= 1
    if digits[:kept] == (0,):
        return Decimal(0)
    return Decimal((sign, digits[:kept], exponent + len(digits) - kept))


def shares(exposure: Exposure, active: Sequence[str]) -> tuple[list[Fraction], bool]:
    """The share of each active channel, summing to 1; the flag says that all manual weights were 0, so equal it is."""
    if not active:
        return [], False
    match exposure.mode:
        case Mode.EQE:
            return _equal(len(active)), False
        case Mode.MAE:
            weights = [max(ZERO, Fraction(exposure.manual_weights.get(name, ZERO))) for name in active]
            total = sum(weights, ZERO)
            if not total:
                return _equal(len(active)), True
            return [Fraction(weight, total) for weight in weights], False
        case Mode.PRE:
            return _proportional(exposure, active), False


def _equal(count: int) -> list[Fraction]:
    return [Fraction(1, count)] * count


def _proportional(exposure: Exposure, active: Sequence[str]) -> list[Fraction]:
    """Large channels get more, new pictures count extra, and nobody gets nearly nothing or nearly all."""
    alpha, least, most = Fraction(exposure.alpha), Fraction(exposure.p_min), Fraction(exposure.p_max)
    total = _parts([exposure.total_count.get(name, 0) for name in active])
    recent = _parts([exposure.recent_count.get(name, 0) for name in active])
    clamped = [min(max((ONE - alpha) * t + alpha * r, least), most) for t, r in zip(total, recent, strict=True)]
    whole = sum(clamped, ZERO)
    return [Fraction(part, whole) for part in clamped]


def _parts(counts: Sequence[int]) -> list[Fraction]:
    whole = sum(counts)
    return [Fraction(count, whole) if whole else ZERO for count in counts]


def integer_weights(shares: Sequence[Fraction]) -> list[int]:
    """Largest remainder: sums to exactly 65536; ties go to the lower index; a positive share never ends with 0."""
    if not shares:
        return []
    exact = [share * WSUM for share in shares]
    weights = [part.numerator // part.denominator for part in exact]
    by_remainder = sorted(range(len(exact)), key=lambda index: (weights[index] - exact[index], index))
    for index in by_remainder[: WSUM - sum(weights)]:
        weights[index] += 1
    for index, share in enumerate(shares):
        if share > 0 and weights[index] == 0:
            # The richest gives; of equals the first, so that the order is total.
            richest = max(range(len(weights)), key=lambda other: (weights[other], -other))
            weights[richest] -= 1
            weights[index] = 1
    return weights
