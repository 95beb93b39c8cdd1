"""Requests of a time slider: the times of a journal, the record at a time, the next incident, one moment after
another."""

from pathlib import Path
from typing import Any

import httpx
import pytest
from msgspec.structs import replace

from pendula.kernel.driver import Driver
from pendula.kernel.engine import Engine
from pendula.kernel.time import parse_utc
from pendula.server.runtime.past import event_sentence
from pendula.server.settings import Settings
from tests.server.living import BASE, TALLY, client_of, running, supervisor_of

pytestmark = pytest.mark.anyio

TROUBLED = replace(TALLY, incidents={"changed": lambda event: event_sentence(event) if event["by"] == 5 else None})


async def command(client: httpx.AsyncClient, kind: str, **fields: object) -> httpx.Response:
    return await client.post(f"{BASE}/commands", json={"type": kind, **fields})


async def test_moments_are_spread_from_the_first_to_the_last(client: httpx.AsyncClient) -> None:
    for hour in range(1, 9):
        await command(client, "advance", to=10 * hour)

    found = (await client.get(f"{BASE}/moments", params={"points": 3})).json()["moments"]

    assert [moment["t"] for moment in found] == [10, 50, 80]
    assert all(moment["at"].endswith("Z") for moment in found)


async def test_an_empty_journal_has_no_moments(client: httpx.AsyncClient) -> None:
    assert (await client.get(f"{BASE}/moments")).json() == {"moments": []}
    assert (await client.get(f"{BASE}/moment", params={"t": 0})).json() == {"moment": None, "next": None}


async def test_new_records_are_among_the_moments(client: httpx.AsyncClient) -> None:
    await command(client, "advance", to=10)
    await client.get(f"{BASE}/moments")
    await command(client, "advance", to=20)

    found = (await client.get(f"{BASE}/moments")).json()["moments"]

    assert [moment["t"] for moment in found] == [10, 20]


async def test_a_time_finds_the_last_record_not_after_it(client: httpx.AsyncClient) -> None:
    for to in (10, 20, 30):
        await command(client, "advance", to=to)

    found = [(await client.get(f"{BASE}/moment", params={"t": t})).json() for t in (0, 20, 29, 99)]

    assert [moment["moment"]["t"] for moment in found] == [10, 20, 20, 30]
    assert [moment["next"] and moment["next"]["t"] for moment in found[1:]] == [30, 30, None]
    state = (await client.get(f"{BASE}/state", params={"at": found[2]["moment"]["n"]})).json()
    assert state["t"] == 20


async def test_a_wall_clock_time_finds_the_record_of_that_time(client: httpx.AsyncClient) -> None:
    await command(client, "advance", to=10)
    moment = (await client.get(f"{BASE}/moments")).json()["moments"][0]["at"]
    then = parse_utc(moment) // 1000
    await command(client, "advance", to=20)

    early = (await client.get(f"{BASE}/moment", params={"utc_ms": then - 1000})).json()["moment"]
    late = (await client.get(f"{BASE}/moment", params={"utc_ms": then + 3_600_000})).json()

    assert (early["t"], late["moment"]["t"], late["next"]) == (10, 20, None)


async def test_the_next_incident_is_a_refusal_or_an_event_named_by_the_scheduler(tmp_path: Path) -> None:
    async with running(Settings(data=str(tmp_path)), (TROUBLED,)) as app, client_of(app) as client:
        await command(client, "add", amount=1)
        await command(client, "take", amount=9)
        await command(client, "add", amount=5)

        first = (await client.get(f"{BASE}/incident")).json()["incident"]
        second = (await client.get(f"{BASE}/incident", params={"after": first["n"]})).json()["incident"]
        last = (await client.get(f"{BASE}/incident", params={"after": second["n"]})).json()
        back = (await client.get(f"{BASE}/incident", params={"before": second["n"]})).json()["incident"]

    assert (first["code"], second["code"], last) == ("not_enough", "changed", {"incident": None})
    assert first["n"] < second["n"]
    assert back == first


async def test_stepping_forward_does_not_replay_from_the_start(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    begun: list[int] = []
    original = Driver.engine_at

    def counted(driver: Driver[Any, Any], n: int) -> Engine[Any, Any]:
        begun.append(n)
        return original(driver, n)

    monkeypatch.setattr(Driver, "engine_at", counted)
    async with running(Settings(data=str(tmp_path))) as app, client_of(app) as client:
        for _ in range(5):
            await command(client, "add", amount=1)
        last = supervisor_of(app).host("tally", "main").driver.journal.durable_n

        states = [(await client.get(f"{BASE}/state", params={"at": n})).json()["state"] for n in (0, 2, 2, last, 0)]

    assert [state["total"] for state in states] == [1, 2, 2, 5, 1]
    assert begun == [0, 0]
