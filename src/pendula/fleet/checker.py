"""Independent collision checker: envelopes and turning discs, from poses alone. It shares no code with its subject.

No two envelopes may meet, and no truck may enter the disc in which another one turns, on two levels: envelopes with all
margins at the poses on the routes, and envelopes without the error margin at the true poses. Circumscribed circles are
compared first, so that only neighbours are measured. The formulas of the envelopes are written again on purpose.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from math import ceil

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from pendula.fleet.map.trucks import RobotProfile

# A truck as a rectangle around its pivot, at many poses at a time, in metres.
# The formulas of the envelopes are written again on purpose: the checker must not share a mistake of the compiler.

Floats = NDArray[np.float64]
_MICRO = 1e-6


@dataclass(frozen=True, slots=True)
class Shape:
    """Reach of a rectangle ahead of the pivot, behind it and to either side."""

    front_m: float
    rear_m: float
    side_m: float

    @property
    def turning_radius_m(self) -> float:
        """Radius of the disc around the pivot that contains the rectangle at every yaw."""
        return float(np.hypot(max(self.front_m, self.rear_m), self.side_m))


def inflated_shape(profile: RobotProfile) -> Shape:
    """Body, safety distances and margins for position and heading errors."""
    errors = profile.localization_error.value_um + profile.tracking_error.value_um + profile.extra_margin_um
    front = profile.head_um + profile.safety_front_um + errors
    rear = profile.tail_um + profile.safety_rear_um + errors
    sway = max(front, rear) * profile.heading_error_urad * _MICRO
    side = profile.width_um / 2 + profile.safety_side_um + errors + sway
    return Shape(front * _MICRO, rear * _MICRO, side * _MICRO)


def bare_shape(profile: RobotProfile) -> Shape:
    """Body and safety distances: what must be free around the true pose."""
    front = profile.head_um + profile.safety_front_um
    rear = profile.tail_um + profile.safety_rear_um
    side = profile.width_um / 2 + profile.safety_side_um
    return Shape(front * _MICRO, rear * _MICRO, side * _MICRO)


class Poses(Struct, frozen=True, eq=False, gc=False):
    """Poses of all trucks: one row per instant, one column per truck, in metres and radians."""

    x: Floats
    y: Floats
    yaw: Floats

    def last(self) -> "Poses":
        return Poses(self.x[-1:], self.y[-1:], self.yaw[-1:])


class Rectangles(Struct, frozen=True, eq=False, gc=False):
    """Rectangles, one row per instant and one column per truck: centre and unit vector of the long axis, with the half
    extents of each column."""

    x: Floats
    y: Floats
    ux: Floats
    uy: Floats
    half_length: Floats
    half_width: Floats


@dataclass(frozen=True, eq=False, slots=True)
class Shapes:
    """The shapes of all trucks as columns."""

    ahead: Floats
    half_length: Floats
    half_width: Floats
    around: Floats

    @classmethod
    def of(cls, shapes: list[Shape]) -> "Shapes":
        front = np.array([shape.front_m for shape in shapes])
        rear = np.array([shape.rear_m for shape in shapes])
        around = np.array([shape.turning_radius_m for shape in shapes])
        return cls((front - rear) / 2, (front + rear) / 2, np.array([shape.side_m for shape in shapes]), around)

    def at(self, trucks: NDArray[np.intp], poses: Poses) -> Rectangles:
        """The rectangles of these trucks at their poses."""
        yaw = poses.yaw[:, trucks]
        ux, uy = np.cos(yaw), np.sin(yaw)
        ahead = self.ahead[trucks]
        x, y = poses.x[:, trucks] + ahead * ux, poses.y[:, trucks] + ahead * uy
        return Rectangles(x, y, ux, uy, self.half_length[trucks], self.half_width[trucks])


# Distances of rectangles from each other and from a point: separating axes first, then corner by corner.


def separations(a: Rectangles, b: Rectangles) -> Floats:
    """The widest gap along an axis of either rectangle: a lower bound of the distance; 0 or less where they meet."""
    dx, dy = b.x - a.x, b.y - a.y
    along = np.abs(a.ux * b.ux + a.uy * b.uy)
    across = np.abs(a.ux * b.uy - a.uy * b.ux)
    gaps = (
        np.abs(dx * a.ux + dy * a.uy) - a.half_length - b.half_length * along - b.half_width * across,
        np.abs(dy * a.ux - dx * a.uy) - a.half_width - b.half_length * across - b.half_width * along,
        np.abs(dx * b.ux + dy * b.uy) - b.half_length - a.half_length * along - a.half_width * across,
        np.abs(dy * b.ux - dx * b.uy) - b.half_width - a.half_length * across - a.half_width * along,
    )
    return np.maximum(np.maximum(gaps[0], gaps[1]), np.maximum(gaps[2], gaps[3]))


def distances(a: Rectangles, b: Rectangles) -> Floats:
    """0 where two rectangles meet."""
    least = np.minimum(_corners_to(a, b), _corners_to(b, a))
    return np.where(separations(a, b) > 0.0, least, 0.0)


def from_point(rectangles: Rectangles, x: Floats | float, y: Floats | float) -> Floats:
    """The distance of every rectangle from a point, 0 where the point is inside."""
    dx, dy = x - rectangles.x, y - rectangles.y
    ahead = np.maximum(np.abs(dx * rectangles.ux + dy * rectangles.uy) - rectangles.half_length, 0.0)
    aside = np.maximum(np.abs(dy * rectangles.ux - dx * rectangles.uy) - rectangles.half_width, 0.0)
    return np.hypot(ahead, aside)


def _corners_to(a: Rectangles, b: Rectangles) -> Floats:
    """The least distance of a corner of `a` from `b`."""
    least = np.full(a.x.shape, np.inf)
    for ahead, aside in ((1, 1), (-1, 1), (-1, -1), (1, -1)):
        x = a.x + ahead * a.half_length * a.ux - aside * a.half_width * a.uy
        y = a.y + ahead * a.half_length * a.uy + aside * a.half_width * a.ux
        least = np.minimum(least, from_point(b, x, y))
    return least


# Movement between two samples: interpolated poses where a step is too long, and turns on the spot.
# Trucks must not pass through each other between two poses, so no step is longer than 0.05 m or turns more than 0.02
# rad.

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


# Touching counts as meeting.
TOUCH_M = 1e-6


class Level(StrEnum):
    """Inflated envelopes on the route, or envelopes without inflation at the true pose."""

    ROUTE = "route"
    TRUTH = "truth"


class Kind(StrEnum):
    ENVELOPES_MEET = "ENVELOPES_MEET"
    DISC_ENTERED = "DISC_ENTERED"


@dataclass(frozen=True, slots=True)
class Violation:
    """A meeting of two trucks and the least gap in metres. For `DISC_ENTERED` the disc is that of the first truck."""

    kind: Kind
    level: Level
    at_ms: int
    robot_ids: tuple[str, str]
    gap_m: float


class Disc(Struct, frozen=True, gc=False):
    """A node reserved for one truck, given as its column."""

    robot: int
    x_m: float
    y_m: float


class Judge:
    """Checker of a fleet of T trucks: the columns of the poses, in the order of their ids.

    Internally both levels are in one table: columns 0 to T-1 are poses on the routes, columns T to 2T-1 true poses.
    """

    def __init__(self, robot_ids: Sequence[str], profiles: Sequence[RobotProfile]) -> None:
        self._names = tuple(robot_ids)
        self._shapes = Shapes.of([*map(inflated_shape, profiles), *map(bare_shape, profiles)])
        a, b = np.triu_indices(len(self._names), 1)
        self._a, self._b = np.concatenate([a, a + len(self._names)]), np.concatenate([b, b + len(self._names)])
        self._last: tuple[Floats, Poses] | None = None
        # Trucks that were removed from the hall, on both levels.
        self._gone: NDArray[np.bool_] | None = None
        self.looks = 0
        # The least distance of two inflated envelopes; None until two trucks come near each other.
        self.least_m: float | None = None

    def look(
        self, at_ms: Floats, route: Poses, truth: Poses, discs: Sequence[Disc] = (), gone: Sequence[bool] = ()
    ) -> list[Violation]:
        """Violations since the last call up to these instants; each pair and disc is reported once a call.

        `gone` marks trucks outside the hall, which cannot collide. A truck that comes back starts at its new pose.
        """
        poses = concatenate_columns(route, truth)
        if self._last is not None:
            before = self._last[1]
            if self._gone is not None:
                before = replace_columns(before, poses, self._gone)
            poses, at_ms = prepend(before, poses), np.concatenate([self._last[0], at_ms])
            self.looks -= 1
        self._gone = np.array([*gone, *gone]) if any(gone) else None
        self.looks += len(at_ms)
        self._last = at_ms[-1:], poses.last()
        steps = Steps.of(poses)
        turned = steps.turning()[: len(self._names)].nonzero()[0].tolist()
        checked_discs = [*discs, *(Disc(i, float(poses.x[-1, i]), float(poses.y[-1, i])) for i in turned)]
        reach = _reach(poses) + self._shapes.around
        if self._gone is not None:
            # Comparisons with NaN are false, so these trucks are near nothing.
            reach[self._gone] = np.nan
            checked_discs = [disc for disc in checked_discs if not gone[disc.robot]]
        return self._violations(Look(poses, at_ms, steps.parts(), reach), checked_discs)

    def _violations(self, look: "Look", discs: Sequence[Disc]) -> list[Violation]:
        """Select neighbours from the given poses; only they are checked in small steps."""
        near, close = self._near_pairs(look), list(self._discs_within_reach(look, discs))
        if not len(near) and not close:
            return []
        poses, at_ms = interpolate(look.poses, look.at_ms, look.parts)
        return [*self._envelope_violations(near, poses, at_ms), *self._disc_violations(close, poses, at_ms)]

    def _envelope_violations(self, near: NDArray[np.intp], poses: Poses, at_ms: Floats) -> list[Violation]:
        if not len(near):
            return []
        a, b = self._a[near], self._b[near]
        first, second = self._shapes.at(a, poses), self._shapes.at(b, poses)
        gaps = separations(first, second)
        on_route = (a < len(self._names)).nonzero()[0]
        if len(on_route):
            self._update_least_distance(gaps[:, on_route], lambda: distances(first, second)[:, on_route])
        meet = _touching_columns(gaps)
        return [self._violation(Kind.ENVELOPES_MEET, int(a[k]), int(b[k]), gaps[:, k], at_ms) for k in meet]

    def _violation(self, kind: Kind, a: int, b: int, gaps: Floats, at_ms: Floats) -> Violation:
        count = len(self._names)
        return Violation(
            kind=kind,
            level=Level.ROUTE if a < count else Level.TRUTH,
            at_ms=int(at_ms[int((gaps <= TOUCH_M).argmax())]),
            robot_ids=(self._names[a % count], self._names[b % count]),
            gap_m=float(gaps.min()),
        )

    def _near_pairs(self, look: "Look") -> NDArray[np.intp]:
        """Pairs whose circumscribed circles, enlarged by the movement of each truck, meet."""
        x, y, a, b = look.poses.x[0], look.poses.y[0], self._a, self._b
        dx, dy = x[a] - x[b], y[a] - y[b]
        far = look.reach[a] + look.reach[b] + TOUCH_M
        near: NDArray[np.intp] = (dx * dx + dy * dy <= far * far).nonzero()[0]
        return near

    def _disc_violations(
        self, near: Sequence[tuple[Disc, NDArray[np.intp]]], poses: Poses, at_ms: Floats
    ) -> list[Violation]:
        """Envelopes of other trucks in a disc; only the route level is checked."""
        violations = []
        for disc, close in near:
            radius = self._shapes.around[disc.robot]
            gaps = from_point(self._shapes.at(close, poses), disc.x_m, disc.y_m) - radius
            inside = _touching_columns(gaps)
            violations += [
                self._violation(Kind.DISC_ENTERED, disc.robot, int(close[k]), gaps[:, k], at_ms) for k in inside
            ]
        return violations

    def _discs_within_reach(self, look: "Look", discs: Sequence[Disc]) -> Iterator[tuple[Disc, NDArray[np.intp]]]:
        """Discs that other trucks may reach, each with those trucks."""
        if not discs:
            return
        count = len(self._names)
        owner = np.array([disc.robot for disc in discs])
        x, y = np.array([disc.x_m for disc in discs]), np.array([disc.y_m for disc in discs])
        dx, dy = look.poses.x[0, :count] - x[:, None], look.poses.y[0, :count] - y[:, None]
        far = self._shapes.around[owner][:, None] + (look.reach[:count] + TOUCH_M)
        close = dx * dx + dy * dy <= far * far
        close[np.arange(len(discs)), owner] = False
        for k in np.logical_or.reduce(close, axis=1).nonzero()[0].tolist():
            yield discs[k], close[k].nonzero()[0]

    def _update_least_distance(self, gaps: Floats, exact: Callable[[], Floats]) -> None:
        """Update the least distance; a gap along an axis bounds it from below, so `exact` is rarely needed."""
        if self.least_m is not None and float(gaps.min()) >= self.least_m:
            return
        least = float(exact().min())
        self.least_m = least if self.least_m is None else min(self.least_m, least)


class Look(Struct, frozen=True, eq=False, gc=False):
    """Poses from one call to the next, the number of parts to cut each step into, and for every column the farthest
    that any part of the truck gets from the first pivot."""

    poses: Poses
    at_ms: Floats
    parts: list[int]
    reach: Floats


def _reach(poses: Poses) -> Floats:
    """The farthest distance of every pivot from its first position; between two poses it is never farther."""
    x, y = poses.x, poses.y
    dx, dy = x - x[:1], y - y[:1]
    reach: Floats = np.sqrt(np.maximum.reduce(dx * dx + dy * dy))
    return reach


def _touching_columns(gaps: Floats) -> list[int]:
    """The columns with a meeting."""
    columns: list[int] = (np.minimum.reduce(gaps) <= TOUCH_M).nonzero()[0].tolist()
    return columns


# The least distance of two envelopes with all margins, one sample of poses at a time.
# Circumscribed circles are compared first: pairs that cannot beat the closest pair so far are not measured.


class Closest:
    """Trucks are the columns of the poses, in the order of their profiles; a truck whose pose is NaN is skipped."""

    def __init__(self, profiles: Sequence[RobotProfile]) -> None:
        self._shapes = Shapes.of([*map(inflated_shape, profiles)])
        self._a, self._b = np.triu_indices(len(profiles), 1)
        self._around = self._shapes.around[self._a] + self._shapes.around[self._b]
        # None until two trucks appear in one sample.
        self.least_m: float | None = None

    def look(self, poses: Poses) -> None:
        x, y, a, b = poses.x[0], poses.y[0], self._a, self._b
        least = np.inf if self.least_m is None else self.least_m
        dx, dy, far = x[a] - x[b], y[a] - y[b], self._around + least
        near = (dx * dx + dy * dy < far * far).nonzero()[0]
        if not len(near):
            return
        first, second = self._shapes.at(a[near], poses), self._shapes.at(b[near], poses)
        # A gap along an axis bounds the distance from below, so most samples need no exact distances.
        if float(separations(first, second).min()) < least:
            self.least_m = min(least, float(distances(first, second).min()))
