"""How close envelopes with all margins came to each other, from poses as they are shown, one look at a time.

Discs around the trucks come first: what cannot be closer than the closest pair so far is not measured.
"""

from collections.abc import Sequence

import numpy as np

from pendula.fleet.checker.distances import distances, separations
from pendula.fleet.checker.rectangles import Poses, Shapes, inflated
from pendula.fleet.trucks.profiles import RobotProfile


class Closest:
    """Trucks are the columns of the poses, in the order of their profiles; one whose pose is no number is left out."""

    def __init__(self, profiles: Sequence[RobotProfile]) -> None:
        self._shapes = Shapes.of([*map(inflated, profiles)])
        self._a, self._b = np.triu_indices(len(profiles), 1)
        self._around = self._shapes.around[self._a] + self._shapes.around[self._b]
        # The least distance of two envelopes, None as long as no two trucks were seen at a time.
        self.least_m: float | None = None

    def look(self, poses: Poses) -> None:
        x, y, a, b = poses.x[0], poses.y[0], self._a, self._b
        least = np.inf if self.least_m is None else self.least_m
        dx, dy, far = x[a] - x[b], y[a] - y[b], self._around + least
        near = (dx * dx + dy * dy < far * far).nonzero()[0]
        if not len(near):
            return
        one, two = self._shapes.at(a[near], poses), self._shapes.at(b[near], poses)
        # A gap along an axis bounds the distance from below, so most looks need no more.
        if float(separations(one, two).min()) < least:
            self.least_m = min(least, float(distances(one, two).min()))
