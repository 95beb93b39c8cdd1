"""Specification 004, fleet: scope, units, map compiler, routes, tasks, targets, failures, logs, tests and payloads.

The sections about reservations and the order of trucks are in `test_fleet_traffic.py`.
"""

import asyncio
import json
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from pendula.documents import Format, read_bytes
from pendula.fleet.contracts import parse, serialise
from pendula.fleet.gateway import report_of
from pendula.kernel.canonical import encode
from tests.specifications.fleet_interfaces import BASE, pendula, printed_json, ran, served, states
from tests.specifications.printed import printed

EXAMPLES = Path(__file__).parents[2] / "examples/specifications"
GOLDEN = Path(__file__).parents[1] / "fleet/golden"
B = ("RobotState", "LockResult", "LockSnapshot")
FILES = dict(zip(B, ("fleet-robot-state.json5", "fleet-lock-result.json5", "fleet-lock-snapshot.json5"), strict=True))
B1 = (EXAMPLES / FILES["RobotState"]).read_text(encoding="utf-8")
JSON_BODY = {"Content-Type": "application/json"}

# Two trucks meet in a lane, and one of them falls silent in it.
SILENT = """\
contractVersion: 1.0.0
name: silent
sample: {name: head-on-lane}
robots:
  - {robotId: R1, startNodeId: W1, parkNodeId: E1}
  - {robotId: R2, startNodeId: E2, parkNodeId: W2}
events:
  - {atMs: 15000, type: OFFLINE, robotId: R1, forMs: 60000}
durationMs: 30000
"""
# A truck on its way to rest gets a task in the middle of an edge.
PREEMPTED = """\
contractVersion: 1.0.0
name: preempted
map:
  contractVersion: 1.0.0
  mapId: line
  nodes:
    - {id: A, x: 0, y: 0, kind: ActionPoint}
    - {id: B, x: 12, y: 0}
    - {id: C, x: 24, y: 0}
    - {id: D, x: 36, y: 0, kind: ParkPoint}
  edges:
    - {id: "1", start: A, end: B, props: {direction: both}}
    - {id: "2", start: B, end: C, props: {direction: both}}
    - {id: "3", start: C, end: D, props: {direction: both}}
robots:
  - {robotId: R1, startNodeId: A, parkNodeId: D}
tasks:
  - {taskId: T1, atMs: 9000, pickNodeId: A, dropNodeId: B, pickDurationMs: 2000, dropDurationMs: 1000}
durationMs: 120000
expect:
  - tasksDone: 1
  - allAtRest: true
"""
JUMP = """\
contractVersion: 1.0.0
name: jump
sample: {name: near-lanes, gapCm: 200, apartCm: 600}
robots:
  - {robotId: R1, startNodeId: A1, parkNodeId: A2}
events:
  - {atMs: 10000, type: POSE_JUMP, robotId: R1, forMs: 2000, dxM: 0, dyM: 2.0}
durationMs: 40000
expect:
  - alert: {code: POSE_JUMP, byMs: 10500}
"""


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


def robot(state: dict[str, Any], robot_id: str) -> dict[str, Any]:
    found: dict[str, Any] = next(one for one in state["robots"] if one["robotId"] == robot_id)
    return found


def result(state: dict[str, Any], robot_id: str) -> dict[str, Any]:
    found: dict[str, Any] = next(one for one in state["lockResults"] if one["robotId"] == robot_id)
    return found


def held(state: dict[str, Any], robot_id: str) -> set[str]:
    """What a truck holds, by the names of the resources."""
    locks = state["locks"]
    groups = {
        f"EDGE_GROUP:{one['edgeGroupKey']}"
        for one in locks["edgeGroups"]
        if robot_id in [occupant["robotId"] for occupant in one["occupants"]]
    }
    return groups | {f"NODE:{one['nodeId']}" for one in locks["nodeLocks"] if one["robotId"] == robot_id}


def graph(tmp_path: Path, **members: Any) -> Path:
    """A valid map of two nodes, apart from the given changes."""
    form = {
        "contractVersion": "1.0.0",
        "mapId": "small",
        "nodes": [{"id": "A", "x": 0, "y": 0, "kind": "ParkPoint"}, {"id": "B", "x": 12, "y": 0}],
        "edges": [{"id": "1", "start": "A", "end": "B", "props": {"direction": "both"}}],
        **members,
    }
    file = tmp_path / "graph.json"
    file.write_text(json.dumps(form), encoding="utf-8")
    return file


def profile(tmp_path: Path, **safety: Any) -> Path:
    form = json.loads((GOLDEN / "RobotProfile.json").read_text(encoding="utf-8"))
    form["safety"] = {name: value for name, value in {**form["safety"], **safety}.items() if value is not None}
    file = tmp_path / "truck.json"
    file.write_text(json.dumps(form), encoding="utf-8")
    return file


