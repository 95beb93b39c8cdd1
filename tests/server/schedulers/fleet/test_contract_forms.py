"""Trucks, grants and locks over HTTP in the forms of the contract, now and at any tick; reports in metres."""

import asyncio
import json
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any

import httpx
import pytest
from fastapi import FastAPI

from pendula.fleet.contracts import parse
from pendula.fleet.runs import reading, snapshot_at
from pendula.kernel.canonical import encode
from pendula.server.runtime.scheduler_spec import SchedulerSpec
from pendula.server.schedulers.fleet.fleets import fleets_of
from pendula.server.schedulers.fleet.routes import scheduler_for
from pendula.server.settings import Settings
from tests.server.living import client_of, code_of, supervisor_of
from tests.server.schedulers.fleet.halls import BASE, made, until

pytestmark = pytest.mark.anyio
HALL_AT = f"{BASE}/hall"
EXAMPLES = Path(__file__).parents[4] / "examples/specifications"
B1 = (EXAMPLES / "fleet-robot-state.json5").read_text(encoding="utf-8")


@pytest.fixture
def schedulers(settings: Settings) -> Sequence[SchedulerSpec]:
    return (scheduler_for(settings),)


@pytest.fixture
async def served(app: FastAPI) -> AsyncIterator[httpx.AsyncClient]:
    async with client_of(app) as client:
        await made(client)
        yield client


@pytest.fixture
async def live(app: FastAPI) -> AsyncIterator[httpx.AsyncClient]:
    async with client_of(app) as client:
        await made(client, live=True)
        yield client


async def said(client: httpx.AsyncClient, name: str, **query: Any) -> dict[str, Any]:
    answer = await client.get(f"{HALL_AT}/{name}", params=query)
    assert answer.status_code == 200, answer.text
    form: dict[str, Any] = answer.json()
    return form


async def post(client: httpx.AsyncClient, text: str) -> httpx.Response:
    return await client.post(f"{HALL_AT}/reports", content=text, headers={"Content-Type": "application/json"})


@pytest.mark.req("FLT-API-3", "FLT-API-7")
async def test_trucks_grants_and_locks_are_served_in_the_forms_of_the_contract(served: httpx.AsyncClient) -> None:
    await until(served, lambda it: it["tick"] > 30)
    robots, results, locks = [await said(served, name) for name in ("robots", "lock-results", "locks")]

    for state in robots["robots"]:
        parse("RobotState", json.dumps(state))
    for result in results["lockResults"]:
        parse("LockResult", json.dumps(result))
    parse("LockSnapshot", json.dumps(locks))
    assert [one["robotId"] for one in robots["robots"]] == ["R1", "R2", "R3"]
    assert [one["robotId"] for one in results["lockResults"]] == ["R1", "R2", "R3"]
    assert robots["nowMs"] == robots["robots"][0]["nowMs"]


@pytest.mark.req("FLT-API-3", "FLT-OBS-4")
async def test_a_past_tick_is_served_from_its_journal(app: FastAPI, served: httpx.AsyncClient) -> None:
    await until(served, lambda it: it["tick"] > 60)
    forms = {at: [await said(served, name, at=at) for name in ("robots", "lock-results", "locks")] for at in (1, 7, 55)}
    folder = fleets_of(supervisor_of(app)).loop("hall").folder
    assert folder is not None
    await served.post(f"{HALL_AT}/close")

    with reading(folder) as journal:
        for at, (robots, results, locks) in forms.items():
            kept = json.loads(encode(snapshot_at(journal, at)))
            assert (robots["tick"], results["tick"], locks["tick"]) == (at, at, at)
            assert robots["robots"] == kept["robots"]
            assert results["lockResults"] == kept["lockResults"]
            assert locks == kept["locks"]


@pytest.mark.req("FLT-API-3")
@pytest.mark.parametrize("name", ["robots", "locks", "lock-results"])
async def test_an_unknown_tick_is_refused(served: httpx.AsyncClient, name: str) -> None:
    await until(served, lambda it: it["tick"] > 3)
    later = await served.get(f"{HALL_AT}/{name}", params={"at": 10**9})
    none = await served.get(f"{HALL_AT}/{name}", params={"at": 0})

    assert (later.status_code, code_of(later)) == (422, "unknown_tick")
    assert none.status_code == 422


