"""Angles, paths, circles and quadrangles in whole micrometres and microradians, the same on every machine."""

from bisect import bisect_left, bisect_right
from dataclasses import dataclass
from math import isqrt, sqrt

import numpy as np
from numpy.typing import NDArray

from pendula.fleet.model import CurveKind, Point
from pendula.fleet.units import MILLION, PI_URAD, half_up, wrapped_urad

# The angle of a direction with `+ - * /` and `sqrt` alone, so that every processor gives the same microradian.
# The arctangents of numpy and of the C library differ between processors in the last bit, which can change a rounded
# number and so the hash of a map.

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


# The path of a directed edge: a polyline in whole micrometres with arc lengths and headings.
# The heading of a Bézier is interpolated between vertices; that of a straight edge or of a leg of a polyline is
# constant. All arithmetic is on integers: positions are rounded half up to whole micrometres and distances stay
# squared, so that every processor orders two positions in the same way.

# The root and the length of a leg are rounded; together they may be too small by this much.
_ROUNDED_UM = 3


@dataclass(frozen=True, slots=True)
class Path:
    """Vertices, arc lengths at the vertices, and for every leg the tangents at its start and its end (microradians)."""

    kind: CurveKind
    x: tuple[int, ...]
    y: tuple[int, ...]
    s: tuple[int, ...]
    yaws: tuple[tuple[int, int], ...]

    @property
    def length_um(self) -> int:
        return self.s[-1]

    def point(self, s_um: int) -> tuple[int, int]:
        """The point at `s_um`, in micrometres; positions outside the edge are clamped to its ends."""
        leg, part = self._leg(s_um)
        whole = max(self.s[leg + 1] - self.s[leg], 1)
        return (
            self.x[leg] + half_up((self.x[leg + 1] - self.x[leg]) * part, whole),
            self.y[leg] + half_up((self.y[leg + 1] - self.y[leg]) * part, whole),
        )

    def heading(self, s_um: int) -> int:
        """The direction of travel at `s_um`, in microradians."""
        leg, part = self._leg(s_um)
        start, end = self.yaws[leg]
        return start if start == end else between_urad(start, end, part, self.s[leg + 1] - self.s[leg])

    def nearest(self, x: int, y: int, low: int = 0, high: int | None = None) -> tuple[int, int]:
        """The position between `low` and `high` closest to a point, the first of several, and its squared distance."""
        high = self.s[-1] if high is None else high
        first, last = self._span(low, high)
        best = self._on_leg(first, x, y, low, high)
        if first == last:
            return best
        reach = isqrt(best[1]) + _ROUNDED_UM
        for leg in range(first + 1, last + 1):
            # No point of a leg is farther from its first vertex than the length of the leg.
            far = reach + self.s[leg + 1] - self.s[leg]
            if abs(x - self.x[leg]) > far or abs(y - self.y[leg]) > far:
                continue
            candidate = self._on_leg(leg, x, y, low, high)
            if candidate[1] < best[1]:
                best = candidate
                reach = isqrt(best[1]) + _ROUNDED_UM
        return best

    def places(self, x: int, y: int, reach: int, low: int = 0, high: int | None = None) -> list[tuple[int, int]]:
        """The closest position of every stretch between `low` and `high` that is within `reach` of a point, and its
        squared distance, in path order: several if the path passes the point more than once."""
        high = self.length_um if high is None else high
        matches: list[tuple[int, int]] = []
        last_leg = -2
        first, end = self._span(low, high)
        for leg in range(first, end + 1):
            far = reach + self.s[leg + 1] - self.s[leg]
            if abs(x - self.x[leg]) > far or abs(y - self.y[leg]) > far:
                continue
            candidate = self._on_leg(leg, x, y, low, high)
            if candidate[1] > reach * reach:
                continue
            if leg != last_leg + 1:
                matches.append(candidate)
            elif candidate[1] < matches[-1][1]:
                matches[-1] = candidate
            last_leg = leg
        return matches

    def piece(self, low: int, high: int) -> list[tuple[int, int]]:
        """The polyline from one position to another, both ends included."""
        within = self.vertices_between(low, high)
        return [self.point(low), *zip(self.x[within], self.y[within], strict=True), self.point(high)]

    def vertices_between(self, low: int, high: int) -> slice:
        """The vertices strictly between two positions."""
        return slice(bisect_right(self.s, low), bisect_left(self.s, high))

    def _span(self, low: int, high: int) -> tuple[int, int]:
        """The first and the last leg between two positions."""
        last = len(self.s) - 2
        if not last:
            return 0, 0
        first = min(max(0, bisect_right(self.s, low) - 1), last)
        return first, max(first, min(bisect_right(self.s, high) - 1, last))

    def _on_leg(self, leg: int, x: int, y: int, low: int, high: int) -> tuple[int, int]:
        """The position of a leg closest to a point, and its squared distance."""
        xs, ys = self.x, self.y
        begin, end = self.s[leg], self.s[leg + 1]
        span = end - begin or 1
        x0, y0 = xs[leg], ys[leg]
        ox, oy, dx, dy = x - x0, y - y0, xs[leg + 1] - x0, ys[leg + 1] - y0
        square = dx * dx + dy * dy
        # Half up, within the leg, and then within the limits.
        part = (2 * (ox * dx + oy * dy) * span + square) // (2 * square) if square else 0
        s = begin if part <= 0 else begin + part if part < span else begin + span
        s = low if s < low else s
        s = high if s > high else s
        part = s - begin
        ex, ey = ox * span - dx * part, oy * span - dy * part
        return s, half_up(ex * ex + ey * ey, span * span)

    def _leg(self, s_um: int) -> tuple[int, int]:
        """The leg of a position, and the distance from the start of the leg."""
        along = self.s
        s_um = 0 if s_um < 0 else s_um
        if s_um >= along[-1]:
            return len(along) - 2, along[-1] - along[-2]
        leg = bisect_right(along, s_um) - 1
        return leg, s_um - along[leg]


