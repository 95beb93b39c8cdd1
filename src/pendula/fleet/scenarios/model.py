"""What a scenario is: a map, trucks, tasks, events, how long, and what is expected of it. Nothing here acts."""

from enum import StrEnum
from typing import Self

from msgspec import Struct

from pendula.fleet.contracts.traffic import OperatorAction
from pendula.fleet.driving.params import TrafficParams
from pendula.fleet.model import CompileParams, Fleet, SourceMap, Stream, Truck
from pendula.fleet.simulator.faults import Fault, FaultKind
from pendula.fleet.simulator.settings import WorldSettings
from pendula.fleet.tasks.model import DispatchParams, GoodsReported, RoomReported, TaskEvent, TaskOrder, TaskStream
from pendula.fleet.trucks.profiles import RobotProfile


class OnLane(Struct, frozen=True):
    """A place so far along an edge."""

    edge_key: str
    s_um: int


class Robot(Struct, frozen=True):
    """A truck and where it begins: in a node, with its back to the way it came by, or along an edge."""

    robot_id: str
    profile_id: str
    park_node_id: str
    # Where it begins if it has no anchor.
    start_node_id: str
    # The node a truck came from; it decides the yaw it begins with.
    came_from_id: str | None = None
    anchor: OnLane | None = None


class StockKind(StrEnum):
    """GOODS to be picked in a node, ROOM for what is dropped there."""

    GOODS = "GOODS"
    ROOM = "ROOM"


class ScenarioTaskEvent(Struct, frozen=True):
    """From a time on there are so many goods in a node, or room for so many."""

    at_ms: int
    type: StockKind
    node_id: str
    count: int

    @property
    def told(self) -> TaskEvent:
        of_kind = GoodsReported if self.type is StockKind.GOODS else RoomReported
        return of_kind(self.node_id, self.count)


class ScenarioEvent(Struct, frozen=True):
    """Something goes wrong with a truck for a while, or once; what the numbers mean depends on the kind of fault."""

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
        it = fault
        return cls(at_ms, it.kind, robot_id, it.for_ms, x_um=it.x_um, y_um=it.y_um, by_um=it.by_um, by_ms=it.by_ms)

    @property
    def fault(self) -> Fault:
        return Fault(self.type, self.for_ms, self.x_um, self.y_um, self.by_um, self.by_ms)


class ScenarioRoute(Struct, frozen=True):
    """A planner outside the fleet sends a truck to a node; from `leaves_at`, a node on the way that it drives."""

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
    """What must have come true when a run is over."""


class TasksDone(Expectation, frozen=True):
    """So many tasks were done; None: every one."""

    count: int | None


class AllAtRest(Expectation, frozen=True):
    """Every truck stands in its rest node."""


class Arrives(Expectation, frozen=True):
    robot_id: str
    node_id: str
    by_ms: int


class NeverBeyond(Expectation, frozen=True):
    """A truck never passes a position of an edge; with `meanwhile` only while another truck is on one of its edges."""

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


class NobodyWaits(Expectation, frozen=True):
    """No truck ever stands for another."""


class SomebodyWaits(Expectation, frozen=True):
    reason_code: str
    robot_id: str | None = None


class AlertComes(Expectation, frozen=True):
    """An alert is raised; `within_ms` after what it is about began."""

    code: str
    by_ms: int
    within_ms: int | None = None


class NoAlert(Expectation, frozen=True):
    code: str


class Stands(Expectation, frozen=True):
    """A truck is stopped with a code by a time, and at last at another."""

    robot_id: str
    reason_code: str
    by_ms: int
    until_ms: int | None = None


class GivesBack(Expectation, frozen=True):
    """A truck gives something back, keeps it for at least so long, until it has acknowledged, and nobody has it
    before."""

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
    """Trucks get on instead of swinging (FLT-OSC-10): in any 10 s at most so many changes between GO and HOLD, and hold
    points and targets that go back by so much; in any minute so many flips of a lane and so many replans."""

    go_hold_changes: int = 2
    hold_back_um: int = 500_000
    target_back_um: int = 500_000
    direction_flips: int = 1
    replans: int = 6


class Scenario(Struct, frozen=True):
    """Everything a run is made of. `override` starts it although its map is not certified."""

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
        """Trucks and streams as the certificate sees them: a task is a stream of its own."""
        trucks = tuple(Truck(one.robot_id, one.profile_id, one.park_node_id) for one in self.robots)
        streams = [Stream(one.stream_id, one.pick_node_ids, one.drop_node_ids, one.robot_ids) for one in self.streams]
        streams += [Stream(one.task_id, (one.pick_node_id,), (one.drop_node_id,), one.robot_ids) for one in self.tasks]
        return Fleet(trucks, tuple(streams))
