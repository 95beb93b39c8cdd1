"""A truck as a rectangle around its pivot, at many poses at a time, in metres.

The formulas of the envelopes are written again on purpose: the checker must not share a mistake of the compiler.
"""

from dataclasses import dataclass

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from pendula.fleet.trucks.profiles import RobotProfile

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
