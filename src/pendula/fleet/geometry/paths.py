"""The path of a directed edge: a polyline in whole micrometres with arc lengths and headings.

The heading of a Bézier is interpolated between vertices; that of a straight edge or of a leg of a polyline is constant.
All arithmetic is on integers: positions are rounded half up to whole micrometres and distances stay squared, so that
every processor orders two positions in the same way.
"""

from bisect import bisect_left, bisect_right
from dataclasses import dataclass
from math import isqrt

from pendula.fleet.geometry.angles import between_urad
from pendula.fleet.model import CurveKind
from pendula.fleet.units import half_up

# The root and the length of a leg are rounded; together they may be too small by this much.
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
        """The point at `s_um`, in micrometres; positions outside the edge are clamped to its ends."""
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
            # No point of a leg is farther from its first vertex than the length of the leg.
            far = reach + self.s[leg + 1] - self.s[leg]
            if abs(x - self.x[leg]) > far or abs(y - self.y[leg]) > far:
                continue
            candidate = self._on_leg(leg, x, y, low, high)
            if candidate[1] < best[1]:
                best = candidate
                reach = isqrt(best[1]) + _ROUNDED_UM
        return best

    def places(self, x: int, y: int, reach: int, low: int = 0, high: int | None = None) -> list[tuple[int, int]]:
        """The closest position of every stretch between `low` and `high` that is within `reach` of a point, and its
        squared distance, in path order: several if the path passes the point more than once."""
        high = self.length_um if high is None else high
        matches: list[tuple[int, int]] = []
        last_leg = -2
        first, end = self._span(low, high)
        for leg in range(first, end + 1):
            far = reach + self.s[leg + 1] - self.s[leg]
            if abs(x - self.x[leg]) > far or abs(y - self.y[leg]) > far:
                continue
            candidate = self._on_leg(leg, x, y, low, high)
            if candidate[1] > reach * reach:
                continue
            if leg != last_leg + 1:
                matches.append(candidate)
            elif candidate[1] < matches[-1][1]:
                matches[-1] = candidate
            last_leg = leg
        return matches

    def piece(self, low: int, high: int) -> list[tuple[int, int]]:
        """The polyline from one position to another, both ends included."""
        within = self.vertices_between(low, high)
        return [self.point(low), *zip(self.x[within], self.y[within], strict=True), self.point(high)]

    def vertices_between(self, low: int, high: int) -> slice:
        """The vertices strictly between two positions."""
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
        """The leg of a position, and the distance from the start of the leg."""
        along = self.s
        s_um = 0 if s_um < 0 else s_um
        if s_um >= along[-1]:
            return len(along) - 2, along[-1] - along[-2]
        leg = bisect_right(along, s_um) - 1
        return leg, s_um - along[leg]
