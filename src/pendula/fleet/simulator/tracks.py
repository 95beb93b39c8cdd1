"""Poses on all edges of a map at once: one lookup for a whole fleet, in whole micrometres and microradians."""

import numpy as np
from numpy.typing import NDArray

from pendula.fleet.model import MoveStyle
from pendula.fleet.site.compiled_map import CompiledMap
from pendula.fleet.units import PI_URAD, TWO_PI_URAD

Ints = NDArray[np.int64]


class Tracks:
    """The polylines of all edges, one behind the other on a single axis."""

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
            s += [begin + one for one in edge.path.s]
            # The last vertex begins no leg; its entry is never looked at.
            legs += [*edge.path.yaws, (0, 0)]
            begin += edge.path.length_um + 1
        self._x, self._y, self._s = (np.array(one, dtype=np.int64) for one in (x, y, s))
        self._yaw = np.array(legs, dtype=np.int64).reshape(-1, 2)
        self._first = np.array(first, dtype=np.int64)
        self._last = np.append(self._first[1:], len(x)) - 2
        self._base = np.array(base, dtype=np.int64)
        backward = [edge.style is MoveStyle.BACKWARD for edge in site.network.edges]
        self._about = np.where(backward, PI_URAD, 0)

    def poses(self, edge: Ints, s_um: Ints) -> tuple[Ints, Ints, Ints]:
        """x, y and yaw of trucks on these edges at these positions, of the same shape."""
        at = self._base[edge] + s_um
        leg = np.clip(np.searchsorted(self._s, at, side="right") - 1, self._first[edge], self._last[edge])
        begin = self._s[leg]
        whole = np.maximum(self._s[leg + 1] - begin, 1)
        part = np.clip(at - begin, 0, whole)
        x = self._x[leg] + _share(self._x[leg + 1] - self._x[leg], part, whole)
        y = self._y[leg] + _share(self._y[leg + 1] - self._y[leg], part, whole)
        start = self._yaw[leg, 0]
        turn = wrapped(self._yaw[leg, 1] - start)
        return x, y, wrapped(start + _share(turn, part, whole) + self._about[edge])


def wrapped(urad: Ints) -> Ints:
    """The same directions in (-pi, pi]."""
    angle = urad % TWO_PI_URAD
    return np.where(angle <= PI_URAD, angle, angle - TWO_PI_URAD)


def _share(value: Ints, part: Ints, whole: Ints) -> Ints:
    shared: Ints = (2 * value * part + whole) // (2 * whole)
    return shared
