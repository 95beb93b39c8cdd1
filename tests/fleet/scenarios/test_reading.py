"""Scenario files: their members, and reports of faults."""

from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from pendula.documents import DocumentRefused, from_value, read_file
from pendula.fleet.scenarios import Run, ScenarioRefused, read_scenario, shipped, shipped_names
from pendula.fleet.scenarios.model import TasksDone
from pendula.fleet.simulator.truck import Fault, FaultKind, FaultRate
from pendula.fleet.tick.params import NodeLockPolicy

EMPTY_MAP = {"contractVersion": "1.0.0", "mapId": "empty", "nodes": [], "edges": []}
PLAIN: dict[str, Any] = {
    "contractVersion": "1.0.0",
    "name": "plain",
    "sample": {"name": "plus-crossing"},
    "robots": [{"robotId": "R1", "parkNodeId": "E"}],
    "durationMs": 1000,
}


def faults(form: dict[str, Any]) -> list[str]:
    with pytest.raises(DocumentRefused) as refused:
        read_scenario(from_value(form), Path())
    return [fault.path for fault in refused.value.faults]


def test_missing_members_have_their_defaults() -> None:
    scenario = read_scenario(from_value(PLAIN), Path())

    assert (scenario.seed, scenario.override, scenario.robots[0].start_node_id) == (0, False, "E")
    assert scenario.profiles[0].profile_id == "FL-STD"


def test_traffic_and_compile_parameters_share_one_object() -> None:
    given: dict[str, Any] = {"cellLenM": 1, "lookaheadM": 9, "nodeLockPolicy": "every", "starveMs": 50000}
    given["refuge"] = False
    scenario = read_scenario(from_value({**PLAIN, "params": given}), Path())

    assert scenario.compile_params.cell_len_um == 1_000_000
    assert (scenario.traffic.lookahead_um, scenario.traffic.starve_ms, scenario.traffic.refuge) == (
        9_000_000,
        50_000,
        False,
    )
    assert scenario.traffic.node_lock_policy is NodeLockPolicy.EVERY


def test_a_parameter_that_trucks_have_is_refused_with_its_place_in_their_profile() -> None:
    with pytest.raises(DocumentRefused) as refused:
        read_scenario(from_value({**PLAIN, "params": {"minFollowingGapM": 3}}), Path())

    (fault,) = refused.value.faults
    assert (fault.code, fault.path) == ("unknown_field", "$.params.minFollowingGapM")
    assert fault.message == "'minFollowingGapM' belongs to the truck profile: safety.minFollowingGapM"


def test_noise_and_losses_are_shares() -> None:
    given: dict[str, Any] = {"localizationShare": 1, "telemetryLoss": Decimal("0.01"), "commandLatencyMs": [20, 90]}
    world = read_scenario(from_value({**PLAIN, "world": given}), Path()).world

    assert (world.localization_permille, world.telemetry_loss_ppm, world.command_latency_ms) == (1000, 10_000, (20, 90))


@pytest.mark.req("FLT-TEST-4", "FLT-TEST-5")
def test_random_faults_are_given_with_their_rates() -> None:
    given: list[Any] = [{"type": "SILENCE", "perHour": 4, "forMs": 3000}]
    world = read_scenario(from_value({**PLAIN, "world": {"faults": given}}), Path()).world

    assert world.faults == (FaultRate(Fault(FaultKind.SILENCE, 3000), 4),)


