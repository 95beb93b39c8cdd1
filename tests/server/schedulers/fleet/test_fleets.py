"""Fleets over HTTP: they run by themselves, are viewed and operated, and continue after a restart."""

import asyncio
import errno
import io
import json
import threading
import time
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

import httpx
import msgspec
import pytest
from fastapi import FastAPI

from pendula.documents import Document
from pendula.fleet.map.site_file import from_bytes
from pendula.fleet.runs import reading, verify_ticks
from pendula.fleet.scenarios import running as running_scenarios
from pendula.fleet.scenarios.reading import read_drill
from pendula.fleet.simulator.truck import Fault
from pendula.kernel.disk import Disk, RealDisk
from pendula.kernel.limits import MIB
from pendula.server.api.requests import QUICK_BYTES
from pendula.server.runtime.scheduler_spec import SchedulerSpec
from pendula.server.schedulers.fleet import commands, fleets, routes
from pendula.server.schedulers.fleet.alerts import WINDOW
from pendula.server.schedulers.fleet.fleets import fleets_of
from pendula.server.schedulers.fleet.routes import scheduler_for
from pendula.server.security.identity import Role, TokenStore
from pendula.server.settings import Settings
from tests.server.living import StreamReader, client_of, code_of, running, supervisor_of
from tests.server.schedulers.fleet.halls import BASE, HALL, made, now, until

pytestmark = pytest.mark.anyio
HALL_AT = f"{BASE}/hall"
BIG = {name: HALL[name] for name in ("contractVersion", "name", "durationMs")}
BIG |= {"sample": {"name": "built-warehouse", "parks": 100, "nodes": 1000}}


@pytest.fixture
def schedulers(settings: Settings) -> Sequence[SchedulerSpec]:
    return (scheduler_for(settings),)


@pytest.fixture
async def served(app: FastAPI) -> AsyncIterator[httpx.AsyncClient]:
    async with client_of(app) as client:
        await made(client)
        yield client


@pytest.mark.long
async def test_a_fleet_runs_by_itself_and_does_its_tasks(served: httpx.AsyncClient) -> None:
    reply = await until(served, lambda it: it["counts"].get("DONE", 0) >= 1)

    assert [one["robot_id"] for one in reply["trucks"]] == ["R1", "R2", "R3"]
    assert reply["broken"] == []
    assert {one["stream_id"] for one in reply["streams"]}


ACTIONS: list[dict[str, Any]] = [
    *({"type": f"{kind}_ROBOT", "robotId": "R1"} for kind in ("PAUSE", "RESUME", "REMOVE")),
    *({"type": kind, "robotId": "R1"} for kind in ("CLEAR_FAULT", "RELOCATE", "DECLARE_ABSENT", "FORCE_RELEASE")),
    *({"type": f"{kind}_TASK", "taskId": "T1"} for kind in ("CANCEL", "WITHDRAW", "HOLD", "RESUME")),
    {"type": "PAUSE_FLEET"},
    {"type": "RESUME_FLEET"},
    {"type": "CLOSE_RESOURCE", "resources": ["NODE:WEST"]},
    {"type": "OPEN_RESOURCE", "resources": ["NODE:WEST"]},
]
OTHERS: list[tuple[str, Any]] = [
    ("/tasks", {"pickNodeId": "WEST", "dropNodeId": "EAST"}),
    ("/stock", {"nodeId": "WEST", "goods": 1}),
    ("/faults", {"robotId": "R1", "type": "STAND", "forMs": 1}),
    ("/reports", {"reports": []}),
    ("/close", {}),
    ("/open", {}),
]


@pytest.mark.req("FLT-FAIL-11", "FLT-API-7")
async def test_a_viewer_cannot_change_a_fleet_and_gets_the_reason(
    settings: Settings, schedulers: Sequence[SchedulerSpec]
) -> None:
    secrets = {role: TokenStore(settings.data).new(f"the-{role}", role)[1] for role in (Role.VIEWER, Role.OPERATOR)}
    headers = {role: {"authorization": f"Bearer {secret}"} for role, secret in secrets.items()}
    requests = [*(("/actions", {**one, "reason": "because"}) for one in ACTIONS), *OTHERS]
    async with running(settings, schedulers) as app, client_of(app, headers=headers[Role.OPERATOR]) as client:
        await made(client)
        looks = headers[Role.VIEWER]
        refused = [await client.post(HALL_AT + path, json=body, headers=looks) for path, body in requests]
        refused.append(await client.post(BASE, params={"name": "mine"}, json=HALL, headers=looks))
        refused.append(await client.get(f"{HALL_AT}/orders", headers=looks))
        looked = await client.get(f"{HALL_AT}/now", headers=looks)
        fleets = (await client.get(BASE)).json()["fleets"]
        pause = {"type": "PAUSE_ROBOT", "robotId": "R1", "reason": "floor cleaning"}
        await client.post(f"{HALL_AT}/actions", json=pause)
        inbox = fleets_of(supervisor_of(app)).loop("hall").engine.inbox.saved()

    assert {(one.status_code, code_of(one)) for one in refused} == {(403, "role_too_low")}
    assert {one.json()["error"]["message"] for one in refused} == {"This needs the role operator; the-viewer is viewer"}
    assert (looked.status_code, [one["name"] for one in fleets]) == (200, ["hall"])
    assert not any(one["paused"] for one in looked.json()["trucks"])
    # Operator and role come from the token, not from the request.
    assert [(one.operatorId, one.role) for one, _ in inbox.answers] == [("the-operator", "operator")]


@pytest.mark.parametrize(("limit", "code"), [("MOST_EDGES", "map_too_large"), ("MOST_TRUCKS", "fleet_too_large")])
async def test_too_large_a_map_or_fleet_is_refused_before_compilation(
    app: FastAPI, monkeypatch: pytest.MonkeyPatch, limit: str, code: str
) -> None:
    monkeypatch.setattr(routes, limit, 2)
    monkeypatch.setattr(routes, "Run", None)
    async with client_of(app) as client:
        answer = await client.post(BASE, params={"name": "hall"}, json=HALL)

    assert (answer.status_code, code_of(answer)) == (413, code)
    assert "at most 2 are allowed over HTTP" in answer.json()["error"]["message"]


