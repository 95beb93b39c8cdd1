"""Files of abandoned runs are finished from their journals, whatever the kill destroyed."""

import asyncio
import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from pendula.credit.commands import Tick
from pendula.credit.engine import Run
from pendula.credit.events import Event, TxFailed
from pendula.credit.runs.artifacts import NAMES, read_bundle, repeat_bundle
from pendula.credit.runs.headless import Headless, plan_run
from pendula.credit.settings import Settings, change_settings
from pendula.documents import from_value
from pendula.kernel.canonical import encode
from pendula.kernel.disk import RealDisk
from pendula.server.schedulers.credit import service
from pendula.server.schedulers.credit.scenarios import bundled_scenario
from tests.campaigns import campaign_except
from tests.server.schedulers.credit.simulators import STILL, VILLAGE, simulator

pytestmark = pytest.mark.anyio


def headless(ticks: int, **changes: Any) -> Headless:
    """A run of the village without a server."""
    settings = change_settings(Settings(), {"amount_cap": "500", "actions_enable": "on"})
    run = Headless(
        plan_run(
            from_value(bundled_scenario("village-100").document), seed=42, intensity=70, settings=settings, **changes
        )
    )
    run.step(ticks)
    return run


STREAMED = ("tx.updated", "tx.failed", "clearing.plan", "clearing.done", "topology.changed", "audit.drift", "note")


def without_looks(line: dict[str, Any]) -> dict[str, Any]:
    """A line without its number, times and display keys."""
    plain = {name: value for name, value in line.items() if name not in ("event_id", "ts", "node_patch", "edge_patch")}
    for name in ("amount_flyout", "ttl_ms", "intensity_key"):
        plain.pop(name, None)
    if "edges" in plain:
        plain["edges"] = [{"from": edge["from"], "to": edge["to"]} for edge in plain["edges"]]
    if "payload" in plain:
        plain["payload"] = {name: value for name, value in plain["payload"].items() if name != "edge_patch"}
    if "error" in plain:
        plain["error"] = {name: value for name, value in plain["error"].items() if name != "at"}
    return plain


def lines_of(data: Path, run_id: str) -> list[dict[str, Any]]:
    text = (data / "stores/credit/runs" / run_id / "artifacts/events.ndjson").read_text()
    assert text == "" or text.endswith("\n")
    return [json.loads(line) for line in text.splitlines()]


def line_of(event: Event) -> dict[str, Any]:
    line: dict[str, Any] = json.loads(encode(event))
    if isinstance(event, TxFailed):
        line["error"]["message"] = event.message
    return line


def lines_without_server(ticks: int) -> list[dict[str, Any]]:
    """The lines of a run without a server."""
    lines: list[dict[str, Any]] = []
    run = headless(0)
    for _ in range(ticks):
        run.step(1, lambda events: lines.extend(map(line_of, events)))
    return [without_looks(event) for event in lines if event["type"] in STREAMED]


def files_are_complete(data: Path, run_id: str, ticks: int, state: str = "error") -> None:
    artifacts = data / "stores/credit/runs" / run_id / "artifacts"
    lines = lines_of(data, run_id)
    numbers = [int(line["event_id"].rpartition("_")[2]) for line in lines]
    status = json.loads((artifacts / "status.json").read_text())
    summary = json.loads((artifacts / "summary.json").read_text())
    assert [without_looks(line) for line in lines] == lines_without_server(ticks)
    assert numbers == sorted(set(numbers))
    assert (status["state"], summary["state"], summary["ticks"]) == (state, state, ticks)
    assert status["stopped_at"] is not None
    assert json.loads((artifacts / "last_tick.json").read_text())["tick_index"] == (ticks - 1 if ticks else None)
    assert repeat_bundle(read_bundle(artifacts / "bundle.zip")).ticks == ticks


TICKS = 17