@pytest.mark.section("3.3 Assumptions", interface="command line")
def test_3_3_pick_and_drop_are_nodes(tmp_path: Path) -> None:
    """A task picks and drops in nodes of the graph; one that names anything else cannot start."""
    file = tmp_path / "lost.yaml"
    file.write_text(PREEMPTED.replace("pickNodeId: A", "pickNodeId: A->B"), encoding="utf-8")

    refused = printed_json("fleet", "run", file, code=1)["error"]

    assert "A->B" in json.dumps(refused)


@pytest.mark.section("4.1 Units and time", interface="HTTP")
@pytest.mark.anyio
async def test_4_1_positions_are_metres_angles_radians_speeds_metres_a_second(tmp_path: Path) -> None:
    """Every interface has metres, radians, metres a second and whole milliseconds."""
    async with served(tmp_path) as client:
        hall = {"contractVersion": "1.0.0", "name": "h", "durationMs": 9000, "sample": {"name": "reference-hall"}}
        assert (await client.post(BASE, params={"name": "h", "live": True}, json=hall)).status_code == 201
        answer = await client.post(f"{BASE}/h/reports", content=B1, headers=JSON_BODY)
        wrong = await client.post(f"{BASE}/h/reports", content=B1.replace("0.40", "400"), headers=JSON_BODY)

    assert answer.status_code == 204
    (fault,) = wrong.json()["error"]["details"]["faults"]
    assert (fault["path"], fault["allowed"]) == ("$.v", ["-100 to 100 m/s"])


@pytest.mark.section("4.1 Units and time", interface="command line")
def test_4_1_tests_run_in_virtual_time() -> None:
    """A simulated run has its own time: its ticks are a period apart, whatever the clock of the machine."""
    times = [state["nowMs"] for state in states(SILENT)]

    assert times == [100 * tick for tick in range(len(times))]


@pytest.mark.section("4.3 Truck geometry", interface="command line")
def test_4_3_a_truck_has_head_tail_and_width(tmp_path: Path) -> None:
    """A truck is its pivot between the front wheels with head, tail and width; all of them are required."""
    form = json.loads((GOLDEN / "RobotProfile.json").read_text(encoding="utf-8"))
    for member in ("head", "tail", "width"):
        file = tmp_path / f"{member}.json"
        geometry = {name: value for name, value in form["geometry"].items() if name != member}
        file.write_text(json.dumps({**form, "geometry": geometry}), encoding="utf-8")

        refused = pendula("fleet", "check", graph(tmp_path), "--profiles", file, "--json", code=1)

        assert member in refused


@pytest.mark.section("5.1 Safety parameters", interface="command line")
@pytest.mark.parametrize(
    "member",
    [
        *("safetyFrontM", "safetyRearM", "safetySideM", "localizationErrorM", "trackingErrorM"),
        *("extraMarginM", "minFollowingGapM"),
    ],
)
def test_5_1_every_margin_is_reported(tmp_path: Path, member: str) -> None:
    """Each margin of a type of truck is required, also at the sides; none has a default."""
    refused = pendula("fleet", "check", graph(tmp_path), "--profiles", profile(tmp_path, **{member: None}), code=1)

    assert member in refused


@pytest.mark.section("5.1 Safety parameters", interface="command line")
@pytest.mark.parametrize("member", ["localizationErrorM", "trackingErrorM"])
def test_5_1_an_error_bound_names_its_source(tmp_path: Path, member: str) -> None:
    """The bounds of localization and tracking errors carry their source: measured, assumed or of a profile."""
    truck = profile(tmp_path, **{member: {"value": 0.05}})

    refused = pendula("fleet", "check", graph(tmp_path), "--profiles", truck, code=1)

    assert "source" in refused


@pytest.mark.section("5.5 Safety stop and traffic hold", interface="command line")
def test_5_5_reasons_to_stop_are_distinguished() -> None:
    """A truck that waits for another one is in TRAFFIC_HOLD; a silent one is OFFLINE; the log has the reason."""
    last = states(SILENT)[-1]

    assert result(last, "R1")["holdReason"] == "OFFLINE"
    assert result(last, "R2")["holdReason"] == "TRAFFIC_HOLD"


