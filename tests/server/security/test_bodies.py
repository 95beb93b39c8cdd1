"""Bytes of bodies held at once: bounded for the whole server, granted in order, released however the request ends."""

import asyncio

import httpx
import msgspec
import pytest
from starlette.datastructures import Headers
from starlette.types import Message

from pendula.kernel.limits import BODY_BYTES, BODY_DIGITS, BODY_VALUES, DOCUMENT_NODES, INTEGER_DIGITS, MIB
from pendula.server.security import gates
from pendula.server.security.gates import SMALL_BYTES, BodyBudget, BodyInMemory
from pendula.server.settings import Settings
from tests.server.living import BASE, JSON, client_of, code_of, running, supervisor_of

pytestmark = pytest.mark.anyio
BOMB = b"[" + b"{}," * (MIB // 3) + b"{}]"


async def test_twenty_concurrent_large_bodies_are_held_one_at_a_time(settings: Settings) -> None:
    given = msgspec.structs.replace(settings, limits={"bodies_bytes": 2 * len(BOMB), "body_values": 1000})
    async with running(given) as app, client_of(app) as client:
        budget = supervisor_of(app).bodies
        requests = [client.post(f"{BASE}/commands", content=BOMB, headers=JSON) for _ in range(20)]

        answers = await asyncio.gather(*requests)

    assert [answer.status_code for answer in answers] == [422] * 20
    faults = [answer.json()["error"]["details"]["faults"] for answer in answers]
    assert {fault["code"] for found in faults for fault in found} == {"too_many_values"}
    assert 0 < budget.most_held <= 2 * len(BOMB)
    assert budget.held == 0


async def test_numbers_in_bodies_have_a_lower_digit_limit_than_in_files(client: httpx.AsyncClient) -> None:
    digits = "9" * (BODY_DIGITS.default + 1)

    response = await client.post(f"{BASE}/commands", content=f'{{"type":"add","amount":{digits}}}', headers=JSON)

    assert [fault["code"] for fault in response.json()["error"]["details"]["faults"]] == ["number_too_long"]


def test_the_limits_of_bodies_are_far_below_those_of_files() -> None:
    assert 10 * BODY_VALUES.default <= DOCUMENT_NODES.default
    assert 10 * BODY_DIGITS.default <= INTEGER_DIGITS.default


async def test_a_wait_for_bytes_that_times_out_is_answered_with_retry_after(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gates, "PATIENCE_SECONDS", 0.01)
    async with running(settings) as app, client_of(app) as client:
        budget = supervisor_of(app).bodies
        held = await budget.take(budget.most)

        response = await client.post(f"{BASE}/commands", content=BOMB, headers=JSON)
        small = await client.post(f"{BASE}/commands", json={"type": "add", "amount": 1})
        budget.give_back(held)
        later = await client.post(f"{BASE}/commands", content=BOMB, headers=JSON)

    assert (response.status_code, code_of(response)) == (503, "bodies_busy")
    assert response.headers["retry-after"] == "1"
    assert response.json()["error"]["details"]["limit"] == "bodies_bytes"
    assert small.status_code == 200
    assert later.status_code == 422


async def test_bytes_are_granted_in_order_of_arrival() -> None:
    budget = BodyBudget(10)
    await budget.take(8)
    order: list[str] = []

    async def come(name: str, size: int) -> None:
        await budget.take(size)
        order.append(name)

    tasks = [asyncio.create_task(come("large", 6)), asyncio.create_task(come("small", 2))]
    await asyncio.sleep(0)
    # The small one would fit, but it came after one that does not.
    assert order == []
    budget.give_back(8)
    await asyncio.gather(*tasks)

    assert order == ["large", "small"]
    assert budget.held == 8


async def test_a_cancelled_wait_takes_no_bytes() -> None:
    budget = BodyBudget(10)
    await budget.take(10)
    gone = asyncio.create_task(budget.take(5))
    await asyncio.sleep(0)
    gone.cancel()
    await asyncio.gather(gone, return_exceptions=True)
    budget.give_back(10)

    assert budget.held == 0
    assert await budget.take(10) == 10


async def test_a_body_larger_than_the_whole_budget_is_read_alone() -> None:
    budget = BodyBudget(10)

    assert await budget.take(25) == 10


async def test_a_request_cancelled_as_it_is_admitted_returns_its_bytes() -> None:
    budget = BodyBudget(10)
    await budget.take(10)
    task = asyncio.create_task(budget.take(5))
    await asyncio.sleep(0)

    budget.give_back(10)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)

    assert budget.held == 0


@pytest.mark.parametrize("declared", [True, False])
async def test_bytes_are_reserved_before_more_than_a_small_body_is_read(declared: bool) -> None:
    budget = BodyBudget(4 * MIB)
    seen: list[int] = []

    parts: list[Message] = [
        {"type": "http.request", "body": b"x" * SMALL_BYTES, "more_body": True},
        {"type": "http.request", "body": b"x", "more_body": True},
        {"type": "http.request", "body": b"x", "more_body": False},
    ]

    async def receive() -> Message:
        return parts.pop(0)

    length = {"content-length": str(SMALL_BYTES + 2)} if declared else {}
    with BodyInMemory(budget, BODY_BYTES.default, Headers(length), receive) as body:
        while (await body.receive())["more_body"]:
            seen.append(budget.held)

    # The size of a chunked body is unknown until it arrives.
    assert seen == ([SMALL_BYTES + 2] * 2 if declared else [0, 0])
    assert budget.most_held == (SMALL_BYTES + 2 if declared else 4 * MIB)
    assert budget.held == 0