@pytest.mark.parametrize(
    ("change", "path"),
    [
        ({"world": {"faults": [{"type": "SILENCE", "perHour": 0, "forMs": 1}]}}, "$.world.faults[0].perHour"),
        ({"world": {"faults": [{"type": "PAUSE_ROBOT", "perHour": 1, "forMs": 1}]}}, "$.world.faults[0].type"),
        ({"sample": None}, "$"),
        ({"tasks": [{"taskId": "T", "pickNodeId": "N", "dropNodeId": "N"}]}, "$.tasks[0].dropNodeId"),
        ({"streams": [{"streamId": "S", "pickNodeIds": ["N"], "dropNodeIds": ["N"]}]}, "$.streams[0].dropNodeIds[0]"),
        ({"taskEvents": [{"atMs": 0, "type": "GOODS", "nodeId": "N", "count": -1}]}, "$.taskEvents[0].count"),
        ({"nodeLimits": [{"nodeId": "N", "atMost": 0}]}, "$.nodeLimits[0].atMost"),
        ({"map": EMPTY_MAP, "sample": {"name": "spur"}}, "$"),
        ({"sample": {"name": "nowhere"}}, "$.sample.name"),
        ({"sample": {"name": "spur", "parks": 3}}, "$.sample.parks"),
        ({"params": {"lookAheadM": 3}}, "$.params.lookAheadM"),
        ({"world": {"telemetryLatencyMs": [50, 10]}}, "$.world.telemetryLatencyMs"),
        ({"expect": [{"tasksDone": 1, "allAtRest": True}]}, "$.expect[0]"),
        ({"expect": [{"tasksDone": "some"}]}, "$.expect[0].tasksDone"),
        ({"expect": [{"noTruckWaits": False}]}, "$.expect[0].noTruckWaits"),
        ({"events": [{"atMs": 1, "type": "ROUTE", "robotId": "R1"}]}, "$.events[0]"),
        ({"events": [{"atMs": 1, "type": "ROUTE", "robotId": "R1", "toNodeId": "E", "byM": 1}]}, "$.events[0].byM"),
        (
            {"events": [{"atMs": 1, "type": "STAND", "robotId": "R1", "forMs": 5, "toNodeId": "E"}]},
            "$.events[0].toNodeId",
        ),
        ({"events": [{"atMs": 1, "type": "JUMP", "robotId": "R1", "forMs": 5}]}, "$.events[0].type"),
        ({"robots": []}, "$.robots"),
    ],
)
def test_a_fault_is_reported_with_its_place(change: dict[str, Any], path: str) -> None:
    form = {name: value for name, value in {**PLAIN, **change}.items() if value is not None}

    assert faults(form) == [path]


@pytest.mark.parametrize(("kind", "more"), [("OVERRUN", {"byM": Decimal("0.3")}), ("CARRIED", {"dxM": 1, "dyM": 0})])
def test_a_fault_that_happens_once_has_no_duration(kind: str, more: dict[str, Any]) -> None:
    happens = {"atMs": 1, "type": kind, "robotId": "R1", **more}
    with pytest.raises(DocumentRefused, match=f"{kind} happens once: it has no forMs"):
        read_scenario(from_value({**PLAIN, "events": [{**happens, "forMs": 5}]}), Path())

    assert [event.type for event in read_scenario(from_value({**PLAIN, "events": [happens]}), Path()).events] == [kind]


def test_actions_on_two_trucks_at_the_same_time_are_two_actions() -> None:
    events: list[Any] = [{"atMs": 5, "type": "PAUSE_ROBOT", "robotId": robot_id} for robot_id in ("R1", "R2")]
    events += [{"atMs": 5, "type": "HOLD_TASK", "taskId": "T1"}, {"atMs": 5, "type": "PAUSE_FLEET"}]
    actions = read_scenario(from_value({**PLAIN, "events": events}), Path()).actions

    assert [action.actionId for action in actions] == [
        "PAUSE_ROBOT-5",
        "PAUSE_ROBOT-5-R2",
        "HOLD_TASK-5",
        "PAUSE_FLEET-5",
    ]


def test_a_map_may_be_a_file_beside_the_scenario(tmp_path: Path) -> None:
    (tmp_path / "map.json").write_text('{"contractVersion": "1.0.0", "mapId": "m", "nodes": [], "edges": []}')
    (tmp_path / "one.yaml").write_text(
        "contractVersion: 1.0.0\nname: one\nmapFile: map.json\ndurationMs: 1000\n"
        "robots: [{robotId: R1, parkNodeId: A}]\n"
    )

    assert read_scenario(read_file(tmp_path / "one.yaml"), tmp_path).source.map_id == "m"


@pytest.mark.req("FLT-TEST-5")
@pytest.mark.parametrize("name", shipped_names())
def test_a_shipped_scenario_says_what_it_shows_and_what_it_expects(name: str) -> None:
    scenario = shipped(name)

    assert scenario.name == name
    assert scenario.title.endswith(".")
    assert scenario.expect


def test_an_impossible_start_is_rejected() -> None:
    robots = [{"robotId": "R1", "parkNodeId": "E", "startNodeId": "Q"}]

    with pytest.raises(ScenarioRefused, match="'Q', which is not a node"):
        Run(read_scenario(from_value({**PLAIN, "robots": robots}), Path()))


@pytest.mark.req("FLT-API-4", "FLT-PLAN-2")
def test_a_truck_may_start_along_an_edge() -> None:
    robot: dict[str, Any] = {"robotId": "R1", "parkNodeId": "E", "anchor": {"edgeKey": "W->X", "sM": Decimal("2.25")}}
    run = Run(read_scenario(from_value({**PLAIN, "robots": [robot], "durationMs": 60_000}), Path()))
    truck = run.world.trucks[0]
    begun = run.site.network.edges[truck.edge].key, truck.on_um
    run.step()
    record = run.traffic.records[0]

    assert begun == ("W->X", 2_250_000)
    assert (record.stop_code, record.doubt) == (None, None)
    run.run()
    assert all(driver.at_rest for driver in run.dispatch.drivers)


