"""Reader of scenario documents: their forms, with every fault at its place."""

from collections.abc import Callable, Mapping, Sequence
from enum import Enum
from importlib.resources import files
from pathlib import Path
from typing import Annotated, Any, TypeAlias

from msgspec import UNSET, Struct, UnsetType, field, structs
from msgspec.structs import replace

from pendula.documents import Cursor, Document, Format, Members, read_bytes, read_file
from pendula.documents.typed import NO_NULL, NULL_IS_ABSENT, Read, read, read_at
from pendula.fleet.compiler.generated_maps import LIMITS, NO_FLEET, SAMPLES, USUAL, Sample, sample_of
from pendula.fleet.compiler.samples import FL_STD
from pendula.fleet.contracts import AnchorPlace, OperatorAction
from pendula.fleet.map.reading import (
    PARAMS,
    Name,
    Natural,
    Text,
    Title,
    Um,
    Version,
    given,
    limited,
    micros,
    params_at,
    profiles_at,
    read_source_map,
    refuse_picks,
    refuse_unknown,
    source_map_at,
)
from pendula.fleet.map.trucks import RobotProfile
from pendula.fleet.model import CONTRACT_VERSION, CompileParams, SourceMap
from pendula.fleet.scenarios.model import (
    AlertCode,
    AlertComes,
    AllAtRest,
    Arrives,
    Calm,
    DirectionFlips,
    Expectation,
    Form,
    GivesBack,
    GoHoldChanges,
    LongestWait,
    NeverBeyond,
    NeverTogether,
    NoAlert,
    NoTruckWaits,
    Place,
    Robot,
    RouteRefused,
    Scenario,
    ScenarioEvent,
    ScenarioRoute,
    ScenarioTaskEvent,
    SomeTruckWaits,
    Stands,
    TasksDone,
)
from pendula.fleet.simulator.truck import FARTHEST_M, LONGEST_MS, Fault, FaultKind, FaultRate, WorldSettings
from pendula.fleet.tasks.model import Conditions, DispatchParams, TaskOrder, TaskStream
from pendula.fleet.tasks.operators import LONGEST_EDGE_M, MOST_REASON, MOST_RESOURCES, ActionType, too_many
from pendula.fleet.tick.params import NodeLockPolicy, TrafficParams, contract_name
from pendula.fleet.units import micro
from pendula.kernel.errors import WrongUsage
from pendula.kernel.wording import suggestion

# Traffic parameters, with the names of the contract.

TRAFFIC_PARAMS: Mapping[str, str] = {contract_name(field): field for field in TrafficParams.__struct_fields__}


def read_traffic_params(document: Document, usual: TrafficParams) -> TrafficParams:
    """The traffic parameters of a document; missing ones are taken from `usual`. Raises `DocumentRefused`."""

    def read(root: Cursor) -> TrafficParams:
        refuse_unknown(root, tuple(TRAFFIC_PARAMS))
        return traffic_params(root, usual)

    return document.read(read)


def traffic_params(at: Cursor, usual: TrafficParams | None = None) -> TrafficParams:
    """Traffic parameters of an object; missing ones have their defaults."""
    members = at.object(optional=tuple(TRAFFIC_PARAMS), unknown="keep")
    given = {field: _value(members[name], field) for name, field in TRAFFIC_PARAMS.items() if name in members}
    return structs.replace(usual or TrafficParams(), **given)


def _value(at: Cursor, field: str) -> Any:
    usual = getattr(TrafficParams(), field)
    if isinstance(usual, bool):
        return at.boolean()
    if isinstance(usual, Enum):
        return at.choice(NodeLockPolicy)
    return read_at(at, Um if field.endswith(("_um", "_urad")) else Natural)


# Streams, tasks and goods.


class _ConditionsForm(Form, frozen=True):
    pick_has_goods: bool = False
    drop_has_room: bool = False


