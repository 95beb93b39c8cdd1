"""A hostile request affects only its caller; the fleet continues for all others."""

import asyncio
import threading
from collections.abc import AsyncIterator, Sequence
from decimal import Decimal
from typing import Any

import httpx
import pytest
from fastapi import FastAPI

from pendula.fleet.contracts import OperatorAction
from pendula.fleet.engine import FleetEngine
from pendula.fleet.tasks.model import GoodsReported
from pendula.kernel.errors import LimitExceeded, NotCanonical
from pendula.server.runtime.scheduler_spec import SchedulerSpec
from pendula.server.schedulers.fleet import loop as loops
from pendula.server.schedulers.fleet import routes
from pendula.server.schedulers.fleet.fleets import fleets_of
from pendula.server.schedulers.fleet.loop import FleetLoop
from pendula.server.schedulers.fleet.routes import scheduler_for
from pendula.server.schedulers.fleet.views import map_of
from pendula.server.settings import Settings
from tests.server.living import client_of, code_of, supervisor_of
from tests.server.schedulers.fleet.halls import BASE, made

pytestmark = pytest.mark.anyio
HALL_AT = f"{BASE}/hall"
POISON = "poison"


@pytest.fixture
def schedulers(settings: Settings) -> Sequence[SchedulerSpec]:
    return (scheduler_for(settings),)


@pytest.fixture
async def client(app: FastAPI) -> AsyncIterator[httpx.AsyncClient]:
    async with client_of(app) as client:
        await made(client, live=True)
        yield client


@pytest.fixture
def loop(app: FastAPI, client: httpx.AsyncClient) -> FleetLoop:
    return fleets_of(supervisor_of(app)).loop("hall")


async def later(loop: FleetLoop, ticks: int = 3) -> None:
    """So many ticks later: the fleet lives."""
    after = loop.engine.traffic.tick_number + ticks
    async with asyncio.timeout(120):
        while loop.engine.traffic.tick_number < after:
            await asyncio.sleep(0.01)


async def act(client: httpx.AsyncClient, **members: Any) -> httpx.Response:
    return await client.post(
        f"{HALL_AT}/actions", json={"type": "PAUSE_ROBOT", "robotId": "R1", "reason": "x"} | members
    )


@pytest.mark.req("FLT-FAIL-16", "FLT-API-1")
@pytest.mark.parametrize("kind", ["PAUSE_ROBOT", "RELOCATE"])
async def test_a_position_on_no_edge_is_refused_and_the_fleet_continues(
    client: httpx.AsyncClient, loop: FleetLoop, kind: str
) -> None:
    edge = next(iter(loop.engine.site.edge_number))
    texts = ['"NaN"', '"Infinity"', '"1e999999"', '"1"', "1e30", "-1", "100000.1", "true", "null"]
    bodies = [
        f'{{"type":"{kind}","robotId":"R1","reason":"x","anchor":{{"edgeKey":"{edge}","sM":{one}}}}}' for one in texts
    ]
    refused = [
        await client.post(f"{HALL_AT}/actions", content=one, headers={"content-type": "application/json"})
        for one in bodies
    ]
    await later(loop)

    assert {(one.status_code, code_of(one)) for one in refused} == {(422, "document_refused")}
    assert all("sM is" in one.text and "a number" in one.text for one in refused)


@pytest.mark.req("FLT-FAIL-16")
async def test_a_value_that_cannot_be_encoded_is_kept_out_of_a_tick(loop: FleetLoop) -> None:
    action = OperatorAction("1.0.0", "a", 0, "anna", "PAUSE_ROBOT", "\ud800", robotId="R1")
    for request in (loop.act(action), loop.report_task_event(GoodsReported("WEST", Decimal("NaN")))):  # type: ignore[arg-type]
        with pytest.raises(NotCanonical):
            await request
    await later(loop)


def fails_on_poison(monkeypatch: pytest.MonkeyPatch, error: Exception) -> list[int]:
    """Fail every tick with a request that contains the word."""
    decide, failed = FleetEngine._decide, list[int]()

    def decided(engine: FleetEngine, command: Any, routes: Any) -> Any:
        if POISON in str((command.operator_actions, command.task_events)):
            failed.append(command.now_ms)
            raise error
        return decide(engine, command, routes)

    monkeypatch.setattr(FleetEngine, "_decide", decided)
    return failed


