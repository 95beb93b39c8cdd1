"""Measured values over virtual time: what a tick measured goes in, points at even steps come out.

Between two measurements the last one holds; before the first there is nothing, and nothing is never a zero.
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
# Ours, beyond the keys of the protocol: only for those who ask.
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
    """A span of virtual time that cannot be answered. Facts: `from_ms`, `to_ms`, `step_ms`."""

    code = "INVALID_SPAN"


class Measured(Struct, frozen=True):
    """One value of one tick; None where there was nothing to measure."""

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
    """The step of whoever gave none: a second, or as many whole ones as let a long run fit."""
    seconds = -(-max(0, to_ms - from_ms) // ((POINTS_MOST - 1) * SECOND_MS))
    return max(1, seconds) * SECOND_MS


class Span(Struct, frozen=True):
    """Points from, to and at which distance, in virtual milliseconds; both ends are in it."""

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
    """What one tick measured."""
    return [
        Measured(equivalent, key, tick.sim_time_ms, value)
        for equivalent, values in tick.metrics.items()
        for key, value in values.items()
    ]


def series(key: str, found: Sequence[tuple[int, str]], times: range) -> Series:
    """The points of one key out of measurements (time, value) in the order of their times."""
    points = []
    for at in times:
        before = bisect_right(found, at, key=lambda one: one[0])
        points.append(Point(at, found[before - 1][1] if before else None))
    return Series(key, ALL_UNITS[key], points)
