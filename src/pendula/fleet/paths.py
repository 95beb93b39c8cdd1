"""The path of a directed edge: a polyline in whole micrometres, measured along, with headings; where it is, and where
on it something is.

`point(s)` runs along the polyline. The heading of a Bézier goes over from vertex to vertex; that of a straight edge or
of a leg of a polyline stands.
"""

from bisect import bisect_right
from dataclasses import dataclass
from math import sqrt

from pendula.fleet.angles import between_urad
from pendula.fleet.model import CurveKind


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

    def point(self, s_um: float) -> tuple[float, float]:
        """Where the pivot is at `s_um`, in micrometres; positions outside the edge count as its ends."""
        leg, part = self._leg(s_um)
        return (
            self.x[leg] + (self.x[leg + 1] - self.x[leg]) * part,
            self.y[leg] + (self.y[leg + 1] - self.y[leg]) * part,
        )

    def heading(self, s_um: int) -> int:
        """The direction of travel at `s_um`, in microradians."""
        leg, _ = self._leg(s_um)
        start, end = self.yaws[leg]
        whole = self.s[leg + 1] - self.s[leg]
        return between_urad(start, end, min(max(s_um - self.s[leg], 0), whole), whole)

    def nearest(self, x: float, y: float, low: int = 0, high: int | None = None) -> tuple[int, float]:
        """The position between `low` and `high` closest to a point, the first of several, and its distance."""
        high = self.length_um if high is None else high
        best_s, best = low, -1.0
        first = max(0, bisect_right(self.s, low) - 1)
        for leg in range(min(first, len(self.s) - 2), len(self.s) - 1):
            if self.s[leg] > high:
                break
            ax, ay = self.x[leg], self.y[leg]
            dx, dy = self.x[leg + 1] - ax, self.y[leg + 1] - ay
            square = dx * dx + dy * dy
            span = self.s[leg + 1] - self.s[leg]
            part = ((x - ax) * dx + (y - ay) * dy) / square if square else 0.0
            s = self.s[leg] + round(min(max(part, 0.0), 1.0) * span)
            s = min(max(s, low), high)
            part = (s - self.s[leg]) / span if span else 0.0
            ex, ey = x - ax - dx * part, y - ay - dy * part
            distance = ex * ex + ey * ey
            if best < 0.0 or distance < best:
                best_s, best = s, distance
        return best_s, sqrt(max(best, 0.0))

    def piece(self, low: int, high: int) -> list[tuple[float, float]]:
        """The polyline from one position to another, both ends included."""
        inner = [(float(self.x[i]), float(self.y[i])) for i in range(len(self.s)) if low < self.s[i] < high]
        return [self.point(low), *inner, self.point(high)]

    def _leg(self, s_um: float) -> tuple[int, float]:
        if s_um <= 0:
            return 0, 0.0
        last = len(self.s) - 2
        if s_um >= self.s[-1]:
            return last, 1.0
        leg = min(bisect_right(self.s, s_um) - 1, last)
        return leg, (s_um - self.s[leg]) / (self.s[leg + 1] - self.s[leg])
