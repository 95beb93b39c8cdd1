"""The routes every engine has: commands, state, journal, reasons; exact, durable, with precise errors."""

import asyncio
import json
from pathlib import Path

import httpx
import msgspec
import pytest

from pendula.server.settings import Settings
from tests.server.living import BASE, JSON, TALLY, client_of, code_of, running, supervisor_of

pytestmark = pytest.mark.anyio


async def command(client: httpx.AsyncClient, kind: str, **fields: object) -> httpx.Response:
    return await client.post(f"{BASE}/commands", json={"type": kind, **fields})


async def test_a_command_answers_with_its_events(client: httpx.AsyncClient) -> None:
    response = await command(client, "add", amount=5)

    assert response.status_code == 200
    assert response.json() == {
        "n": 0,
        "events": [{"type": "changed", "by": 5, "total": 5, "at": 0, "cause": "add"}],
        "answer": {"total": 5},
        "effect": "done",
        "complaints": [],
        "refusal": None,
    }


async def test_a_refused_command_is_a_conflict_with_its_reason(client: httpx.AsyncClient) -> None:
    response = await command(client, "take", amount=5)

    assert (response.status_code, code_of(response)) == (409, "not_enough")
    assert response.json()["error"]["details"] == {"amount": 5, "total": 0}


async def test_integers_of_any_size_stay_exact(client: httpx.AsyncClient) -> None:
    amount = 10**40 + 1

    response = await command(client, "add", amount=amount)

    assert response.json()["answer"] == {"total": amount}
    assert str(amount) in (await client.get(f"{BASE}/state")).text


async def test_the_outside_is_asked_and_its_answer_recorded(client: httpx.AsyncClient) -> None:
    n = (await command(client, "ask", topic="anything")).json()["n"]

    records = (await client.get(f"{BASE}/journal", params={"start": n, "limit": 1})).json()["records"]
    assert records[0]["body"]["answers"] == [{"name": "how_much", "question": {"topic": "anything"}, "answer": 7}]


@pytest.mark.parametrize(
    ("body", "path"),
    [
        (b"", "$"),
        (b"{", "$"),
        (b'{"type":"add","amount":1,}', "$"),
        (b'{"type":"add","amount":NaN}', "$.amount"),
        (b'{"type":"add","amount":1,"amount":2}', "$.amount"),
        (b'\xff{"type":"add","amount":1}', "$"),
        (b'{"type":"add","amount":"1"}', "$.amount"),
        (b'{"type":"add","amount":1.5}', "$.amount"),
        (b'{"type":"add"}', "$"),
        (b'{"type":"explode"}', "$.type"),
        (b"[]", "$"),
        (b"null", "$"),
        (b"[" * 100_000, "$"),
    ],
)
async def test_an_invalid_command_is_refused_with_the_place(client: httpx.AsyncClient, body: bytes, path: str) -> None:
    response = await client.post(f"{BASE}/commands", content=body, headers=JSON)

    assert (response.status_code, code_of(response)) == (422, "document_refused")
    fault = response.json()["error"]["details"]["faults"][0]
    assert fault["path"].startswith(path)
    assert (await client.get(f"{BASE}/state")).json()["n"] == -1


async def test_state_is_now_or_after_any_record(client: httpx.AsyncClient) -> None:
    for amount in (1, 2, 3):
        await command(client, "add", amount=amount)

    now = (await client.get(f"{BASE}/state")).json()
    then = (await client.get(f"{BASE}/state", params={"at": 3})).json()

    assert (now["n"], now["t"], now["state"]["total"], now["next_due"], now["broken"]) == (5, 0, 6, None, [])
    assert (then["n"], then["state"]["total"]) == (3, 3)


async def test_a_missing_record_has_no_state(client: httpx.AsyncClient) -> None:
    response = await client.get(f"{BASE}/state", params={"at": 99})

    assert (response.status_code, code_of(response)) == (422, "unknown_record")


async def test_the_journal_is_read_in_pages(client: httpx.AsyncClient) -> None:
    for _ in range(3):
        await command(client, "add", amount=1)

    part = (await client.get(f"{BASE}/journal", params={"start": 2, "limit": 3})).json()

    assert [record["n"] for record in part["records"]] == [2, 3, 4]
    assert [record["kind"] for record in part["records"]] == ["input", "outcome", "input"]
    assert (part["first_n"], part["last_n"], part["snapshots"]) == (0, 5, [])
    assert part["records"][0]["body"]["command"] == {"type": "add", "amount": 1, "at": None}


@pytest.mark.parametrize("query", ["start=-1", "limit=0", "limit=1001", "start=x", "limit=", "start=1e3"])
async def test_an_invalid_page_is_refused_by_name(client: httpx.AsyncClient, query: str) -> None:
    response = await client.get(f"{BASE}/journal?{query}")

    assert (response.status_code, code_of(response)) == (422, "invalid_request")
    assert response.json()["error"]["details"]["faults"][0]["name"] == query.partition("=")[0]


async def test_why_gives_a_chain_of_reasons(client: httpx.AsyncClient) -> None:
    await command(client, "add", amount=4, at=9)

    reason = (await client.post(f"{BASE}/why", json={"question": {"take": 4}})).json()

    assert reason["code"] == "not_enough"
    assert [part["code"] for part in reason["because"]] == ["comes_later"]


