"""What trucks did between two looks: poses in between where a step was too far, and who turned on the spot.

Nothing may pass through something else between two looks, so no truck moves more than 0.05 m or turns more than
0.02 rad from one to the next.
"""

from math import ceil

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from pendula.fleet.checker.rectangles import Floats, Poses

FARTHEST_M = 0.05
WIDEST_RAD = 0.02
# A truck that moved less than this stands: a pivot that is turned about does not stay to the micrometre.
_STANDS_M = 1e-5
_TURNS_RAD = 1e-5
_SPARE = 1e-9


def beside(first: Poses, second: Poses) -> Poses:
    """Two sets of poses at the same instants, side by side."""
    return Poses(
        np.concatenate([first.x, second.x], axis=1),
        np.concatenate([first.y, second.y], axis=1),
        np.concatenate([first.yaw, second.yaw], axis=1),
    )


def after(before: Poses, now: Poses) -> Poses:
    """The same poses with the one before them in front, so that the step to the first of them is looked at too."""
    return Poses(
        np.concatenate([before.x, now.x]), np.concatenate([before.y, now.y]), np.concatenate([before.yaw, now.yaw])
    )


def moved(poses: Poses, to: Poses, which: NDArray[np.bool_]) -> Poses:
    """The same poses but for some columns, which are as they are at the beginning of others."""
    return Poses(
        np.where(which, to.x[:1], poses.x), np.where(which, to.y[:1], poses.y), np.where(which, to.yaw[:1], poses.yaw)
    )


class Steps(Struct, frozen=True, eq=False, gc=False):
    """How far every truck moved and turned from one instant to the next."""

    moved: Floats
    turned: Floats

    @classmethod
    def of(cls, poses: Poses) -> "Steps":
        x, y = poses.x, poses.y
        return cls(np.hypot(x[1:] - x[:-1], y[1:] - y[:-1]), np.abs(_turn(poses.yaw[:-1], poses.yaw[1:])))

    def turning(self) -> NDArray[np.bool_]:
        """Which trucks turned while their pivot stood."""
        result: NDArray[np.bool_] = np.logical_or.reduce((self.moved < _STANDS_M) & (self.turned > _TURNS_RAD))
        return result

    def parts(self) -> list[int]:
        """For every step, in how many it is to be cut."""
        most = np.maximum.reduce(np.maximum(self.moved / FARTHEST_M, self.turned / WIDEST_RAD), axis=1, initial=0.0)
        return [max(1, ceil(one - _SPARE)) for one in most.tolist()]


def fine(poses: Poses, at_ms: Floats, parts: list[int]) -> tuple[Poses, Floats]:
    """Poses and their times, with as many put between any two as it takes for every step to be small."""
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