@pytest.mark.req("FLT-PERF-3")
async def test_a_large_map_is_compiled_in_a_separate_process(app: FastAPI, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(routes, "MOST_EDGES_HERE", 2)
    monkeypatch.setattr(running_scenarios, "compile_map", None)
    async with client_of(app) as client:
        await made(client)
        reply = await until(client, lambda it: it["tick"] > 5)

    assert reply["broken"] == []


@pytest.mark.req("FLT-PERF-3")
async def test_too_expensive_a_map_is_refused_with_an_alternative(
    app: FastAPI, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(routes, "MOST_EDGES_HERE", 2)
    monkeypatch.setattr(fleets, "MAP_MEMORY_BYTES", 64 * MIB)
    async with client_of(app) as client:
        answer = await client.post(BASE, params={"name": "hall"}, json=BIG)
        listed = (await client.get(BASE)).json()["fleets"]

    assert (answer.status_code, code_of(answer)) == (413, "map_too_large")
    assert answer.json()["error"]["message"] == (
        "The map was not compiled: it needs more than 64 MiB of memory. Split it into several maps, or run it with "
        "`pendula fleet run`"
    )
    assert listed == []


@pytest.mark.req("FLT-PERF-3")
async def test_a_stopping_server_does_not_wait_for_a_map(
    settings: Settings, schedulers: Sequence[SchedulerSpec], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(routes, "MOST_EDGES_HERE", 2)
    async with running(settings, schedulers) as app, client_of(app) as client:
        compiler = fleets_of(supervisor_of(app)).map_compiler
        asking = asyncio.create_task(client.post(BASE, params={"name": "big"}, json=BIG))
        async with asyncio.timeout(120):
            while compiler._process is None or compiler._process._process is None:
                await asyncio.sleep(0.001)
        compiler.close()
        answer = await asking

    assert (answer.status_code, code_of(answer)) == (503, "compiler_stopped")


@pytest.mark.long
@pytest.mark.req("FLT-PERF-3")
async def test_a_map_of_a_thousand_nodes_is_served(app: FastAPI) -> None:
    async with client_of(app, timeout=600) as client:
        response = await client.post(BASE, params={"name": "hall"}, json=BIG)
        reply = await until(client, lambda it: it["tick"] > 5, 300)
        drawn = (await client.get(f"{HALL_AT}/map")).json()

    assert response.status_code == 201, response.text
    assert len(drawn["nodes"]) == 1000
    assert len(reply["trucks"]) == 100


async def test_a_fleet_that_cannot_be_stored_is_refused_and_the_others_continue(
    settings: Settings, schedulers: Sequence[SchedulerSpec]
) -> None:
    mood = Mood()
    async with running(settings, schedulers, disk=mood.disks) as app, client_of(app) as client:
        await made(client)
        mood.read_only = True
        answer = await client.post(BASE, params={"name": "second"}, json=HALL)
        before = await now(client)
        later = await until(client, lambda it: it["tick"] > before["tick"] + 10)
        mood.read_only = False
        await made(client, "second")

    assert (answer.status_code, code_of(answer)) == (503, "journal_broken")
    assert "Read-only file system" in answer.json()["error"]["message"]
    assert later["degraded"] is None


@pytest.mark.parametrize(
    ("name", "near"),
    [
        ("My Hall", ", such as 'my-hall'"),
        ("-hall", ", such as 'hall'"),
        ("h" * 65, f", such as '{'h' * 64}'"),
        ("?", ""),
    ],
)
async def test_an_invalid_name_is_refused_with_the_form_of_names(app: FastAPI, name: str, near: str) -> None:
    async with client_of(app) as client:
        made_so = await client.post(BASE, params={"name": name}, json=HALL)
        asked = await client.get(f"{BASE}/{quote(name, safe='')}/now")

    for answer, place in ((made_so, "name (query)"), (asked, "fleet (path)")):
        message = answer.json()["error"]["message"]
        assert (answer.status_code, code_of(answer)) == (422, "invalid_request")
        assert message.startswith(f"The request is invalid: {place}: ")
        assert message.endswith(f"hyphens and does not begin with a hyphen{near}")


async def test_a_map_is_not_read_from_a_file_of_the_server(app: FastAPI) -> None:
    plan = {name: value for name, value in HALL.items() if name not in ("map", "sample")}
    async with client_of(app) as client:
        answer = await client.post(BASE, params={"name": "hall"}, json={**plan, "mapFile": "hall.yaml"})

    assert answer.status_code == 422
    assert "files are not read over HTTP; put the map itself into `map`" in answer.text
    assert "nonexistent" not in answer.text


@pytest.mark.req("FLT-API-7")
async def test_a_repeated_task_gets_the_same_reply_and_another_task_of_its_id_is_refused(
    served: httpx.AsyncClient,
) -> None:
    task = {"taskId": "mine", "pickNodeId": "WEST", "dropNodeId": "EAST"}

    first, again = [await served.post(f"{HALL_AT}/tasks", json=task) for _ in range(2)]
    other = await served.post(f"{HALL_AT}/tasks", json={**task, "pickNodeId": "EAST", "dropNodeId": "WEST"})

    assert (first.status_code, first.json()) == (201, {"task_id": "mine"})
    assert (again.status_code, again.json()) == (201, {"task_id": "mine"})
    assert (other.status_code, other.json()["error"]["details"]["reason"]) == (409, "TASK_KNOWN")
    assert [one["task_id"] for one in (await now(served))["tasks"]].count("mine") == 1


@pytest.mark.parametrize(
    ("member", "given"),
    [
        ("tasks", [{"taskId": "T1", "pickNodeId": "WEST", "dropNodeId": "EAST"}]),
        ("events", [{"atMs": 10, "type": "STAND", "robotId": "R1", "forMs": 10}]),
        ("events", [{"atMs": 5, "type": "PAUSE_FLEET"}]),
        ("taskEvents", [{"atMs": 10, "type": "GOODS", "nodeId": "WEST", "count": 1}]),
    ],
)
async def test_a_script_of_a_scenario_is_refused_for_a_served_fleet(app: FastAPI, member: str, given: Any) -> None:
    async with client_of(app) as client:
        answer = await client.post(BASE, params={"name": "hall"}, json=HALL | {member: given})

        assert (answer.status_code, code_of(answer)) == (422, "script_not_served")
        assert answer.json()["error"]["details"]["members"] == [member]
        assert (await client.get(BASE)).json()["fleets"] == []


@pytest.mark.req("FLT-API-7")
async def test_the_map_is_served_in_millimetres_with_the_outlines_of_its_trucks(served: httpx.AsyncClient) -> None:
    reply = (await served.get(f"{HALL_AT}/map")).json()

    assert all(len(one["points"]) == len(one["s"]) >= 2 for one in reply["edges"])
    assert reply["profiles"][0]["envelope"]["front"] > reply["profiles"][0]["body"]["front"] > 500
    assert reply["low"][0] < reply["high"][0]
    assert all(0 <= one["start"] < len(reply["nodes"]) for one in reply["edges"])


@pytest.mark.req("FLT-API-7", "FLT-FAIL-11")
async def test_a_paused_truck_stands_with_a_reason_and_continues_when_resumed(served: httpx.AsyncClient) -> None:
    await until(served, lambda it: any(one["speed"] > 500 for one in it["trucks"]))
    moving = next(one["robot_id"] for one in (await now(served))["trucks"] if one["speed"] > 0)
    action = {"type": "PAUSE_ROBOT", "robotId": moving, "reason": "floor cleaning", "actionId": "op-1"}

    first = await served.post(f"{HALL_AT}/actions", json=action)
    again = await served.post(f"{HALL_AT}/actions", json=action)
    stood = await until(served, lambda it: _truck(it, moving)["paused"] and _truck(it, moving)["speed"] == 0)
    why = await served.post(f"{HALL_AT}/why", json={"question": {"robot": moving}})
    await served.post(f"{HALL_AT}/actions", json={"type": "RESUME_ROBOT", "robotId": moving, "reason": "dry"})
    resumed = await until(served, lambda it: _truck(it, moving)["speed"] > 0)

    assert first.json()["accepted"] is True
    assert again.json() == first.json()
    assert [one["robot_id"] for one in stood["trucks"] if one["needs_person"]] == [moving]
    assert [one for one in resumed["trucks"] if one["needs_person"]] == []
    assert _truck(stood, moving)["code"] == why.json()["code"] == "STOP_OPERATOR"


@pytest.mark.req("FLT-FAIL-11", "FLT-API-7")
async def test_of_concurrent_actions_with_one_id_one_is_applied_and_the_others_are_refused(
    served: httpx.AsyncClient,
) -> None:
    wanted = [("PAUSE_ROBOT", "R1"), ("PAUSE_ROBOT", "R2"), ("PAUSE_ROBOT", "R1"), ("PAUSE_ROBOT", "R3")]
    bodies = [{"type": kind, "robotId": name, "reason": "x", "actionId": "op-1"} for kind, name in wanted]

    answers = [
        one.json() for one in await asyncio.gather(*(served.post(f"{HALL_AT}/actions", json=one) for one in bodies))
    ]

    # Which request arrives first is up to the server; equal bodies are one action.
    [done] = {name for (_, name), answer in zip(wanted, answers, strict=True) if answer["accepted"]}
    assert [(one["message"], one["code"]) for one in answers] == [
        (f"{done} is paused", None) if name == done else ("'op-1' is the id of an earlier action", "ACTION_ID_TAKEN")
        for _, name in wanted
    ]


@pytest.mark.req("FLT-API-7", "FLT-FAIL-11")
async def test_dangerous_actions_need_a_confirmation_and_a_standing_truck(served: httpx.AsyncClient) -> None:
    await until(served, lambda it: any(one["speed"] > 0 for one in it["trucks"]))
    robot = next(one["robot_id"] for one in (await now(served))["trucks"] if one["speed"] > 0)
    removal = {"type": "REMOVE_ROBOT", "robotId": robot, "reason": "towed away", "physicallySecured": True}

    refused = (await served.post(f"{HALL_AT}/actions", json={**removal, "actionId": "a"})).json()
    await served.post(f"{HALL_AT}/actions", json={"type": "PAUSE_ROBOT", "robotId": robot, "reason": "tow"})
    await until(served, lambda it: _truck(it, robot)["speed"] == 0)
    first = (await served.post(f"{HALL_AT}/actions", json={**removal, "actionId": "b"})).json()
    second = (await served.post(f"{HALL_AT}/actions", json={**removal, "actionId": "c", "confirmationOf": "b"})).json()

    assert refused["accepted"] is False
    assert first["code"] == "CONFIRMATION_NEEDED"
    assert second["accepted"] is True
    assert second["freedResources"]


@pytest.mark.req("FLT-FAIL-11")
async def test_a_removed_simulated_truck_stays_out_until_it_is_put_back(
    settings: Settings, schedulers: Sequence[SchedulerSpec]
) -> None:
    removal = {"type": "REMOVE_ROBOT", "robotId": "R1", "reason": "towed away", "physicallySecured": True}
    async with running(settings, schedulers) as app, client_of(app) as client:
        await made(client)
        await client.post(f"{HALL_AT}/actions", json={"type": "PAUSE_ROBOT", "robotId": "R1", "reason": "tow"})
        await until(client, lambda it: _truck(it, "R1")["paused"] and _truck(it, "R1")["speed"] == 0)
        await client.post(f"{HALL_AT}/actions", json={**removal, "actionId": "b"})
        await client.post(f"{HALL_AT}/actions", json={**removal, "actionId": "c", "confirmationOf": "b"})
        removed = await until(client, lambda it: (_truck(it, "R1")["report_age"] or 0) > 1000)
    async with running(settings, schedulers) as app, client_of(app) as client:
        begun = (await now(client))["now"]
        restarted = await until(client, lambda it: it["now"] > begun + 1000)
        carried = {"robotId": "R1", "type": "CARRIED", "dxM": 0, "dyM": 0}
        reply = await client.post(f"{HALL_AT}/faults", json=carried)
        back = await until(client, lambda it: _truck(it, "R1")["at"] is not None)
        await client.post(f"{HALL_AT}/actions", json={"type": "RESUME_ROBOT", "robotId": "R1", "reason": "mended"})
        aside = await until(client, lambda it: _truck(it, "R1")["code"] == "STOP_OPERATOR")

    for told_of in (_truck(removed, "R1"), _truck(restarted, "R1")):
        assert (told_of["at"], told_of["silent"], told_of["needs_person"]) == (None, False, False)
    assert reply.status_code == 204
    assert _truck(back, "R1")["report_age"] < 1000
    assert (_truck(aside, "R1")["paused"], _truck(aside, "R1")["health"]) == (False, "HEALTHY")


@pytest.mark.long
@pytest.mark.req("FLT-API-7")
async def test_a_posted_task_is_done_and_an_impossible_one_is_refused(served: httpx.AsyncClient) -> None:
    stream = (await now(served))["streams"][0]
    body = {"pickNodeId": stream["pick_node_ids"][0], "dropNodeId": stream["drop_node_ids"][0], "priority": 99}

    accepted = await served.post(f"{HALL_AT}/tasks", json={**body, "taskId": "mine"})
    wrong = await served.post(f"{HALL_AT}/tasks", json={**body, "pickNodeId": "nowhere"})
    done = await until(
        served, lambda it: any(one["task_id"] == "mine" and one["state"] == "DONE" for one in it["over"]), 120
    )

    assert (accepted.status_code, accepted.json()) == (201, {"task_id": "mine"})
    assert (wrong.status_code, code_of(wrong)) == (409, "task_refused")
    assert done["counts"]["DONE"] >= 1


@pytest.mark.parametrize(
    ("path", "body", "said"),
    [
        ("tasks", {"pickNodeId": "WESR", "dropNodeId": "EAST"}, "there is no node 'WESR' (did you mean WEST?)"),
        ("tasks", {"pickNodeId": "WEST", "dropNodeId": "EASR"}, "there is no node 'EASR' (did you mean EAST?)"),
        ("tasks", {"pickNodeId": "WEST", "dropNodeId": "EAST", "robotIds": ["r1"]}, "there is no truck 'r1'"),
        (
            "tasks",
            {"pickNodeId": "WEST", "dropNodeId": "EAST", "robotIds": ["R11"]},
            "no truck 'R11' (did you mean R1?)",
        ),
        ("tasks", {"pickNodeId": "WEST", "dropNodeId": "EAST", "streamId": "S-IN"}, "there is no stream 'S-IN'"),
        ("stock", {"nodeId": "WESR", "goods": 1}, "there is no node 'WESR' (did you mean WEST?)"),
        ("priority", {"taskId": "nobody", "priority": 5}, "'nobody'"),
    ],
)
async def test_an_unknown_name_is_refused_with_a_suggestion(
    served: httpx.AsyncClient, path: str, body: dict[str, Any], said: str
) -> None:
    refused = await served.post(f"{HALL_AT}/{path}", json=body)

    assert (refused.status_code, code_of(refused)) == (409, "task_refused")
    assert said in refused.json()["error"]["message"]


async def test_a_drill_of_an_unknown_truck_is_refused_with_a_suggestion(
    served: httpx.AsyncClient,
) -> None:
    refused = await served.post(f"{HALL_AT}/faults", json={"robotId": "R11", "type": "STAND", "forMs": 1000})

    assert (refused.status_code, code_of(refused)) == (409, "unknown_robot")
    assert "There is no truck 'R11' (did you mean R1?)" in refused.json()["error"]["message"]


async def test_real_trucks_have_no_speed(app: FastAPI) -> None:
    async with client_of(app) as client:
        refused = await client.post(BASE, params={"name": "hall", "live": True, "speed": 3}, json=HALL)
        fleets = (await client.get(BASE)).json()["fleets"]

    assert (refused.status_code, code_of(refused)) == (422, "invalid_request")
    assert "remove speed or live" in refused.json()["error"]["message"]
    assert fleets == []


@pytest.mark.req("FLT-API-7")
async def test_a_repeated_task_with_a_changed_priority_gets_the_same_reply(
    served: httpx.AsyncClient,
) -> None:
    await served.post(f"{HALL_AT}/actions", json={"type": "PAUSE_FLEET", "reason": "to look at it"})
    body = {"taskId": "mine", "pickNodeId": "WEST", "dropNodeId": "EAST"}
    await served.post(f"{HALL_AT}/tasks", json=body)
    await served.post(f"{HALL_AT}/priority", json={"taskId": "mine", "priority": 77})
    again = await served.post(f"{HALL_AT}/tasks", json=body)

    assert (again.status_code, again.json()) == (201, {"task_id": "mine"})
    assert [one["priority"] for one in (await now(served))["tasks"] if one["task_id"] == "mine"] == [77]


@pytest.mark.req("FLT-TASK-5", "FLT-API-7")
async def test_the_priority_of_a_task_is_changed_while_it_waits(served: httpx.AsyncClient) -> None:
    await served.post(f"{HALL_AT}/actions", json={"type": "PAUSE_FLEET", "reason": "to look at it"})
    body = {"taskId": "mine", "pickNodeId": "WEST", "dropNodeId": "EAST", "streamId": "S-OUT"}
    await served.post(f"{HALL_AT}/tasks", json=body)
    changed = await served.post(f"{HALL_AT}/priority", json={"taskId": "mine", "priority": 77})

    (mine,) = [one for one in (await now(served))["tasks"] if one["task_id"] == "mine"]
    assert (changed.status_code, changed.content) == (204, b"")
    assert (mine["priority"], mine["stream_id"]) == (77, "S-OUT")


@pytest.mark.req("FLT-API-7")
async def test_a_subscriber_of_results_gets_no_ticks(app: FastAPI, served: httpx.AsyncClient) -> None:
    before = (await now(served))["tick"]
    async with StreamReader(app, f"{HALL_AT}/stream", "types=operator_answer,incident") as reader:
        await until(served, lambda it: it["tick"] > before + 5)
        await served.post(f"{HALL_AT}/actions", json={"type": "PAUSE_FLEET", "reason": "to look at it"})
        (message,) = await reader.messages(1)

    assert json.loads(message["data"])["type"] == "operator_answer"


@pytest.mark.req("FLT-TASK-1", "FLT-API-7")
async def test_a_stream_is_set_and_ended_while_the_fleet_runs(served: httpx.AsyncClient) -> None:
    def streams(reply: dict[str, Any]) -> dict[str, tuple[int, bool]]:
        return {one["stream_id"]: (one["made"], one["last"] is not None) for one in reply["streams"]}

    body = {"streamId": "S-NEW", "pickNodeIds": ["EAST"], "dropNodeIds": ["WEST"], "maxConcurrent": 1}
    answers = [(await served.post(f"{HALL_AT}/streams", json=body)).status_code for _ in range(2)]
    making = await until(served, lambda it: streams(it).get("S-NEW", (0, False))[0] > 0)
    ended = await served.post(f"{HALL_AT}/streams/end", json={"streamId": "S-NEW"})
    after = streams(await now(served))

    assert answers == [204, 204]
    assert [one["stream_id"] for one in making["tasks"] if one["stream_id"] == "S-NEW"] == ["S-NEW"]
    assert ended.status_code == 204
    assert after["S-NEW"][1]


@pytest.mark.req("FLT-API-7")
@pytest.mark.parametrize(
    ("path", "body", "said"),
    [
        ("streams", {"streamId": "S", "pickNodeIds": ["WETS"], "dropNodeIds": ["EAST"]}, "(did you mean WEST?)"),
        ("streams", {"streamId": "S", "pickNodeIds": ["WEST"], "dropNodeIds": ["EAST"], "robotIds": ["R11"]}, "R1"),
        ("streams/end", {"streamId": "S-OUTT"}, "there is no stream 'S-OUTT' (did you mean S-OUT?)"),
    ],
)
async def test_an_invalid_stream_is_refused_with_a_suggestion(
    served: httpx.AsyncClient, path: str, body: dict[str, Any], said: str
) -> None:
    refused = await served.post(f"{HALL_AT}/{path}", json=body)

    assert (refused.status_code, refused.json()["error"]["code"]) == (409, "task_refused")
    assert said in refused.json()["error"]["message"]


@pytest.mark.req("FLT-TASK-3")
@pytest.mark.parametrize(
    ("path", "body", "said"),
    [
        ("tasks", {"pickNodeId": "WEST", "dropNodeId": "WEST"}, "dropNodeId: the task picks up and drops in the same"),
        (
            "streams",
            {"streamId": "S", "pickNodeIds": ["WEST", "EAST"], "dropNodeIds": ["EAST"]},
            "dropNodeIds: the stream picks up and drops in the same node 'EAST'",
        ),
    ],
)
async def test_a_task_from_a_node_to_itself_is_refused_with_place_and_reason(
    served: httpx.AsyncClient, path: str, body: dict[str, Any], said: str
) -> None:
    refused = await served.post(f"{HALL_AT}/{path}", json=body)

    assert refused.status_code == 422, refused.text
    assert said in refused.text


@pytest.mark.req("FLT-TASK-7", "FLT-FAIL-11")
async def test_a_task_is_held_by_an_operator_and_continues_when_resumed(served: httpx.AsyncClient) -> None:
    under_way = await until(served, lambda it: any(one["robot_id"] and not one["loaded"] for one in it["tasks"]))
    task = next(one["task_id"] for one in under_way["tasks"] if one["robot_id"] and not one["loaded"])
    hold = {"type": "HOLD_TASK", "taskId": task, "reason": "the goods are blocked"}

    held = (await served.post(f"{HALL_AT}/actions", json={**hold, "actionId": "a"})).json()
    stood = await until(served, lambda it: _task(it, task)["state"] == "HELD")
    again = (await served.post(f"{HALL_AT}/actions", json={**hold, "actionId": "b"})).json()
    resumed = (await served.post(f"{HALL_AT}/actions", json={**hold, "type": "RESUME_TASK", "actionId": "c"})).json()
    await until(served, lambda it: _task(it, task)["state"] != "HELD")

    assert (held["accepted"], resumed["accepted"]) == (True, True)
    assert _task(stood, task)["cause"].startswith("HELD by ")
    assert again["code"] == "TASK_HELD"


@pytest.mark.req("FLT-OBS-10")
async def test_a_past_moment_is_shown_unchanged(served: httpx.AsyncClient) -> None:
    seen = await until(served, lambda it: it["tick"] > 30)
    await until(served, lambda it: it["tick"] > seen["tick"] + 30)

    assert await now(served, at=seen["n"]) == seen
    snapshot = (await served.get(f"{HALL_AT}/locks", params={"at": seen["tick"]})).json()
    assert snapshot["tick"] == seen["tick"]


async def test_the_compiled_map_is_stored_beside_the_journal(app: FastAPI, served: httpx.AsyncClient) -> None:
    folder = fleets_of(supervisor_of(app)).loop("hall").folder
    assert folder is not None

    assert (
        from_bytes((folder / "site.map").read_bytes()).compiled_hash
        == ((await served.get(f"{HALL_AT}/map")).json()["compiled_hash"])
    )


@pytest.mark.req("FLT-FAIL-12")
@pytest.mark.parametrize("damage", ["gone", "damaged"])
async def test_a_missing_or_damaged_map_is_compiled_again(app: FastAPI, served: httpx.AsyncClient, damage: str) -> None:
    folder = fleets_of(supervisor_of(app)).loop("hall").folder
    assert folder is not None
    kept = (folder / "site.map").read_bytes()
    await served.post(f"{HALL_AT}/close")
    if damage == "gone":
        (folder / "site.map").unlink()
    else:
        (folder / "site.map").write_bytes(kept[: len(kept) // 2])
    await served.post(f"{HALL_AT}/open")
    await until(served, lambda it: it["tick"] > 5)

    assert (folder / "site.map").read_bytes() == kept


@pytest.mark.req("FLT-OBS-9")
async def test_a_closed_fleet_has_no_metrics(served: httpx.AsyncClient) -> None:
    await until(served, lambda it: it["tick"] > 5)
    before = (await served.get("/metrics")).text
    assert (await served.post(f"{HALL_AT}/close")).status_code == 200
    async with asyncio.timeout(120):
        while 'fleet="hall"' in (await served.get("/metrics")).text:
            await asyncio.sleep(0.02)
    await served.post(f"{HALL_AT}/open")
    await until(served, lambda it: it["tick"] > 5)

    assert 'pendula_fleet_tick_seconds_count{fleet="hall"}' in before
    assert 'pendula_fleet_trucks{fleet="hall",health="HEALTHY"}' in before
    assert 'pendula_fleet_tick_seconds_count{fleet="hall"}' in (await served.get("/metrics")).text


@pytest.mark.req("FLT-OBS-3")
async def test_a_served_fleet_continues_on_a_full_disk_and_writes_again_with_space(
    settings: Settings, schedulers: Sequence[SchedulerSpec]
) -> None:
    mood = Mood()
    async with running(settings, schedulers, disk=mood.disks) as app, client_of(app) as client:
        await made(client)
        mood.full = True
        full = await until(client, lambda it: it["degraded"] is not None)
        later = await until(client, lambda it: it["tick"] > full["tick"] + 20)
        alerts = [one["code"] for one in (await client.get(f"{HALL_AT}/alerts")).json()["alerts"]]
        mood.full = False
        again = await until(client, lambda it: it["degraded"] is None)
        written = await now(client, at=later["n"])

    assert (full["degraded"], alerts.count("LOGGING_DEGRADED")) == ("the disk is nearly full", 1)
    assert again["tick"] > later["tick"]
    assert written["tick"] == later["tick"]


@pytest.mark.req("FLT-OBS-3")
async def test_a_served_fleet_continues_on_a_failed_disk_and_writes_again_when_it_works(
    settings: Settings, schedulers: Sequence[SchedulerSpec]
) -> None:
    mood = Mood()
    async with running(settings, schedulers, disk=mood.disks) as app, client_of(app) as client:
        await made(client)
        mood.failed = True
        failed = await until(client, lambda it: it["degraded"] is not None)
        await until(client, lambda it: it["tick"] > failed["tick"] + 20)
        action = {"type": "PAUSE_ROBOT", "robotId": "R1", "reason": "floor cleaning"}
        paused = (await client.post(f"{HALL_AT}/actions", json=action)).json()
        mood.failed = False
        again = await until(client, lambda it: it["degraded"] is None)
        written = await now(client, at=failed["n"])
        alerts = [one["code"] for one in (await client.get(f"{HALL_AT}/alerts")).json()["alerts"]]

    assert paused["accepted"] is True
    assert (written["tick"], again["tick"] > failed["tick"]) == (failed["tick"], True)
    assert [one for one in alerts if one.startswith("LOGGING")] == ["LOGGING_DEGRADED", "LOGGING_RESTORED"]


@pytest.mark.req("FLT-OBS-3")
async def test_the_log_reports_an_unwritten_journal_and_the_loss_at_its_end(
    settings: Settings, schedulers: Sequence[SchedulerSpec], caplog: pytest.LogCaptureFixture
) -> None:
    mood = Mood()
    async with running(settings, schedulers, disk=mood.disks) as app, client_of(app) as client:
        await made(client)
        mood.failed = True
        await until(client, lambda it: it["degraded"] is not None)

    reply = {one.msg["event"]: one.msg for one in caplog.records if isinstance(one.msg, dict)}
    assert "the journal is not written: [Errno 5] Input/output error" in reply["logging_degraded"]["problem"]
    assert "were not written: [Errno 5] Input/output error" in reply["journal_incomplete"]["problem"]


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("actions", {"type": "PAUSE_FLEET", "reason": "y" * 501}),
        ("actions", {"type": "PAUSE_ROBOT", "robotId": "R" * 129, "reason": "x"}),
        ("actions", {"type": "FORCE_RELEASE", "robotId": "R1", "reason": "x", "resources": ["EDGE"] * 257}),
        (
            "actions",
            {"type": "FORCE_RELEASE", "robotId": "R1", "reason": "x", "resources": ["\N{GRINNING FACE}" * 299] * 14},
        ),
        ("tasks", {"pickNodeId": "W" * 129, "dropNodeId": "EAST"}),
        ("stock", {"nodeId": "WEST", "goods": 10**30}),
        ("faults", {"robotId": "R1", "type": "FAULT", "forMs": -1}),
        ("faults", {"robotId": "R1", "type": "FAULT", "forMs": 10**12}),
        ("faults", {"robotId": "R1", "type": "CARRIED", "dxM": 10**9, "dyM": 0}),
        ("faults", {"robotId": "R1", "type": "NOISE", "forMs": 1, "byM": 10**9}),
        ("faults", {"robotId": "R" * 129, "type": "STAND", "forMs": 1}),
    ],
)
async def test_input_that_would_grow_without_limit_is_refused(served: httpx.AsyncClient, path: str, body: Any) -> None:
    response = await served.post(f"{HALL_AT}/{path}", json=body)

    assert (response.status_code, code_of(response)) == (422, "document_refused")


async def test_a_tick_from_outside_is_refused(served: httpx.AsyncClient) -> None:
    response = await served.post(f"{HALL_AT}/commands", json={"type": "tick", "nowMs": 0})

    assert response.status_code in (404, 405)


async def test_a_map_that_is_not_live_is_refused_without_leftovers(app: FastAPI) -> None:
    wrong = {**HALL, "robots": [{"robotId": "R1", "parkNodeId": "nowhere"}]}
    async with client_of(app) as client:
        response = await client.post(BASE, params={"name": "bad"}, json=wrong)
        listed = (await client.get(BASE)).json()

    assert response.status_code in (409, 422)
    assert listed == {"fleets": []}


@pytest.mark.long
@pytest.mark.req("FLT-FAIL-14")
async def test_a_fleet_continues_its_tasks_after_a_restart(
    settings: Settings, schedulers: Sequence[SchedulerSpec]
) -> None:
    async with running(settings, schedulers) as app, client_of(app) as client:
        await made(client)
        before = await until(client, lambda it: it["counts"].get("DONE", 0) >= 1)
    async with running(settings, (scheduler_for(settings),)) as app, client_of(app) as client:
        after = await until(client, lambda it: it["counts"]["DONE"] > before["counts"]["DONE"], 120)
        alerts = (await client.get(f"{HALL_AT}/alerts")).json()["alerts"]

    assert after["tick"] > before["tick"]
    assert [one for one in alerts if one["kind"] == "incident"] == []


async def test_an_alert_with_a_standing_cause_is_raised_again_when_a_fleet_is_opened(
    served: httpx.AsyncClient,
) -> None:
    pause = {"type": "PAUSE_ROBOT", "robotId": "R1", "reason": "floor cleaning"}
    assert (await served.post(f"{HALL_AT}/actions", json=pause)).json()["accepted"]
    await served.post(f"{HALL_AT}/close")
    await served.post(f"{HALL_AT}/open")
    await until(served, lambda it: _truck(it, "R1")["paused"])
    first = (await served.get(f"{HALL_AT}/alerts")).json()["alerts"][0]

    assert (first["code"], first["robot_ids"]) == ("STOP_OPERATOR", ["R1"])
    assert first["message"] == "R1 stops: an operator paused it; since before the fleet was opened"


async def test_a_fault_of_a_simulated_truck_raises_an_alert(served: httpx.AsyncClient) -> None:
    drill = {"robotId": "R1", "type": "FAULT", "forMs": 2000}

    assert (await served.post(f"{HALL_AT}/faults", json=drill)).status_code == 204
    lost = await until(served, lambda it: _truck(it, "R1")["health"] != "HEALTHY")

    assert _truck(lost, "R1")["hold_reason"] == "ROBOT_FAULT"
    assert _truck(lost, "R1")["sentence"] == "R1 stops: it reports a fault."


@pytest.mark.parametrize(("padding", "elsewhere"), [(0, False), (QUICK_BYTES, True)])
async def test_a_large_drill_does_not_block_the_server(
    served: httpx.AsyncClient, padding: int, elsewhere: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    readers: list[threading.Thread] = []

    def noted(document: Document) -> tuple[str, Fault]:
        readers.append(threading.current_thread())
        return read_drill(document)

    monkeypatch.setattr(commands, "read_drill", noted)
    body = b'{"robotId": "R1", "type": "FAULT", "forMs": 2000}' + b" " * padding
    answer = await served.post(f"{HALL_AT}/faults", content=body, headers={"content-type": "application/json"})

    assert answer.status_code == 204, answer.text
    assert [one is not threading.current_thread() for one in readers] == [elsewhere]


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ({"robotId": "R1", "type": "POSE_JUMP", "forMs": 1, "dxM": 1}, "POSE_JUMP needs dyM"),
        ({"robotId": "R1", "type": "OVERRUN", "forMs": 1, "byM": 1}, "OVERRUN happens once: it has no forMs"),
        ({"robotId": "R1", "type": "JUMP", "forMs": 1}, "there is no fault 'JUMP'"),
        ({"type": "STAND", "forMs": 1}, "robotId"),
    ],
)
async def test_a_drill_has_the_form_of_a_scenario(served: httpx.AsyncClient, body: dict[str, Any], said: str) -> None:
    response = await served.post(f"{HALL_AT}/faults", json=body)

    assert (response.status_code, code_of(response)) == (422, "document_refused")
    assert said in response.json()["error"]["message"]


@pytest.mark.req("FLT-OBS-11")
async def test_an_incident_just_before_closing_has_its_bundle(
    settings: Settings, schedulers: Sequence[SchedulerSpec]
) -> None:
    async with running(settings, schedulers) as app, client_of(app) as client:
        await made(client)
        fault = {"robotId": "R1", "type": "POSE_JUMP", "forMs": 3000, "dxM": 0, "dyM": 3}
        assert (await client.post(f"{HALL_AT}/faults", json=fault)).status_code == 204
        async with asyncio.timeout(120):
            while not any(
                one["kind"] == "incident" for one in (await client.get(f"{HALL_AT}/alerts")).json()["alerts"]
            ):
                await asyncio.sleep(0.02)

    (bundle,) = (Path(settings.data) / "schedulers" / "fleet" / "hall" / "incidents").iterdir()
    with reading(bundle) as journal:
        assert verify_ticks(journal)["firstDifference"] is None
    assert bundle.name.startswith("inc-")


@pytest.mark.req("FLT-API-7")
async def test_real_trucks_report_and_get_their_orders(app: FastAPI) -> None:
    async with client_of(app) as client:
        await made(client, live=True)
        reply = await now(client)
        place = (await client.get(f"{HALL_AT}/map")).json()["nodes"]
        parks = {one["id"]: one for one in place}
        silent = (await client.get(f"{HALL_AT}/orders")).json()
        while len((orders := (await client.get(f"{HALL_AT}/orders")).json())["commands"]) < 3:
            at = (await now(client))["now"]
            reports = [
                {
                    "robotId": one["robot_id"],
                    "nowMs": at,
                    "pose": {
                        "x": parks[one["park_node_id"]]["x"] / 1000,
                        "y": parks[one["park_node_id"]]["y"] / 1000,
                        "yaw": 0,
                    },
                    "v": 0,
                    "status": "OK",
                }
                for one in reply["trucks"]
            ]
            assert (await client.post(f"{HALL_AT}/reports", json={"reports": reports})).status_code == 204
            await asyncio.sleep(0.05)
        drill = await client.post(f"{HALL_AT}/faults", json={"robotId": "R1", "type": "STAND", "forMs": 1})

    assert {one["report_age"] for one in reply["trucks"]} == {None}
    assert silent["operations"] == []
    assert [one["robotId"] for one in orders["commands"]] == ["R1", "R2", "R3"]
    assert code_of(drill) == "not_simulated"


async def test_a_fleet_stopped_by_a_defect_reports_it_at_once(
    app: FastAPI, served: httpx.AsyncClient, quiet_logs: io.StringIO, monkeypatch: pytest.MonkeyPatch
) -> None:
    loop = fleets_of(supervisor_of(app)).loop("hall")

    def broken(_: int) -> None:
        raise AssertionError("a truck without a place")

    monkeypatch.setattr(loop.trucks, "drive", broken)
    async with asyncio.timeout(120):
        while not loop._task.done():
            await asyncio.sleep(0.01)
    refused = await served.post(f"{HALL_AT}/actions", json={"type": "PAUSE_FLEET", "reason": "fire drill"})
    monkeypatch.undo()
    (reply,) = (await served.get(BASE)).json()["fleets"]
    schedulers = (await served.get("/api/v1/schedulers")).json()["schedulers"]
    ready = await served.get("/readyz")
    for change in ("close", "open"):
        assert (await served.post(f"{HALL_AT}/{change}")).status_code == 200
    (again,) = (await served.get(BASE)).json()["fleets"]
    begun = await now(served)
    await until(served, lambda it: it["tick"] > begun["tick"])

    assert (refused.status_code, code_of(refused)) == (503, "fleet_stopped")
    assert "a truck without a place" in quiet_logs.getvalue()
    # It must not look as if it still ticked.
    assert (reply["state"], schedulers[0]["state"], schedulers[0]["reason"]["code"]) == (
        "broken",
        "broken",
        "fleet_stopped",
    )
    assert "a truck without a place" in reply["broken"]
    assert (ready.status_code, ready.json()["status"]) == (503, "not_ready")
    assert {"name": "fleet/hall", "ok": False, "reason": "fleet_stopped", "note": None} in ready.json()["checks"]
    assert (again["state"], (await served.get("/readyz")).status_code) == ("ready", 200)


@pytest.mark.req("FLT-PERF-1")
async def test_all_readers_between_two_ticks_share_one_view(app: FastAPI, served: httpx.AsyncClient) -> None:
    host = fleets_of(supervisor_of(app)).loop("hall").host

    # On the engine's thread, where no tick comes in between.
    one, other = await host.ask(lambda driver: [host._answer(driver, routes._now) for _ in range(2)])
    seen = msgspec.json.decode(one)["tick"]
    await until(served, lambda it: it["tick"] > seen)

    assert one is other
    assert msgspec.json.decode(await host.look(routes._now))["tick"] > seen


@pytest.mark.req("FLT-FAIL-16", "FLT-OBS-9")
async def test_a_fleet_that_falls_behind_raises_one_alert(
    app: FastAPI, served: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    loop = fleets_of(supervisor_of(app)).loop("hall")
    drive = loop.trucks.drive

    def slowly(to_ms: int) -> None:
        time.sleep(0.02)
        drive(to_ms)

    monkeypatch.setattr(loop.trucks, "drive", slowly)
    before = await now(served)
    await until(served, lambda it: it["tick"] > before["tick"] + 3 * WINDOW)
    alerts = (await served.get(f"{HALL_AT}/alerts")).json()["alerts"]
    figures = (await served.get("/metrics")).text
    lost = next(line for line in figures.splitlines() if line.startswith("pendula_fleet_seconds_lost_total"))

    slow = [one["message"] for one in alerts if one["code"] == "FLEET_FALLS_BEHIND"]
    assert len(slow) == 1
    assert "times a second instead of 200.0" in slow[0]
    assert float(lost.split()[-1]) > 1


@pytest.mark.req("FLT-OBS-9")
async def test_metrics_of_a_fleet_are_served_to_prometheus(served: httpx.AsyncClient) -> None:
    await until(served, lambda it: it["tick"] > 20)

    text = (await served.get("/metrics")).text

    assert 'pendula_fleet_tick_seconds_count{fleet="hall"}' in text
    assert 'pendula_fleet_trucks{fleet="hall",health="HEALTHY"} 3.0' in text
    assert 'pendula_fleet_distance_metres_total{fleet="hall"}' in text
    assert 'pendula_fleet_go_hold_changes{fleet="hall"}' in text
    closest = next(one for one in text.splitlines() if one.startswith("pendula_fleet_envelope_distance_metres"))
    assert 0 < float(closest.split()[-1]) < 100


@dataclass
class Mood:
    """How the disks of a server are just now: without space, or broken."""

    full: bool = False
    failed: bool = False
    read_only: bool = False

    def disks(self, path: Path) -> Callable[[], Disk]:
        return lambda: _Moody(path, self)


class _Moody(RealDisk):
    def __init__(self, path: Path, mood: Mood) -> None:
        super().__init__(path)
        self._mood = mood

    def create(self, name: str) -> None:
        if self._mood.read_only:
            raise OSError(errno.EROFS, "Read-only file system", name)
        super().create(name)

    def append(self, name: str, data: bytes) -> None:
        if self._mood.failed:
            raise OSError(errno.EIO, "Input/output error", name)
        super().append(name, data)

    def free_bytes(self) -> int:
        return 0 if self._mood.full else super().free_bytes()


def _task(reply: dict[str, Any], name: str) -> dict[str, Any]:
    """A task that is open, or has been."""
    return next(one for one in (*reply["tasks"], *reply["over"]) if one["task_id"] == name)


def _truck(reply: dict[str, Any], robot: str) -> dict[str, Any]:
    found: dict[str, Any] = next(one for one in reply["trucks"] if one["robot_id"] == robot)
    return found


async def test_deleted_fleets_are_not_kept_in_memory(app: FastAPI, served: httpx.AsyncClient) -> None:
    for name in ("second", "third"):
        await made(served, name)
        assert (await served.post(f"{BASE}/{name}/close")).status_code == 200
    await made(served, "fourth")

    assert sorted(fleets_of(supervisor_of(app))._loops) == ["fourth", "hall"]
