"""A truck as a rectangle around its pivot, at many poses at a time, in metres.

The formulas of the envelopes are written again on purpose: the checker must not share a mistake of the compiler.
"""

from dataclasses import dataclass

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from pendula.fleet.map.trucks import RobotProfile

Floats = NDArray[np.float64]
_MICRO = 1e-6


@dataclass(frozen=True, slots=True)
class Shape:
    """Reach of a rectangle ahead of the pivot, behind it and to either side."""

    front_m: float
    rear_m: float
    side_m: float

    @property
    def turning_radius_m(self) -> float:
        """Radius of the disc around the pivot that contains the rectangle at every yaw."""
        return float(np.hypot(max(self.front_m, self.rear_m), self.side_m))


def inflated_shape(profile: RobotProfile) -> Shape:
    """Body, safety distances and margins for position and heading errors."""
    errors = profile.localization_error.value_um + profile.tracking_error.value_um + profile.extra_margin_um
    front = profile.head_um + profile.safety_front_um + errors
    rear = profile.tail_um + profile.safety_rear_um + errors
    sway = max(front, rear) * profile.heading_error_urad * _MICRO
    side = profile.width_um / 2 + profile.safety_side_um + errors + sway
    return Shape(front * _MICRO, rear * _MICRO, side * _MICRO)


def bare_shape(profile: RobotProfile) -> Shape:
    """Body and safety distances: what must be free around the true pose."""
    front = profile.head_um + profile.safety_front_um
    rear = profile.tail_um + profile.safety_rear_um
    side = profile.width_um / 2 + profile.safety_side_um
    return Shape(front * _MICRO, rear * _MICRO, side * _MICRO)


class Poses(Struct, frozen=True, eq=False, gc=False):
    """Poses of all trucks: one row per instant, one column per truck, in metres and radians."""

    x: Floats
    y: Floats
    yaw: Floats

    def last(self) -> "Poses":
        return Poses(self.x[-1:], self.y[-1:], self.yaw[-1:])


class Rectangles(Struct, frozen=True, eq=False, gc=False):
    """Rectangles, one row per instant and one column per truck: centre and unit vector of the long axis, with the half
    extents of each column."""

    x: Floats
    y: Floats
    ux: Floats
    uy: Floats
    half_length: Floats
    half_width: Floats


@dataclass(frozen=True, eq=False, slots=True)
class Shapes:
    """The shapes of all trucks as columns."""

    ahead: Floats
    half_length: Floats
    half_width: Floats
    around: Floats

    @classmethod
    def of(cls, shapes: list[Shape]) -> "Shapes":
        front = np.array([shape.front_m for shape in shapes])
        rear = np.array([shape.rear_m for shape in shapes])
        around = np.array([shape.turning_radius_m for shape in shapes])
        return cls((front - rear) / 2, (front + rear) / 2, np.array([shape.side_m for shape in shapes]), around)

    def at(self, trucks: NDArray[np.intp], poses: Poses) -> Rectangles:
        """The rectangles of these trucks at their poses."""
        yaw = poses.yaw[:, trucks]
        ux, uy = np.cos(yaw), np.sin(yaw)
        ahead = self.ahead[trucks]
        x, y = poses.x[:, trucks] + ahead * ux, poses.y[:, trucks] + ahead * uy
        return Rectangles(x, y, ux, uy, self.half_length[trucks], self.half_width[trucks])


# Distances of rectangles from each other and from a point: separating axes first, then corner by corner.


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
