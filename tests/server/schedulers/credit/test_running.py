"""An active run: heartbeats, pace, failures, and log lines."""

import asyncio
import io
import json
import threading
from collections import deque
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from pendula.kernel.disk import RealDisk
from pendula.server.schedulers.credit import run as served_run
from pendula.server.schedulers.credit.owners import LOCAL_OWNER
from pendula.server.schedulers.credit.run import ServedRun
from tests.server.schedulers.credit import strict
from tests.server.schedulers.credit.simulators import QUICK, RING, VILLAGE, Simulator, simulator

pytestmark = pytest.mark.anyio

# Every search for a route times out at once.
HASTY = {**VILLAGE, "intensity_percent": 100, "settings": {"work_units_per_ms": "1", "routing_timeout_ms": "1"}}


async def opened(sim: Simulator, run_id: str) -> ServedRun:
    return await sim.service.find(LOCAL_OWNER, run_id)


@pytest.mark.req("SIM-EVT-6")
async def test_each_heartbeat_publishes_a_status_running_and_paused(sim: Simulator) -> None:
    run_id = await sim.start()
    for verb in ("resume", "pause"):
        await sim.ok(f"/runs/{run_id}/{verb}")
        last = (await sim.events(run_id))[-1]["event_id"]
        while len([one for one in await sim.events(run_id, after=last) if one["type"] == "run_status"]) < 3:
            await asyncio.sleep(0.005)


@pytest.mark.req("SIM-ERR-2", "SIM-ERR-4", "SIM-EVT-6", "SIM-EVT-7", "SIM-GUARD-4", "SIM-TEST-2")
async def test_a_run_ended_by_a_guardrail_sends_a_status_and_no_other_event(sim: Simulator) -> None:
    run_id = (await sim.ok("/runs", HASTY))["run_id"]
    status = await sim.until(run_id, lambda status: status["state"] == "error")
    await (await opened(sim, run_id)).wait_ended()

    strict.STATUS(status)
    assert status["last_error"]["code"] == "PAYMENT_TIMEOUT"
    assert status["timeouts_total"] == status["errors_total"] >= 5
    events = await sim.events(run_id)
    for event in events:
        strict.event(event)
    assert (events[-1]["type"], events[-1]["state"]) == ("run_status", "error")
    assert "tx.failed" in {event["type"] for event in events} <= set(strict.EVENTS)
    assert not (await opened(sim, run_id)).is_open


@pytest.mark.req("SIM-RUN-3")
async def test_a_run_in_error_stays_so_until_it_is_restarted(sim: Simulator) -> None:
    run_id = (await sim.ok("/runs", HASTY))["run_id"]
    await sim.until(run_id, lambda status: status["state"] == "error")

    states = [(await sim.ok(f"/runs/{run_id}/{verb}"))["state"] for verb in ("pause", "resume", "stop")]
    again = await sim.ok(f"/runs/{run_id}/restart")

    assert states == ["error"] * 3
    assert (again["errors_total"], again["last_error"]) == (0, None)
    await sim.until(run_id, lambda status: status["state"] == "error")


@pytest.mark.req("SIM-MET-1")
async def test_actions_per_second_cover_the_last_seconds(still: Simulator) -> None:
    run = await opened(still, await still.start())
    now = run._loop.time()
    run._samples = deque([(now - 30, 0, 0), (now - 5, 100, 0)])
    run.record.attempts_total = 150

    run._measure_pace()

    assert Decimal("9.5") < run.record.ops_sec <= 10


@pytest.mark.req("SIM-ERR-7")
async def test_errors_of_the_last_minute_are_counted_and_older_ones_are_not(still: Simulator) -> None:
    run = await opened(still, await still.start())
    now = run._loop.time()
    run._samples = deque([(now - 61, 0, 1), (now - 59, 0, 3), (now - 1, 0, 6)])
    run.record.errors_total = 7

    run._measure_pace()

    assert run.record.errors_last_1m == 4


@pytest.mark.req("SIM-TIME-8", "SIM-MET-7")
async def test_a_slow_tick_is_logged_once_with_run_and_tick(
    sim: Simulator, monkeypatch: pytest.MonkeyPatch, quiet_logs: io.StringIO
) -> None:
    monkeypatch.setattr(served_run, "SLOW_SECONDS", 0.0)
    run_id = await sim.start()
    await sim.after_tick(run_id, 4)
    await sim.ok(f"/runs/{run_id}/stop")

    lines = [line for line in map(json.loads, quiet_logs.getvalue().splitlines()) if line.get("run_id") == run_id]
    (slow,) = [line for line in lines if line["event"] == "sim.tick.slow"]
    assert (slow["tick"], slow["seconds"] >= 0) == (0, True)
    assert {"sim.run.start", "sim.run.stop"} <= {line["event"] for line in lines}


@pytest.mark.req("SIM-MET-7")
async def test_ticks_are_not_logged(sim: Simulator, quiet_logs: io.StringIO) -> None:
    run_id = await sim.start()
    await sim.after_tick(run_id, 10)
    lines = [line for line in map(json.loads, quiet_logs.getvalue().splitlines()) if line.get("run_id") == run_id]

    assert {line["event"] for line in lines} == {"sim.run.start"}


