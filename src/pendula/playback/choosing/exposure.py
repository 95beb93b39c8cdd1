"""The share of each channel: three modes, in exact fractions, and integer weights that sum to 65536."""

from collections.abc import Sequence
from fractions import Fraction

from pendula.playback.model import WSUM, Exposure, Mode

ZERO, ONE = Fraction(0), Fraction(1)


def shares(exposure: Exposure, active: Sequence[str]) -> tuple[list[Fraction], bool]:
    """The share of each active channel, and whether equal shares replace manual weights that are all 0."""
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
    """Shares by total and recent counts, clamped to p_min..p_max and divided by their sum."""
    alpha, least, most = Fraction(exposure.alpha), Fraction(exposure.p_min), Fraction(exposure.p_max)
    total = _parts([exposure.total_count.get(name, 0) for name in active])
    recent = _parts([exposure.recent_count.get(name, 0) for name in active])
    clamped = [min(max((ONE - alpha) * t + alpha * r, least), most) for t, r in zip(total, recent, strict=True)]
    whole = sum(clamped, ZERO)
    return [Fraction(part, whole) for part in clamped]


def _parts(counts: Sequence[int]) -> list[Fraction]:
    whole = sum(counts)
    return [Fraction(count, whole) if whole else ZERO for count in counts]


def redistribute(parts: Sequence[Fraction], playing: Sequence[bool]) -> list[Fraction]:
    """The shares with those of paused channels given to the others in proportion; equally if the others have none."""
    whole = sum((part for part, plays in zip(parts, playing, strict=True) if plays), ZERO)
    alike = Fraction(1, max(1, sum(playing)))
    return [
        (Fraction(part, whole) if whole else alike) if plays else ZERO
        for part, plays in zip(parts, playing, strict=True)
    ]


def integer_weights(shares: Sequence[Fraction]) -> list[int]:
    """Largest remainder: sums to exactly 65536; ties go to the lower index; a positive share never ends with 0."""
    if not any(shares):
        return [0] * len(shares)
    exact = [share * WSUM for share in shares]
    weights = [part.numerator // part.denominator for part in exact]
    by_remainder = sorted(range(len(exact)), key=lambda index: (weights[index] - exact[index], index))
    for index in by_remainder[: WSUM - sum(weights)]:
        weights[index] += 1
    for index, share in enumerate(shares):
        if share > 0 and weights[index] == 0:
            # The largest weight gives one unit; on ties the lower index.
            richest = max(range(len(weights)), key=lambda other: (weights[other], -other))
            weights[richest] -= 1
            weights[index] = 1
    return weights
