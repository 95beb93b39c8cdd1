"""Convex quadrangles in whole micrometres: intersection, distance, and nearness to a point.

A rectangle is grown by one micrometre before its corners are rounded (ROUNDING: that moves a corner by at most 0.71),
so the quadrangle contains it. Separating axes are computed on integers; touching counts as meeting.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

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