@pytest.mark.section("6.2 Map compiler: input and output", interface="command line")
def test_6_2_a_compiled_map_has_nodes_edges_groups_and_conflicts(tmp_path: Path) -> None:
    """From graph, trucks and parameters the compiler makes an artifact with nodes, edges and their lengths and
    polylines, edge groups, conflicts and critical sections."""
    out = tmp_path / "small.map.json"
    pendula("fleet", "compile", graph(tmp_path), "--profiles", profile(tmp_path), "-o", out)
    form = json.loads(out.read_bytes(), parse_float=Decimal)

    parse("CompiledMap", out.read_bytes())
    assert [edge["edgeKey"] for edge in form["edges"]] == ["A->B", "B->A"]
    assert {edge["edgeGroupKey"] for edge in form["edges"]} == {"A<->B"}
    assert form["edges"][0]["lengthM"] == 12
    assert form["edges"][0]["polyline"]
    assert {"conflicts", "edgeConflictGroups", "criticalSections", "nodeZones"} <= set(form)


@pytest.mark.section("6.3 Parametrization by arc length", interface="command line")
def test_6_3_a_curve_is_a_polyline_with_a_length(tmp_path: Path) -> None:
    """A Bézier edge has a length along its arc, longer than the straight line, and a polyline of small steps."""
    curve = {"id": "1", "start": "A", "end": "B", "className": "Bezier", "props": {"direction": "both"}}
    bent = {**curve, "controlPos1": {"x": 4, "y": 2}, "controlPos2": {"x": 8, "y": 2}}
    out = tmp_path / "bent.map.json"
    pendula("fleet", "compile", graph(tmp_path, edges=[bent]), "--profiles", profile(tmp_path), "-o", out)
    edge = json.loads(out.read_bytes())["edges"][0]

    assert 12 < edge["lengthM"] < 13
    assert len(edge["polyline"]) > 12 / 0.2


@pytest.mark.section("6.4 Edge groups", interface="command line")
def test_6_4_both_directions_share_a_group_whatever_the_order_of_the_file(tmp_path: Path) -> None:
    """A corridor has one key for both directions, made of the names of its ends in order."""
    edge = {"id": "1", "start": "B", "end": "A", "props": {"direction": "both"}}
    out = tmp_path / "turned.map.json"
    pendula("fleet", "compile", graph(tmp_path, edges=[edge]), "--profiles", profile(tmp_path), "-o", out)

    assert [group["edgeGroupKey"] for group in json.loads(out.read_bytes())["edgeGroups"]] == ["A<->B"]


@pytest.mark.section("6.7 Validation of maps", interface="command line")
@pytest.mark.parametrize(
    ("members", "code"),
    [
        ({"nodes": [{"id": "A", "x": 0, "y": 0}, {"id": "B", "x": 0, "y": 0}]}, "EDGE_ZERO_LENGTH"),
        ({"edges": [{"id": "1", "start": "A", "end": "Z"}]}, "DANGLING_EDGE"),
        ({"edges": [{"id": "1", "start": "A", "end": "B"}]}, "MISSING_RETURN_EDGE"),
        (
            {
                "edges": [
                    {
                        "id": "1",
                        "start": "A",
                        "end": "B",
                        "className": "Polyline",
                        "points": [[0, 0], [6, 0], [6.1, 4], [12, 0]],
                        "props": {"direction": "both"},
                    }
                ]
            },
            "TURN_TOO_TIGHT",
        ),
    ],
)
def test_6_7_faults_of_a_map_are_found(tmp_path: Path, members: dict[str, Any], code: str) -> None:
    """The compiler finds edges without length, unknown ends, missing ways back and too tight bends."""
    form = pendula("fleet", "check", graph(tmp_path, **members), "--profiles", profile(tmp_path), "--json", code=None)

    assert code in form


@pytest.mark.section("6.8 Versions of compiled maps", interface="command line")
def test_6_8_a_compiled_map_carries_its_hashes_and_version(tmp_path: Path) -> None:
    """The artifact has mapHash, compilerVersion and robotProfileHash; other trucks make another hash."""
    forms = []
    for front in (0.3, 0.5):
        out = tmp_path / f"{front}.map.json"
        truck = profile(tmp_path, safetyFrontM=front)
        pendula("fleet", "compile", graph(tmp_path), "--profiles", truck, "-o", out)
        forms.append(json.loads(out.read_bytes()))
    one, other = forms

    assert one["compilerVersion"] == other["compilerVersion"]
    assert one["mapHash"].startswith("sha256:")
    assert one["robotProfileHash"] != other["robotProfileHash"]


@pytest.mark.section("7.1 Snap to the geometry", interface="command line")
def test_7_1_a_truck_can_start_in_the_middle_of_an_edge(tmp_path: Path) -> None:
    """The planner snaps to the nearest point of an edge, not to the nearest node: a truck that stands on an edge has
    its position along it."""
    file = tmp_path / "middle.yaml"
    text = PREEMPTED.replace("startNodeId: A,", 'anchor: {edgeKey: "A->B", sM: 2.5},')
    file.write_text(text[: text.index("tasks:")] + "durationMs: 1000\n", encoding="utf-8")
    pendula("fleet", "run", file, "--journal", tmp_path / "journal", "--json")

    progress = printed_json("fleet", "snapshot", tmp_path / "journal", "--tick", 2)["robots"][0]["progress"]

    assert progress["segmentIndex"] == 0
    assert 2.4 < progress["sOnSegmentM"] < 2.8


