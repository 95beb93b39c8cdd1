"""Swings and distances of the trucks of a served fleet (FLT-OBS-9), measured as in scenarios, but from reports."""

from collections.abc import Sequence
from math import nan

import numpy as np

from pendula.fleet.checker import Closest, Poses
from pendula.fleet.driving.params import TrafficParams
from pendula.fleet.driving.records import Record
from pendula.fleet.driving.stops import Stop
from pendula.fleet.health.judging import is_fresh
from pendula.fleet.tick import TickOutputs
from pendula.fleet.units import MILLION
from pendula.fleet.views.robot_state import on_segment
from pendula.fleet.views.swings import Swings

# The place of a truck without a route: on no edge.
_NOWHERE = (-1, 0)
_UNSEEN = (nan, nan, nan)


class Watch:
    """Extremes since the fleet was opened."""

    def __init__(self, records: Sequence[Record], params: TrafficParams) -> None:
        self._params = params
        self.swings = Swings(records[0].site)
        self.closest = Closest([record.profile for record in records])

    def note(self, outputs: TickOutputs) -> None:
        """Note a tick that took place."""
        records, now_ms = outputs.scene.records, outputs.now_ms
        for record, aim in zip(records, outputs.aims, strict=True):
            self.swings.note(record, aim.mode, now_ms)
        self.swings.note_routes(outputs.accepted_routes, now_ms)
        self.swings.note_places([_place(record) for record in records], now_ms)
        seen = np.array([self._pose(record, now_ms) for record in records])[None] / MILLION
        self.closest.look(Poses(seen[:, :, 0], seen[:, :, 1], seen[:, :, 2]))

    def _pose(self, record: Record, now_ms: int) -> tuple[float, float, float]:
        """The reported pose; NaN if the truck is absent, silent or lost."""
        pose, doubt = record.pose, record.doubt
        lost = record.absent or (doubt is not None and doubt.code == Stop.POSE_JUMP)
        if pose is None or lost or not is_fresh(record, now_ms, self._params):
            return _UNSEEN
        return pose.x_um, pose.y_um, pose.yaw_urad


def _place(record: Record) -> tuple[int, int]:
    on = on_segment(record)
    if on is None or record.track is None:
        return _NOWHERE
    number, on_um = on
    return record.track.plan.segments[number].edge, on_um
