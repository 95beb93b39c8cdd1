"""Abandoned runs of a killed process: their records are correct, their journals replay, and they can be continued."""

import asyncio
import random
import shutil
import time
from pathlib import Path
from typing import Any

import httpx
import pytest

from bench.credit_served import journal_bytes
from pendula.credit.commands import Tick
from pendula.credit.engine import Run
from pendula.credit.runs.headless import Headless
from pendula.kernel.disk import RealDisk
from pendula.kernel.engine import CommandReader
from pendula.kernel.frames import read_input
from pendula.kernel.journal import FileJournal
from pendula.kernel.replay import replay
from pendula.server.app import create_app
from pendula.server.schedulers.credit.scheduler import scheduler_for
from pendula.server.schedulers.credit.service import SNAPSHOT_EVERY
from pendula.server.settings import Settings as ServerSettings
from tests.server.living import client_of, until
from tests.server.schedulers.credit.killing import doomed
from tests.server.schedulers.credit.simulators import BASE, QUICK, STILL, VILLAGE, Simulator, simulator
from tests.server.schedulers.credit.test_recovered_files import files_are_complete, headless

pytestmark = pytest.mark.anyio


def replays(data: Path, run_id: str) -> bool:
    disk = RealDisk(data / "stores/credit/runs" / run_id / "journal", make=False)
    try:
        return replay(FileJournal.open(disk, read_only=True), lambda _: Run).first_difference is None
    finally:
        disk.close()


async def killed_record_is_right(data: Path, run_id: str, acknowledged_ms: int) -> dict[str, Any]:
    async with simulator(data, STILL) as sim:
        status = await sim.status(run_id)
        details: dict[str, Any] = await sim.look(f"/runs/{run_id}/details")
        last = max(0, details["tick_index"] - 1) * 1000
        metrics = await sim.look(f"/runs/{run_id}/metrics", from_ms=last, to_ms=last, step_ms=1)
        assert (await sim.look("/runs/active"))["run_id"] is None
        failed = [one["run_id"] for one in (await sim.look("/admin/runs"))["items"] if one["state"] == "error"]
    assert failed == [run_id]  # the overview counts it
    assert (status["state"], status["last_error"]["code"]) == ("error", "INTERNAL_ERROR")
    assert "restarted" in status["last_error"]["message"]
    assert status["stopped_at"] is not None
    assert status["sim_time_ms"] >= acknowledged_ms
    run = headless(details["tick_index"]).run
    assert details["digests"] == run.digests()
    assert status["attempts_total"] == run.counters.attempts_total
    if details["tick_index"]:
        values = {one["key"]: one["points"][0]["v"] for one in metrics["series"]}
        assert values["total_debt"] == run.measured["UNIT"]["total_debt"]
    return details


def left_running(data: Path, luck: random.Random) -> tuple[str, int]:
    """Kill a server at a random moment of a run; returns the run and its last published virtual time."""
    with doomed(data) as client:
        until(lambda: client.get("/readyz").status_code == 200)
        run_id = client.post(f"{BASE}/runs", json=VILLAGE).json()["run_id"]
        seen = _seen(client, run_id, luck.randrange(0, 12_000, 1000))
        # A random delay, so that the kill comes anywhere in a tick.
        time.sleep(luck.random() / 50)
    return run_id, seen


def _seen(client: httpx.Client, run_id: str, tick_count: int) -> int:
    while True:
        seen: int = client.get(f"{BASE}/runs/{run_id}").json()["sim_time_ms"]
        if seen >= tick_count:
            return seen


@pytest.mark.req("SIM-RUN-12")
@pytest.mark.parametrize("seed", [*range(2), *(pytest.param(seed, marks=pytest.mark.long) for seed in range(2, 50))])
async def test_a_run_of_a_killed_process_has_a_correct_record(tmp_path: Path, seed: int) -> None:
    run_id, seen = left_running(tmp_path / "data", random.Random(seed))

    details = await killed_record_is_right(tmp_path / "data", run_id, seen)

    assert replays(tmp_path / "data", run_id)
    files_are_complete(tmp_path / "data", run_id, details["tick_index"])


