"""The structs of a scenario: map, trucks, tasks, events, duration and expectations."""

from enum import StrEnum
from typing import Self

from msgspec import Struct

from pendula.fleet.contracts import OperatorAction
from pendula.fleet.map.trucks import RobotProfile
from pendula.fleet.model import CompileParams, Fleet, SourceMap, Stream, Truck
from pendula.fleet.simulator.faults import Fault, FaultKind, WorldSettings
from pendula.fleet.tasks.model import DispatchParams, GoodsReported, RoomReported, TaskEvent, TaskOrder, TaskStream
from pendula.fleet.tick.params import TrafficParams


class OnLane(Struct, frozen=True):
    """A position along an edge."""

    edge_key: str
    s_um: int


class Robot(Struct, frozen=True):
    """A truck and its start: in a node, facing away from the node it came from, or along an edge."""

    robot_id: str
    profile_id: str
    park_node_id: str
    # The start node of a truck without an anchor.
    start_node_id: str
    # The node a truck came from, which determines its initial yaw.
    came_from_id: str | None = None
    anchor: OnLane | None = None


class StockKind(StrEnum):
    """GOODS to pick at a node, or ROOM for drops."""

    GOODS = "GOODS"
    ROOM = "ROOM"


class ScenarioTaskEvent(Struct, frozen=True):
    """From a time on the node has this number of goods, or room for this number."""

    at_ms: int
    type: StockKind
    node_id: str
    count: int

    @property
    def event(self) -> TaskEvent:
        of_kind = GoodsReported if self.type is StockKind.GOODS else RoomReported
        return of_kind(self.node_id, self.count)


class ScenarioEvent(Struct, frozen=True):
    """A fault of a truck, for some time or once; the kind of fault determines which numbers it uses."""

    at_ms: int
    type: FaultKind
    robot_id: str
    for_ms: int
    x_um: int = 0
    y_um: int = 0
    by_um: int = 0
    by_ms: int = 0

    @classmethod
    def of(cls, at_ms: int, robot_id: str, fault: Fault) -> Self:
        offsets = {"x_um": fault.x_um, "y_um": fault.y_um, "by_um": fault.by_um, "by_ms": fault.by_ms}
        return cls(at_ms, fault.kind, robot_id, fault.for_ms, **offsets)

    @property
    def fault(self) -> Fault:
        return Fault(self.type, self.for_ms, self.x_um, self.y_um, self.by_um, self.by_ms)


class ScenarioRoute(Struct, frozen=True):
    """A route of an external planner to a node; with `leaves_at` it leaves the current route at that node."""

    at_ms: int
    robot_id: str
    node_id: str
    leaves_at: str | None = None


class Place(Struct, frozen=True):
    """A truck on an edge, between two positions."""

    robot_id: str
    edge_key: str
    from_um: int = 0
    to_um: int | None = None


class Expectation(Struct, frozen=True, tag=True):
    """A condition that must hold at the end of a run."""


class TasksDone(Expectation, frozen=True):
    """The number of tasks done; None for all."""

    count: int | None


class AllAtRest(Expectation, frozen=True):
    """Every truck stands in its rest node."""


class Arrives(Expectation, frozen=True):
    robot_id: str
    node_id: str
    by_ms: int


class NeverBeyond(Expectation, frozen=True):
    """A truck never passes a position of an edge; with `meanwhile` only while another truck is at that place."""

    robot_id: str
    edge_key: str
    s_um: int
    meanwhile: Place | None = None


class NeverTogether(Expectation, frozen=True):
    places: tuple[Place, ...]


class LongestWait(Expectation, frozen=True):
    at_most_ms: int
    robot_id: str | None = None
    reason_code: str | None = None


class NoTruckWaits(Expectation, frozen=True):
    """No truck ever waits for another."""


class SomeTruckWaits(Expectation, frozen=True):
    reason_code: str
    robot_id: str | None = None


class AlertComes(Expectation, frozen=True):
    """An alert is raised by a time, and within `within_ms` of its cause."""

    code: str
    by_ms: int
    within_ms: int | None = None


class NoAlert(Expectation, frozen=True):
    code: str


class Stands(Expectation, frozen=True):
    """A truck is stopped with a code by a time, and not after `until_ms`."""

    robot_id: str
    reason_code: str
    by_ms: int
    until_ms: int | None = None


class GivesBack(Expectation, frozen=True):
    """A truck returns resources, keeps them for at least this time, until its acknowledgement, and no other truck holds
    them before."""

    robot_id: str
    at_least_ms: int


class RouteRefused(Expectation, frozen=True):
    robot_id: str | None = None


class GoHoldChanges(Expectation, frozen=True):
    at_most: int
    robot_id: str | None = None


class DirectionFlips(Expectation, frozen=True):
    group_key: str
    at_most: int


class Calm(Expectation, frozen=True):
    """Limits of oscillation (FLT-OSC-10): in any 10 s changes between GO and HOLD, and distances that hold points and
    targets move back; in any minute flips of a lane and replans."""

    go_hold_changes: int = 2
    hold_back_um: int = 500_000
    target_back_um: int = 500_000
    direction_flips: int = 1
    replans: int = 6


class Scenario(Struct, frozen=True):
    """The complete input of a run. `override` starts it even if its map is not certified."""

    name: str
    title: str
    source: SourceMap
    profiles: tuple[RobotProfile, ...]
    robots: tuple[Robot, ...]
    duration_ms: int
    streams: tuple[TaskStream, ...] = ()
    tasks: tuple[TaskOrder, ...] = ()
    task_events: tuple[ScenarioTaskEvent, ...] = ()
    events: tuple[ScenarioEvent, ...] = ()
    actions: tuple[OperatorAction, ...] = ()
    routes: tuple[ScenarioRoute, ...] = ()
    expect: tuple[Expectation, ...] = ()
    compile_params: CompileParams = CompileParams()
    traffic: TrafficParams = TrafficParams()
    world: WorldSettings = WorldSettings()
    seed: int = 0
    override: bool = False
    dispatch: DispatchParams = DispatchParams()

    @property
    def fleet(self) -> Fleet:
        """Trucks and streams for the certificate; every task counts as a stream."""
        trucks = tuple(Truck(robot.robot_id, robot.profile_id, robot.park_node_id) for robot in self.robots)
        streams = [
            Stream(stream.stream_id, stream.pick_node_ids, stream.drop_node_ids, stream.robot_ids)
            for stream in self.streams
        ]
        streams += [
            Stream(task.task_id, (task.pick_node_id,), (task.drop_node_id,), task.robot_ids) for task in self.tasks
        ]
        return Fleet(trucks, tuple(streams))
