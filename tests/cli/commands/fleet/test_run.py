"""`pendula fleet run`, `why` and `draw --at`: scenarios from the command line."""

import json
import re
from pathlib import Path

import pytest

from tests.cli.conftest import Pendula


def test_a_run_reports_that_all_expectations_hold(pendula: Pendula) -> None:
    ended = pendula("fleet", "run", "arrival")

    assert ended.code == 0, ended.err
    assert "All expectations were met." in ended.out


@pytest.mark.req("FLT-TEST-5")
def test_the_json_form_of_a_run_has_the_members_of_the_contract(pendula: Pendula) -> None:
    form = json.loads(pendula("fleet", "run", "crossing", "--json").out)

    assert set(form) >= {"metrics", "invariants", "incidents", "tasks", "digest"}
    assert form["invariants"]["I-2"]["violations"] == 0
    assert form["tasks"] == {"done": 0, "held": 0, "open": 0}
    assert "refusedActions" not in form


def test_the_option_seed_takes_precedence_over_the_file(pendula: Pendula) -> None:
    digests = {json.loads(pendula("fleet", "run", "arrival", "--seed", seed, "--json").out)["digest"] for seed in "112"}

    assert len(digests) == 2


def test_a_failed_expectation_exits_with_1(pendula: Pendula, tmp_path: Path) -> None:
    file = tmp_path / "early.yaml"
    file.write_text(
        "contractVersion: 1.0.0\nname: early\nsample: {name: plus-crossing}\ndurationMs: 2000\n"
        "robots: [{robotId: R1, startNodeId: W, parkNodeId: E}]\nexpect: [{allAtRest: true}]\n"
    )

    ended = pendula("fleet", "run", file, "--json")

    assert ended.code == 1
    assert json.loads(ended.err)["error"]["details"]["unmet"] == ["R1 is not in its rest node E"]


def test_a_long_violation_by_the_same_trucks_is_reported_once(pendula: Pendula) -> None:
    from rich.console import Console

    from pendula.cli.commands.fleet.tables import ran

    form = json.loads(pendula("fleet", "run", "arrival", "--json").out)
    together = [
        {"atMs": 100 * n, "invariant": "I-7", "message": f"DISC_ENTERED: {who}, -0.00{n} m on level route"}
        for who in ("R1 and R2", "R1 and R3")
        for n in (1, 2, 3)
    ]
    alone = {"atMs": 400, "invariant": "I-3", "message": "R1 passed its stop line"}
    errors = [{"atMs": 500, "invariant": "I-4", "message": f"KeyError: ('R1', {end})"} for end in ("'A'", "'B'", "'B'")]
    console = Console(width=200)
    with console.capture() as shown:
        console.print(ran({**form, "violations": [*together, alone, *errors]}))

    lines = [line.rstrip() for line in shown.get().splitlines() if " ms, I-" in line]
    assert lines == [
        "100 ms, I-7: DISC_ENTERED: R1 and R2, -0.001 m on level route; 2 more of these up to 300 ms",
        "100 ms, I-7: DISC_ENTERED: R1 and R3, -0.001 m on level route; 2 more of these up to 300 ms",
        "400 ms, I-3: R1 passed its stop line",
        "500 ms, I-4: KeyError: ('R1', 'A')",
        "500 ms, I-4: KeyError: ('R1', 'B'); 1 more of these up to 500 ms",
    ]


def test_a_missing_scenario_is_wrong_usage(pendula: Pendula) -> None:
    ended = pendula("fleet", "run", "nowhere")

    assert ended.code == 2
    assert "There is no scenario 'nowhere'" in ended.err


@pytest.mark.req("FLT-OBS-7")
def test_why_names_the_cycle_that_would_be_closed(pendula: Pendula) -> None:
    form = json.loads(pendula("fleet", "why", "head-on", "R2", "--at", "30000", "--json").out)

    assert (form["reasonCode"], form["blockerRobotId"]) == ("WAIT_SAFE_STATE", "R1")
    assert sorted(form["cycle"]) == ["R1", "R2"]


def test_why_of_an_unknown_truck_is_refused(pendula: Pendula) -> None:
    ended = pendula("fleet", "why", "arrival", "R9", "--at", "100")

    assert ended.code == 1
    assert "There is no truck 'R9' in arrival" in ended.err


def test_a_moment_of_a_scenario_is_drawn(pendula: Pendula, tmp_path: Path) -> None:
    out = tmp_path / "moment.svg"

    ended = pendula("fleet", "draw", "crossing", "--at", "5000", "-o", out)

    assert ended.code == 0, ended.err
    assert "R2" in out.read_text()


@pytest.mark.parametrize("at", [(), ("--at", "5000")])
def test_a_journal_cannot_be_drawn_and_the_refusal_names_an_alternative(
    pendula: Pendula, tmp_path: Path, at: tuple[str, ...]
) -> None:
    pendula("fleet", "run", "arrival", "--journal", tmp_path / "j.1")

    ended = pendula("fleet", "draw", tmp_path / "j.1", *at, "-o", tmp_path / "moment.svg")

    assert ended.code == 2
    assert "j.1 is a directory; if it is a journal, pendula fleet why, replay, export and incidents take" in ended.err
    assert "draw its scenario with --at" in ended.err


