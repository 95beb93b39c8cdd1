"""Metrics over virtual time, sampled at even steps.

Between two measurements the last one holds; before the first the value is null.
"""

from bisect import bisect_right
from collections.abc import Sequence

from msgspec import Struct

from pendula.credit.events import Ticked
from pendula.kernel.errors import InputRefused

POINTS_MOST = 2000
SECOND_MS = 1000
UNITS = {
    "success_rate": "%",
    "avg_route_length": "count",
    "total_debt": "amount",
    "clearing_volume": "amount",
    "bottlenecks_score": "%",
    "active_participants": "count",
    "active_trustlines": "count",
}
# Additional keys beyond the protocol; only on request.
EXTENDED_UNITS: dict[str, str | None] = {
    "wanted": "amount",
    "served": "amount",
    "served_share": "%",
    "volume": "amount",
    "no_capacity_rate": None,
    "clearing_cost_ms": None,
}
ALL_UNITS: dict[str, str | None] = {**UNITS, **EXTENDED_UNITS}


class InvalidSpan(InputRefused):
    """An invalid span of virtual time. Facts: `from_ms`, `to_ms`, `step_ms`."""

    code = "INVALID_SPAN"


class Measured(Struct, frozen=True):
    """One value of one tick; None if undefined."""

    equivalent: str
    key: str
    t_ms: int
    value: str | None


class Point(Struct, frozen=True):
    t_ms: int
    v: str | None


class Series(Struct, frozen=True):
    key: str
    unit: str | None
    points: list[Point]


def usual_step(from_ms: int, to_ms: int) -> int:
    """The default step: a second, or the fewest whole seconds with which the span fits into `POINTS_MOST`."""
    seconds = -(-max(0, to_ms - from_ms) // ((POINTS_MOST - 1) * SECOND_MS))
    return max(1, seconds) * SECOND_MS


class Span(Struct, frozen=True):
    """A range of points in virtual milliseconds, including both ends."""

    from_ms: int
    to_ms: int
    step_ms: int

    def points(self) -> range:
        """The times of the points; raises `InvalidSpan`."""
        facts = {"from_ms": self.from_ms, "to_ms": self.to_ms, "step_ms": self.step_ms}
        if self.step_ms < 1 or self.from_ms < 0 or self.to_ms < self.from_ms:
            raise InvalidSpan(
                f"{self.from_ms} to {self.to_ms} by {self.step_ms} is not a span; "
                "it needs 0 <= from <= to and 1 <= step",
                **facts,
            )
        times = range(self.from_ms, self.to_ms + 1, self.step_ms)
        if len(times) > POINTS_MOST:
            raise InvalidSpan(f"These are {len(times)} points; the limit is {POINTS_MOST}", **facts)
        return times


def measurements(tick: Ticked) -> list[Measured]:
    """The measurements of one tick."""
    return [
        Measured(equivalent, key, tick.sim_time_ms, value)
        for equivalent, values in tick.metrics.items()
        for key, value in values.items()
    ]


def series(key: str, values: Sequence[tuple[int, str]], times: range) -> Series:
    """The points of one key from (time, value) measurements in order of time."""
    points = []
    for at in times:
        before = bisect_right(values, at, key=lambda entry: entry[0])
        points.append(Point(at, values[before - 1][1] if before else None))
    return Series(key, ALL_UNITS[key], points)
