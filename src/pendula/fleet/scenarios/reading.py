"""Reader of scenario documents; reports every fault with its place."""

from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from enum import Enum
from importlib.resources import files
from pathlib import Path
from typing import Any

from msgspec import UNSET, structs
from msgspec.structs import replace

from pendula.documents import Cursor, Document, Format, Members, read_bytes, read_file
from pendula.fleet.compiler.generated_maps import LIMITS, NO_FLEET, SAMPLES, USUAL, Sample, sample_of
from pendula.fleet.compiler.samples import FL_STD
from pendula.fleet.contracts import AnchorPlace, OperatorAction
from pendula.fleet.map.reading import (
    PARAMS,
    drop_of,
    length,
    name,
    params,
    profiles,
    read_source_map,
    refuse_unknown,
    source_map,
    version,
)
from pendula.fleet.map.trucks import RobotProfile
from pendula.fleet.model import CONTRACT_VERSION, NAME_MOST, CompileParams, SourceMap
from pendula.fleet.scenarios.model import (
    AlertComes,
    AllAtRest,
    Arrives,
    Calm,
    DirectionFlips,
    Expectation,
    GivesBack,
    GoHoldChanges,
    LongestWait,
    NeverBeyond,
    NeverTogether,
    NoAlert,
    NoTruckWaits,
    OnLane,
    Place,
    Robot,
    RouteRefused,
    Scenario,
    ScenarioEvent,
    ScenarioRoute,
    ScenarioTaskEvent,
    SomeTruckWaits,
    Stands,
    StockKind,
    TasksDone,
)
from pendula.fleet.simulator.faults import FARTHEST_M, LONGEST_MS, Fault, FaultKind, FaultRate, WorldSettings
from pendula.fleet.tasks.model import Conditions, DispatchParams, TaskOrder, TaskStream
from pendula.fleet.tasks.operators import LONGEST_EDGE_M, MOST_REASON, MOST_RESOURCES, ActionType, too_many
from pendula.fleet.tick.alarms import ALERTS
from pendula.fleet.tick.params import NodeLockPolicy, TrafficParams, contract_name
from pendula.fleet.tick.reasons import WAITS
from pendula.fleet.tick.records import Stop
from pendula.fleet.units import micro
from pendula.kernel.errors import WrongUsage
from pendula.kernel.wording import suggestion

# Reader of traffic parameters, with the names of the contract.

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
    return length(at) if field.endswith(("_um", "_urad")) else at.integer(min=0)


# Reader of the streams, tasks, goods and dispatch parameters of a scenario.

DISPATCH = ("patienceMs", "oppositionMilli", "oneWayMilli", "operationTimeoutMs", "overtakeMs", "nodeLimits")


def stream(at: Cursor) -> TaskStream:
    members = at.object(
        required=("streamId", "pickNodeIds", "dropNodeIds"),
        optional=("pickDurationMs", "dropDurationMs", "priority", "maxConcurrent", "lastMs", "robotIds", "conditions"),
    )
    stream_id, picks = name(members["streamId"]), members["pickNodeIds"].list_of(name, min=1)
    return TaskStream(
        stream_id=stream_id,
        pick_node_ids=picks,
        drop_node_ids=members["dropNodeIds"].list_of(lambda drop: drop_of(drop, picks, f"stream {stream_id!r}"), min=1),
        pick_ms=members["pickDurationMs"].integer(min=0, default=12_000),
        drop_ms=members["dropDurationMs"].integer(min=0, default=8_000),
        priority=members["priority"].integer(default=10),
        max_concurrent=members["maxConcurrent"].integer(min=1, default=None),
        last_ms=members["lastMs"].integer(min=0, default=None),
        robot_ids=members["robotIds"].list_of(name, min=1) if "robotIds" in members else (),
        conditions=_conditions(members["conditions"]),
    )


def _conditions(at: Cursor) -> Conditions:
    if not at.unless_null().given:
        return Conditions()
    members = at.object(optional=("pickHasGoods", "dropHasRoom"))
    return Conditions(members["pickHasGoods"].boolean(default=False), members["dropHasRoom"].boolean(default=False))


