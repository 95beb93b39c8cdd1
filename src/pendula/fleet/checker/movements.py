"""What trucks did between two looks: poses in between where a step was too far, and who turned on the spot.

Nothing may pass through something else between two looks, so no truck moves more than 0.05 m or turns more than
0.02 rad from one to the next.
"""

import numpy as np
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


def fine(poses: Poses, at_ms: Floats) -> tuple[Poses, Floats]:
    """Poses and their times, with as many put between any two as it takes for every step to be small."""
    parts = _parts(poses)
    if not len(parts) or int(parts.max()) <= 1:
        return poses, at_ms
    rows: list[int] = []
    shares: list[float] = []
    for row, count in enumerate(parts.tolist()):
        rows += [row] * count
        shares += [part / count for part in range(count)]
    begin, share = np.array([*rows, len(parts)]), np.array([*shares, 0.0])
    end = np.minimum(begin + 1, len(parts))
    part = share[:, None]
    x = poses.x[begin] + (poses.x[end] - poses.x[begin]) * part
    y = poses.y[begin] + (poses.y[end] - poses.y[begin]) * part
    yaw = poses.yaw[begin] + _turn(poses.yaw[begin], poses.yaw[end]) * part
    return Poses(x, y, yaw), at_ms[begin] + (at_ms[end] - at_ms[begin]) * share


def turning(poses: Poses) -> NDArray[np.bool_]:
    """Which trucks turned while their pivot stood."""
    moved = np.hypot(np.diff(poses.x, axis=0), np.diff(poses.y, axis=0))
    turned = np.abs(_turn(poses.yaw[:-1], poses.yaw[1:]))
    result: NDArray[np.bool_] = np.asarray(((moved < _STANDS_M) & (turned > _TURNS_RAD)).any(axis=0))
    return result


def _parts(poses: Poses) -> NDArray[np.int64]:
    """For every step, in how many it is to be cut."""
    moved = np.hypot(np.diff(poses.x, axis=0), np.diff(poses.y, axis=0))
    turned = np.abs(_turn(poses.yaw[:-1], poses.yaw[1:]))
    most = np.maximum(moved / FARTHEST_M, turned / WIDEST_RAD).max(axis=1, initial=0.0)
    parts: NDArray[np.int64] = np.maximum(np.ceil(most - _SPARE), 1.0).astype(np.int64)
    return parts


def _turn(begin: Floats, end: Floats) -> Floats:
    """The shortest turn from one yaw to another."""
    turn: Floats = (end - begin + np.pi) % (2 * np.pi) - np.pi
    return turn