async def test_a_failing_journal_ends_the_run_in_error(sim: Simulator, monkeypatch: pytest.MonkeyPatch) -> None:
    run_id = await sim.start()
    await sim.after_tick(run_id, 2)
    run = await opened(sim, run_id)
    assert run.host is not None

    monkeypatch.setattr(run.host.driver.journal, "_disk", Broken(run.host.driver.journal._disk))  # type: ignore[attr-defined]
    status = await sim.until(run_id, lambda status: status["state"] == "error")
    await run.wait_ended()

    assert status["last_error"]["code"] == "INTERNAL_ERROR"
    assert not run.is_open
    await sim.start()


class Broken:
    """A full disk."""

    def __init__(self, disk: Any) -> None:
        self._disk = disk

    def __getattr__(self, name: str) -> Any:
        if name in ("append", "sync"):
            return self._refuse
        return getattr(self._disk, name)

    def _refuse(self, *_: object) -> None:
        raise OSError(28, "No space left on device")


@pytest.mark.req("SIM-STO-2")
async def test_lines_dropped_by_a_slow_disk_are_counted_and_delay_no_tick(tmp_path: Path) -> None:
    async with simulator(tmp_path / "data", QUICK) as sim:
        run_id = (await sim.ok("/runs", VILLAGE))["run_id"]
        run = await opened(sim, run_id)
        lines = run.output._lines
        assert lines is not None
        while lines._places.qsize() > 1:
            lines._places.get_nowait()
        lines._disk = Slow()  # type: ignore[assignment]
        await sim.after_tick(run_id, 8)
        dropped = (await sim.look(f"/runs/{run_id}/details"))["dropped_lines"]
        Slow.go.set()

    assert dropped > 0


class Slow:
    """A disk that blocks until `go` is set."""

    go = threading.Event()

    def append(self, *_: object) -> None:
        self.go.wait(120)

    def sync(self, *_: object) -> None: ...

    def sync_dir(self) -> None: ...


# A full disk


@pytest.fixture
def free(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The last item is the number of free bytes of every disk."""
    sizes = [10**12]
    monkeypatch.setattr(RealDisk, "free_bytes", lambda _: sizes[-1])
    return sizes


def lines_about(logs: io.StringIO, run_id: str) -> list[str]:
    lines = [json.loads(line) for line in logs.getvalue().splitlines()]
    return [line["event"] for line in lines if line.get("run_id") == run_id and line["level"] != "info"]


@pytest.mark.req("SIM-ERR-2", "SIM-ERR-4")
async def test_a_full_disk_fails_a_run_and_prevents_new_ones(
    sim: Simulator, free: list[int], quiet_logs: io.StringIO
) -> None:
    run_id = await sim.start()
    await sim.after_tick(run_id, 2)
    free.append(0)
    ended = await sim.until(run_id, lambda status: status["state"] == "error")
    refused = [await sim.post("/runs", RING), await sim.post(f"/runs/{run_id}/restart")]
    refused.append(await sim.post(f"/runs/{run_id}/continue"))
    logged = lines_about(quiet_logs, run_id)
    free.append(10**12)
    await sim.ok(f"/runs/{run_id}/restart")
    again = await sim.after_tick(run_id, 2)

    assert ended["last_error"]["code"] == "disk_low"
    assert ended["stopped_at"] is not None
    assert [(one.status_code, one.json()["error"]["code"]) for one in refused] == [(503, "disk_low")] * 3
    assert logged == ["sim.run.failed"]
    assert (again["state"], again["last_error"]) == ("running", None)


@pytest.mark.req("SIM-ERR-4")
async def test_a_run_without_that_guardrail_waits_for_space(
    tmp_path: Path, free: list[int], quiet_logs: io.StringIO
) -> None:
    async with simulator(tmp_path / "data", {**QUICK, "SIMULATOR_REAL_MAX_CONSEC_TICK_FAILURES": "0"}) as sim:
        run_id = await sim.start()
        await sim.after_tick(run_id, 2)
        free.append(0)
        waiting = await sim.until(run_id, lambda status: status["last_error"] is not None)
        run = await opened(sim, run_id)
        while run._failed_ticks < 20:
            await asyncio.sleep(0.005)
        logged = lines_about(quiet_logs, run_id)
        free.append(10**12)
        again = await sim.after_tick(run_id, waiting["sim_time_ms"] // 1000 + 2)

    assert (waiting["state"], waiting["last_error"]["code"]) == ("running", "disk_low")
    assert logged == ["sim.tick.failed"]
    assert (again["state"], again["last_error"]) == ("running", None)


@pytest.mark.req("SIM-ERR-4")
async def test_a_disk_full_for_one_tick_loses_only_that_tick(
    still: Simulator, free: list[int], quiet_logs: io.StringIO
) -> None:
    run_id = await still.start()
    run = await opened(still, run_id)
    await run._tick()
    free.append(0)
    await run._tick()  # still durable: low space is detected by the write
    await run._tick()
    failed = run.record.last_error
    free.append(10**12)
    await run._tick()
    await still.until(run_id, lambda status: status["last_error"] is None)

    assert failed is not None
    assert failed.code == "disk_low"
    assert run.record.state == "running"
    assert run.record.tick_index == 3
    assert lines_about(quiet_logs, run_id) == ["sim.tick.again"]


async def test_a_server_on_a_full_disk_starts_and_shows_stored_runs(tmp_path: Path, free: list[int]) -> None:
    async with simulator(tmp_path / "data") as sim:
        run_id = await sim.start()
        await sim.ok(f"/runs/{run_id}/stop")
    free.append(0)
    async with simulator(tmp_path / "data", demo=True) as sim:
        assert (await sim.status(run_id))["state"] == "stopped"
        assert (await sim.look("/runs/active"))["run_id"] is None
