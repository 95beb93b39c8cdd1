"""Vectorised poses on all edges of a map: one lookup for a whole fleet, in whole micrometres and microradians."""

import numpy as np
from numpy.typing import NDArray

from pendula.fleet.model import MoveStyle
from pendula.fleet.site.compiled_map import CompiledMap
from pendula.fleet.units import PI_URAD, TWO_PI_URAD

Ints = NDArray[np.int64]


class Tracks:
    """The polylines of all edges, concatenated on a single axis."""

    def __init__(self, site: CompiledMap) -> None:
        x: list[int] = []
        y: list[int] = []
        s: list[int] = []
        first: list[int] = []
        base: list[int] = []
        legs: list[tuple[int, int]] = []
        begin = 0
        for edge in site.network.edges:
            first.append(len(x))
            base.append(begin)
            x += edge.path.x
            y += edge.path.y
            s += [begin + vertex for vertex in edge.path.s]
            # The last vertex starts no leg; its entry is unused.
            legs += [*edge.path.yaws, (0, 0)]
            begin += edge.path.length_um + 1
        self._s = np.array(s, dtype=np.int64)
        self._legs = _legs(self._s, np.array(x, dtype=np.int64), np.array(y, dtype=np.int64), np.array(legs))
        begins = np.array(first, dtype=np.int64)
        ends = np.append(begins[1:], len(x)) - 2
        backward = [edge.style is MoveStyle.BACKWARD for edge in site.network.edges]
        # For every edge: its start on the axis, its first and last leg, and the turn of trucks that drive backward.
        self._edges = np.array([base, begins, ends, np.where(backward, PI_URAD, 0)], dtype=np.int64)

    def poses(self, edge: Ints, s_um: Ints) -> tuple[Ints, Ints, Ints]:
        """x, y and yaw of trucks on these edges at these positions, of the same shape."""
        base, first, last, about = self._edges[:, edge]
        at = base + s_um
        leg = np.minimum(np.maximum(self._s.searchsorted(at, side="right") - 1, first), last)
        rows = self._legs[:, leg]
        begin, whole = rows[0], rows[1]
        part = np.minimum(np.maximum(at - begin, 0), whole)
        # Interpolate x, y and yaw at once, rounded half up.
        x, y, yaw = rows[2:5] + (2 * rows[5:8] * part + whole) // (2 * whole)
        return x, y, wrapped(yaw + about)


def _legs(s: Ints, x: Ints, y: Ints, yaws: Ints) -> Ints:
    """One column per vertex, for the leg that starts there: start, length, x, y and yaw, and the changes of x, y and
    yaw. The column of the last vertex of an edge is unused."""
    turn = wrapped(yaws[:, 1] - yaws[:, 0])
    changes = (np.append(np.diff(column), 0) for column in (s, x, y))
    whole, dx, dy = changes
    return np.array([s, np.maximum(whole, 1), x, y, yaws[:, 0], dx, dy, turn], dtype=np.int64)


def wrapped(urad: Ints) -> Ints:
    """The same directions in (-pi, pi]."""
    angle = urad % TWO_PI_URAD
    return np.where(angle <= PI_URAD, angle, angle - TWO_PI_URAD)