# Circles through three points: their centres, and an upper bound of the length of an arc.

Vector = tuple[float, float]


def longest_um(start: Point, via: Point, end: Point) -> int:
    """An upper bound of the length of the arc through three points."""
    chords = _distance(start, via) + _distance(via, end)
    centre = centre_of(start, via, end)
    if centre is None:
        return int(chords)
    dx, dy = start.x_um - centre[0], start.y_um - centre[1]
    # If both parts are at most half a circle, each is at most pi / 2 times as long as its chord.
    ax, ay = float(via.x_um - start.x_um), float(via.y_um - start.y_um)
    bx, by = float(end.x_um - via.x_um), float(end.y_um - via.y_um)
    sense = 1.0 if ax * by - ay * bx > 0.0 else -1.0
    if all(is_ahead(a, b, centre, sense) for a, b in ((start, via), (via, end))):
        return int(chords * 1.5708) + 1
    return int(6.2832 * sqrt(dx * dx + dy * dy)) + 1


def is_ahead(a: Point, b: Point, centre: Vector, sense: float) -> bool:
    px, py = a.x_um - centre[0], a.y_um - centre[1]
    qx, qy = b.x_um - centre[0], b.y_um - centre[1]
    return sense * (px * qy - py * qx) >= 0.0


def _distance(a: Point, b: Point) -> float:
    dx, dy = float(b.x_um - a.x_um), float(b.y_um - a.y_um)
    return sqrt(dx * dx + dy * dy)


def centre_of(a: Point, b: Point, c: Point) -> Vector | None:
    """The centre of the circle through three points; None where they lie on a line, or nearly."""
    bx, by = float(b.x_um - a.x_um), float(b.y_um - a.y_um)
    cx, cy = float(c.x_um - a.x_um), float(c.y_um - a.y_um)
    cross = 2.0 * (bx * cy - by * cx)
    size = sqrt(bx * bx + by * by) * sqrt(cx * cx + cy * cy)
    if abs(cross) <= size * 1e-7:
        return None
    bb, cc = bx * bx + by * by, cx * cx + cy * cy
    return a.x_um + (cy * bb - by * cc) / cross, a.y_um + (bx * cc - cx * bb) / cross


# Convex quadrangles in whole micrometres: intersection, distance, and nearness to a point.
# A rectangle is grown by one micrometre before its corners are rounded (ROUNDING: that moves a corner by at most
# 0.71), so the quadrangle contains it. Separating axes are computed on integers; touching counts as meeting.

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]
GROWTH_UM = 1.0


@dataclass(frozen=True, eq=False, slots=True)
class Rects:
    """Oriented rectangles as columns: centre, unit vector of the long axis, half extents, in micrometres."""

    cx: Floats
    cy: Floats
    ux: Floats
    uy: Floats
    hx: Floats
    hy: Floats

    def __len__(self) -> int:
        return len(self.cx)