def task(at: Cursor) -> TaskOrder:
    members = at.object(
        required=("taskId", "pickNodeId", "dropNodeId"),
        optional=("atMs", "robotId", "pickDurationMs", "dropDurationMs", "priority", "streamId"),
    )
    task_id, pick = name(members["taskId"]), name(members["pickNodeId"])
    return TaskOrder(
        task_id=task_id,
        pick_node_id=pick,
        drop_node_id=drop_of(members["dropNodeId"], (pick,), f"task {task_id!r}"),
        at_ms=members["atMs"].integer(min=0, default=0),
        robot_ids=(name(members["robotId"]),) if "robotId" in members else (),
        pick_ms=members["pickDurationMs"].integer(min=0, default=12_000),
        drop_ms=members["dropDurationMs"].integer(min=0, default=8_000),
        priority=members["priority"].integer(default=10),
        stream_id=members["streamId"].text(min=1, default=None),
    )


def task_event(at: Cursor) -> ScenarioTaskEvent:
    members = at.object(required=("atMs", "type", "nodeId", "count"))
    return ScenarioTaskEvent(
        at_ms=members["atMs"].integer(min=0),
        type=members["type"].choice(StockKind),
        node_id=name(members["nodeId"]),
        count=members["count"].integer(min=0),
    )


def dispatch(members: Members) -> DispatchParams:
    usual = DispatchParams()
    return DispatchParams(
        patience_ms=members["patienceMs"].integer(min=0, default=usual.patience_ms),
        opposition_milli=members["oppositionMilli"].integer(min=0, default=usual.opposition_milli),
        one_way_milli=members["oneWayMilli"].integer(min=0, default=usual.one_way_milli),
        operation_timeout_ms=members["operationTimeoutMs"].integer(min=1, default=usual.operation_timeout_ms),
        overtake_ms=members["overtakeMs"].integer(min=0, default=usual.overtake_ms),
        node_limits=dict(members["nodeLimits"].list_of(_limit, default=())),
    )


def _limit(at: Cursor) -> tuple[str, int]:
    members = at.object(required=("nodeId", "atMost"))
    return name(members["nodeId"]), members["atMost"].integer(min=1)


# Reader of the events of a scenario: faults, operator actions and external routes.

# Members of faults beside their time; all other kinds have only a duration. Faults that happen once have none.
NEEDS: Mapping[FaultKind, tuple[str, ...]] = {
    FaultKind.POSE_JUMP: ("forMs", "dxM", "dyM"),
    FaultKind.NOISE: ("forMs", "byM"),
    FaultKind.LATE_ACKS: ("forMs", "byMs"),
    FaultKind.OVERRUN: ("byM",),
    FaultKind.CARRIED: ("dxM", "dyM"),
    FaultKind.PUSHED: ("dxM", "dyM"),
}
_ACTION_MEMBERS = (
    *(
        "actionId",
        "operatorId",
        "reason",
        "taskId",
        "anchor",
        "resources",
        "physicallySecured",
        "confirmationOf",
        "force",
    ),
)
ROUTE = "ROUTE"
_ROUTE_MEMBERS = ("toNodeId", "leavesAtNodeId")
_MOST_AN_HOUR = 3600
_DURATION = ("forMs",)
_MEMBERS = ("forMs", "dxM", "dyM", "byM", "byMs")


def event(at: Cursor) -> ScenarioEvent | OperatorAction | ScenarioRoute:
    members = at.object(required=("atMs", "type"), optional=(*_MEMBERS, *_ACTION_MEMBERS, *_ROUTE_MEMBERS, "robotId"))
    kind = members["type"].text(min=1)
    if kind == ROUTE:
        return _route(at, members)
    for member in _ROUTE_MEMBERS:
        if member in members:
            members[member].refuse(f"{kind} has no {member}; only {ROUTE} has")
    if kind in set(ActionType):
        return _action(members, ActionType(kind))
    if kind and kind not in set(FaultKind):
        every = (*FaultKind, *ActionType, ROUTE)
        members["type"].refuse(f"there is no event {kind!r}{suggestion(kind, every)}", allowed=every)
        kind = FaultKind.STAND
    for member in _ACTION_MEMBERS:
        if member in members:
            members[member].refuse(f"{kind} has no {member}; only operator actions have")
    if "robotId" not in members:
        at.refuse(f"{kind} needs robotId")
    fault = _fault(at, members, FaultKind(kind or FaultKind.STAND))
    robot = name(members["robotId"]) if "robotId" in members else ""
    return ScenarioEvent.of(members["atMs"].integer(min=0), robot, fault)


