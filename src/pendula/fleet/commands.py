"""What goes into a fleet: its configuration and its commands.

Everything is an integer: micrometres, microradians, milliseconds. Names in the JSON are those of the contract.
"""

from typing import Annotated, TypeAlias

from msgspec import UNSET, Meta, Struct, UnsetType

from pendula.fleet.contracts.traffic import OperatorAction
from pendula.fleet.driving.params import TrafficParams
from pendula.fleet.model import CompileParams, Fleet, SourceMap
from pendula.fleet.tasks.model import DispatchParams, TaskEvent, TaskStream
from pendula.fleet.tick.observing import TruckReport
from pendula.fleet.tick.saving import SavedRoute
from pendula.fleet.trucks.profiles import RobotProfile
from pendula.kernel.canonical import Json

Time = Annotated[int, Meta(ge=0, le=1 << 53)]


class StartPlace(Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    """Where a truck begins that is not at rest: on an edge, or in a node with a yaw."""

    robot_id: str
    edge_key: str | None = None
    s_um: int = 0
    node_id: str | None = None
    yaw_urad: int | None = None


class Config(Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    """A fleet as it is made. `compiled_hash` names the compiled map, which lies beside the journal or is made anew from
    `source`; a fleet does not begin on another one. `streams` make tasks, those of `fleet` are what the map is
    certified for. `begin_ms` is the time at which it begins. `state` is that of a fleet of the same configuration,
    which this one goes on from."""

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
    """What all commands share: a member nobody knows is refused."""


class Tick(Command, frozen=True, tag="tick"):
    """One tick: what trucks said since the last one, and what is wanted of them. `routes` come from whoever plans
    outside the fleet; those of its own tasks it makes itself. `trouble`: why the journal is not written.
    `restarted`: the manager was away, and nobody moves before every truck was heard. `gateway`: what went wrong
    between the manager and its trucks since the tick before. `missing`: what is in no journal, told when it is written
    again."""

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
