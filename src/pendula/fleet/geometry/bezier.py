"""Cubic Bézier curves, sampled evenly along their length, with bounds on what happens between two samples.

Elementwise `+ - * /` and `sqrt` only: the samples are the same on every processor. The bounds are proven, not
estimated (REACH and TURN below); they stay finite where the curvature does not, at a control point that coincides
with an end.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pendula.fleet.model import Point

Floats = NDArray[np.float64]

# Samples per step of the polyline. More samples mean less slack and more work.
FINER = 5
_DENSE_STEP_UM = 5_000.0
_DENSE_LEAST, _DENSE_MOST = 64, 200_000
# Two control points closer than this are one.
SAME_UM = 1.0


@dataclass(frozen=True, eq=False, slots=True)
class Poses:
    """Poses along a path: positions in micrometres, unit tangents, and bounds for each gap between neighbours.

    In gap i the pivot stays within `reach[i]` of the nearer of its two poses, and no tangent differs from either of
    the two by more than `turn[i]`, measured as the distance of the unit vectors.
    """

    s: Floats
    x: Floats
    y: Floats
    ux: Floats
    uy: Floats
    reach: Floats
    turn: Floats


def sample(controls: tuple[Point, Point, Point, Point], step_um: int) -> Poses:
    """Evenly spaced poses, `FINER` to every step of the polyline, both ends included."""
    px = tuple(float(point.x_um) for point in controls)
    py = tuple(float(point.y_um) for point in controls)
    at, length = _even_parameters(px, py, step_um)
    x, y = _cubic(px, at), _cubic(py, at)
    dx, dy = _slope(px, at), _slope(py, at)
    ux, uy = _tangents(px, py, dx, dy, x, y)
    reach, turn = _bounds(at=at, x=x, y=y, dx=dx, dy=dy, ux=ux, uy=uy)
    count = len(at) - 1
    even: Floats = np.arange(count + 1, dtype=np.float64) * (length / count)
    return Poses(s=even, x=x, y=y, ux=ux, uy=uy, reach=reach, turn=turn)


def _cubic(p: tuple[float, ...], t: Floats) -> Floats:
    r = 1.0 - t
    return r * r * r * p[0] + 3.0 * r * r * t * p[1] + 3.0 * r * t * t * p[2] + t * t * t * p[3]


def _slope(p: tuple[float, ...], t: Floats) -> Floats:
    r = 1.0 - t
    return 3.0 * (r * r * (p[1] - p[0]) + 2.0 * r * t * (p[2] - p[1]) + t * t * (p[3] - p[2]))


def _even_parameters(px: tuple[float, ...], py: tuple[float, ...], step_um: int) -> tuple[Floats, float]:
    """Parameters whose points lie evenly along the curve, and the length of the curve."""
    hull = 0.0
    for i in range(3):
        dx, dy = px[i + 1] - px[i], py[i + 1] - py[i]
        hull += float(np.sqrt(dx * dx + dy * dy))
    dense = int(min(max(hull / _DENSE_STEP_UM, _DENSE_LEAST), _DENSE_MOST))
    t = np.arange(dense + 1) / dense
    x, y = _cubic(px, t), _cubic(py, t)
    dx_, dy_ = x[1:] - x[:-1], y[1:] - y[:-1]
    along = np.concatenate([[0.0], np.cumsum(np.sqrt(dx_ * dx_ + dy_ * dy_))])
    length = float(along[-1])
    count = FINER * max(1, int(np.ceil(length / step_um)))
    targets = np.arange(1, count) * (length / count)
    cell = np.clip(np.searchsorted(along, targets, side="right") - 1, 0, dense - 1)
    width = along[cell + 1] - along[cell]
    part = np.where(width > 0.0, (targets - along[cell]) / np.where(width > 0.0, width, 1.0), 0.0)
    inner = (cell + part) / dense
    return np.concatenate([[0.0], inner, [1.0]]), length


def _tangents(
    px: tuple[float, ...], py: tuple[float, ...], dx: Floats, dy: Floats, x: Floats, y: Floats
) -> tuple[Floats, Floats]:
    """Unit tangents; where the derivative vanishes, the direction to the first point that differs."""
    dx, dy = dx.copy(), dy.copy()
    dx[0], dy[0] = _end_direction(px, py, (0, 1, 2, 3), 1.0)
    dx[-1], dy[-1] = _end_direction(px, py, (3, 2, 1, 0), -1.0)
    size = np.sqrt(dx * dx + dy * dy)
    for i in np.flatnonzero(size < SAME_UM):
        # A cusp inside the curve: the direction of travel is that between its neighbours.
        after, before = min(int(i) + 1, len(x) - 1), max(int(i) - 1, 0)
        dx[i], dy[i] = x[after] - x[before], y[after] - y[before]
    size = np.sqrt(dx * dx + dy * dy)
    size = np.where(size > 0.0, size, 1.0)
    return dx / size, dy / size


def _end_direction(
    px: tuple[float, ...], py: tuple[float, ...], order: tuple[int, ...], sign: float
) -> tuple[float, float]:
    first = order[0]
    for other in order[1:]:
        dx, dy = px[other] - px[first], py[other] - py[first]
        if dx * dx + dy * dy > SAME_UM * SAME_UM:
            return sign * dx, sign * dy
    return 1.0, 0.0


def _bounds(at: Floats, x: Floats, y: Floats, dx: Floats, dy: Floats, ux: Floats, uy: Floats) -> tuple[Floats, Floats]:
    """REACH and TURN of every gap, from the control points of the piece of curve in it."""
    third = (at[1:] - at[:-1]) / 3.0
    ax, ay = third * dx[:-1], third * dy[:-1]
    cx, cy = third * dx[1:], third * dy[1:]
    bx, by = x[1:] - x[:-1] - ax - cx, y[1:] - y[:-1] - ay - cy
    sizes = [np.sqrt(vx * vx + vy * vy) for vx, vy in ((ax, ay), (bx, by), (cx, cy))]
    # REACH: an arc is no longer than its control polygon, so its points are within half of that of one end.
    reach = (sizes[0] + sizes[1] + sizes[2]) / 2.0
    # TURN: tangents of the piece lie in the cone of the three control vectors.
    turn = np.zeros_like(reach)
    for (vx, vy), size in zip(((ax, ay), (bx, by), (cx, cy)), sizes, strict=True):
        real = size > 1e-3
        safe = np.where(real, size, 1.0)
        for ox, oy in ((ux[:-1], uy[:-1]), (ux[1:], uy[1:])):
            ex, ey = vx / safe - ox, vy / safe - oy
            turn = np.maximum(turn, np.where(real, np.sqrt(ex * ex + ey * ey), 0.0))
    ex, ey = ux[1:] - ux[:-1], uy[1:] - uy[:-1]
    return reach, np.maximum(turn, np.sqrt(ex * ex + ey * ey))