@pytest.mark.req("SIM-RUN-12", "SIM-STO-8")
async def test_an_abandoned_run_can_be_continued_as_a_new_one(tmp_path: Path) -> None:
    run_id, _ = left_running(tmp_path / "data", random.Random(7))
    async with simulator(tmp_path / "data") as sim:
        fresh = (await sim.ok(f"/runs/{run_id}/continue"))["run_id"]
        left = (await sim.look(f"/runs/{run_id}/details"))["tick_index"]
        await sim.after_tick(fresh, left + 5)
        await sim.ok(f"/runs/{fresh}/stop")
        details = await sim.look(f"/runs/{fresh}/details")

    assert fresh != run_id
    assert (details["continued_from"], details["seed"]) == (run_id, 42)
    assert details["digests"] == headless(details["tick_index"]).run.digests()
    assert replays(tmp_path / "data", fresh)


@pytest.mark.req("SIM-RUN-12")
async def test_an_abandoned_run_without_a_journal_has_failed(tmp_path: Path) -> None:
    run_id, _ = left_running(tmp_path / "data", random.Random(8))
    for file in (tmp_path / "data/stores/credit/runs" / run_id / "journal").iterdir():
        file.unlink()
    async with simulator(tmp_path / "data", STILL) as sim:
        status = await sim.status(run_id)
        await sim.start()

    assert (status["state"], status["last_error"]["code"]) == ("error", "INTERNAL_ERROR")


@pytest.mark.req("SIM-RUN-12")
async def test_the_simulator_starts_after_a_kill_before_the_journal_was_created(tmp_path: Path) -> None:
    run_id, _ = left_running(tmp_path / "data", random.Random(8))
    shutil.rmtree(tmp_path / "data/stores/credit/runs" / run_id / "journal")
    async with simulator(tmp_path / "data", STILL) as sim:
        status = await sim.status(run_id)
        picture = await sim.get(f"/runs/{run_id}/graph/snapshot")
        await sim.start()

    assert (status["state"], status["last_error"]["code"]) == ("error", "INTERNAL_ERROR")
    assert (picture.status_code, str(tmp_path) in picture.text) == (503, False)


@pytest.mark.req("SIM-RUN-12")
async def test_no_run_of_a_killed_process_is_active(tmp_path: Path) -> None:
    run_id, _ = left_running(tmp_path / "data", random.Random(9))
    settings = ServerSettings(data=str(tmp_path / "data"))
    app = create_app(settings, (scheduler_for(settings, STILL),))
    seen: list[str] = []
    async with app.router.lifespan_context(app), client_of(app) as client:
        async with asyncio.timeout(120):
            while (response := await client.get(f"{BASE}/runs/{run_id}")).status_code != 200:
                await asyncio.sleep(0.001)
        seen.append(response.json()["state"])

    assert seen == ["error"]


async def test_a_server_that_stops_cleanly_stops_its_runs(tmp_path: Path) -> None:
    async with simulator(tmp_path / "data") as sim:
        run_id = await sim.start()
        await sim.after_tick(run_id, 2)
    async with simulator(tmp_path / "data", STILL) as sim:
        status = await sim.status(run_id)

    assert (status["state"], status["stop_source"]) == ("stopped", "server")
    assert replays(tmp_path / "data", run_id)


@pytest.mark.req("SIM-RUN-9")
async def test_event_numbers_are_unique_across_processes(tmp_path: Path) -> None:
    with doomed(tmp_path / "data") as client:
        until(lambda: client.get("/readyz").status_code == 200)
        run_id = client.post(f"{BASE}/runs", json=VILLAGE).json()["run_id"]
        _seen(client, run_id, 3000)
        last = client.get(f"{BASE}/runs/{run_id}/events/poll").json()[-1]["event_id"]
    async with simulator(tmp_path / "data", STILL) as sim:
        await sim.ok(f"/runs/{run_id}/restart")
        first = (await sim.events(run_id))[0]["event_id"]
        gone = await sim.get(f"/runs/{run_id}/events/poll", after=last)

    assert first > last
    assert gone.status_code == 410