def corners(rects: Rects, margin: float = 0.0) -> Ints:
    """The grown and rounded corners, counter-clockwise from the front left: shape (n, 4, 2)."""
    hx, hy = rects.hx + (GROWTH_UM + margin), rects.hy + (GROWTH_UM + margin)
    ax, ay = rects.ux * hx, rects.uy * hx
    bx, by = -rects.uy * hy, rects.ux * hy
    x = np.stack([rects.cx + ax + bx, rects.cx - ax + bx, rects.cx - ax - bx, rects.cx + ax - bx], axis=1)
    y = np.stack([rects.cy + ay + by, rects.cy - ay + by, rects.cy - ay - by, rects.cy + ay - by], axis=1)
    return np.stack([np.rint(x).astype(np.int64), np.rint(y).astype(np.int64)], axis=2)


def boxes(quads: Ints) -> Ints:
    """Least x, least y, greatest x, greatest y of every quadrangle: shape (n, 4)."""
    return np.concatenate([quads.min(axis=1), quads.max(axis=1)], axis=1)


def meet(a: Ints, b: Ints) -> Bools:
    """For every pair of rows, whether the two quadrangles have a point in common.

    Two sides of each are tried as separating axes. The other sides are parallel up to the rounding of the corners;
    skipping them can only report more meetings.
    """
    alive = np.arange(len(a))
    for first, second in ((a, b), (b, a)):
        for side in (0, 1):
            if not len(alive):
                break
            alive = alive[~_apart(first[alive], second[alive], side)]
    result = np.zeros(len(a), dtype=np.bool_)
    result[alive] = True
    return result


def _apart(first: Ints, second: Ints, side: int) -> Bools:
    """Whether the normal of one side of `first` separates the pair; relative to one corner, so that products fit 64
    bits."""
    ox, oy = first[:, side, 0], first[:, side, 1]
    # The outward normal of a counter-clockwise side.
    nx = first[:, side + 1, 1] - oy
    ny = ox - first[:, side + 1, 0]
    own = [nx * (first[:, k, 0] - ox) + ny * (first[:, k, 1] - oy) for k in range(4)]
    other = [nx * (second[:, k, 0] - ox) + ny * (second[:, k, 1] - oy) for k in range(4)]
    own_low, own_high = _least(own), _greatest(own)
    separate: Bools = (_least(other) > own_high) | (_greatest(other) < own_low)
    return separate


def _least(values: list[Ints]) -> Ints:
    return np.minimum(np.minimum(values[0], values[1]), np.minimum(values[2], values[3]))


def _greatest(values: list[Ints]) -> Ints:
    return np.maximum(np.maximum(values[0], values[1]), np.maximum(values[2], values[3]))


def near(quads: Ints, x: Ints | int, y: Ints | int, radius: float) -> Bools:
    """Whether each quadrangle comes within `radius` of its point (x, y)."""
    px = np.asarray(x, dtype=np.float64) - quads[:, :, 0].T
    py = np.asarray(y, dtype=np.float64) - quads[:, :, 1].T
    inside = np.ones(len(quads), dtype=np.bool_)
    close = np.zeros(len(quads), dtype=np.bool_)
    for k in range(4):
        ex = (quads[:, (k + 1) % 4, 0] - quads[:, k, 0]).astype(np.float64)
        ey = (quads[:, (k + 1) % 4, 1] - quads[:, k, 1]).astype(np.float64)
        square = ex * ex + ey * ey
        inside &= ex * py[k] - ey * px[k] >= 0.0
        part = np.clip((px[k] * ex + py[k] * ey) / np.where(square > 0.0, square, 1.0), 0.0, 1.0)
        dx, dy = px[k] - part * ex, py[k] - part * ey
        close |= dx * dx + dy * dy <= radius * radius
    return inside | close


def distances_um(a: Ints, b: Ints) -> Floats:
    """For every pair of rows the distance of the two quadrangles, 0 where they meet."""
    least = np.full(len(a), np.inf)
    for first, second in ((a.astype(np.float64), b.astype(np.float64)), (b.astype(np.float64), a.astype(np.float64))):
        for k in range(4):
            bx, by = second[:, k, 0], second[:, k, 1]
            ex, ey = second[:, (k + 1) % 4, 0] - bx, second[:, (k + 1) % 4, 1] - by
            square = ex * ex + ey * ey
            for corner in range(4):
                px, py = first[:, corner, 0] - bx, first[:, corner, 1] - by
                part = np.clip((px * ex + py * ey) / np.where(square > 0.0, square, 1.0), 0.0, 1.0)
                dx, dy = px - part * ex, py - part * ey
                least = np.minimum(least, dx * dx + dy * dy)
    return np.where(meet(a, b), 0.0, np.sqrt(least))