@pytest.mark.section("7.2 RoutePlan", interface="command line")
def test_7_2_a_route_has_segments_with_geometry_style_and_revision() -> None:
    """A route names its segments in order with key, group, length, geometry and style, and has an id and a revision."""
    lines = pendula("fleet", "export", ran(PREEMPTED)[1], "--upto", 3).splitlines()
    routes = [route for line in lines for route in json.loads(line)["inputs"]["routePlans"]]

    parse("RoutePlan", json.dumps(routes[0]))
    assert [(segment["edgeKey"], segment["edgeGroupKey"]) for segment in routes[0]["segments"]] == [
        ("B->A", "A<->B"),
        ("A->B", "A<->B"),
        ("B->C", "B<->C"),
        ("C->D", "C<->D"),
    ]
    assert {"lengthM", "geometryRef", "movestyle"} <= set(routes[0]["segments"][0])
    assert (routes[0]["routeId"], routes[0]["revision"]) == ("route-R1-1", 1)


@pytest.mark.section("9.1 Names of resources", interface="command line")
def test_9_1_resources_have_the_names_of_their_kinds() -> None:
    """The resources of a truck are named EDGE_GROUP:…, NODE:…, CONFLICT:… or CS:…."""
    lines = pendula("fleet", "export", ran(SILENT)[1], "--tick", 60, "--upto", 60).splitlines()
    names = {
        name
        for request in json.loads(lines[0])["decisions"]["requests"]
        for unit in request["units"]
        for name in unit["resources"]
    }

    assert names
    assert {name.split(":")[0] for name in names} <= {"EDGE_GROUP", "NODE", "CONFLICT", "CS"}


# A truck drives to a station over a lane that is closed ahead of it; there is another way.
CLOSED_LANE = """\
contractVersion: 1.0.0
name: closed-lane
map:
  contractVersion: 1.0.0
  mapId: two-ways
  nodes:
    - {id: W, x: 0, y: 0, kind: ParkPoint}
    - {id: V, x: 15, y: 0}
    - {id: Q, x: 15, y: -15}
    - {id: A, x: 40, y: 0}
    - {id: B, x: 70, y: 0}
    - {id: E, x: 85, y: 0, kind: ActionPoint}
    - {id: C, x: 40, y: 15}
    - {id: D, x: 70, y: 15}
  edges:
    - {id: "1", start: W, end: V, props: {direction: both}}
    - {id: "2", start: V, end: Q, props: {direction: both}}
    - {id: "3", start: V, end: A, props: {direction: both}}
    - {id: "4", start: A, end: B, props: {direction: both}}
    - {id: "5", start: B, end: E, props: {direction: both}}
    - {id: "6", start: A, end: C, props: {direction: both}}
    - {id: "7", start: C, end: D, props: {direction: both}}
    - {id: "8", start: D, end: B, props: {direction: both}}
robots:
  - {robotId: R1, startNodeId: W, parkNodeId: W}
tasks:
  - {taskId: T1, atMs: 0, pickNodeId: E, dropNodeId: B, pickDurationMs: 2000, dropDurationMs: 1000}
events:
  - {atMs: 2000, type: CLOSE_RESOURCE, resources: ["EDGE_GROUP:A<->B"], reason: wet floor}
durationMs: 300000
expect:
  - tasksDone: 1
  - allAtRest: true
"""


@pytest.mark.section("7.3 Replanning", interface="command line")
def test_7_3_a_change_of_the_map_reroutes_a_truck() -> None:
    """A route is planned again when something happens, such as a change of the map, and not in every tick."""
    robots = [state["robots"][0] for state in states(CLOSED_LANE)]
    revisions = {one["progress"]["routeId"]: one["progress"]["revision"] for one in robots if "progress" in one}
    groups = {group["edgeGroupKey"] for state in states(CLOSED_LANE) for group in state["locks"]["edgeGroups"]}

    assert "A<->B" not in groups
    assert "C<->D" in groups
    assert 1 < max(revisions.values()) < 4
    assert ran(CLOSED_LANE)[0]["tasks"]["done"] == 1
    assert printed_json("fleet", "replay", ran(CLOSED_LANE)[1])["firstDifference"] is None


