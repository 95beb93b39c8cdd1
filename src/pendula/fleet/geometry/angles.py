"""The angle of a direction with `+ - * /` and `sqrt` alone, so that every processor gives the same microradian.

The arctangents of numpy and of the C library differ between processors in the last bit, which can change a rounded
number and so the hash of a map.
"""

from math import sqrt

from pendula.fleet.units import MILLION, PI_URAD, wrapped_urad

_PI = 3.141592653589793
_TERMS = tuple(range(3, 25, 2))


def angle_urad(dx: float, dy: float) -> int:
    """The direction of (dx, dy), counter-clockwise from +x, in (-pi, pi] as microradians; 0 for the zero vector."""
    size = sqrt(dx * dx + dy * dy)
    if size == 0.0:
        return 0
    cosine, sine = dx / size, dy / size
    if cosine < 0.0:
        # Turn by pi first: near -x the half-angle formula would divide by almost zero.
        angle = _small(-cosine, -sine)
        angle += _PI if sine >= 0.0 else -_PI
    else:
        angle = _small(cosine, sine)
    rounded = round(angle * MILLION)
    return PI_URAD if rounded <= -PI_URAD else min(rounded, PI_URAD)


def unit(yaw_urad: int) -> tuple[float, float]:
    """Cosine and sine of a direction: the series for an eighth of the angle, then three double-angle steps."""
    part = yaw_urad / (8 * MILLION)
    square = part * part
    cosine = 1.0 - square / 2 * (1.0 - square / 12 * (1.0 - square / 30 * (1.0 - square / 56 * (1.0 - square / 90))))
    sine = part * (1.0 - square / 6 * (1.0 - square / 20 * (1.0 - square / 42 * (1.0 - square / 72))))
    for _ in range(3):
        cosine, sine = cosine * cosine - sine * sine, 2.0 * sine * cosine
    return cosine, sine


def turn_urad(from_urad: int, to_urad: int) -> int:
    """The shortest turn from one direction to another, in (-pi, pi]."""
    turn = wrapped_urad(to_urad - from_urad)
    # Both directions are rounded, so pi up to that rounding is pi.
    return PI_URAD if abs(turn) >= PI_URAD - 2 else turn


def between_urad(start: int, end: int, part: int, whole: int) -> int:
    """The direction `part/whole` of the way from `start` to `end`, along the shortest turn."""
    if start == end or whole <= 0:
        return start
    turn = turn_urad(start, end)
    return wrapped_urad(start + (2 * turn * part + whole) // (2 * whole))


def _small(cosine: float, sine: float) -> float:
    """The angle of a unit vector in the right half plane: three half angles, then the series of the arctangent."""
    tangent = sine / (1.0 + cosine)
    tangent = tangent / (1.0 + sqrt(1.0 + tangent * tangent))
    tangent = tangent / (1.0 + sqrt(1.0 + tangent * tangent))
    square = tangent * tangent
    power, total = tangent, tangent
    for term in _TERMS:
        power = -power * square
        total += power / term
    return 8.0 * total
