"""Operations of a live fleet over HTTP: a completion of one ends no other."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from typing import Any

import httpx
import pytest
from fastapi import FastAPI

from pendula.server.runtime.scheduler_spec import SchedulerSpec
from pendula.server.schedulers.fleet.routes import scheduler_for
from pendula.server.settings import Settings
from tests.server.living import client_of
from tests.server.schedulers.fleet.halls import BASE

pytestmark = pytest.mark.anyio
YARD_AT = f"{BASE}/yard"
# Its truck stands where it loads and unloads, so that it need not drive.
YARD = {
    "contractVersion": "1.0.0",
    "name": "yard",
    "durationMs": 3_600_000,
    "map": {
        "contractVersion": "1.0.0",
        "mapId": "yard",
        "nodes": [{"id": "W", "x": 0, "y": 0, "kind": "ParkPoint"}, {"id": "M", "x": 1, "y": 0, "kind": "ActionPoint"}],
        "edges": [{"id": "e", "start": "W", "end": "M", "props": {"direction": "both"}}],
    },
    "robots": [{"robotId": "R1", "parkNodeId": "W"}],
}


@pytest.fixture
def schedulers(settings: Settings) -> Sequence[SchedulerSpec]:
    return (scheduler_for(settings),)


# So near to where it was heard before no truck is taken to have jumped.
STEP_UM = 200_000


class Gateway:
    """The gateway of one truck that begins in W and goes where it is sent, a step a report."""

    def __init__(self, client: httpx.AsyncClient) -> None:
        self.client = client
        self.x_um = 0
        self.heard_ms = -1

    async def orders(self) -> dict[str, Any]:
        """The orders, after the truck was heard."""
        reply: dict[str, Any] = (await self.client.get(f"{YARD_AT}/orders")).json()
        command = reply["commands"][0]
        seq, ahead = command["seq"], round(command["target"]["x"] * 1_000_000) - self.x_um
        if reply["now"] > self.heard_ms:
            self.x_um += max(-STEP_UM, min(STEP_UM, ahead))
            self.heard_ms = reply["now"]
        place = {"pose": {"x": self.x_um / 1_000_000, "y": 0, "yaw": 0}, "v": 0, "status": "OK"}
        await self.say(reports=[{"robotId": "R1", "nowMs": reply["now"], "lastAckSeq": seq, **place}])
        return reply

    async def operation(self) -> dict[str, Any]:
        """The next operation that is offered."""
        async with asyncio.timeout(120):
            while not (reply := await self.orders())["operations"]:
                await asyncio.sleep(0.05)
        first: dict[str, Any] = reply["operations"][0]
        return first

    async def say(self, **body: Any) -> int:
        return (await self.client.post(f"{YARD_AT}/reports", json=body)).status_code

    async def task(self) -> dict[str, Any]:
        answer = await self.client.post(f"{YARD_AT}/why", json={"question": {"task": "T1"}})
        reply: dict[str, Any] = answer.json()
        return reply


@pytest.fixture
async def gateway(app: FastAPI) -> AsyncIterator[Gateway]:
    async with client_of(app) as client:
        answer = await client.post(BASE, params={"name": "yard", "live": True}, json=YARD)
        assert answer.status_code == 201, answer.text
        gateway = Gateway(client)
        await gateway.orders()
        await client.post(f"{YARD_AT}/tasks", json={"taskId": "T1", "pickNodeId": "W", "dropNodeId": "M"})
        yield gateway


def by_name(operation: dict[str, Any]) -> dict[str, Any]:
    return {"done": [{"robotId": "R1", "operationId": operation["operation_id"]}]}


def by_truck(_: dict[str, Any]) -> dict[str, Any]:
    return {"done": ["R1"]}


@pytest.mark.req("FLT-TASK-7")
@pytest.mark.parametrize("done", [by_name, by_truck])
async def test_a_repeated_completion_ends_no_other_operation(gateway: Gateway, done: Any) -> None:
    load = await gateway.operation()
    codes = [await gateway.say(**done(load)) for _ in range(3)]
    unload = await gateway.operation()

    assert codes == [204, 204, 204]
    assert [load["operation_id"], unload["operation_id"]] == ["T1/LOAD", "T1/UNLOAD"]
    figures = (await gateway.client.get("/metrics")).text
    assert 'pendula_fleet_reports_dropped_total{code="OPERATION_NOT_UNDER_WAY",fleet="yard"} 2.0' in figures


@pytest.mark.req("FLT-TASK-7")
async def test_named_operations_are_completed_one_after_the_other(gateway: Gateway) -> None:
    for _ in range(2):
        await gateway.say(**by_name(await gateway.operation()))

    assert (await gateway.task())["code"] == "UNLOADED"


@pytest.mark.req("FLT-TASK-12")
async def test_a_failed_operation_is_named_and_ends_no_other(gateway: Gateway) -> None:
    load = await gateway.operation()
    await gateway.say(failed=[{"robotId": "R1", "operationId": "T0/LOAD", "reason": "an old one"}])
    before = (await gateway.orders())["operations"]
    await gateway.say(failed=[{"robotId": "R1", "operationId": load["operation_id"], "reason": "no pallet"}])

    assert before == [load]
    assert (await gateway.task())["code"] == "OPERATION_FAILED"