def _route(at: Cursor, members: Members) -> ScenarioRoute:
    """A route of an external planner for a truck without a task."""
    for member in (*_MEMBERS, *_ACTION_MEMBERS):
        if member in members:
            members[member].refuse(f"{ROUTE} has no {member}", allowed=("robotId", *_ROUTE_MEMBERS))
    for member in ("robotId", "toNodeId"):
        if member not in members:
            at.refuse(f"{ROUTE} needs {member}")
    return ScenarioRoute(
        at_ms=members["atMs"].integer(min=0),
        robot_id=name(members["robotId"]) if "robotId" in members else "",
        node_id=name(members["toNodeId"]) if "toNodeId" in members else "",
        leaves_at=name(members["leavesAtNodeId"]) if "leavesAtNodeId" in members else None,
    )


def _action(members: Members, kind: ActionType) -> OperatorAction:
    """An operator action; missing ids, operators and reasons are generated."""
    for member in _MEMBERS:
        if member in members:
            members[member].refuse(f"{kind} is an operator action: it has no {member}")
    anchor = members["anchor"].object(required=("edgeKey", "sM")) if "anchor" in members else None
    at_ms = members["atMs"].integer(min=0)
    return OperatorAction(
        contractVersion=CONTRACT_VERSION,
        actionId=members["actionId"].text(min=1, max=NAME_MOST, default=_generated_id(kind, at_ms)),
        ts=at_ms,
        operatorId=members["operatorId"].text(min=1, max=NAME_MOST, default="scenario"),
        type=kind,
        reason=members["reason"].text(min=1, max=MOST_REASON, default="as the scenario says"),
        robotId=name(members["robotId"]) if "robotId" in members else UNSET,
        taskId=name(members["taskId"]) if "taskId" in members else UNSET,
        anchor=UNSET if anchor is None else _place(anchor),
        resources=_resources(members["resources"]) if "resources" in members else UNSET,
        physicallySecured=members["physicallySecured"].boolean() if "physicallySecured" in members else UNSET,
        confirmationOf=members["confirmationOf"].text(min=1, max=NAME_MOST) if "confirmationOf" in members else UNSET,
        force=members["force"].boolean() if "force" in members else UNSET,
    )


def _resources(at: Cursor) -> tuple[str, ...]:
    resources = at.list_of(lambda item: item.text(min=1), min=1, max=MOST_RESOURCES)
    excess = too_many(resources)
    if excess is not None:
        at.refuse(excess)
    return resources


def _place(anchor: Members) -> AnchorPlace:
    return AnchorPlace(anchor["edgeKey"].text(min=1), anchor["sM"].decimal(min=0, max=LONGEST_EDGE_M))


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


def chance(at: Cursor) -> FaultRate:
    """A random fault of every truck, with its rate per hour."""
    members = at.object(required=("type", "perHour"), optional=_MEMBERS)
    return FaultRate(_checked_fault(at, members), members["perHour"].integer(min=1, max=_MOST_AN_HOUR, default=1))


def read_drill(document: Document) -> tuple[str, Fault]:
    """A truck and its immediate fault, with the members of an event. Raises `DocumentRefused`."""
    return document.read(_drill)


def _drill(root: Cursor) -> tuple[str, Fault]:
    members = root.object(required=("robotId", "type"), optional=_MEMBERS)
    return name(members["robotId"]), _checked_fault(root, members)


def _checked_fault(at: Cursor, members: Members) -> Fault:
    kind = members["type"].text(min=1)
    if kind and kind not in set(FaultKind):
        members["type"].refuse(
            f"there is no fault {kind!r}{suggestion(kind, tuple(FaultKind))}", allowed=tuple(FaultKind)
        )
        return Fault(FaultKind.STAND, 1)
    return _fault(at, members, FaultKind(kind or FaultKind.STAND))


def _fault(at: Cursor, members: Members, kind: FaultKind) -> Fault:
    needs = NEEDS.get(kind, _DURATION)
    for member in _MEMBERS:
        if member in needs and member not in members:
            at.refuse(f"{kind.value} needs {member}", allowed=needs)
        elif member in members and member not in needs:
            once = "happens once: it " if member in _DURATION else ""
            members[member].refuse(f"{kind.value} {once}has no {member}", allowed=needs)
    return Fault(
        kind,
        for_ms=members["forMs"].integer(min=1, max=LONGEST_MS, default=1),
        x_um=_offset(members, "dxM"),
        y_um=_offset(members, "dyM"),
        by_um=length(members["byM"], Decimal(FARTHEST_M)) if "byM" in members else 0,
        by_ms=members["byMs"].integer(min=1, max=LONGEST_MS, default=0),
    )


