"""What a client of a seeded run sees, byte for byte, compared with the files in `golden/`.

The clock of the server is set by the test and ids have no entropy, so that only a rate per second is masked.
After an intended change of the protocol, `PENDULA_GOLDEN=write` rewrites the files.
"""

import asyncio
import json
import os
import re
import secrets
import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
from starlette.types import Message, Scope

from pendula.kernel.wallclock import WallClock
from pendula.server.schedulers.credit.owners import LOCAL_OWNER
from tests.server.schedulers.credit.simulators import BASE, RING, STILL, VILLAGE, Simulator, simulator

pytestmark = pytest.mark.anyio

GOLDEN = Path(__file__).parent / "golden"
SECOND = 1_000_000
MOST = 12_000  # characters of one text
SCENARIO: dict[str, Any] = {
    "schema_version": "scenario/1",
    "scenario_id": "four",
    "baseEquivalent": "HOUR",
    "equivalents": ["HOUR", "UAH"],
    "participants": [{"id": name, "type": kind} for name, kind in (("ann", "person"), ("bea", "hub"))]
    + [{"id": "cid", "type": "business"}, {"id": "dora", "type": "person"}],
    "trustlines": [
        {"from": creditor, "to": debtor, "limit": "8", "equivalent": code}
        for code in ("HOUR", "UAH")
        for creditor, debtor in (("ann", "bea"), ("bea", "cid"), ("cid", "ann"), ("dora", "bea"), ("bea", "ann"))
    ],
    "events": [
        {"time": 0, "type": "note", "description": "opening day"},
        {
            "time": 1000,
            "type": "inject",
            "effects": [
                {"op": "inject_debt", "from": "ann", "to": "bea", "equivalent": "UAH", "amount": "2.50"},
                {"op": "create_trustline", "from": "cid", "to": "dora", "equivalent": "HOUR", "limit": "4"},
                {
                    "op": "add_participant",
                    "participant": {"id": "eve", "type": "person"},
                    "initial_trustlines": [{"sponsor": "bea", "equivalent": "UAH", "limit": "3"}],
                },
            ],
        },
        {"time": 2000, "type": "stress", "effects": []},
        {"time": 3000, "type": "inject", "effects": [{"op": "freeze_participant", "participant_id": "dora"}]},
    ],
}
FOUR = {
    "scenario_id": "four",
    "mode": "real",
    "intensity_percent": 90,
    "seed": 11,
    "settings": {"actions_per_tick_max": "5", "enable_inject": "on", "amount_cap": "3", "clearing_every_n_ticks": "3"},
}


class Client:
    """Everything that a client sends and gets, as text."""

    def __init__(self, sim: Simulator, clock: "Clock") -> None:
        self.sim = sim
        self.clock = clock
        self.lines: list[str] = []
        self.run_id = ""

    def note(self, title: str, text: str) -> None:
        self.lines += [f"## {title}", masked(text)]

    async def post(self, path: str, body: Any = None) -> Any:
        response = await self.sim.post(path, body)
        sent = "" if body is None else f" {json.dumps(body)}"
        self.note(f"POST {path}{sent}", f"{response.status_code} {response.text}")
        return response.json()

    async def get(self, path: str, **query: Any) -> Any:
        response = await self.sim.get(path, **query)
        self.note(f"GET {path} {query}", f"{response.status_code} {response.text}")
        return response.json()

    async def start(self, request: dict[str, Any]) -> str:
        self.run_id = (await self.post("/runs", request))["run_id"]
        return self.run_id

    async def tick(self, times: int = 1) -> None:
        run = await self.sim.service.find(LOCAL_OWNER, self.run_id)
        for _ in range(times):
            self.clock.now += SECOND
            await run._tick()

    async def beat(self) -> None:
        self.clock.now += SECOND
        (await self.sim.service.find(LOCAL_OWNER, self.run_id))._beat()

    async def stream(self, name: str, after: str | None = None, **query: str) -> "asyncio.Task[None]":
        """Follow the run until its stream ends; the text is noted under `name`."""
        run = await self.sim.service.find(LOCAL_OWNER, self.run_id)
        before = run.followers

        self.note(f"stream {name} {query} after {after}", "")
        place = len(self.lines) - 1

        async def follow() -> None:
            headers = {} if after is None else {"last-event-id": after}
            path = f"{BASE}/runs/{self.run_id}/events"
            response = await self.sim.client.get(path, params=query, headers=headers)
            self.lines[place] = masked(response.text)

        task = asyncio.create_task(follow())
        while run.followers == before and run.record.active:
            await asyncio.sleep(0.001)
        return task

    async def files(self) -> None:
        """The artifacts of the ended run; the archive by the names of its files only."""
        index = await self.get(f"/runs/{self.run_id}/artifacts")
        for item in index["items"]:
            if not item["name"].endswith(".zip"):
                response = await self.sim.get(f"/runs/{self.run_id}/artifacts/{item['name']}")
                self.note(item["name"], response.text)

    @property
    def text(self) -> str:
        """What was seen; of very long texts the beginning and the digest."""
        short = [one if len(one) < MOST else f"{one[:500]}…\n{sha256(one.encode()).hexdigest()}" for one in self.lines]
        return "\n".join(short) + "\n"