@pytest.mark.section("7.3 Replanning", interface="HTTP")
@pytest.mark.anyio
async def test_7_3_an_operator_closes_and_opens_places_of_a_served_fleet(tmp_path: Path) -> None:
    """The map of a running fleet changes by closing and opening places; closed places and their reasons are public."""
    async with served(tmp_path) as client:
        hall = {"contractVersion": "1.0.0", "name": "h", "durationMs": 9000, "sample": {"name": "reference-hall"}}
        await client.post(BASE, params={"name": "h", "live": True}, json=hall)

        async def act(kind: str, *names: str, **members: Any) -> dict[str, Any]:
            body = {"type": kind, "reason": "wet floor", "resources": names, **members}
            answer: dict[str, Any] = (await client.post(f"{BASE}/h/actions", json=body)).json()
            return answer

        closed = await act("CLOSE_RESOURCE", "NODE:WEST", force=True)
        now = (await client.get(f"{BASE}/h/now")).json()
        locks = (await client.get(f"{BASE}/h/locks")).json()
        wrong = await act("CLOSE_RESOURCE", "NODE:WESR")
        opened = await act("OPEN_RESOURCE", "NODE:WEST")
        after = (await client.get(f"{BASE}/h/now")).json()

    assert (closed["accepted"], closed["message"]) == (True, "Closed: NODE:WEST")
    assert [(one["resourceId"], one["reason"]) for one in now["closings"]] == [("NODE:WEST", "wet floor")]
    assert [one["resourceId"] for one in locks["closings"]] == ["NODE:WEST"]
    assert (wrong["code"], "did you mean NODE:WEST?" in wrong["message"]) == ("UNKNOWN_PLACE", True)
    assert (opened["accepted"], after["closings"]) == (True, [])


@pytest.mark.section("10.2 What goes into a tick and comes out", interface="command line")
def test_10_2_a_tick_has_states_and_gives_locks_results_reasons_and_commands() -> None:
    """A tick has the states of the trucks, and gives who holds what, a result and a command for every truck."""
    state = states(SILENT)[100]

    assert [one["robotId"] for one in state["robots"]] == ["R1", "R2"]
    assert [one["robotId"] for one in state["lockResults"]] == ["R1", "R2"]
    assert [command["robotId"] for command in state["commands"]] == ["R1", "R2"]
    assert all("holdReason" in one for one in state["lockResults"])
    assert state["locks"]["nowMs"] == state["nowMs"]


@pytest.mark.section("10.9 Parking and preemption", interface="command line")
def test_10_9_an_idle_truck_drives_to_its_rest_and_takes_a_task_at_the_next_node() -> None:
    """A truck without a task drives to its rest node. It takes a new task at the next node beyond
    its grant, never in the middle of an edge."""
    form, _ = ran(PREEMPTED)
    about = [(robot(state, "R1")["task"], robot(state, "R1")["pose"]["x"]) for state in states(PREEMPTED)]
    asked = next(n for n, (task, _) in enumerate(about) if task["pendingTaskId"] == "T1")
    taken = next(n for n, (task, _) in enumerate(about) if task["taskId"] == "T1")

    assert {task["phase"] for task, _ in about[:taken]} == {"TO_PARK"}
    # Submitted between A and B while the grant ends between B and C: taken in C, which is 24 m from A, before D.
    grants = states(PREEMPTED)[asked - 1]["locks"]["robots"][0]["grantEndS"]
    assert 1 < about[asked][1] < 6
    assert 24 < grants <= 36
    assert abs(about[taken][1] - 24) < 0.5
    assert form["tasks"] == {"done": 1, "held": 0, "open": 0}


@pytest.mark.section("11.1 Phases of a task", interface="command line")
def test_11_1_a_task_goes_to_the_pick_loads_goes_to_the_drop_and_unloads() -> None:
    """A task is: to the pick, loading, to the drop, unloading, in this order; loading has no fixed time."""
    phases = [robot(state, "R1")["task"]["phase"] for state in states(PREEMPTED)]
    order = [phase for phase, before in zip(phases[1:], phases, strict=False) if phase != before]
    start = order.index("LOADING")

    assert order[start : start + 3] == ["LOADING", "TO_DROP", "UNLOADING"]
    assert phases.count("LOADING") >= 20


