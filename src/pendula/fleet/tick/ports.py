"""Replaceable parts of a tick, each a Protocol with its default implementation.

They change their arguments only where their docstring says so.
"""

from dataclasses import dataclass, field
from typing import Protocol

from pendula.fleet.contracts.traffic import CorridorRequest
from pendula.fleet.driving.params import TrafficParams
from pendula.fleet.driving.records import Record
from pendula.fleet.health.places import position
from pendula.fleet.targets.rolling_target import Aim
from pendula.fleet.tick.aiming import aim
from pendula.fleet.views.corridor_request import corridor_request


class ProgressEstimator(Protocol):
    def project(self, record: Record, params: TrafficParams) -> int | None:
        """The position of the pose on the track, in micrometres; None if it fits none."""


class CorridorBuilder(Protocol):
    def build(self, record: Record, now_ms: int, params: TrafficParams) -> CorridorRequest | None:
        """The units a truck requests beyond its grant; None without a route."""


class RtpController(Protocol):
    def compute(self, record: Record, now_ms: int, params: TrafficParams) -> Aim:
        """Hold point, target and speed of a truck for this tick; sets its hold point and command number."""


class PoseProjection:
    def project(self, record: Record, params: TrafficParams) -> int | None:
        return position(record, params)


class UnitCorridor:
    def build(self, record: Record, now_ms: int, params: TrafficParams) -> CorridorRequest | None:
        return corridor_request(record, now_ms, params)


class RollingTarget:
    def compute(self, record: Record, now_ms: int, params: TrafficParams) -> Aim:
        return aim(record, now_ms, params)


@dataclass(frozen=True, slots=True)
class TickPorts:
    progress: ProgressEstimator = field(default_factory=PoseProjection)
    corridor: CorridorBuilder = field(default_factory=UnitCorridor)
    rtp: RtpController = field(default_factory=RollingTarget)