def _offset(members: Members, member: str) -> int:
    return micro(members[member].decimal(min=-FARTHEST_M, max=FARTHEST_M)) if member in members else 0


# Reader of the expectations of a scenario: a list of objects with one member each.


def expectation(at: Cursor) -> Expectation:
    members = at.object(optional=tuple(KINDS))
    given = [kind for kind in KINDS if kind in members]
    if len(given) != 1:
        at.refuse("an expectation has one member, which names its kind", allowed=tuple(KINDS))
        return AllAtRest()
    return KINDS[given[0]](members[given[0]])


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


def _arrives(at: Cursor) -> Expectation:
    members = at.object(required=("robotId", "nodeId", "byMs"))
    return Arrives(name(members["robotId"]), name(members["nodeId"]), members["byMs"].integer(min=0))


def _never_beyond(at: Cursor) -> Expectation:
    members = at.object(required=("robotId", "edgeKey", "sM"), optional=("while",))
    meanwhile = place(members["while"]) if "while" in members else None
    return NeverBeyond(name(members["robotId"]), members["edgeKey"].text(min=1), length(members["sM"]), meanwhile)


def place(at: Cursor) -> Place:
    """A truck on an edge, optionally between two positions."""
    members = at.object(required=("robotId", "edgeKey"), optional=("fromM", "toM"))
    low = length(members["fromM"]) if "fromM" in members else 0
    return Place(
        name(members["robotId"]),
        members["edgeKey"].text(min=1),
        low,
        length(members["toM"]) if "toM" in members else None,
    )


def _together(at: Cursor) -> Expectation:
    return NeverTogether(at.list_of(place, min=2))


def _longest_wait(at: Cursor) -> Expectation:
    members = at.object(required=("atMostMs",), optional=("robotId", "reasonCode"))
    reason = _reason(members["reasonCode"]) if "reasonCode" in members else None
    return LongestWait(members["atMostMs"].integer(min=0), members["robotId"].text(default=None), reason)


def _some_truck_waits(at: Cursor) -> Expectation:
    members = at.object(required=("reasonCode",), optional=("robotId",))
    return SomeTruckWaits(_reason(members["reasonCode"]), members["robotId"].text(default=None))


def _alert(at: Cursor) -> Expectation:
    members = at.object(required=("code", "byMs"), optional=("withinMs",))
    within = members["withinMs"].integer(min=0, default=None)
    return AlertComes(_alert_code(members["code"]), members["byMs"].integer(min=0), within)


def _stands(at: Cursor) -> Expectation:
    members = at.object(required=("robotId", "reasonCode", "byMs"), optional=("untilMs",))
    code = _one_of(tuple(Stop), "reason to stop", members["reasonCode"])
    until = members["untilMs"].integer(min=0, default=None)
    return Stands(name(members["robotId"]), code, members["byMs"].integer(min=0), until)


def _no_alert(at: Cursor) -> Expectation:
    return NoAlert(_alert_code(at))


def _alert_code(at: Cursor) -> str:
    return _one_of(ALERTS, "alert", at)


def _reason(at: Cursor) -> str:
    return _one_of(WAITS, "reason to wait", at)


def _one_of(codes: tuple[str, ...], what: str, at: Cursor) -> str:
    """A code; unknown codes are rejected, as such an expectation would mean nothing."""
    code = at.text(min=1)
    if code and code not in codes:
        at.refuse(f"there is no {what} {code!r}", allowed=codes)
    return code


def _refused(at: Cursor) -> Expectation:
    members = at.object(optional=("robotId",))
    return RouteRefused(members["robotId"].text(default=None))


def _gives_back(at: Cursor) -> Expectation:
    members = at.object(required=("robotId", "atLeastMs"))
    return GivesBack(name(members["robotId"]), members["atLeastMs"].integer(min=0))


def _changes(at: Cursor) -> Expectation:
    members = at.object(required=("atMost",), optional=("robotId",))
    return GoHoldChanges(members["atMost"].integer(min=0), members["robotId"].text(default=None))


def _flips(at: Cursor) -> Expectation:
    members = at.object(required=("edgeGroupKey", "atMost"))
    return DirectionFlips(members["edgeGroupKey"].text(min=1), members["atMost"].integer(min=0))


def _calm(at: Cursor) -> Expectation:
    members = at.object(optional=("goHoldChanges", "holdBackM", "targetBackM", "directionFlips", "replans"))
    usual = Calm()
    return Calm(
        members["goHoldChanges"].integer(min=0, default=usual.go_hold_changes),
        length(members["holdBackM"]) if "holdBackM" in members else usual.hold_back_um,
        length(members["targetBackM"]) if "targetBackM" in members else usual.target_back_um,
        members["directionFlips"].integer(min=0, default=usual.direction_flips),
        members["replans"].integer(min=0, default=usual.replans),
    )