@pytest.mark.section("11.2 Which truck gets a task", interface="HTTP")
@pytest.mark.anyio
async def test_11_2_the_nearest_truck_gets_the_task_and_names_decide_between_equals(tmp_path: Path) -> None:
    """A ready task is assigned to the idle truck with the shortest way to its pick; between equals the name decides."""
    form = {
        "contractVersion": "1.0.0",
        "name": "pair",
        "durationMs": 60_000,
        "map": {
            "contractVersion": "1.0.0",
            "mapId": "pair",
            "nodes": [
                {"id": "A", "x": -20, "y": 0, "kind": "ParkPoint"},
                {"id": "M", "x": 0, "y": 0},
                {"id": "B", "x": 20, "y": 0, "kind": "ParkPoint"},
                {"id": "P", "x": 0, "y": 12, "kind": "ActionPoint"},
                {"id": "D", "x": 0, "y": -12, "kind": "ActionPoint"},
            ],
            "edges": [
                {"id": f"{at}M", "start": at, "end": "M", "props": {"direction": "both"}} for at in ("A", "B", "P", "D")
            ],
        },
        "robots": [{"robotId": "R2", "parkNodeId": "A"}, {"robotId": "R1", "parkNodeId": "B"}],
    }
    async with served(tmp_path) as client:
        made = await client.post(BASE, params={"name": "pair", "speed": 20}, json=form)
        assert made.status_code == 201, made.text
        task = {"taskId": "T1", "pickNodeId": "P", "dropNodeId": "D"}
        assert (await client.post(f"{BASE}/pair/tasks", json=task)).status_code == 201
        async with asyncio.timeout(240):
            while True:
                (found,) = (await client.get(f"{BASE}/pair/now")).json()["tasks"]
                if found["robot_id"] is not None:
                    break
                await asyncio.sleep(0.02)

    assert found["robot_id"] == "R1"


@pytest.mark.section("11.3 Locks while a truck loads", interface="command line")
def test_11_3_a_truck_that_loads_holds_its_node() -> None:
    """A truck holds its node while it loads or unloads."""
    loading = [state for state in states(PREEMPTED) if robot(state, "R1")["task"]["phase"] == "LOADING"]

    assert loading
    assert all("NODE:A" in held(state, "R1") for state in loading)


@pytest.mark.section("12.1 Rolling target", interface="command line")
def test_12_1_a_command_names_a_point_ahead_on_the_route() -> None:
    """Each tick commands a target on its route to every truck, no farther ahead than rtpLookaheadM."""
    commands = [command for state in states(PREEMPTED) for command in state["commands"] if command["mode"] == "GO"]

    assert commands
    assert all(0 < Decimal(str(command["targetS"])) - Decimal(str(command["currentS"])) <= 3 for command in commands)


@pytest.mark.section("12.2 The target and the hold point", interface="command line")
def test_12_2_no_target_lies_behind_the_hold_point() -> None:
    """A target is never beyond the hold point of the same tick."""
    for state in states(SILENT):
        for command in state["commands"]:
            hold = result(state, command["robotId"])["holdPoint"]
            assert hold is None or command["targetS"] <= max(hold["sOnRouteM"], command["currentS"])


@pytest.mark.section("12.4 Stop and pause", interface="command line")
def test_12_4_a_silent_truck_is_commanded_to_stop() -> None:
    """A truck that is OFFLINE gets no target ahead but STOP."""
    last = next(command for command in states(SILENT)[-1]["commands"] if command["robotId"] == "R1")

    assert (last["mode"], last["targetS"]) == ("STOP", last["currentS"])


@pytest.mark.section("13.1 Pose jump", interface="command line")
def test_13_1_a_pose_jump_stops_the_truck_and_releases_nothing() -> None:
    """A pose that changes more than a truck can drive stops it with an alert and releases nothing; once poses are
    steady it continues."""
    form, _ = ran(JUMP)
    before, during = states(JUMP)[98], states(JUMP)[108]

    assert result(during, "R1")["holdReason"] == "SAFETY_STOP"
    assert result(during, "R1")["reasonCode"] == "STOP_POSE_JUMP"
    assert held(before, "R1") <= held(during, "R1")
    assert form["metrics"]["alerts"] == ["POSE_JUMP"]
    assert result(states(JUMP)[-1], "R1")["holdReason"] == "NONE"


@pytest.mark.section("13.2 Offline", interface="command line")
def test_13_2_a_silent_truck_is_offline_and_keeps_its_locks() -> None:
    """A truck whose status is older than robotOfflineMs is OFFLINE in its state and raises an alert, none of its locks
    is released, and the others wait."""
    form, _ = ran(SILENT)
    before, last = states(SILENT)[148], states(SILENT)[-1]
    turned = next(state for state in states(SILENT) if robot(state, "R1")["status"] == "OFFLINE")

    assert robot(before, "R1")["status"] == "OK"
    assert turned["nowMs"] - robot(turned, "R1")["lastStatusMs"] > 2000
    assert held(turned, "R1") == held(last, "R1") != set()
    assert form["metrics"]["alerts"] == ["ROBOT_OFFLINE"]
    assert result(last, "R2")["blocker"]["blockerRobotId"] == "R1"


@pytest.mark.section("13.2 Offline", interface="HTTP")
@pytest.mark.anyio
async def test_13_2_a_truck_that_never_reported_raises_the_alert_too(tmp_path: Path) -> None:
    """A real truck that never reports raises the same alert after the same time."""
    async with served(tmp_path) as client:
        hall = {"contractVersion": "1.0.0", "name": "h", "durationMs": 9000, "sample": {"name": "reference-hall"}}
        await client.post(BASE, params={"name": "h", "live": True}, json=hall)
        async with asyncio.timeout(240):
            while not (alerts := (await client.get(f"{BASE}/h/alerts")).json()["alerts"]):
                await asyncio.sleep(0.02)

    assert alerts[0]["code"] == "ROBOT_OFFLINE"