def test_a_truck_that_starts_along_an_edge_has_no_start_node() -> None:
    anchor = {"edgeKey": "W->X", "sM": 2}
    robots = [{"robotId": "R1", "parkNodeId": "E", "anchor": anchor, "startNodeId": "W", "cameFromNodeId": "X"}]

    assert faults({**PLAIN, "robots": robots}) == ["$.robots[0].cameFromNodeId", "$.robots[0].startNodeId"]


def test_a_truck_starts_within_the_length_of_its_edge() -> None:
    far = {"robotId": "R1", "parkNodeId": "E", "anchor": {"edgeKey": "W->X", "sM": Decimal("1e30")}}

    assert faults({**PLAIN, "robots": [far]}) == ["$.robots[0].anchor.sM"]


def test_all_tasks_is_a_word() -> None:
    assert read_scenario(from_value({**PLAIN, "expect": [{"tasksDone": "all"}]}), Path()).expect == (TasksDone(None),)


TWO_TRUCKS = [{"robotId": "R1", "parkNodeId": "E"}, {"robotId": "R2", "parkNodeId": "W"}]
STREAM = {"streamId": "S", "pickNodeIds": ["N"], "dropNodeIds": ["S"]}


def served_by(stream: dict[str, Any]) -> set[str]:
    """The trucks that had a task of the stream within half a minute."""
    run = Run(read_scenario(from_value({**PLAIN, "robots": TWO_TRUCKS, "streams": [stream]}), Path()))
    for _ in range(300):
        run.step()
    return {driver.robot_id for driver in run.dispatch.drivers if driver.task is not None}


@pytest.mark.req("FLT-API-2")
def test_a_stream_is_served_by_the_trucks_it_names_or_by_all() -> None:
    assert served_by(STREAM) == {"R1", "R2"}
    assert served_by({**STREAM, "robotIds": ["R2"]}) == {"R2"}


@pytest.mark.req("FLT-TASK-1")
def test_a_stream_can_wait_for_goods_and_room_that_the_file_reports() -> None:
    given = {**STREAM, "conditions": {"pickHasGoods": True, "dropHasRoom": True}}
    goods = {"atMs": 0, "type": "GOODS", "nodeId": "N", "count": 1}
    room = {"atMs": 0, "type": "ROOM", "nodeId": "S", "count": 1}

    def open_tasks(*reported: dict[str, Any]) -> int:
        form = {**PLAIN, "robots": TWO_TRUCKS, "streams": [given], "taskEvents": list(reported)}
        run = Run(read_scenario(from_value(form), Path()))
        run.run(500)
        return len(run.dispatch.tasks())

    assert (open_tasks(), open_tasks(goods), open_tasks(goods, room)) == (0, 0, 1)


def test_limits_of_nodes_and_the_timeout_of_operations_can_be_set() -> None:
    given: dict[str, Any] = {
        "nodeLimits": [{"nodeId": "N", "atMost": 2}],
        "operationTimeoutMs": 90000,
        "oneWayMilli": 500,
    }
    dispatch = read_scenario(from_value({**PLAIN, **given}), Path()).dispatch

    assert (dispatch.node_limits, dispatch.operation_timeout_ms, dispatch.one_way_milli) == ({"N": 2}, 90_000, 500)


@pytest.mark.req("FLT-LIVE-7")
def test_only_the_truck_of_a_task_has_to_find_its_way() -> None:
    """R2 rests in a node without a way out; it has no tasks."""
    lanes = [
        {"id": "e1", "start": "A", "end": "B", "props": {"direction": "both"}},
        {"id": "e2", "start": "B", "end": "C"},
    ]
    nodes = [{"id": name, "x": 20 * place, "y": 0} for place, name in enumerate("ABC")]
    graph = {"contractVersion": "1.0.0", "mapId": "m", "nodes": nodes, "edges": lanes}
    task = {"taskId": "T", "pickNodeId": "B", "dropNodeId": "A", "robotId": "R1"}
    robots = [{"robotId": "R1", "parkNodeId": "A"}, {"robotId": "R2", "parkNodeId": "C"}]
    form = {**PLAIN, "map": graph, "robots": robots, "tasks": [task]}
    del form["sample"]

    assert Run(read_scenario(from_value(form), Path())).traffic.certificate.live