KINDS: Mapping[str, Callable[[Cursor], Expectation]] = {
    "tasksDone": _tasks_done,
    "allAtRest": _true(AllAtRest),
    "arrives": _arrives,
    "neverBeyond": _never_beyond,
    "neverTogether": _together,
    "longestWait": _longest_wait,
    "noTruckWaits": _true(NoTruckWaits),
    "someTruckWaits": _some_truck_waits,
    "alert": _alert,
    "noAlert": _no_alert,
    "stands": _stands,
    "routeRefused": _refused,
    "givesBack": _gives_back,
    "goHoldChanges": _changes,
    "directionFlips": _flips,
    "calm": _calm,
}


LONGEST_RUN_MS = 1000 * 3_600_000
MEMBERS = ("contractVersion", "name", "durationMs")
OPTIONAL = (
    *("title", "map", "mapFile", "sample", "profiles", "params", "robots", "streams", "tasks", "events", "expect"),
    *("seed", "override", "world", "taskEvents", *DISPATCH),
)
WORLD = (
    *("stepMs", "telemetryPeriodMs", "telemetryLatencyMs", "telemetryLoss", "commandLatencyMs", "commandLoss"),
    *("localizationShare", "trackingShare", "headingShare", "stampShare", "operationShare", "faults"),
)
# Members of a truck that starts in a node.
_IN_NODE = ("startNodeId", "cameFromNodeId")
_EMPTY = SourceMap("", (), ())


def read_scenario(document: Document, directory: Path | None) -> Scenario:
    """The scenario of a document. Paths in it are relative to `directory`; without a directory they are rejected.
    Raises `DocumentRefused`."""
    return document.read(lambda root: _scenario(root, directory))


def _scenario(root: Cursor, directory: Path | None) -> Scenario:
    members = root.object(required=MEMBERS, optional=OPTIONAL)
    version(members)
    sample = _map(members, root, directory)
    all_params = members["params"].unless_null()
    if all_params.given:
        refuse_unknown(all_params, (*PARAMS, *TRAFFIC_PARAMS))
    duration_ms = members["durationMs"].integer(min=1, max=LONGEST_RUN_MS)
    events = members["events"].list_of(lambda at: _before(at, duration_ms), default=())
    return Scenario(
        name=name(members["name"]),
        title=members["title"].text(default=""),
        source=sample.source,
        profiles=_profiles(members["profiles"]),
        robots=members["robots"].list_of(_robot, min=1) if "robots" in members else _robots_of(sample),
        duration_ms=duration_ms,
        streams=members["streams"].list_of(stream) if "streams" in members else _streams_of(sample),
        tasks=members["tasks"].list_of(task, default=()),
        task_events=members["taskEvents"].list_of(task_event, default=()),
        events=tuple(item for item in events if isinstance(item, ScenarioEvent)),
        actions=with_unique_ids([item for item in events if isinstance(item, OperatorAction)]),
        routes=tuple(item for item in events if isinstance(item, ScenarioRoute)),
        expect=members["expect"].list_of(expectation, default=()),
        compile_params=params(all_params) if all_params.given else CompileParams(),
        traffic=traffic_params(all_params) if all_params.given else TrafficParams(),
        world=_world(members["world"]),
        seed=members["seed"].integer(min=0, max=2**64 - 1, default=0),
        override=members["override"].boolean(default=False),
        dispatch=dispatch(members),
    )


def _before(at: Cursor, end_ms: int) -> ScenarioEvent | OperatorAction | ScenarioRoute:
    """An event; an event after the end of the scenario is rejected."""
    item = event(at)
    when = item.ts if isinstance(item, OperatorAction) else item.at_ms
    if 0 < end_ms < when:
        at.refuse(f"the event is at {when} ms, but the scenario ends at {end_ms} ms (durationMs)")
    return item