@pytest.mark.req("SIM-DET-2", "SIM-TIME-5")
async def test_a_served_run_equals_one_without_a_server(tmp_path: Path) -> None:
    async with simulator(tmp_path / "data") as sim:
        run_id = (await sim.ok("/runs", VILLAGE))["run_id"]
        await sim.after_tick(run_id, 12)
        await sim.ok(f"/runs/{run_id}/stop")
        details = await sim.look(f"/runs/{run_id}/details")

    assert details["digests"] == headless(details["tick_index"]).run.digests()


@pytest.mark.req("SIM-DET-1", "SIM-TIME-7")
async def test_a_served_run_with_commands_equals_the_same_commands_without_a_server(
    still: Simulator,
) -> None:
    """All manual commands, a pause and a change of intensity, between the same ticks."""
    run_id = (await still.ok("/runs", VILLAGE))["run_id"]
    run = await still.service.find(still.service._records[run_id].owner, run_id)
    pay = {"from_pid": "agent-1", "to_pid": "household-21", "equivalent": "UNIT", "amount": "12.5"}

    async def ticks(count: int) -> None:
        for _ in range(count):
            await run.submit(Tick(), "test", None)

    await ticks(4)
    await still.post(f"/runs/{run_id}/actions/payment-real", pay)
    await still.ok(f"/runs/{run_id}/pause")
    await still.ok(f"/runs/{run_id}/intensity", {"intensity_percent": 30})
    await still.ok(f"/runs/{run_id}/resume")
    await ticks(3)
    await still.ok(f"/runs/{run_id}/actions/clearing-real", {"equivalent": "UNIT"})
    await ticks(3)
    digests = (await still.look(f"/runs/{run_id}/details"))["digests"]
    journal = FileJournal.open(RealDisk(still.service.context.journal(run_id), make=False), read_only=True)
    again = Headless(headless(0).plan)
    for command in commands_of(journal):
        again.run.apply(command)

    assert digests == again.run.digests()


def commands_of(journal: FileJournal) -> list[Any]:
    read: CommandReader[Any] = CommandReader(Run)
    return [read(read_input(record.body).command) for record in journal.read() if record.kind == "input"]


@pytest.mark.req("SIM-DET-2")
async def test_two_runs_side_by_side_do_not_disturb_each_other(tmp_path: Path) -> None:
    both = {"SIMULATOR_MAX_ACTIVE_RUNS": "2", "SIMULATOR_MAX_ACTIVE_RUNS_PER_OWNER": "2"}
    async with simulator(tmp_path / "data", {**QUICK, **both}) as sim:
        runs = [(await sim.ok("/runs", VILLAGE))["run_id"] for _ in range(2)]
        for run_id in runs:
            await sim.after_tick(run_id, 8)
        for run_id in runs:
            await sim.ok(f"/runs/{run_id}/stop")
        finished = [await sim.look(f"/runs/{run_id}/details") for run_id in runs]

    for details in finished:
        assert details["digests"] == headless(details["tick_index"]).run.digests()


@pytest.mark.req("SIM-API-25")
async def test_the_journal_has_the_caller_of_each_command(still: Simulator) -> None:
    run_id = await still.start()
    pay = {"from_pid": "anna", "to_pid": "bakery", "equivalent": "HOUR", "amount": "1"}
    headers = {"x-request-id": "by-hand-1"}
    await still.client.post(f"{BASE}/runs/{run_id}/actions/payment-real", json=pay, headers=headers)
    journal = FileJournal.open(RealDisk(still.service.context.journal(run_id), make=False), read_only=True)

    (meta,) = [read_input(one.body).meta for one in journal.read() if one.kind == "input"]

    assert (meta.by, meta.request_id) == ("local", "by-hand-1")


def test_ten_thousand_ticks_of_the_village_fit_into_fifty_mebibytes() -> None:
    """Journal bytes per tick, with ten times as many checkpoints as a server writes."""
    assert journal_bytes(60, SNAPSHOT_EVERY // 10) * 10_000 < 50 * 2**20