def test_a_task_of_an_unknown_truck_is_rejected() -> None:
    task = {"taskId": "T", "pickNodeId": "N", "dropNodeId": "S", "robotId": "R9"}

    with pytest.raises(ScenarioRefused, match="task 'T' is for 'R9', which is not a truck"):
        Run(read_scenario(from_value({**PLAIN, "tasks": [task]}), Path()))


RELOCATED = {"robotId": "R1", "anchor": {"edgeKey": "E->W", "sM": 1}, "reason": "moved"}


@pytest.mark.parametrize(
    ("member", "message"),
    [
        (
            {"tasks": [{"taskId": "T7", "pickNodeId": "n", "dropNodeId": "S"}]},
            r"task 'T7' loads in 'n', which is not a node \(did you mean N\?\)",
        ),
        (
            {"events": [{"atMs": 0, "type": "STAND", "robotId": "RT1", "forMs": 100}]},
            r"there is no truck 'RT1' \(did you mean R1\?\)",
        ),
        (
            {"events": [{"atMs": 0, "type": "PAUSE_ROBOT", "robotId": "r1"}]},
            r"PAUSE_ROBOT at 0 ms cannot be done: there is no truck 'r1' \(did you mean R1\?\)",
        ),
        (
            {"events": [{"atMs": 5, "type": "RELOCATE", **RELOCATED}]},
            "RELOCATE at 5 ms cannot be done: There is no edge 'E->W' on the map",
        ),
        (
            {"events": [{"atMs": 0, "type": "CANCEL_TASK"}]},
            "CANCEL_TASK at 0 ms cannot be done: CANCEL_TASK needs taskId",
        ),
        ({"robots": [{"robotId": "R1", "parkNodeId": "e"}]}, r"rests in 'e', which is not a node \(did you mean E\?\)"),
    ],
)
def test_impossible_tasks_are_reported_before_the_run(member: dict[str, Any], message: str) -> None:
    with pytest.raises(ScenarioRefused, match=message):
        Run(read_scenario(from_value({**PLAIN, **member}), Path()))


@pytest.mark.parametrize(
    ("event", "message"),
    [
        (
            {"type": "STAND", "robotId": "R1", "forMs": 100},
            "the event is at 1001 ms, but the scenario ends at 1000 ms",
        ),
        ({"type": "PAUSE_FLEET"}, "the event is at 1001 ms, but the scenario ends at 1000 ms"),
        ({"type": "OFLINE", "robotId": "R1", "forMs": 100}, "there is no event 'OFLINE' (did you mean OFFLINE?)"),
    ],
)
def test_an_event_after_the_end_is_rejected_at_its_place(event: dict[str, Any], message: str) -> None:
    with pytest.raises(DocumentRefused) as refused:
        read_scenario(from_value({**PLAIN, "events": [{"atMs": 1001, **event}]}), Path())

    assert any(message in fault.message and fault.path.startswith("$.events[0]") for fault in refused.value.faults)


@pytest.mark.parametrize(
    ("sample", "path"),
    [
        ({"name": "built-warehouse", "parks": 20, "nodes": 10}, "$.sample"),
        ({"name": "spur-grid", "columns": 1}, "$.sample.columns"),
        ({"name": "live-map", "parks": 0}, "$.sample.parks"),
        ({"name": "triangle", "side": 0}, "$.sample.side"),
        ({"name": "reference-hall", "trucks": 5}, "$.sample.trucks"),
    ],
)
def test_a_sample_with_contradicting_options_is_rejected_with_its_place(sample: dict[str, Any], path: str) -> None:
    assert faults({**PLAIN, "sample": sample}) == [path]


@pytest.mark.parametrize(
    ("members", "path"),
    [
        ({"type": "RELOCATE", "anchor": {"edgeKey": "W->X", "sM": 100_001}}, "anchor.sM"),
        ({"type": "RELOCATE", "anchor": {"edgeKey": "W->X", "sM": "NaN"}}, "anchor.sM"),
        ({"type": "PAUSE_ROBOT", "reason": "r" * 501}, "reason"),
        ({"type": "PAUSE_ROBOT", "actionId": "a" * 129}, "actionId"),
        ({"type": "FORCE_RELEASE", "resources": ["r"] * 257}, "resources"),
        ({"type": "FORCE_RELEASE", "resources": ["r" * 1000] * 17}, "resources"),
    ],
)
def test_an_invalid_action_is_rejected_with_its_place(members: dict[str, Any], path: str) -> None:
    event = {"atMs": 1000, "robotId": "R1", **members}

    assert faults({**PLAIN, "events": [event]}) == [f"$.events[0].{path}"]


