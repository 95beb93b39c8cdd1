"""The input of a fleet: its configuration and its commands.

Numbers are integers: micrometres, microradians, milliseconds. Names in the JSON are those of the contract.
"""

from typing import Annotated, TypeAlias

from msgspec import UNSET, Meta, Struct, UnsetType

from pendula.fleet.contracts import OperatorAction
from pendula.fleet.map.trucks import RobotProfile
from pendula.fleet.model import CompileParams, Fleet, SourceMap
from pendula.fleet.tasks.model import DispatchParams, TaskEvent, TaskStream
from pendula.fleet.tick.observing import TruckReport
from pendula.fleet.tick.params import TrafficParams
from pendula.fleet.tick.saving import SavedRoute
from pendula.kernel.canonical import Json

Time = Annotated[int, Meta(ge=0, le=1 << 53)]


class StartPlace(Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    """The start of a truck that does not begin in its rest node: on an edge, or in a node with a yaw."""

    robot_id: str
    edge_key: str | None = None
    s_um: int = 0
    node_id: str | None = None
    yaw_urad: int | None = None


class Config(Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    """Configuration of a fleet. `compiled_hash` names the compiled map, which is beside the journal or compiled again
    from `source`; any other map is rejected. `streams` create tasks; the map is certified for those of `fleet`.
    `begin_ms`: the time of the start. `state`: the state of a fleet with the same configuration to continue from."""

    source: SourceMap
    profiles: tuple[RobotProfile, ...]
    fleet: Fleet
    compiled_hash: str
    compile_params: CompileParams = CompileParams()
    traffic: TrafficParams = TrafficParams()
    starts: tuple[StartPlace, ...] = ()
    streams: tuple[TaskStream, ...] = ()
    dispatch: DispatchParams = DispatchParams()
    override: bool = False
    seed: Annotated[int, Meta(ge=0)] = 0
    begin_ms: Time | UnsetType = UNSET
    state: Json | UnsetType = UNSET


class MissingRecords(Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    """Records that are in no journal, with the times between which they were decided."""

    first_n: int
    last_n: int
    after_ms: int
    upto_ms: int


class Command(Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    """Base of all commands. Unknown members are rejected, so that a typo cannot change a command."""


class Tick(Command, frozen=True, tag="tick"):
    """One tick: reports of trucks and about tasks since the last one, and operator actions. `routes`: from a planner
    outside the fleet; the routes of its own tasks it plans itself. `trouble`: why the journal is not written.
    `restarted`: the manager was restarted, and no truck moves before all have reported. `gateway`: the last error of
    the connection to the trucks. `missing`: records lost while the journal was not written."""

    now_ms: Time
    reports: tuple[TruckReport, ...] = ()
    task_events: tuple[TaskEvent, ...] = ()
    operator_actions: tuple[OperatorAction, ...] = ()
    restarted: bool = False
    trouble: str | None = None
    routes: tuple[SavedRoute, ...] = ()
    gateway: str | UnsetType = UNSET
    missing: MissingRecords | UnsetType = UNSET


Commands: TypeAlias = Tick
