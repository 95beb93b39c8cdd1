"""Metres, radians and seconds of the documents as whole micrometres, microradians and microseconds, and back.

Documents hold exact decimals; everything inside the scheduler is an integer. A length is rounded half to even once, on
its way in. The angle 3.141593 of a file means pi.
"""

from decimal import ROUND_HALF_EVEN, Context, Decimal
from math import isqrt

MILLION = 1_000_000
PI_URAD = 3_141_593
TWO_PI_URAD = 6_283_185
# Pi in units of 1e-15, for times that must not carry the rounding of the file.
PI_FEMTO = 3_141_592_653_589_793
FEMTO_PER_URAD = 1_000_000_000
# A map lies within 100 km of its origin: products of two lengths then fit into 64 bits easily.
FARTHEST_M = 100_000
_MICRO = Decimal("0.000001")
# A wide context of its own: lengths must not depend on the decimal context of the calling program.
_EXACT = Context(prec=100, rounding=ROUND_HALF_EVEN)


def micro(value: Decimal | int) -> int:
    """Metres (radians, seconds) as whole micrometres (microradians, microseconds), half to even, rounded once."""
    return int(Decimal(value).quantize(_MICRO, context=_EXACT).scaleb(6, _EXACT))


def plain(micros: int) -> Decimal | int:
    """Micrometres as metres in canonical form: an int where whole, else a Decimal without trailing zeros."""
    whole, rest = divmod(micros, MILLION)
    if rest == 0:
        return whole
    return Decimal(micros).scaleb(-6, _EXACT).normalize(_EXACT)


def metres(micros: int) -> Decimal:
    """Micrometres as metres for a contract, without trailing zeros."""
    return Decimal(micros // MILLION) if micros % MILLION == 0 else Decimal(micros).scaleb(-6, _EXACT).normalize(_EXACT)


def half_up(numerator: int, denominator: int) -> int:
    """The quotient of a number and a positive one, rounded half up: a half of -1 is 0."""
    return (2 * numerator + denominator) // (2 * denominator)


def root(square: int) -> int:
    """The square root of a number >= 0, to the nearest whole."""
    return (isqrt(4 * square) + 1) // 2


def ceil_div(numerator: int, denominator: int) -> int:
    return -(-numerator // denominator)


def wrapped_urad(angle: int) -> int:
    """The same direction in (-pi, pi]; both ends of the range are written 3141593."""
    angle %= TWO_PI_URAD
    return angle if angle <= PI_URAD else angle - TWO_PI_URAD


def angle_femto(urad: int) -> int:
    """The size of an angle of a file in 1e-15 rad, where 3.141593 means pi."""
    size = abs(urad)
    return PI_FEMTO if size == PI_URAD else size * FEMTO_PER_URAD