async def abandoned_server(data: Path, monkeypatch: pytest.MonkeyPatch, *, again: bool = False) -> tuple[Path, str]:
    """The files of a server after a kill during a run with a checkpoint every five ticks."""
    monkeypatch.setattr(service, "SNAPSHOT_EVERY", 5)
    async with simulator(data, STILL) as sim:
        run_id = (await sim.ok("/runs", VILLAGE))["run_id"]
        run = await sim.service.find(sim.service._records[run_id].owner, run_id)
        for _ in range(TICKS + 6 if again else TICKS):
            await run.submit(Tick(), "test", None)
        if again:
            await sim.ok(f"/runs/{run_id}/restart")
            for _ in range(TICKS):
                await run.submit(Tick(), "test", None)
        expected, path = len(lines_without_server(TICKS)), sim.service.context.artifacts(run_id) / "events.ndjson"
        while path.read_bytes().count(b"\n") < expected:
            await asyncio.sleep(0.01)
        left = data.with_name("left")
        shutil.copytree(data, left, ignore=shutil.ignore_patterns("lock"))
    return left, run_id


@pytest.mark.req("SIM-RUN-12", "SIM-STO-1")
@pytest.mark.parametrize("again", [False, True], ids=["first life", "second life"])
@pytest.mark.parametrize("share", campaign_except((0.001, 0.77), [0.0, 0.001, 0.2, 0.5, 0.77, 0.99, 1.0]))
async def test_files_of_an_abandoned_run_are_finished_from_its_journal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, share: float, again: bool
) -> None:
    """The kill may destroy any number of lines, also half a line."""
    left, run_id = await abandoned_server(tmp_path / "data", monkeypatch, again=again)
    path = left / "stores/credit/runs" / run_id / "artifacts/events.ndjson"
    read_integer = path.read_bytes()
    path.write_bytes(read_integer[: int(share * len(read_integer))])
    kept = path.read_bytes()[: path.read_bytes().rfind(b"\n") + 1]

    async with simulator(left, STILL) as sim:
        listed = {one["name"] for one in (await sim.look(f"/runs/{run_id}/artifacts"))["items"]}
        stored = await sim.service.query_store(run_id, lambda store: store._rows("SELECT name FROM artifacts"))
        summary = await sim.service.query_store(run_id, lambda store: store._rows("SELECT summary FROM runs"))

    files_are_complete(left, run_id, TICKS)
    assert path.read_bytes().startswith(kept)
    assert listed == {name for (name,) in stored} == set(NAMES)
    assert json.loads(summary[0][0])["ticks"] == TICKS


@pytest.mark.req("SIM-RUN-12", "SIM-STO-1")
async def test_missing_files_of_an_abandoned_run_are_all_restored(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    left, run_id = await abandoned_server(tmp_path / "data", monkeypatch)
    shutil.rmtree(left / "stores/credit/runs" / run_id / "artifacts")
    async with simulator(left, STILL):
        pass

    files_are_complete(left, run_id, TICKS)


@pytest.mark.req("SIM-RUN-12")
async def test_a_recovery_applies_each_tick_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    left, _ = await abandoned_server(tmp_path / "data", monkeypatch)
    applied: list[int] = []
    apply = Run.apply

    def counted(run: Run, command: Any) -> Any:
        applied.append(run.tick)
        return apply(run, command)

    monkeypatch.setattr(Run, "apply", counted)
    async with simulator(left, STILL):
        pass

    assert applied == [15, 16, 17], "the two ticks after the last checkpoint, then the command that ends the run"


@pytest.mark.req("SIM-RUN-12", "SIM-ERR-4")
async def test_a_run_abandoned_on_a_full_disk_has_failed_and_can_restart(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    left, run_id = await abandoned_server(tmp_path / "data", monkeypatch)
    monkeypatch.setattr(RealDisk, "free_bytes", lambda _: 0)
    async with simulator(left, STILL) as sim:
        status = await sim.status(run_id)
        monkeypatch.setattr(RealDisk, "free_bytes", lambda _: 10**12)
        await sim.ok(f"/runs/{run_id}/restart")

    assert (status["state"], status["last_error"]["code"]) == ("error", "disk_low")