class _StreamForm(Form, frozen=True):
    stream_id: Name
    pick_node_ids: Annotated[tuple[Name, ...], limited(min_length=1)]
    drop_node_ids: Annotated[tuple[Name, ...], limited(min_length=1)]
    pick_ms: Natural | UnsetType = field(default=UNSET, name="pickDurationMs")
    drop_ms: Natural | UnsetType = field(default=UNSET, name="dropDurationMs")
    priority: int | UnsetType = UNSET
    max_concurrent: Annotated[int, limited(ge=1)] | UnsetType = UNSET
    last_ms: Natural | UnsetType = UNSET
    robot_ids: Annotated[tuple[Name, ...], limited(min_length=1)] | UnsetType = UNSET
    conditions: Annotated[_ConditionsForm, NULL_IS_ABSENT] = _ConditionsForm()

    def check(self, at: Members) -> None:
        refuse_picks(at["dropNodeIds"], self.pick_node_ids, f"stream {self.stream_id!r}")

    @property
    def stream(self) -> TaskStream:
        return TaskStream(**{**given(self), "conditions": Conditions(**given(self.conditions))})


class _TaskForm(Form, frozen=True):
    task_id: Name
    pick_node_id: Name
    drop_node_id: Name
    at_ms: Natural = 0
    robot_ids: Annotated[tuple[str, ...], Read(lambda at: (read_at(at, Name),), ())] = field(default=(), name="robotId")
    pick_ms: Natural | UnsetType = field(default=UNSET, name="pickDurationMs")
    drop_ms: Natural | UnsetType = field(default=UNSET, name="dropDurationMs")
    priority: int | UnsetType = UNSET
    stream_id: Text | UnsetType = UNSET

    def check(self, at: Members) -> None:
        refuse_picks(at["dropNodeId"], (self.pick_node_id,), f"task {self.task_id!r}")


class _LimitForm(Form, frozen=True):
    node_id: Name
    at_most: Annotated[int, limited(ge=1)]


# Events: faults, operator actions and external routes.

# Members of faults beside their time; all other kinds have only a duration. Faults that happen once have none.
NEEDS: Mapping[FaultKind, tuple[str, ...]] = {
    FaultKind.POSE_JUMP: ("forMs", "dxM", "dyM"),
    FaultKind.NOISE: ("forMs", "byM"),
    FaultKind.LATE_ACKS: ("forMs", "byMs"),
    FaultKind.OVERRUN: ("byM",),
    FaultKind.CARRIED: ("dxM", "dyM"),
    FaultKind.PUSHED: ("dxM", "dyM"),
}
_DURATION = ("forMs",)
_FAULT_MEMBERS = ("forMs", "dxM", "dyM", "byM", "byMs")
_ACTION_MEMBERS = (
    *("actionId", "operatorId", "reason", "taskId", "anchor", "resources", "physicallySecured", "confirmationOf"),
    "force",
)
ROUTE = "ROUTE"
_ROUTE_MEMBERS = ("toNodeId", "leavesAtNodeId")
_Offset: TypeAlias = Annotated[int, micros(str(-FARTHEST_M), str(FARTHEST_M))]
_Time: TypeAlias = Annotated[int, limited(ge=1, le=LONGEST_MS)]


class _FaultForm(Form, frozen=True, kw_only=True):
    type: Text
    for_ms: _Time = 1
    x_um: _Offset = field(default=0, name="dxM")
    y_um: _Offset = field(default=0, name="dyM")
    by_um: Annotated[int, micros(most=str(FARTHEST_M))] = field(default=0, name="byM")
    by_ms: _Time | UnsetType = UNSET

    def check(self, at: Members) -> None:
        if self.type and self.type not in set(FaultKind):
            hint = suggestion(self.type, tuple(FaultKind))
            at["type"].refuse(f"there is no fault {self.type!r}{hint}", allowed=tuple(FaultKind))
            return
        check_fault(at, self.fault.kind)

    @property
    def fault(self) -> Fault:
        kind = FaultKind(self.type) if self.type in set(FaultKind) else FaultKind.STAND
        by_ms = 0 if self.by_ms is UNSET else self.by_ms
        return Fault(kind, self.for_ms, self.x_um, self.y_um, self.by_um, by_ms)