def test_a_map_in_the_place_of_a_scenario_is_called_a_map(pendula: Pendula, tmp_path: Path) -> None:
    hall = tmp_path / "hall.json"
    pendula("fleet", "new", "--scene", "hall-demo", "-o", hall)

    ended = pendula("fleet", "run", hall)

    assert ended.code == 2
    assert "is a map; a scenario names one as mapFile" in ended.err
    assert ended.err.count("\n") == 1


def test_why_of_a_driving_truck_names_its_activity(pendula: Pendula) -> None:
    assert pendula("fleet", "why", "arrival", "R1", "--at", "5000").out == ("R1 does not wait. R1 is on its way.\n")


@pytest.mark.req("FLT-FAIL-11")
def test_a_run_reports_refused_operator_actions(pendula: Pendula, tmp_path: Path) -> None:
    file = tmp_path / "refused.yaml"
    file.write_text(
        "contractVersion: 1.0.0\nname: refused\nsample: {name: plus-crossing}\ndurationMs: 12000\n"
        "robots: [{robotId: R1, parkNodeId: E}, {robotId: R2, parkNodeId: W}]\n"
        "events:\n"
        "  - {atMs: 0, type: PAUSE_FLEET}\n"
        "  - {atMs: 1000, type: REMOVE_ROBOT, robotId: R1, actionId: tow-1, physicallySecured: true}\n"
        "  - {atMs: 2000, type: REMOVE_ROBOT, robotId: R1, actionId: tow-2, physicallySecured: true,"
        " confirmationOf: tow-1}\n"
        "  - {atMs: 3000, type: REMOVE_ROBOT, robotId: R2, actionId: tow-3, physicallySecured: true}\n"
        "  - {atMs: 4000, type: CANCEL_TASK, taskId: T9}\n"
    )

    form = json.loads(pendula("fleet", "run", file, "--json").out)
    shown = " ".join(pendula("fleet", "run", file).out.split())

    assert [(one["atMs"], one["actionId"], one["type"], one["code"]) for one in form["refusedActions"]] == [
        (3000, "tow-3", "REMOVE_ROBOT", "CONFIRMATION_NEEDED"),
        (4000, "CANCEL_TASK-4000", "CANCEL_TASK", "TASK_UNKNOWN"),
    ]
    assert [one.get("taskId", one.get("robotId")) for one in form["refusedActions"]] == ["R2", "T9"]
    assert "4000 ms, CANCEL_TASK (CANCEL_TASK-4000) was rejected: " in shown
    assert "(TASK_UNKNOWN)" in shown


@pytest.mark.req("FLT-OBS-11")
def test_a_run_has_the_incidents_that_its_journal_has(pendula: Pendula, tmp_path: Path) -> None:
    file = tmp_path / "jump.yaml"
    file.write_text(
        "contractVersion: 1.0.0\nname: jump\nsample: {name: plus-crossing}\ndurationMs: 12000\n"
        "robots: [{robotId: R1, startNodeId: W, parkNodeId: E}]\n"
        "events: [{atMs: 4000, type: POSE_JUMP, robotId: R1, forMs: 3000, dxM: 0, dyM: 3}]\n"
    )

    plain = json.loads(pendula("fleet", "run", file, "--json").out)
    journalled = json.loads(pendula("fleet", "run", file, "--journal", tmp_path / "j", "--json").out)
    listed = json.loads(pendula("fleet", "incidents", tmp_path / "j", "--json").out)["incidents"]
    shown = pendula("fleet", "run", file).out

    assert plain["incidents"] == journalled["incidents"] == listed
    assert [(one["code"], one["robotIds"]) for one in listed] == [("STOP_POSE_JUMP", ["R1"])]
    assert plain["violations"] == []
    assert f"{listed[0]['atMs']} ms, {listed[0]['incidentId']}: R1 was stopped: STOP_POSE_JUMP" in shown


def test_a_moment_after_the_end_of_a_scenario_is_wrong_usage(pendula: Pendula, tmp_path: Path) -> None:
    why = pendula("fleet", "why", "arrival", "R1", "--at", 90_000_000)
    draw = pendula("fleet", "draw", "arrival", "-o", tmp_path / "at.svg", "--at", 90_000_000)

    assert (why.code, draw.code) == (2, 2)
    for said in (why.err, draw.err):
        assert re.search(r"--at 90000000 is 90000 s, and the scenario ends at \d+ s", said)


def test_a_missing_scenario_is_refused_with_the_nearest_name(pendula: Pendula) -> None:
    ended = pendula("fleet", "run", "hal")

    assert ended.code == 2
    assert "There is no scenario 'hal' (did you mean hall?)" in ended.err
    assert "files ending in .yaml or .json" in ended.err


def test_violations_are_counted_even_if_only_the_first_are_kept(pendula: Pendula) -> None:
    from rich.console import Console

    from pendula.cli.commands.fleet.tables import ran

    form = json.loads(pendula("fleet", "run", "arrival", "--json").out)
    form["violations"] = [{"atMs": at, "invariant": "I-8", "message": "R1 cannot stop"} for at in range(100)]
    form["invariants"]["I-8"]["violations"] = 23_833
    console = Console(width=200)
    with console.capture() as shown:
        console.print(ran(form))

    assert "These are the first 100 of 23833 violations: I-8 23833" in shown.get()
