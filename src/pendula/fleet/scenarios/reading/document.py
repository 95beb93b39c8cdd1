"""Reader of scenario documents; reports every fault with its place."""

from pathlib import Path

from pendula.documents import Cursor, Document, Members, read_file
from pendula.fleet.contracts.traffic import OperatorAction
from pendula.fleet.driving.params import TrafficParams
from pendula.fleet.model import CompileParams, SourceMap
from pendula.fleet.operators.measure import LONGEST_EDGE_M
from pendula.fleet.reading.params import PARAMS, params
from pendula.fleet.reading.profiles import profiles, refuse_unknown
from pendula.fleet.reading.source_map import read_source_map, source_map
from pendula.fleet.reading.values import name, version
from pendula.fleet.samples.catalogue import LIMITS, NO_FLEET, SAMPLES, USUAL, sample_of
from pendula.fleet.samples.live_maps import Sample
from pendula.fleet.samples.scenes import FL_STD
from pendula.fleet.scenarios.model import OnLane, Robot, Scenario, ScenarioEvent, ScenarioRoute
from pendula.fleet.scenarios.reading.events import chance, event, with_unique_ids
from pendula.fleet.scenarios.reading.expected import expectation
from pendula.fleet.scenarios.reading.tasks import DISPATCH, dispatch, stream, task, task_event
from pendula.fleet.scenarios.reading.traffic_params import TRAFFIC_PARAMS, traffic_params
from pendula.fleet.simulator.settings import WorldSettings
from pendula.fleet.tasks.model import TaskStream
from pendula.fleet.trucks.profiles import RobotProfile
from pendula.fleet.units import micro

LONGEST_MS = 1000 * 3_600_000
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
    duration_ms = members["durationMs"].integer(min=1, max=LONGEST_MS)
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