def check_fault(at: Members, kind: FaultKind) -> None:
    """Note members that a fault of this kind lacks, or does not have."""
    needs = NEEDS.get(kind, _DURATION)
    for member in _FAULT_MEMBERS:
        if member in needs and member not in at:
            at.owner.refuse(f"{kind.value} needs {member}", allowed=needs)
        elif member in at and member not in needs:
            once = "happens once: it " if member in _DURATION else ""
            at[member].refuse(f"{kind.value} {once}has no {member}", allowed=needs)


class _Drill(_FaultForm, frozen=True, kw_only=True):
    robot_id: Name


def read_drill(document: Document) -> tuple[str, Fault]:
    """A truck and its immediate fault, with the members of an event. Raises `DocumentRefused`."""
    drill = read(document, _Drill)
    return drill.robot_id, drill.fault


class _Chance(_FaultForm, frozen=True, kw_only=True):
    """A random fault of every truck, with its rate per hour."""

    per_hour: Annotated[int, limited(ge=1, le=3600)]


class _AnchorForm(Struct, frozen=True, forbid_unknown_fields=True):
    edgeKey: Text
    sM: Annotated[Any, Read(lambda at: at.decimal(min=0, max=LONGEST_EDGE_M))]


def _resources(at: Cursor) -> tuple[str, ...]:
    resources = at.list_of(lambda item: item.text(min=1), min=1, max=MOST_RESOURCES)
    excess = too_many(resources)
    if excess is not None:
        at.refuse(excess)
    return resources


class _EventForm(_FaultForm, frozen=True, kw_only=True):
    """An event: a fault of a truck, an operator action, or a route of an external planner, by its type."""

    at_ms: Natural
    robot_id: Name | UnsetType = UNSET
    action_id: Title | UnsetType = UNSET
    operator_id: Title = "scenario"
    reason: Annotated[str, limited(min_length=1, max_length=MOST_REASON)] = "as the scenario says"
    task_id: Name | UnsetType = UNSET
    anchor: _AnchorForm | UnsetType = UNSET
    resources: Annotated[tuple[str, ...] | UnsetType, Read(_resources, ())] = UNSET
    physically_secured: bool | UnsetType = UNSET
    confirmation_of: Title | UnsetType = UNSET
    force: bool | UnsetType = UNSET
    to_node_id: Name | UnsetType = UNSET
    leaves_at_node_id: Annotated[Name | None, NO_NULL] = None

    def check(self, at: Members) -> None:
        kind = self.type
        if kind == ROUTE:
            self._has_no(at, (*_FAULT_MEMBERS, *_ACTION_MEMBERS), "", ("robotId", *_ROUTE_MEMBERS))
            for member in ("robotId", "toNodeId"):
                if member not in at:
                    at.owner.refuse(f"{ROUTE} needs {member}")
            return
        self._has_no(at, _ROUTE_MEMBERS, f"; only {ROUTE} has")
        if kind in set(ActionType):
            for member in _FAULT_MEMBERS:
                if member in at:
                    at[member].refuse(f"{kind} is an operator action: it has no {member}")
            return
        if kind and kind not in set(FaultKind):
            every = (*FaultKind, *ActionType, ROUTE)
            at["type"].refuse(f"there is no event {kind!r}{suggestion(kind, every)}", allowed=every)
        self._has_no(at, _ACTION_MEMBERS, "; only operator actions have")
        if "robotId" not in at:
            at.owner.refuse(f"{kind} needs robotId")
        check_fault(at, self.fault.kind)

    def _has_no(self, at: Members, members: Sequence[str], others: str, allowed: Sequence[str] = ()) -> None:
        for member in members:
            if member in at:
                at[member].refuse(f"{self.type} has no {member}{others}", allowed=allowed)

    @property
    def event(self) -> ScenarioEvent | OperatorAction | ScenarioRoute:
        robot_id = "" if self.robot_id is UNSET else self.robot_id
        if self.type == ROUTE:
            return ScenarioRoute(self.at_ms, robot_id, self.to_node_id or "", self.leaves_at_node_id)
        if self.type not in set(ActionType):
            return ScenarioEvent.of(self.at_ms, robot_id, self.fault)
        return OperatorAction(
            contractVersion=CONTRACT_VERSION,
            actionId=_generated_id(self.type, self.at_ms) if self.action_id is UNSET else self.action_id,
            ts=self.at_ms,
            operatorId=self.operator_id,
            type=ActionType(self.type),
            reason=self.reason,
            robotId=self.robot_id,
            taskId=self.task_id,
            anchor=UNSET if self.anchor is UNSET else AnchorPlace(self.anchor.edgeKey, self.anchor.sM),
            resources=self.resources,
            physicallySecured=self.physically_secured,
            confirmationOf=self.confirmation_of,
            force=self.force,
        )


