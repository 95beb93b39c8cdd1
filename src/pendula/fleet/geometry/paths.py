"""The path of a directed edge: a polyline in whole micrometres, measured along, with headings; where it is, and where
on it something is.

`point(s)` runs along the polyline. The heading of a Bézier goes over from vertex to vertex; that of a straight edge or
of a leg of a polyline stands. Everything is computed in integers: positions are rounded half up to whole micrometres,
distances stay squares, so that no processor sees another order of two places.
"""

from bisect import bisect_left, bisect_right
from dataclasses import dataclass
from math import isqrt

from pendula.fleet.geometry.angles import between_urad
from pendula.fleet.model import CurveKind
from pendula.fleet.units import half_up

# By so much a root and the length of a leg may be too small together, since both are whole numbers.
_ROUNDED_UM = 3


@dataclass(frozen=True, slots=True)
class Path:
    """Vertices, arc lengths at the vertices, and for every leg the tangents at its start and its end (microradians)."""

    kind: CurveKind
    x: tuple[int, ...]
    y: tuple[int, ...]
    s: tuple[int, ...]
    yaws: tuple[tuple[int, int], ...]

    @property
    def length_um(self) -> int:
        return self.s[-1]

    def point(self, s_um: int) -> tuple[int, int]:
        """Where the pivot is at `s_um`, in micrometres; positions outside the edge count as its ends."""
        leg, part = self._leg(s_um)
        whole = max(self.s[leg + 1] - self.s[leg], 1)
        return (
            self.x[leg] + half_up((self.x[leg + 1] - self.x[leg]) * part, whole),
            self.y[leg] + half_up((self.y[leg + 1] - self.y[leg]) * part, whole),
        )

    def heading(self, s_um: int) -> int:
        """The direction of travel at `s_um`, in microradians."""
        leg, part = self._leg(s_um)
        start, end = self.yaws[leg]
        return start if start == end else between_urad(start, end, part, self.s[leg + 1] - self.s[leg])

    def nearest(self, x: int, y: int, low: int = 0, high: int | None = None) -> tuple[int, int]:
        """The position between `low` and `high` closest to a point, the first of several, and its squared distance."""
        high = self.s[-1] if high is None else high
        first, last = self._span(low, high)
        best = self._on_leg(first, x, y, low, high)
        if first == last:
            return best
        reach = isqrt(best[1]) + _ROUNDED_UM
        for leg in range(first + 1, last + 1):
            # No place of a leg is farther from its first vertex than the leg is long.
            far = reach + self.s[leg + 1] - self.s[leg]
            if abs(x - self.x[leg]) > far or abs(y - self.y[leg]) > far:
                continue
            one = self._on_leg(leg, x, y, low, high)
            if one[1] < best[1]:
                best = one
                reach = isqrt(best[1]) + _ROUNDED_UM
        return best

    def places(self, x: int, y: int, reach: int, low: int = 0, high: int | None = None) -> list[tuple[int, int]]:
        """Of every stretch between `low` and `high` that lies within `reach` of a point the closest position and its
        squared distance, in the order of the path: several where the path comes by more than once."""
        high = self.length_um if high is None else high
        found: list[tuple[int, int]] = []
        last = -2
        first, end = self._span(low, high)
        for leg in range(first, end + 1):
            far = reach + self.s[leg + 1] - self.s[leg]
            if abs(x - self.x[leg]) > far or abs(y - self.y[leg]) > far:
                continue
            one = self._on_leg(leg, x, y, low, high)
            if one[1] > reach * reach:
                continue
            if leg != last + 1:
                found.append(one)
            elif one[1] < found[-1][1]:
                found[-1] = one
            last = leg
        return found

    def piece(self, low: int, high: int) -> list[tuple[int, int]]:
        """The polyline from one position to another, both ends included."""
        within = self.vertices_between(low, high)
        return [self.point(low), *zip(self.x[within], self.y[within], strict=True), self.point(high)]

    def vertices_between(self, low: int, high: int) -> slice:
        """The vertices that lie between two positions."""
        return slice(bisect_right(self.s, low), bisect_left(self.s, high))

    def _span(self, low: int, high: int) -> tuple[int, int]:
        """The first and the last leg between two positions."""
        last = len(self.s) - 2
        if not last:
            return 0, 0
        first = min(max(0, bisect_right(self.s, low) - 1), last)
        return first, max(first, min(bisect_right(self.s, high) - 1, last))

    def _on_leg(self, leg: int, x: int, y: int, low: int, high: int) -> tuple[int, int]:
        """The position of a leg closest to a point, and its squared distance."""
        xs, ys = self.x, self.y
        begin, end = self.s[leg], self.s[leg + 1]
        span = end - begin or 1
        x0, y0 = xs[leg], ys[leg]
        ox, oy, dx, dy = x - x0, y - y0, xs[leg + 1] - x0, ys[leg + 1] - y0
        square = dx * dx + dy * dy
        # Half up, within the leg, and then within the limits.
        part = (2 * (ox * dx + oy * dy) * span + square) // (2 * square) if square else 0
        s = begin if part <= 0 else begin + part if part < span else begin + span
        s = low if s < low else s
        s = high if s > high else s
        part = s - begin
        ex, ey = ox * span - dx * part, oy * span - dy * part
        return s, half_up(ex * ex + ey * ey, span * span)

    def _leg(self, s_um: int) -> tuple[int, int]:
        """The leg of a position, and how far on it the position is."""
        along = self.s
        s_um = 0 if s_um < 0 else s_um
        if s_um >= along[-1]:
            return len(along) - 2, along[-1] - along[-2]
        leg = bisect_right(along, s_um) - 1
        return leg, s_um - along[leg]