TASK = {"taskId": "T", "pickNodeId": "N", "dropNodeId": "S"}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"robots": [PLAIN["robots"][0]] * 2}, "there are two trucks 'R1'"),
        (
            {"robots": [{"robotId": "R1", "parkNodeId": "E", "profileId": "X"}]},
            "has the undefined profile 'X'",
        ),
        ({"robots": [{"robotId": "R1", "parkNodeId": "Z"}]}, "rests in 'Z', which is not a node"),
        (
            {"robots": [{"robotId": "R1", "parkNodeId": "E", "anchor": {"edgeKey": "W->Y", "sM": 1}}]},
            "begins on 'W->Y', which is not an edge (did you mean W->X?)",
        ),
        (
            {"robots": [{"robotId": "R1", "parkNodeId": "E", "anchor": {"edgeKey": "W->X", "sM": Decimal("12.5")}}]},
            "begins 12.5 m along 'W->X', which is 12 m long",
        ),
        ({"sample": {"name": "hall-demo"}, "robots": None}, "there is no truck: name some under robots"),
        ({"tasks": [TASK, TASK]}, "there are two tasks 'T'"),
        ({"streams": [STREAM, STREAM]}, "there are two streams 'S'"),
        ({"events": [{"atMs": 1, "type": "STAND", "robotId": "R9", "forMs": 5}]}, "there is no truck 'R9'"),
        ({"events": [{"atMs": 1, "type": "ROUTE", "robotId": "R1", "toNodeId": "Q"}]}, "there is no node 'Q'"),
        ({"expect": [{"arrives": {"robotId": "R1", "nodeId": "Z", "byMs": 5}}]}, "there is no node 'Z'"),
        ({"expect": [{"neverBeyond": {"robotId": "R1", "edgeKey": "A->B", "sM": 1}}]}, "there is no edge 'A->B'"),
        ({"expect": [{"neverTogether": [{"robotId": "R8", "edgeKey": "X->E"}] * 2}]}, "there is no truck 'R8'"),
        ({"expect": [{"directionFlips": {"edgeGroupKey": "E<->Y", "atMost": 1}}]}, "there is no lane 'E<->Y'"),
    ],
)
def test_duplicate_and_unknown_names_are_reported_before_the_run(change: dict[str, Any], message: str) -> None:
    form = {name: value for name, value in {**PLAIN, **change}.items() if value is not None}

    with pytest.raises(ScenarioRefused) as refused:
        Run(read_scenario(from_value(form), Path()))

    assert message in str(refused.value)


@pytest.mark.parametrize(
    ("expected", "path"),
    [
        ({"alert": {"code": "DEADLOCK", "byMs": 1}}, "$.expect[0].alert.code"),
        ({"noAlert": "DEADLOCK"}, "$.expect[0].noAlert"),
        ({"someTruckWaits": {"reasonCode": "WAIT"}}, "$.expect[0].someTruckWaits.reasonCode"),
        ({"longestWait": {"atMostMs": 1, "reasonCode": "WAIT"}}, "$.expect[0].longestWait.reasonCode"),
    ],
)
def test_a_code_that_cannot_occur_cannot_be_expected(expected: dict[str, Any], path: str) -> None:
    assert faults({**PLAIN, "expect": [expected]}) == [path]


def test_a_task_without_a_way_back_is_rejected_even_with_an_override() -> None:
    """R2 rests in Q, on the only way to B."""
    nodes = [{"id": name, "x": x, "y": 0} for name, x in (("P", 0), ("A", 10), ("Q", 20), ("B", 35))]
    edges = [{"id": way, "start": way[0], "end": way[1], "props": {"direction": "both"}} for way in ("PA", "AQ", "QB")]
    form: dict[str, Any] = {key: value for key, value in PLAIN.items() if key != "sample"}
    form["map"] = {"contractVersion": "1.0.0", "mapId": "one-lane", "nodes": nodes, "edges": edges}
    form["robots"] = [{"robotId": "R1", "parkNodeId": "P"}, {"robotId": "R2", "parkNodeId": "Q"}]
    form["tasks"] = [{"taskId": "T", "pickNodeId": "A", "dropNodeId": "B", "robotId": "R1"}]
    form["override"] = True

    with pytest.raises(ScenarioRefused) as refused:
        Run(read_scenario(from_value(form), Path()))

    assert "'T': no truck can go over 'A' and 'B' and come back to rest" in str(refused.value)