@pytest.mark.section("13.2 Offline", interface="HTTP")
@pytest.mark.anyio
async def test_13_2_an_operator_can_clear_relocate_and_force_a_release(tmp_path: Path) -> None:
    """The interface has CLEAR_FAULT, RELOCATE and FORCE_RELEASE; a forced release needs a confirmation."""
    async with served(tmp_path) as client:
        hall = {"contractVersion": "1.0.0", "name": "h", "durationMs": 9000, "sample": {"name": "reference-hall"}}
        await client.post(BASE, params={"name": "h", "live": True}, json=hall)
        codes = {}
        for kind, members in (
            ("CLEAR_FAULT", {}),
            ("RELOCATE", {"anchor": {"edgeKey": "nowhere", "sM": 1}}),
            ("FORCE_RELEASE", {"resources": ["NODE:A1"], "physicallySecured": True}),
            ("BEAM", {}),
        ):
            action = {"type": kind, "reason": "section 13.2", "robotId": "R1", **members}
            codes[kind] = (await client.post(f"{BASE}/h/actions", json=action)).json()["code"]

    assert codes.pop("BEAM") == "UNKNOWN_ACTION"
    assert "UNKNOWN_ACTION" not in codes.values()


@pytest.mark.section("14.1 Snapshots on disk", interface="command line")
def test_14_1_every_tick_is_in_the_log_with_states_routes_locks_reasons_and_commands() -> None:
    """The log gives for each tick its time, the state of every truck, id and revision of its route, the locks, why
    it stands and for which truck, and its command."""
    last = states(SILENT)[-1]

    parse("TickSnapshot", json.dumps(last))
    assert [state["tick"] for state in states(SILENT)] == list(range(1, 301))
    assert {"pose", "v", "task", "progress"} <= set(last["robots"][0])
    assert {"routeId", "revision"} <= set(last["robots"][0]["progress"])
    assert {"holdReason", "blocker"} <= set(last["lockResults"][0])
    assert last["commands"][0]["seq"] == 300


@pytest.mark.section("14.2 Replay", interface="command line")
def test_14_2_a_replayed_journal_gives_the_same_outcome() -> None:
    """A run is replayed from its log at full speed, and every tick equals the recorded one."""
    form = printed_json("fleet", "replay", ran(SILENT)[1])

    assert (form["ticks"], form["firstDifference"]) == (300, None)


@pytest.mark.section("14.2 Replay", interface="command line")
def test_14_2_equal_inputs_give_equal_outputs(tmp_path: Path) -> None:
    """The same scenario and seed give the same digest."""
    file = tmp_path / "again.yaml"
    file.write_text(JUMP, encoding="utf-8")

    assert printed_json("fleet", "run", file)["digest"] == ran(JUMP)[0]["digest"]


@pytest.mark.section("15.2 Fast and parallel tests", interface="library")
def test_15_2_runs_share_nothing() -> None:
    """Two simulations can run at once: they share no state, and no test waits for a clock."""
    from pendula.fleet.scenarios import Run, shipped

    one, other = Run(shipped("arrival")), Run(shipped("arrival"))
    for _ in range(50):
        one.step()
        other.step()

    assert one.engine.state() == other.engine.state()


@pytest.mark.section("15.3 Scenarios that must pass", interface="command line")
@pytest.mark.parametrize("name", [PREEMPTED, JUMP, SILENT], ids=["park-preempt", "pose jump", "offline"])
def test_15_3_a_scenario_passes_an_independent_checker(name: str) -> None:
    """Each scenario ends as expected, and a checker that sees poses alone finds no overlapping envelopes."""
    form, _ = ran(name)

    assert form["violations"] == []
    assert all(one["violations"] == 0 for one in form["invariants"].values())


@pytest.mark.section("B1 RobotState", interface="library")
@pytest.mark.parametrize(("number", "name"), list(enumerate(B)), ids=B)
def test_b_the_printed_payloads_are_read_and_written_byte_for_byte(number: int, name: str) -> None:
    """Each printed payload is read by its contract, comments included, and written with the same members and
    values."""
    text = printed("fleet", "json5")[number]
    own = (EXAMPLES / FILES[name]).read_text(encoding="utf-8")

    assert serialise(parse(name, text)) == encode(read_bytes(text.encode(), Format.JSON5).value)
    assert parse(name, own) == parse(name, text)