def with_unique_ids(actions: Sequence[OperatorAction]) -> tuple[OperatorAction, ...]:
    """Actions in their order; a generated id that is already used gets the truck or the task as a suffix."""
    known: set[str] = set()
    unique = []
    for action in actions:
        if action.actionId in known and action.actionId == _generated_id(action.type, action.ts):
            subjects = [name for name in (action.robotId, action.taskId) if name is not UNSET]
            action = replace(action, actionId="-".join([action.actionId, *subjects]))
        known.add(action.actionId)
        unique.append(action)
    return tuple(unique)


def _generated_id(kind: str, at_ms: int) -> str:
    return f"{kind}-{at_ms}"


# Expectations: objects with one member each, which names the kind.


def expectation(at: Cursor) -> Expectation:
    members = at.object(optional=tuple(KINDS))
    given = [kind for kind in KINDS if kind in members]
    if len(given) != 1:
        at.refuse("an expectation has one member, which names its kind", allowed=tuple(KINDS))
        return AllAtRest()
    kind = KINDS[given[0]]
    return read_at(members[given[0]], kind) if isinstance(kind, type) else kind(members[given[0]])


def _tasks_done(at: Cursor) -> Expectation:
    if at.is_text:
        if at.text() != "all":
            at.refuse("tasks done are a number, or all", allowed=("all",))
        return TasksDone(None)
    return TasksDone(at.integer(min=0))


def _true(kind: type[Expectation]) -> Callable[[Cursor], Expectation]:
    def read(at: Cursor) -> Expectation:
        if not at.boolean():
            at.refuse("write true, or leave the expectation out", allowed=("true",))
        return kind()

    return read


_Places = Annotated[tuple[Place, ...], limited(min_length=2)]
KINDS: Mapping[str, type[Expectation] | Callable[[Cursor], Expectation]] = {
    "tasksDone": _tasks_done,
    "allAtRest": _true(AllAtRest),
    "arrives": Arrives,
    "neverBeyond": NeverBeyond,
    "neverTogether": lambda at: NeverTogether(read_at(at, _Places)),
    "longestWait": LongestWait,
    "noTruckWaits": _true(NoTruckWaits),
    "someTruckWaits": SomeTruckWaits,
    "alert": AlertComes,
    "noAlert": lambda at: NoAlert(read_at(at, AlertCode)),
    "stands": Stands,
    "routeRefused": RouteRefused,
    "givesBack": GivesBack,
    "goHoldChanges": GoHoldChanges,
    "directionFlips": DirectionFlips,
    "calm": Calm,
}


# The simulated hall.


