"""Judges a run from poses alone: no two envelopes meet, and nobody enters the disc in which another turns.

Two levels: envelopes with all margins where the trucks are on their routes, and envelopes without the allowance for
errors where they truly are. Discs around the trucks come first, so that only neighbours are measured.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from pendula.fleet.checker.distances import distances, from_point, separations
from pendula.fleet.checker.movements import Steps, after, beside, fine, moved
from pendula.fleet.checker.rectangles import Floats, Poses, Shapes, bare, inflated
from pendula.fleet.trucks.profiles import RobotProfile

# A mere touch is a meeting.
TOUCH_M = 1e-6


class Level(StrEnum):
    """Where the envelopes are: inflated ones on the route, those without inflation at the true pose."""

    ROUTE = "route"
    TRUTH = "truth"


class Kind(StrEnum):
    ENVELOPES_MEET = "ENVELOPES_MEET"
    DISC_ENTERED = "DISC_ENTERED"


@dataclass(frozen=True, slots=True)
class Violation:
    """Two trucks, the first one whose disc was entered where it is about a disc; the gap that was left, in metres."""

    kind: Kind
    level: Level
    at_ms: int
    robot_ids: tuple[str, str]
    gap_m: float


class Disc(Struct, frozen=True, gc=False):
    """A node that one truck alone may be in."""

    robot: int
    x_m: float
    y_m: float


class Judge:
    """Watches a fleet; trucks are the columns of the poses it is shown, in the order of their names.

    Inside, both levels stand side by side: columns 0 to T-1 are the trucks on their routes, the others where they are.
    """

    def __init__(self, robot_ids: Sequence[str], profiles: Sequence[RobotProfile]) -> None:
        self._names = tuple(robot_ids)
        self._shapes = Shapes.of([*map(inflated, profiles), *map(bare, profiles)])
        a, b = np.triu_indices(len(self._names), 1)
        self._a, self._b = np.concatenate([a, a + len(self._names)]), np.concatenate([b, b + len(self._names)])
        self._last: tuple[Floats, Poses] | None = None
        # The trucks that are in the hall no more, on both levels.
        self._gone: NDArray[np.bool_] | None = None
        self.looks = 0
        # The least distance of two inflated envelopes, None as long as nobody came near another.
        self.least_m: float | None = None

    def look(
        self, at_ms: Floats, route: Poses, truth: Poses, discs: Sequence[Disc] = (), gone: Sequence[bool] = ()
    ) -> list[Violation]:
        """What is wrong between the last look and these instants; each pair and disc is told once a look. `gone`: for
        every truck whether it is out of the hall, where it meets nobody; one that is back was put where it is seen."""
        poses = beside(route, truth)
        if self._last is not None:
            before = self._last[1]
            if self._gone is not None:
                before = moved(before, poses, self._gone)
            poses, at_ms = after(before, poses), np.concatenate([self._last[0], at_ms])
            self.looks -= 1
        self._gone = np.array([*gone, *gone]) if any(gone) else None
        self.looks += len(at_ms)
        self._last = at_ms[-1:], poses.last()
        steps = Steps.of(poses)
        turned = steps.turning()[: len(self._names)].nonzero()[0].tolist()
        shown = [*discs, *(Disc(i, float(poses.x[-1, i]), float(poses.y[-1, i])) for i in turned)]
        reach = _reach(poses) + self._shapes.around
        if self._gone is not None:
            # What is not a number is near nothing.
            reach[self._gone] = np.nan
            shown = [disc for disc in shown if not gone[disc.robot]]
        return self._found(Look(poses, at_ms, steps.parts(), reach), shown)

    def _found(self, look: "Look", discs: Sequence[Disc]) -> list[Violation]:
        """Who is near whom is seen from the poses as they were shown; only they are looked at in small steps."""
        near, close = self._near(look), list(self._close(look, discs))
        if not len(near) and not close:
            return []
        poses, at_ms = fine(look.poses, look.at_ms, look.parts)
        return [*self._pairs(near, poses, at_ms), *self._discs(close, poses, at_ms)]

    def _pairs(self, near: NDArray[np.intp], poses: Poses, at_ms: Floats) -> list[Violation]:
        if not len(near):
            return []
        a, b = self._a[near], self._b[near]
        one, two = self._shapes.at(a, poses), self._shapes.at(b, poses)
        gaps = separations(one, two)
        on_route = (a < len(self._names)).nonzero()[0]
        if len(on_route):
            self._note(gaps[:, on_route], lambda: distances(one, two)[:, on_route])
        meet = _touched(gaps)
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

    def _near(self, look: "Look") -> NDArray[np.intp]:
        """The pairs whose discs come together: how far each truck gets is added to its disc."""
        x, y, a, b = look.poses.x[0], look.poses.y[0], self._a, self._b
        dx, dy = x[a] - x[b], y[a] - y[b]
        far = look.reach[a] + look.reach[b] + TOUCH_M
        near: NDArray[np.intp] = (dx * dx + dy * dy <= far * far).nonzero()[0]
        return near

    def _discs(self, near: Sequence[tuple[Disc, NDArray[np.intp]]], poses: Poses, at_ms: Floats) -> list[Violation]:
        """Foreign envelopes in a disc; only inflated ones on the route are looked at."""
        found = []
        for disc, close in near:
            radius = self._shapes.around[disc.robot]
            gaps = from_point(self._shapes.at(close, poses), disc.x_m, disc.y_m) - radius
            inside = _touched(gaps)
            found += [self._violation(Kind.DISC_ENTERED, disc.robot, int(close[k]), gaps[:, k], at_ms) for k in inside]
        return found

    def _close(self, look: "Look", discs: Sequence[Disc]) -> Iterator[tuple[Disc, NDArray[np.intp]]]:
        """The discs that others may come near to, each with those trucks."""
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

    def _note(self, gaps: Floats, exact: Callable[[], Floats]) -> None:
        """Keeps the least distance; a gap along an axis bounds it from below, so most looks need no more."""
        if self.least_m is not None and float(gaps.min()) >= self.least_m:
            return
        least = float(exact().min())
        self.least_m = least if self.least_m is None else min(self.least_m, least)


class Look(Struct, frozen=True, eq=False, gc=False):
    """Poses from one look to the next, in how many parts each step is to be cut, and for every column how far from its
    first pivot any part of it comes."""

    poses: Poses
    at_ms: Floats
    parts: list[int]
    reach: Floats


def _reach(poses: Poses) -> Floats:
    """How far every pivot gets from where it is first; between two poses it is no farther than at one of them."""
    x, y = poses.x, poses.y
    dx, dy = x - x[:1], y - y[:1]
    reach: Floats = np.sqrt(np.maximum.reduce(dx * dx + dy * dy))
    return reach


def _touched(gaps: Floats) -> list[int]:
    """The columns in which something meets."""
    found: list[int] = (np.minimum.reduce(gaps) <= TOUCH_M).nonzero()[0].tolist()
    return found