def masked(text: str) -> str:
    """Without a rate per second of the wall clock, and sizes that depend on zlib and on the form of a journal."""
    text = re.sub(r'"ops_sec":[0-9.]+', '"ops_sec":0', text)
    text = re.sub(r'"journal_bytes":\d+', '"journal_bytes":0', text)
    return re.sub(r'("content_type":"application/zip"),"size_bytes":\d+,"sha256":"[0-9a-f]+"', r"\1", text)


class Clock:
    def __init__(self) -> None:
        self.now = 1_767_225_600 * SECOND


@asynccontextmanager
async def client(data: Path, monkeypatch: pytest.MonkeyPatch, **environment: str) -> AsyncIterator[Client]:
    clock, entropy = Clock(), iter(range(1, 100))
    monkeypatch.setattr(WallClock, "now", lambda _: clock.now)
    async with simulator(data, {**STILL, **environment}) as sim:
        monkeypatch.setattr(secrets, "token_bytes", lambda count: bytes([next(entropy)] * count))
        yield Client(sim, clock)


def compare(name: str, text: str) -> None:
    path = GOLDEN / name
    if os.environ.get("PENDULA_GOLDEN") == "write":
        GOLDEN.mkdir(exist_ok=True)
        path.write_text(text)
    assert text == path.read_text()