def _share(whole: int) -> Read:
    """Annotation: a share as thousandths or millionths of the whole."""
    return Read(lambda at: micro(at.decimal(min=0, max=1)) * whole // 1_000_000, 0)


def _span(at: Cursor) -> tuple[int, int]:
    pair = at.list_of(lambda item: item.integer(min=0, max=60_000), min=2, max=2)
    if len(pair) != 2 or pair[0] > pair[1]:
        at.refuse("a latency is a range", allowed=("[least, most]",))
        return 0, 0
    return pair[0], pair[1]


_Latency = Annotated[tuple[int, int] | UnsetType, Read(_span, (0, 0))]
_Permille = Annotated[int, _share(1000)] | UnsetType
_Loss = Annotated[int, _share(1_000_000)] | UnsetType


class _WorldForm(Form, frozen=True):
    step_ms: Annotated[int, limited(ge=1, le=200)] | UnsetType = UNSET
    telemetry_period_ms: Annotated[int, limited(ge=1)] | UnsetType = UNSET
    telemetry_latency_ms: _Latency = UNSET
    telemetry_loss_ppm: _Loss = field(default=UNSET, name="telemetryLoss")
    command_latency_ms: _Latency = UNSET
    command_loss_ppm: _Loss = field(default=UNSET, name="commandLoss")
    localization_permille: _Permille = field(default=UNSET, name="localizationShare")
    tracking_permille: _Permille = field(default=UNSET, name="trackingShare")
    heading_permille: _Permille = field(default=UNSET, name="headingShare")
    stamp_permille: _Permille = field(default=UNSET, name="stampShare")
    operation_permille: _Permille = field(default=UNSET, name="operationShare")
    faults: tuple[_Chance, ...] = ()


def _world(at: Cursor) -> WorldSettings:
    form = read_at(at, _WorldForm)
    rates = tuple(FaultRate(chance.fault, chance.per_hour) for chance in form.faults)
    return WorldSettings(**{**given(form), "faults": rates})


# The whole document.

LONGEST_RUN_MS = 1000 * 3_600_000
_EMPTY = SourceMap("", (), ())
_NO_SAMPLE = Sample(_EMPTY, NO_FLEET)
_MAPS = ("map", "mapFile", "sample")


def _map_file(at: Cursor) -> SourceMap:
    """A map in a file beside the scenario."""
    directory: Path | None = at.context
    if directory is None:
        at.refuse("files are not read over HTTP; put the map itself into `map`")
        return _EMPTY
    file = at.text(min=1)
    return read_source_map(read_file(directory / file)) if file else _EMPTY


def _sample(at: Cursor) -> Sample:
    every = sorted({option for _, options in SAMPLES.values() for option in options})
    members = at.object(required=("name",), optional=every)
    chosen = members["name"].text(min=1)
    if chosen not in SAMPLES:
        members["name"].refuse(f"there is no map {chosen!r}", allowed=tuple(SAMPLES))
        return _NO_SAMPLE
    options = {}
    for option in every:
        if option in members and option not in SAMPLES[chosen][1]:
            members[option].refuse(f"{chosen} has no {option}", allowed=SAMPLES[chosen][1])
        elif option in members:
            least, most = LIMITS.get(option, USUAL)
            options[option] = members[option].integer(min=least, max=most)
    try:
        return sample_of(chosen, options)
    except ValueError as error:
        at.refuse(str(error))
        return _NO_SAMPLE


def _robots_of(sample: Sample) -> tuple[Robot, ...]:
    return tuple(Robot(truck.robot_id, truck.park_node_id, truck.profile_id) for truck in sample.fleet.trucks)


def _streams_of(sample: Sample) -> tuple[TaskStream, ...]:
    return tuple(
        TaskStream(stream.stream_id, stream.pick_node_ids, stream.drop_node_ids, robot_ids=stream.robot_ids)
        for stream in sample.fleet.streams
    )


class _AllParams(Struct, frozen=True):
    """Parameters of the compiler and of traffic, which are in one object."""

    compiler: CompileParams = CompileParams()
    traffic: TrafficParams = TrafficParams()


def _all_params(at: Cursor) -> _AllParams:
    refuse_unknown(at, (*PARAMS, *TRAFFIC_PARAMS))
    return _AllParams(params_at(at), traffic_params(at))


class _DispatchForm(Form, frozen=True, kw_only=True):
    patience_ms: Natural | UnsetType = UNSET
    opposition_milli: Natural | UnsetType = UNSET
    one_way_milli: Natural | UnsetType = UNSET
    operation_timeout_ms: Annotated[int, limited(ge=1)] | UnsetType = UNSET
    overtake_ms: Natural | UnsetType = UNSET
    node_limits: tuple[_LimitForm, ...] = ()

    @property
    def dispatch(self) -> DispatchParams:
        members = {
            name: value for name in _DispatchForm.__struct_fields__ if (value := getattr(self, name)) is not UNSET
        }
        return DispatchParams(**{**members, "node_limits": {one.node_id: one.at_most for one in self.node_limits}})


class _ScenarioForm(_DispatchForm, frozen=True, kw_only=True):
    contract_version: Version
    name: Name
    duration_ms: Annotated[int, limited(ge=1, le=LONGEST_RUN_MS)]
    title: str = ""
    map: Annotated[SourceMap, Read(source_map_at, _EMPTY)] = _EMPTY
    map_file: Annotated[SourceMap, Read(_map_file, _EMPTY)] = _EMPTY
    sample: Annotated[Sample, Read(_sample, _NO_SAMPLE)] = _NO_SAMPLE
    # As in profile files; the reference truck by default.
    profiles: Annotated[tuple[RobotProfile, ...], Read(profiles_at, ())] = (FL_STD,)
    params: Annotated[_AllParams, NULL_IS_ABSENT, Read(_all_params)] = _AllParams()
    robots: Annotated[tuple[Robot, ...], limited(min_length=1)] | UnsetType = UNSET
    streams: tuple[_StreamForm, ...] | UnsetType = UNSET
    tasks: tuple[_TaskForm, ...] = ()
    task_events: tuple[ScenarioTaskEvent, ...] = ()
    events: tuple[_EventForm, ...] = ()
    expect: tuple[Annotated[Any, Read(expectation)], ...] = ()
    world: Annotated[WorldSettings, NULL_IS_ABSENT, Read(_world)] = WorldSettings()
    seed: Annotated[int, limited(ge=0, le=2**64 - 1)] = 0
    override: bool = False

    def check(self, at: Members) -> None:
        if len([member for member in _MAPS if member in at]) != 1:
            at.owner.refuse("a scenario has exactly one map", allowed=_MAPS)
        events = at["events"].list_of(lambda event: event) if self.events else ()
        for event, place in zip(self.events, events, strict=True):
            if 0 < self.duration_ms < event.at_ms:
                late = f"the event is at {event.at_ms} ms, but the scenario ends at {self.duration_ms} ms (durationMs)"
                place.refuse(late)


def read_scenario(document: Document, directory: Path | None) -> Scenario:
    """The scenario of a document. Paths in it are relative to `directory`; without a directory they are rejected.
    Raises `DocumentRefused`."""
    form = read(document, _ScenarioForm, context=directory)
    sample, events = form.sample, [item.event for item in form.events]
    source = next((one for one in (form.map, form.map_file) if one is not _EMPTY), sample.source)
    return Scenario(
        name=form.name,
        title=form.title,
        source=source,
        profiles=form.profiles,
        robots=_robots_of(sample) if form.robots is UNSET else form.robots,
        duration_ms=form.duration_ms,
        streams=_streams_of(sample) if form.streams is UNSET else tuple(item.stream for item in form.streams),
        tasks=tuple(TaskOrder(**given(task)) for task in form.tasks),
        task_events=form.task_events,
        events=tuple(item for item in events if isinstance(item, ScenarioEvent)),
        actions=with_unique_ids([item for item in events if isinstance(item, OperatorAction)]),
        routes=tuple(item for item in events if isinstance(item, ScenarioRoute)),
        expect=form.expect,
        compile_params=form.params.compiler,
        traffic=form.params.traffic,
        world=form.world,
        seed=form.seed,
        override=form.override,
        dispatch=form.dispatch,
    )


# The bundled scenarios, by the names of their files.

_ENDING = ".yaml"


def shipped_names() -> tuple[str, ...]:
    here = files("pendula.fleet.scenarios").joinpath("files")
    return tuple(sorted(file.name.removesuffix(_ENDING) for file in here.iterdir() if file.name.endswith(_ENDING)))


def shipped(name: str) -> Scenario:
    """A bundled scenario; raises `WrongUsage` for an unknown name."""
    if name not in shipped_names():
        raise WrongUsage(f"There is no scenario {name!r}; there are {', '.join(shipped_names())}", scenario=name)
    file = files("pendula.fleet.scenarios").joinpath("files", name + _ENDING)
    return read_scenario(read_bytes(file.read_bytes(), Format.YAML, name + _ENDING), Path())