@pytest.mark.req("FLT-API-3", "FLT-API-7")
@pytest.mark.parametrize("form", ["{}", "[{}]", "{{reports: [{}]}}"])
async def test_a_report_of_the_specification_is_accepted(live: httpx.AsyncClient, form: str) -> None:
    now = (await said(live, "now"))["now"]
    report = B1.replace("123456789", str(now)).replace("-20.90", "-10.5")

    answer = await post(live, form.replace("{}", report).replace("{{", "{").replace("}}", "}"))

    assert (answer.status_code, answer.text) == (204, "")
    async with asyncio.timeout(240):
        while not (robots := (await said(live, "robots"))["robots"]):
            await asyncio.sleep(0.02)
    (state,) = robots
    assert state["pose"] == {"x": -10.5, "y": 1.25, "yaw": 0}
    assert (state["robotId"], state["v"], state["lastStatusMs"]) == ("R1", 0.4, now)


@pytest.mark.req("FLT-API-3", "FLT-FAIL-17")
@pytest.mark.parametrize(
    ("before", "after", "path", "line", "said"),
    [
        ("-20.90", "1e30", "$.pose.x", 5, "1E+30 is out of range; allowed: -100000 to 100000 m"),
        ("1.25", '"NaN"', "$.pose.y", 5, "NaN is not a finite number"),
        ("0.40", "-100.5", "$.v", 6, "-100.5 is out of range; allowed: -100 to 100 m/s"),
        ("0.40", "NaN", "$.v", 6, "NaN is not a number in JSON5"),
        ("123456789", "-1", "$.nowMs", 4, "-1 is out of range"),
        ('"OK"', '"FINE"', "$.status", 7, "'FINE' is not a robot status"),
    ],
)
async def test_an_impossible_number_is_refused_with_its_place(
    live: httpx.AsyncClient, before: str, after: str, path: str, line: int, said: str
) -> None:
    answer = await post(live, B1.replace(before, after, 1))
    (fault,) = answer.json()["error"]["details"]["faults"]

    assert answer.status_code in (400, 422)
    assert (fault["path"], fault["line"]) == (path, line)
    assert said in answer.json()["error"]["message"]


@pytest.mark.req("FLT-API-3")
async def test_every_wrong_number_of_several_reports_is_named(live: httpx.AsyncClient) -> None:
    wrong = B1.replace("-20.90", "1e9").replace("0.40", "1e9")
    answer = await post(live, f"{{reports: [{B1}, {wrong}]}}")

    faults = answer.json()["error"]["details"]["faults"]
    assert [one["path"] for one in faults] == ["$.reports[1].pose.x", "$.reports[1].v"]


@pytest.mark.req("FLT-API-1")
async def test_unknown_members_of_a_report_are_ignored(live: httpx.AsyncClient) -> None:
    answer = await post(live, B1.replace("{", "{ battery: 0.87,", 1))

    assert answer.status_code == 204


@pytest.mark.req("FLT-FAIL-9")
async def test_a_live_truck_that_never_reports_raises_an_alert(live: httpx.AsyncClient) -> None:
    async with asyncio.timeout(240):
        while len(alerts := (await said(live, "alerts"))["alerts"]) < 3:
            await asyncio.sleep(0.02)

    assert {one["code"] for one in alerts} == {"ROBOT_OFFLINE"}
    assert alerts[0]["message"] == "R1 has never reported; its place stays reserved"
    assert (await said(live, "robots"))["robots"] == []


@pytest.mark.req("FLT-API-7", "FLT-MAP-15")
async def test_warnings_of_the_compiler_are_served_with_their_remedies(served: httpx.AsyncClient) -> None:
    hall = {
        "contractVersion": "1.0.0",
        "name": "one-way",
        "durationMs": 9000,
        "map": {
            "contractVersion": "1.0.0",
            "mapId": "one-way",
            "nodes": [
                {"id": "A", "x": 0, "y": 0, "kind": "ParkPoint"},
                {"id": "B", "x": 20, "y": 0},
                {"id": "C", "x": 0, "y": 20},
            ],
            "edges": [
                {"id": "1", "start": "A", "end": "B", "props": {"direction": "both"}},
                {"id": "2", "start": "A", "end": "C"},
            ],
        },
        "robots": [{"robotId": "R1", "parkNodeId": "A"}],
    }
    made = await served.post(BASE, params={"name": "one-way"}, json=hall)
    assert made.status_code == 201, made.text
    report = (await served.get(f"{BASE}/one-way/map/report")).json()

    assert "MISSING_RETURN_EDGE" in [one["code"] for one in report["findings"]]
    assert {one["severity"] for one in report["findings"]} <= {"WARN", "INFO"}
    assert report["compiledMapHash"].startswith("sha256:")
