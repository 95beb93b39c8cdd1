"""The least distance of two envelopes with all margins, one sample of poses at a time.

Circumscribed circles are compared first: pairs that cannot beat the closest pair so far are not measured.
"""

from collections.abc import Sequence

import numpy as np

from pendula.fleet.checker.distances import distances, separations
from pendula.fleet.checker.rectangles import Poses, Shapes, inflated_shape
from pendula.fleet.trucks.profiles import RobotProfile


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
