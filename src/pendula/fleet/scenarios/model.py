"""The structs of a scenario: map, trucks, tasks, events, duration and expectations."""

from collections.abc import Collection
from enum import StrEnum
from typing import Annotated, Self

from msgspec import Struct, field

from pendula.documents import Cursor, Members
from pendula.documents.typed import NO_NULL, Read
from pendula.fleet.compiler.samples import FL_STD
from pendula.fleet.contracts import OperatorAction
from pendula.fleet.map.reading import Name, Natural, Text, Um, micros
from pendula.fleet.map.trucks import RobotProfile
from pendula.fleet.model import CompileParams, Fleet, SourceMap, Stream, Truck
from pendula.fleet.simulator.truck import Fault, FaultKind, WorldSettings
from pendula.fleet.tasks.model import DispatchParams, GoodsReported, RoomReported, TaskEvent, TaskOrder, TaskStream
from pendula.fleet.tasks.operators import LONGEST_EDGE_M
from pendula.fleet.tick.params import TrafficParams
from pendula.fleet.tick.reasons import ALERTS, WAITS
from pendula.fleet.tick.records import Stop

Along = Annotated[int, micros(most=str(LONGEST_EDGE_M))]
# Absent unless given; null is a fault.
MaybeText = Annotated[str | None, NO_NULL]
MaybeName = Annotated[Name | None, NO_NULL]
MaybeCount = Annotated[Natural | None, NO_NULL]


class Form(Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    """An object of a scenario file, with its members."""


class OnLane(Form, frozen=True):
    """A position along an edge."""

    edge_key: Text
    s_um: Along = field(name="sM")


class Robot(Form, frozen=True):
    """A truck and its start: in a node, facing away from the node it came from, or along an edge."""

    robot_id: Name
    park_node_id: Name
    profile_id: Text = FL_STD.profile_id
    # The start node of a truck without an anchor, if it is not its rest node.
    start: MaybeName = field(default=None, name="startNodeId")
    # The node a truck came from, which determines its initial yaw.
    came_from_id: Annotated[Text | None, NO_NULL] = field(default=None, name="cameFromNodeId")
    anchor: Annotated[OnLane | None, NO_NULL] = None

    def check(self, at: Members) -> None:
        for member in ("startNodeId", "cameFromNodeId"):
            if "anchor" in at and member in at:
                at[member].refuse(f"a truck that starts at an anchor has no {member}")

    @property
    def start_node_id(self) -> str:
        return self.park_node_id if self.start is None else self.start


class StockKind(StrEnum):
    """GOODS to pick at a node, or ROOM for drops."""

    GOODS = "GOODS"
    ROOM = "ROOM"


class ScenarioTaskEvent(Form, frozen=True):
    """From a time on the node has this number of goods, or room for this number."""

    at_ms: Natural
    type: StockKind
    node_id: Name
    count: Natural

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


class Place(Form, frozen=True):
    """A truck on an edge, between two positions."""

    robot_id: Name
    edge_key: Text
    from_um: Um = field(default=0, name="fromM")
    to_um: Annotated[Um | None, NO_NULL] = field(default=None, name="toM")


def _one_of(codes: Collection[str], what: str) -> Read:
    """Annotation: a known code; an expectation with another one would mean nothing."""

    def read(at: Cursor) -> str:
        code = at.text(min=1)
        if code and code not in codes:
            at.refuse(f"there is no {what} {code!r}", allowed=tuple(codes))
        return code

    return Read(read, "")


AlertCode = Annotated[str, _one_of(ALERTS, "alert")]
WaitCode = Annotated[str, _one_of(WAITS, "reason to wait")]


class Expectation(Form, frozen=True):
    """A condition that must hold at the end of a run."""


class TasksDone(Expectation, frozen=True):
    """The number of tasks done; None for all."""

    count: int | None


class AllAtRest(Expectation, frozen=True):
    """Every truck stands in its rest node."""


class Arrives(Expectation, frozen=True):
    robot_id: Name
    node_id: Name
    by_ms: Natural


class NeverBeyond(Expectation, frozen=True):
    """A truck never passes a position of an edge; with `meanwhile` only while another truck is at that place."""

    robot_id: Name
    edge_key: Text
    s_um: Um = field(name="sM")
    meanwhile: Annotated[Place | None, NO_NULL] = field(default=None, name="while")


class NeverTogether(Expectation, frozen=True):
    places: tuple[Place, ...]


class LongestWait(Expectation, frozen=True):
    at_most_ms: Natural
    robot_id: MaybeText = None
    reason_code: Annotated[WaitCode | None, NO_NULL] = None


class NoTruckWaits(Expectation, frozen=True):
    """No truck ever waits for another."""


class SomeTruckWaits(Expectation, frozen=True):
    reason_code: WaitCode
    robot_id: MaybeText = None


class AlertComes(Expectation, frozen=True):
    """An alert is raised by a time, and within `within_ms` of its cause."""

    code: AlertCode
    by_ms: Natural
    within_ms: MaybeCount = None


class NoAlert(Expectation, frozen=True):
    code: str


class Stands(Expectation, frozen=True):
    """A truck is stopped with a code by a time, and not after `until_ms`."""

    robot_id: Name
    reason_code: Annotated[str, _one_of(tuple(Stop), "reason to stop")]
    by_ms: Natural
    until_ms: MaybeCount = None


class GivesBack(Expectation, frozen=True):
    """A truck returns resources, keeps them for at least this time, until its acknowledgement, and no other truck holds
    them before."""

    robot_id: Name
    at_least_ms: Natural


class RouteRefused(Expectation, frozen=True):
    robot_id: MaybeText = None


class GoHoldChanges(Expectation, frozen=True):
    at_most: Natural
    robot_id: MaybeText = None


class DirectionFlips(Expectation, frozen=True):
    group_key: Text = field(name="edgeGroupKey")
    at_most: Natural


class Calm(Expectation, frozen=True):
    """Limits of oscillation (FLT-OSC-10): in any 10 s changes between GO and HOLD, and distances that hold points and
    targets move back; in any minute flips of a lane and replans."""

    go_hold_changes: Natural = 2
    hold_back_um: Um = field(default=500_000, name="holdBackM")
    target_back_um: Um = field(default=500_000, name="targetBackM")
    direction_flips: Natural = 1
    replans: Natural = 6


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