@pytest.mark.section("B1 RobotState", interface="HTTP")
@pytest.mark.anyio
async def test_b1_a_truck_reports_with_the_unchanged_payload(tmp_path: Path) -> None:
    """A truck posts the printed state, and the fleet serves it in the same form and units."""
    async with served(tmp_path) as client:
        hall = {"contractVersion": "1.0.0", "name": "h", "durationMs": 9000, "sample": {"name": "reference-hall"}}
        made = await client.post(BASE, params={"name": "h", "live": True, "nowMs": 123_456_789}, json=hall)
        assert made.status_code == 201, made.text
        assert (await client.post(f"{BASE}/h/reports", content=B1, headers=JSON_BODY)).status_code == 204
        async with asyncio.timeout(240):
            while not (robots := (await client.get(f"{BASE}/h/robots")).json()["robots"]):
                await asyncio.sleep(0.02)

    (state,) = robots
    assert state["robotId"] == "R1"
    assert state["pose"] == {"x": -20.9, "y": 1.25, "yaw": 0}
    assert (state["v"], state["lastStatusMs"], state["status"]) == (0.4, 123_456_789, "OK")


@pytest.mark.section("B1 RobotState", interface="command line")
@pytest.mark.parametrize("name", B)
def test_b_the_printed_payloads_are_checked_on_the_command_line(name: str) -> None:
    """A pasted payload is recognized by its members, and printed in canonical form."""
    file = EXAMPLES / FILES[name]

    assert pendula("fleet", "payload", file) == f"{file} is a {name}.\n"
    assert encode(json.loads(pendula("fleet", "payload", file, "--json"), parse_float=Decimal)) == encode(
        read_bytes(file.read_bytes(), Format.JSON5).value
    )


@pytest.mark.section("B1 RobotState", interface="library")
def test_b1_the_payload_becomes_exact_integers_inside() -> None:
    """Metres, radians and metres a second of the printed state become whole micrometres without loss."""
    state: Any = parse("RobotState", B1)
    report = report_of(state)

    assert (report.x_um, report.y_um, report.yaw_urad, report.v_um_s) == (-20_900_000, 1_250_000, 0, 400_000)


def members_of(form: Any, prefix: str = "") -> set[str]:
    """The paths of all members; entries of a list have the path of the list."""
    if isinstance(form, list):
        return set().union(*(members_of(one, prefix) for one in form)) if form else set()
    if not isinstance(form, dict):
        return set()
    return {f"{prefix}{name}" for name in form}.union(
        *(members_of(value, f"{prefix}{name}.") for name, value in form.items())
    )


@pytest.mark.section("B2 LockResult", interface="command line")
def test_b2_a_blocked_result_has_the_printed_members() -> None:
    """The result of a truck that is blocked has blocker and hold point with the printed members."""
    blocked = result(states(SILENT)[-1], "R2")
    printed_members = members_of(read_bytes((EXAMPLES / FILES["LockResult"]).read_bytes(), Format.JSON5).value)

    assert printed_members <= members_of(blocked)
    assert (blocked["ok"], blocked["holdReason"]) == (False, "TRAFFIC_HOLD")


@pytest.mark.section("B3 LockSnapshot", interface="HTTP")
@pytest.mark.anyio
async def test_b3_the_locks_are_served_with_the_printed_members(tmp_path: Path) -> None:
    """The locks of a fleet are served now and at any tick, with the printed members."""
    async with served(tmp_path) as client:
        hall = {"contractVersion": "1.0.0", "name": "h", "durationMs": 9000, "sample": {"name": "reference-hall"}}
        await client.post(BASE, params={"name": "h", "speed": 20}, json=hall)
        async with asyncio.timeout(240):
            while (now := (await client.get(f"{BASE}/h/locks")).json())["tick"] < 30:
                await asyncio.sleep(0.02)
        then = (await client.get(f"{BASE}/h/locks", params={"at": 5})).json()

    assert {"nowMs", "edgeGroups", "nodeLocks", "conflictLocks"} <= set(now)
    assert {"edgeGroupKey", "direction", "occupants", "queue"} <= set(then["edgeGroups"][0])
    assert {"robotId", "sM", "reservedAheadM"} <= set(then["edgeGroups"][0]["occupants"][0])
    assert (then["tick"], then["nowMs"]) == (5, 400)


@pytest.mark.section("B3 LockSnapshot", interface="command line")
def test_b3_the_locks_of_a_log_have_the_printed_members() -> None:
    """The locks of a tick in the log have the printed members, queues among them."""
    locks = states(SILENT)[-1]["locks"]
    printed_members = members_of(read_bytes((EXAMPLES / FILES["LockSnapshot"]).read_bytes(), Format.JSON5).value)

    assert {name for name in printed_members if not name.startswith("conflictLocks.")} <= members_of(locks)