@pytest.mark.req("FLT-FAIL-16")
@pytest.mark.parametrize(
    ("error", "status", "code"),
    [(ZeroDivisionError(), 503, "engine_defect"), (LimitExceeded("too large"), 422, "limit_exceeded")],
)
async def test_a_request_that_fails_a_tick_is_refused_and_the_others_are_applied(
    client: httpx.AsyncClient,
    loop: FleetLoop,
    monkeypatch: pytest.MonkeyPatch,
    error: Exception,
    status: int,
    code: str,
) -> None:
    await later(loop)
    fails_on_poison(monkeypatch, error)
    requests = [act(client, actionId=f"a{n}") for n in range(5)]
    tasks = [
        client.post(f"{HALL_AT}/tasks", json={"taskId": f"T{n}", "pickNodeId": "WEST", "dropNodeId": "EAST"})
        for n in range(3)
    ]
    poison, *others = await asyncio.gather(act(client, reason=POISON), *requests, *tasks)
    await later(loop)

    assert (poison.status_code, code_of(poison)) == (status, code)
    assert [one.status_code for one in others] == [200] * 5 + [201] * 3
    assert all(one.json()["accepted"] for one in others[:5])


@pytest.mark.req("FLT-FAIL-16")
async def test_a_repeated_failing_request_ends_no_fleet(
    client: httpx.AsyncClient, loop: FleetLoop, monkeypatch: pytest.MonkeyPatch
) -> None:
    await later(loop)
    failed = fails_on_poison(monkeypatch, ZeroDivisionError())
    answers = [await act(client, reason=POISON) for _ in range(12)]
    await later(loop)

    assert {code_of(one) for one in answers} == {"engine_defect"}
    assert len(failed) >= len(answers)


@pytest.mark.req("FLT-PERF-1")
async def test_the_map_is_encoded_once_and_outside_the_tick_loop(
    client: httpx.AsyncClient, loop: FleetLoop, monkeypatch: pytest.MonkeyPatch
) -> None:
    threads: list[str] = []

    def drawn(engine: FleetEngine, *, simulated: bool) -> Any:
        threads.append(threading.current_thread().name)
        return map_of(engine, simulated=simulated)

    monkeypatch.setattr(loops, "map_of", drawn)
    answers = await asyncio.gather(*(client.get(f"{HALL_AT}/map") for _ in range(50)))
    again = await client.get(f"{HALL_AT}/map")

    assert {one.content for one in answers} == {again.content}
    assert len(threads) == 1
    assert "fleet/hall" not in threads[0]


@pytest.mark.req("FLT-PERF-1")
@pytest.mark.parametrize("path", ["now", "locks", "robots", "lock-results", "state"])
async def test_many_concurrent_readers_cost_as_much_as_one(
    client: httpx.AsyncClient, loop: FleetLoop, monkeypatch: pytest.MonkeyPatch, path: str
) -> None:
    ask, look, asked = loop.host.ask, loop.host.look, list[object]()
    looking, all_look = 0, asyncio.Event()

    async def counted(question: Any) -> bytes:
        nonlocal looking
        looking += 1
        if looking == 50:
            all_look.set()
        return await look(question)

    async def held(question: Any) -> Any:
        """The answer is not given before all fifty callers have asked."""
        asked.append(question)
        await all_look.wait()
        return await ask(question)

    monkeypatch.setattr(loop.host, "look", counted)
    monkeypatch.setattr(loop.host, "ask", held)
    async with asyncio.timeout(120):
        answers = await asyncio.gather(*(client.get(f"{HALL_AT}/{path}") for _ in range(50)))
    await later(loop, 1)
    after = await client.get(f"{HALL_AT}/{path}")

    assert {one.status_code for one in answers} == {200}
    assert len({one.content for one in answers}) == 1
    assert len(asked) == 2
    # A later request shows the ticks since then.
    assert after.content != answers[0].content


@pytest.mark.req("FLT-PERF-1")
async def test_all_readers_of_locks_between_two_ticks_share_one_reply(loop: FleetLoop) -> None:
    host = loop.host

    # On the engine's thread, where no tick comes in between.
    one, other = await host.ask(lambda driver: [host._answer(driver, routes._locks) for _ in range(2)])
    await later(loop, 1)

    assert one is other
    assert await host.look(routes._locks) != one


async def test_a_reader_that_disconnects_does_not_affect_the_others(client: httpx.AsyncClient, loop: FleetLoop) -> None:
    leaving, staying = (asyncio.create_task(loop.host.look(routes._now)) for _ in range(2))
    await asyncio.sleep(0)
    leaving.cancel()

    assert b'"trucks"' in await staying
