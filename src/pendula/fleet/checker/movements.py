"""Movement between two samples: interpolated poses where a step is too long, and turns on the spot.

Trucks must not pass through each other between two poses, so no step is longer than 0.05 m or turns more than
0.02 rad.
"""

from math import ceil

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from pendula.fleet.checker.rectangles import Floats, Poses

FARTHEST_M = 0.05
WIDEST_RAD = 0.02
# A truck that moves less than this is standing: the pivot of a turning truck drifts by micrometres.
_STANDS_M = 1e-5
_TURNS_RAD = 1e-5
_SPARE = 1e-9


def concatenate_columns(first: Poses, second: Poses) -> Poses:
    """Concatenate the columns of poses at the same instants."""
    return Poses(
        np.concatenate([first.x, second.x], axis=1),
        np.concatenate([first.y, second.y], axis=1),
        np.concatenate([first.yaw, second.yaw], axis=1),
    )


def prepend(before: Poses, now: Poses) -> Poses:
    """Prepend the pose before, so that the step to the first pose is checked too."""
    return Poses(
        np.concatenate([before.x, now.x]), np.concatenate([before.y, now.y]), np.concatenate([before.yaw, now.yaw])
    )


def replace_columns(poses: Poses, to: Poses, which: NDArray[np.bool_]) -> Poses:
    """Replace the columns `which` by the first row of `to`."""
    return Poses(
        np.where(which, to.x[:1], poses.x), np.where(which, to.y[:1], poses.y), np.where(which, to.yaw[:1], poses.yaw)
    )


class Steps(Struct, frozen=True, eq=False, gc=False):
    """Distance and turn of every truck from one instant to the next."""

    moved: Floats
    turned: Floats

    @classmethod
    def of(cls, poses: Poses) -> "Steps":
        x, y = poses.x, poses.y
        return cls(np.hypot(x[1:] - x[:-1], y[1:] - y[:-1]), np.abs(_turn(poses.yaw[:-1], poses.yaw[1:])))

    def turning(self) -> NDArray[np.bool_]:
        """Which trucks turned on the spot."""
        result: NDArray[np.bool_] = np.logical_or.reduce((self.moved < _STANDS_M) & (self.turned > _TURNS_RAD))
        return result

    def parts(self) -> list[int]:
        """The number of parts to cut every step into."""
        most = np.maximum.reduce(np.maximum(self.moved / FARTHEST_M, self.turned / WIDEST_RAD), axis=1, initial=0.0)
        return [max(1, ceil(count - _SPARE)) for count in most.tolist()]


def interpolate(poses: Poses, at_ms: Floats, parts: list[int]) -> tuple[Poses, Floats]:
    """Poses and their times, interpolated so that every step is small."""
    if max(parts, default=1) <= 1:
        return poses, at_ms
    rows: list[int] = []
    shares: list[float] = []
    for row, count in enumerate(parts):
        rows += [row] * count
        shares += [part / count for part in range(count)]
    begin, share = np.array([*rows, len(parts)]), np.array([*shares, 0.0])
    end = np.minimum(begin + 1, len(parts))
    part = share[:, None]
    x = poses.x[begin] + (poses.x[end] - poses.x[begin]) * part
    y = poses.y[begin] + (poses.y[end] - poses.y[begin]) * part
    yaw = poses.yaw[begin] + _turn(poses.yaw[begin], poses.yaw[end]) * part
    return Poses(x, y, yaw), at_ms[begin] + (at_ms[end] - at_ms[begin]) * share


def _turn(begin: Floats, end: Floats) -> Floats:
    """The shortest turn from one yaw to another."""
    turn: Floats = (end - begin + np.pi) % (2 * np.pi) - np.pi
    return turn
