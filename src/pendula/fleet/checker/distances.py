"""Distances of rectangles from each other and from a point: separating axes first, then corner by corner."""

import numpy as np

from pendula.fleet.checker.rectangles import Floats, Rectangles


def separations(a: Rectangles, b: Rectangles) -> Floats:
    """The widest gap along an axis of either rectangle: a lower bound of the distance; 0 or less where they meet."""
    dx, dy = b.x - a.x, b.y - a.y
    along = np.abs(a.ux * b.ux + a.uy * b.uy)
    across = np.abs(a.ux * b.uy - a.uy * b.ux)
    gaps = (
        np.abs(dx * a.ux + dy * a.uy) - a.half_length - b.half_length * along - b.half_width * across,
        np.abs(dy * a.ux - dx * a.uy) - a.half_width - b.half_length * across - b.half_width * along,
        np.abs(dx * b.ux + dy * b.uy) - b.half_length - a.half_length * along - a.half_width * across,
        np.abs(dy * b.ux - dx * b.uy) - b.half_width - a.half_length * across - a.half_width * along,
    )
    return np.maximum(np.maximum(gaps[0], gaps[1]), np.maximum(gaps[2], gaps[3]))


def distances(a: Rectangles, b: Rectangles) -> Floats:
    """0 where two rectangles meet."""
    least = np.minimum(_corners_to(a, b), _corners_to(b, a))
    return np.where(separations(a, b) > 0.0, least, 0.0)


def from_point(rectangles: Rectangles, x: Floats | float, y: Floats | float) -> Floats:
    """The distance of every rectangle from a point, 0 where the point is inside."""
    dx, dy = x - rectangles.x, y - rectangles.y
    ahead = np.maximum(np.abs(dx * rectangles.ux + dy * rectangles.uy) - rectangles.half_length, 0.0)
    aside = np.maximum(np.abs(dy * rectangles.ux - dx * rectangles.uy) - rectangles.half_width, 0.0)
    return np.hypot(ahead, aside)


def _corners_to(a: Rectangles, b: Rectangles) -> Floats:
    """The least distance of a corner of `a` from `b`."""
    least = np.full(a.x.shape, np.inf)
    for ahead, aside in ((1, 1), (-1, 1), (-1, -1), (1, -1)):
        x = a.x + ahead * a.half_length * a.ux - aside * a.half_width * a.uy
        y = a.y + ahead * a.half_length * a.uy + aside * a.half_width * a.ux
        least = np.minimum(least, from_point(b, x, y))
    return least