async def test_why_answers_about_the_given_record(client: httpx.AsyncClient) -> None:
    before = (await command(client, "add", amount=4, at=9)).json()["n"]
    now = {"question": {"take": 4}}
    then = (await client.post(f"{BASE}/why", json=now)).json()
    await command(client, "add", amount=4)

    past = await client.post(f"{BASE}/why", json=now, params={"at": before})

    assert past.json() == then
    assert (await client.post(f"{BASE}/why", json=now)).json() != then
    assert (await client.post(f"{BASE}/why", json=now, params={"at": 10**6})).status_code == 422
    offered = await client.get(f"{BASE}/choices", params={"at": before})
    assert offered.status_code == 200
    assert offered.json() != (await client.get(f"{BASE}/choices")).json()


async def test_a_missing_engine_is_not_found(client: httpx.AsyncClient) -> None:
    response = await client.get("/api/v1/tally/other/state")

    assert (response.status_code, code_of(response)) == (404, "not_found")


@pytest.mark.parametrize("name", ["Main", "a_b", "a" * 65, "%2e%2e", "ma%00in", "m%0A", "main%0A"])
async def test_an_engine_name_has_a_small_alphabet(client: httpx.AsyncClient, name: str) -> None:
    response = await client.get(f"/api/v1/tally/{name}/state")

    assert response.status_code in (404, 422)
    assert code_of(response) in ("not_found", "invalid_request")


async def test_the_request_id_of_a_command_is_in_the_journal(client: httpx.AsyncClient) -> None:
    await client.post(f"{BASE}/commands", json={"type": "add", "amount": 1}, headers={"x-request-id": "mine-1"})

    record = (await client.get(f"{BASE}/journal", params={"limit": 1})).json()["records"][0]
    assert record["body"]["meta"]["request_id"] == "mine-1"


async def test_a_restart_continues_where_the_last_server_stopped(settings: Settings) -> None:
    async with running(settings) as app, client_of(app) as client:
        await command(client, "add", amount=5)
        before = (await client.get(f"{BASE}/state")).json()
    async with running(settings) as app, client_of(app) as client:
        after = (await client.get(f"{BASE}/state")).json()
        journal = (await client.get(f"{BASE}/journal")).json()

    assert after["state"] == before["state"]
    # A clean stop writes a snapshot.
    assert journal["snapshots"] == [[2, 0]]


async def test_an_engine_made_earlier_is_served_without_configuration(settings: Settings) -> None:
    async with running(settings):
        pass
    nameless = msgspec.structs.replace(TALLY, engines={})
    async with running(settings, [nameless]) as app, client_of(app) as client:
        schedulers = (await client.get("/api/v1/schedulers")).json()

    assert [engine["name"] for engine in schedulers["schedulers"][0]["engines"]] == ["main"]


async def test_schedulers_list_their_engines_and_health(client: httpx.AsyncClient) -> None:
    await command(client, "advance", to=12)

    found = (await client.get("/api/v1/schedulers")).json()

    assert set(found) == {"version", "demo", "schedulers"}
    assert found["schedulers"] == [
        {
            "name": "tally",
            "title": "Tally",
            "sentence": TALLY.sentence,
            "state": "ready",
            "reason": None,
            "engines": [{"name": "main", "time_unit": "tick", "now": 12, "commands": 1, "broken": None}],
        }
    ]


async def test_the_demo_runs(settings: Settings) -> None:
    alive = msgspec.structs.replace(settings, demo=True)
    assert TALLY.demo is not None
    quick = msgspec.structs.replace(TALLY, demo=msgspec.structs.replace(TALLY.demo, pause_seconds=0))
    async with running(alive, [quick]) as app, client_of(app) as client:
        host = supervisor_of(app).host("tally", "demo")
        wake = asyncio.Event()
        host.listen(wake)
        while host.view().commands < 40:
            wake.clear()
            await asyncio.wait_for(wake.wait(), 120)
        body = json.loads((await client.get("/api/v1/tally/demo/journal", params={"limit": 100})).content)

    inputs = [record["body"] for record in body["records"] if record["kind"] == "input"]
    assert {given["command"]["type"] for given in inputs} == {"add", "draw", "take", "advance"}
    assert {given["meta"]["by"] for given in inputs} == {"demo"}
    # Time advances, and some commands are refused.
    assert body["records"][-1]["t"] > 5
    assert any(record["body"]["refusal"] for record in body["records"] if record["kind"] == "outcome")


async def test_the_data_directory_has_a_folder_for_each_scheduler_and_engine(settings: Settings) -> None:
    async with running(settings):
        pass

    assert (Path(settings.data) / "schedulers" / "tally" / "main" / "00000000.journal").is_file()


async def test_a_state_matches_its_record_during_other_commands(client: httpx.AsyncClient) -> None:
    """A client that reads a state and then the events after its record must see each change once."""
    calls = [command(client, "add", amount=1) if k % 3 else client.get(f"{BASE}/state") for k in range(60)]

    answers = await asyncio.gather(*calls)

    states = [answer.json() for answer in answers if "state" in answer.json()]
    assert len(states) == 20
    # Each command is two records: input and outcome.
    assert [state["state"]["total"] for state in states] == [(state["n"] + 1) // 2 for state in states]