async def test_a_run_with_injections_commands_and_replay(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with client(tmp_path / "data", monkeypatch) as seen:
        await seen.post("/scenarios", SCENARIO)
        run_id = await seen.start(FOUR)
        path = f"/runs/{run_id}"
        streams = [await seen.stream("one"), await seen.stream("two", equivalent="UAH")]
        await seen.tick(3)
        await seen.beat()
        await seen.post(f"{path}/pause")
        await seen.tick()
        pay = {"from_pid": "cid", "to_pid": "bea", "equivalent": "UAH", "amount": "1.25", "client_action_id": "a1"}
        await seen.post(f"{path}/actions/payment-real", pay)
        await seen.post(f"{path}/actions/payment-real", pay)
        await seen.post(f"{path}/actions/payment-real", {**pay, "amount": "1000", "client_action_id": "a2"})
        await seen.post(f"{path}/resume")
        await seen.post(f"{path}/intensity", {"intensity_percent": 40})
        await seen.tick(3)
        line = {"from_pid": "ann", "to_pid": "dora", "equivalent": "HOUR"}
        await seen.post(f"{path}/actions/trustline-create", {**line, "limit": "5"})
        await seen.post(f"{path}/actions/trustline-update", {**line, "new_limit": "6"})
        await seen.post(f"{path}/actions/trustline-close", line)
        await seen.post(f"{path}/actions/clearing-real", {"equivalent": "UAH"})
        await seen.post(f"{path}/actions/tx-once", {"equivalent": "HOUR", "seed": 3})
        await seen.post(f"{path}/actions/clearing-once", {"equivalent": "HOUR", "seed": 3})
        polled = await seen.get(f"{path}/events/poll")
        await seen.get(f"{path}/events/last", limit=4)
        streams.append(await seen.stream("resumed", after=polled[5]["event_id"]))
        await seen.tick(2)
        await seen.get(path)
        await seen.get(f"{path}/metrics", extended="true")
        await seen.get(f"{path}/bottlenecks")
        await seen.get(f"{path}/graph/snapshot", equivalent="UAH")
        await seen.get(f"{path}/payment-targets", from_pid="cid", include_max_available="true")
        await seen.post(f"{path}/why", {"question": {"run": True}})
        await seen.post(f"{path}/stop?reason=enough")
        for stream in streams:
            await stream
        await (await seen.stream("afterwards"))
        await (await seen.stream("unknown", after=f"evt_{run_id}_999999"))
        await seen.get(f"{path}/details")
        await seen.get(f"{path}/past", at=7)
        await seen.get(f"{path}/moments")
        await seen.files()
    compare("four.txt", seen.text)


async def test_a_restart_and_a_continuation(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with client(tmp_path / "data", monkeypatch, SIMULATOR_REAL_EMIT_TICK_EVENTS="1") as seen:
        first = await seen.start({**RING, "settings": {"actions_per_tick_max": "4"}})
        stream = await seen.stream("first")
        await seen.tick(4)
        await seen.post(f"/runs/{first}/stop")
        await stream
        await seen.post(f"/runs/{first}/restart")
        stream = await seen.stream("restarted")
        await seen.tick(2)
        await seen.beat()
        await seen.post(f"/runs/{first}/restart")
        await seen.tick(2)
        await seen.post(f"/runs/{first}/stop")
        await stream
        await seen.files()
        seen.run_id = (await seen.post(f"/runs/{first}/continue"))["run_id"]
        stream = await seen.stream("continued")
        await seen.tick(2)
        await seen.post(f"/runs/{seen.run_id}/stop")
        await stream
        await seen.files()
        await seen.get("/admin/runs")
    compare("restart.txt", seen.text)


async def test_an_abandoned_run_with_half_of_its_lines(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A server was killed; the next one finishes the run and its files."""
    left = tmp_path / "left"
    async with client(tmp_path / "data", monkeypatch) as seen:
        run_id = await seen.start({**RING, "settings": {"actions_per_tick_max": "4"}})
        await seen.tick(4)
        await seen.post(f"/runs/{run_id}/intensity", {"intensity_percent": 100})
        await seen.tick(2)
        polled = await seen.get(f"/runs/{run_id}/events/poll")
        await seen.sim.service.query_store(run_id, lambda store: store.records())
        lines = seen.sim.service.context.artifacts(run_id) / "events.ndjson"
        while lines.read_bytes().count(b"\n") < sum(one["type"] != "run_status" for one in polled):
            await asyncio.sleep(0.01)
        shutil.copytree(tmp_path / "data", left, ignore=shutil.ignore_patterns("lock"))
    path = left / "stores/credit/runs" / run_id / "artifacts/events.ndjson"
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    async with client(left, monkeypatch) as again:
        again.run_id = run_id
        await again.get(f"/runs/{run_id}")
        await again.get(f"/runs/{run_id}/details")
        await again.get(f"/runs/{run_id}/metrics")
        await (await again.stream("afterwards"))
        await again.files()
        await again.post(f"/runs/{run_id}/restart")
        await again.tick(2)
        await again.get(f"/runs/{run_id}/events/poll")
    compare("abandoned.txt", again.text)


async def test_the_village_and_a_slow_reader(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Digests of long texts; a reader whose connection is blocked gets whole events without a gap, and then the end."""
    sent: list[Message] = []
    readable = asyncio.Event()

    async def send(message: Message) -> None:
        sent.append(message)
        if len(sent) > 1:
            await readable.wait()

    async def receive() -> Message:
        await asyncio.sleep(3600)
        raise AssertionError

    async with client(tmp_path / "data", monkeypatch, SIMULATOR_SSE_SUB_QUEUE_MAX="60") as seen:
        run_id = await seen.start(VILLAGE)
        fast = await seen.stream("fast")
        path = f"{BASE}/runs/{run_id}/events"
        scope: Scope = {
            "type": "http",
            "http_version": "1.1",
            "method": "GET",
            "scheme": "http",
            "root_path": "",
            "path": path,
            "raw_path": path.encode(),
            "query_string": b"",
            "headers": [(b"host", b"127.0.0.1:8765")],
            "client": ("127.0.0.1", 50_000),
            "server": ("127.0.0.1", 8765),
        }
        app: Any = seen.sim.client._transport.app  # type: ignore[attr-defined]
        slow = asyncio.create_task(app(scope, receive, send))
        run = await seen.sim.service.find(LOCAL_OWNER, run_id)
        while run.followers < 2:
            await asyncio.sleep(0.001)
        while len(sent) < 2:
            await asyncio.sleep(0.001)
        await seen.tick(12)
        readable.set()
        await slow
        assert run.record.active
        seen.note("slow", b"".join(message.get("body", b"") for message in sent).decode())
        await seen.post(f"/runs/{run_id}/stop")
        await fast
        await seen.files()
    compare("village.txt", seen.text)