def _map(members: Members, root: Cursor, directory: Path | None) -> Sample:
    """The map: as a file, in the scenario itself, or a bundled one by name."""
    given = [member for member in ("map", "mapFile", "sample") if member in members]
    match given:
        case ["map"]:
            return Sample(source_map(members["map"]), NO_FLEET)
        case ["mapFile"] if directory is None:
            members["mapFile"].refuse("files are not read over HTTP; put the map itself into `map`")
            return Sample(_EMPTY, NO_FLEET)
        case ["mapFile"]:
            assert directory is not None
            file = members["mapFile"].text(min=1)
            return Sample(read_source_map(read_file(directory / file)) if file else _EMPTY, NO_FLEET)
        case ["sample"]:
            return _sample(members["sample"])
        case _:
            root.refuse("a scenario has exactly one map", allowed=("map", "mapFile", "sample"))
            return Sample(_EMPTY, NO_FLEET)


def _sample(at: Cursor) -> Sample:
    every = sorted({option for _, options in SAMPLES.values() for option in options})
    members = at.object(required=("name",), optional=every)
    chosen = members["name"].text(min=1)
    if chosen not in SAMPLES:
        members["name"].refuse(f"there is no map {chosen!r}", allowed=tuple(SAMPLES))
        return Sample(_EMPTY, NO_FLEET)
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
        return Sample(_EMPTY, NO_FLEET)


def _robots_of(sample: Sample) -> tuple[Robot, ...]:
    return tuple(
        Robot(truck.robot_id, truck.profile_id, truck.park_node_id, truck.park_node_id) for truck in sample.fleet.trucks
    )


def _streams_of(sample: Sample) -> tuple[TaskStream, ...]:
    return tuple(
        TaskStream(stream.stream_id, stream.pick_node_ids, stream.drop_node_ids, robot_ids=stream.robot_ids)
        for stream in sample.fleet.streams
    )


def _profiles(at: Cursor) -> tuple[RobotProfile, ...]:
    """Profiles as in profile files; FL-STD, the reference truck, by default."""
    return profiles(at) if at.given else (FL_STD,)


def _robot(at: Cursor) -> Robot:
    members = at.object(required=("robotId", "parkNodeId"), optional=("profileId", "anchor", *_IN_NODE))
    for member in _IN_NODE:
        if "anchor" in members and member in members:
            members[member].refuse(f"a truck that starts at an anchor has no {member}")
    park = name(members["parkNodeId"])
    return Robot(
        robot_id=name(members["robotId"]),
        profile_id=members["profileId"].text(min=1, default=FL_STD.profile_id),
        park_node_id=park,
        start_node_id=name(members["startNodeId"]) if "startNodeId" in members else park,
        came_from_id=members["cameFromNodeId"].text(min=1, default=None),
        anchor=_on_lane(members["anchor"]) if "anchor" in members else None,
    )


def _on_lane(at: Cursor) -> OnLane:
    members = at.object(required=("edgeKey", "sM"))
    return OnLane(members["edgeKey"].text(min=1), micro(members["sM"].decimal(min=0, max=LONGEST_EDGE_M)))


def _world(at: Cursor) -> WorldSettings:
    usual = WorldSettings()
    if not at.unless_null().given:
        return usual
    members = at.object(optional=WORLD)

    def share(member: str, default: int, whole: int = 1000) -> int:
        return micro(members[member].decimal(min=0, max=1)) * whole // 1_000_000 if member in members else default

    return WorldSettings(
        step_ms=members["stepMs"].integer(min=1, max=200, default=usual.step_ms),
        telemetry_period_ms=members["telemetryPeriodMs"].integer(min=1, default=usual.telemetry_period_ms),
        telemetry_latency_ms=_span(members["telemetryLatencyMs"], usual.telemetry_latency_ms),
        telemetry_loss_ppm=share("telemetryLoss", usual.telemetry_loss_ppm, 1_000_000),
        command_latency_ms=_span(members["commandLatencyMs"], usual.command_latency_ms),
        command_loss_ppm=share("commandLoss", usual.command_loss_ppm, 1_000_000),
        localization_permille=share("localizationShare", usual.localization_permille),
        tracking_permille=share("trackingShare", usual.tracking_permille),
        heading_permille=share("headingShare", usual.heading_permille),
        stamp_permille=share("stampShare", usual.stamp_permille),
        operation_permille=share("operationShare", usual.operation_permille),
        faults=members["faults"].list_of(chance, default=()),
    )


def _span(at: Cursor, default: tuple[int, int]) -> tuple[int, int]:
    if not at.given:
        return default
    pair = at.list_of(lambda item: item.integer(min=0, max=60_000), min=2, max=2)
    if len(pair) != 2 or pair[0] > pair[1]:
        at.refuse("a latency is a range", allowed=("[least, most]",))
        return default
    return pair[0], pair[1]


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
