"""Artifacts of a run: whole files, every line in order, one archive; other files stay untouched."""

import json
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import pytest

from pendula.credit.commands import Pay, Stop
from pendula.credit.runs.artifacts import NAMES, Artifacts, ArtifactsExist, Lines, bundle, moment, require_free
from pendula.credit.runs.headless import Headless, RunPlan, plan_run
from pendula.credit.settings import Settings, change_settings, differing_settings, from_environment, setting_texts
from pendula.documents import from_value
from pendula.kernel.canonical import Json
from pendula.kernel.disk import RealDisk
from pendula.testing import FaultyDisk

RING: dict[str, Json] = {
    "schema_version": "scenario/1",
    "scenario_id": "ring",
    "baseEquivalent": "UAH",
    "participants": [{"id": name, "type": "person"} for name in "abc"],
    "trustlines": [
        {"from": "b", "to": "a", "limit": 20},
        {"from": "c", "to": "b", "limit": 20},
        {"from": "a", "to": "c", "limit": 20},
    ],
    "events": [{"time": 2000, "type": "note", "description": "A note."}],
}
NOON = 1_700_000_000_123_456
SECOND = 1_000_000


@pytest.fixture
def plan() -> RunPlan:
    return plan_run(from_value(RING), seed=5, settings=change_settings(Settings(), {"clearing_every_n_ticks": "3"}))


def ticking() -> Iterator[int]:
    return count(NOON, SECOND)


def write_run(directory: Path, plan: RunPlan, ticks: int = 7) -> Headless:
    """A run of some ticks, with its artifacts in the directory."""
    headless, times = Headless(plan), ticking()
    with Artifacts(directory, plan, lambda: next(times)) as artifacts:
        headless.step(ticks, artifacts.write)
        artifacts.finish(headless.run, headless.result())
    return headless


def lines(directory: Path) -> list[Any]:
    return [json.loads(line) for line in (directory / "events.ndjson").read_bytes().splitlines()]


def read(directory: Path, name: str) -> Any:
    return json.loads((directory / name).read_bytes())


@pytest.mark.req("SIM-STO-1")
def test_every_event_and_note_is_a_line_in_order(tmp_path: Path, plan: RunPlan) -> None:
    write_run(tmp_path, plan)

    events = lines(tmp_path)
    types = {event["type"] for event in events}
    run_id = plan.config.run_id
    assert [event["event_id"] for event in events] == [f"evt_{run_id}_{n:06}" for n in range(1, len(events) + 1)]
    assert types == {"tx.updated", "tx.failed", "clearing.plan", "clearing.done", "note"}
    assert [event["tick_index"] for event in events if "tick_index" in event] == sorted(
        event["tick_index"] for event in events if "tick_index" in event
    )
    note = next(event for event in events if event["type"] == "note")
    assert (note["tick_index"], note["sim_time_ms"], note["scenario"]["description"]) == (2, 2000, "A note.")
    assert "node_patch" in events[0]


# What each type of event must have, as the table of the requirements lists it.
REQUIRED = {
    "tx.updated": {"equivalent"},
    "tx.failed": {"equivalent", "error"},
    "clearing.plan": {"equivalent", "plan_id", "steps"},
    "clearing.done": {"equivalent", "plan_id"},
    "note": {"sim_time_ms", "tick_index", "scenario"},
}


@pytest.mark.req("SIM-EVT-2")
def test_every_line_has_the_members_its_type_requires(tmp_path: Path, plan: RunPlan) -> None:
    write_run(tmp_path, plan)

    events = lines(tmp_path)

    assert {event["type"] for event in events} == set(REQUIRED)
    for event in events:
        assert {"event_id", "ts", "type", *REQUIRED[event["type"]]} <= set(event)
    for event in events:
        if event["type"] == "tx.failed":
            assert set(event["error"]) >= {"code", "message", "at"}
        if event["type"] == "clearing.plan":
            assert all(set(step) == {"at_ms", "highlight_edges"} for step in event["steps"])


def test_lines_have_the_time_of_the_clock(tmp_path: Path, plan: RunPlan) -> None:
    write_run(tmp_path, plan)

    events = lines(tmp_path)
    failed = [event for event in events if event["type"] == "tx.failed"]
    assert events[0]["ts"] == "2023-11-14T22:13:21.123Z"
    assert failed
    assert all(event["error"]["at"] == event["ts"] for event in failed)


def test_equal_runs_write_equal_bytes_under_the_same_clock(tmp_path: Path, plan: RunPlan) -> None:
    for name in ("one", "two"):
        write_run(tmp_path / name, plan)

    for name in NAMES:
        assert (tmp_path / "one" / name).read_bytes() == (tmp_path / "two" / name).read_bytes()


@pytest.mark.req("SIM-GUARD-1")
def test_the_status_has_seed_settings_and_the_end(tmp_path: Path, plan: RunPlan) -> None:
    headless = write_run(tmp_path, plan)

    status = read(tmp_path, "status.json")
    assert (status["seed"], status["seed_from"], status["state"]) == (5, "request", "stopped")
    assert (status["tick_index"], status["sim_time_ms"]) == (7, 7000)
    assert status["attempts_total"] == headless.run.counters.attempts_total
    assert from_environment(status["settings"]) == plan.config.settings
    assert status["started_at"] < status["stopped_at"]


def test_the_status_of_a_running_run_is_running(tmp_path: Path, plan: RunPlan) -> None:
    with Artifacts(tmp_path, plan, lambda: NOON) as artifacts:
        status = read(tmp_path, "status.json")
        assert (status["state"], status["stopped_at"]) == ("running", None)
        headless = Headless(plan)
        headless.step(2, artifacts.write)
        artifacts.finish(headless.run, headless.result())


def test_the_last_tick_is_refreshed_every_half_second_and_at_the_end(tmp_path: Path, plan: RunPlan) -> None:
    now, headless = NOON, Headless(plan)
    seen: list[int] = []
    with Artifacts(tmp_path, plan, lambda: now) as artifacts:
        for step in (0, 200_000, 200_000, 200_000, 200_000):
            now += step
            headless.step(1, artifacts.write)
            seen.append(read(tmp_path, "last_tick.json")["tick_index"])
        artifacts.finish(headless.run, headless.result())

    assert seen == [0, 0, 0, 3, 3]
    last = read(tmp_path, "last_tick.json")
    assert (last["tick_index"], last["sim_time_ms"], last["digests"]) == (4, 4000, headless.run.digests())


def test_a_run_without_ticks_writes_every_file(tmp_path: Path, plan: RunPlan) -> None:
    write_run(tmp_path, plan, ticks=0)

    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(NAMES)
    assert read(tmp_path, "last_tick.json") == {"sim_time_ms": 0, "tick_index": None}
    assert (tmp_path / "events.ndjson").read_bytes() == b""


def test_the_archive_holds_unchanged_files_without_times(tmp_path: Path, plan: RunPlan) -> None:
    write_run(tmp_path, plan)

    with ZipFile(tmp_path / "bundle.zip") as archive:
        assert archive.testzip() is None
        documents = ("last_tick", "ledger", "repeat", "scenario", "status", "summary")
        assert archive.namelist() == ["events.ndjson", *(f"{name}.json" for name in documents)]
        assert {entry.date_time for entry in archive.infolist()} == {(1980, 1, 1, 0, 0, 0)}
        for name in archive.namelist():
            assert archive.read(name) == (tmp_path / name).read_bytes()
    before = (tmp_path / "bundle.zip").read_bytes()
    disk = RealDisk(tmp_path)
    bundle(disk)
    disk.close()
    assert (tmp_path / "bundle.zip").read_bytes() == before


def test_a_summary_has_the_totals_of_the_run(tmp_path: Path, plan: RunPlan) -> None:
    headless = write_run(tmp_path, plan)

    summary, result = read(tmp_path, "summary.json"), headless.result()
    assert (summary["run_id"], summary["seed"], summary["ticks"]) == (plan.config.run_id, 5, 7)
    assert (summary["digests"], summary["state"]) == (result.digests, "stopped")
    assert [row["tick"] for row in summary["clearing"]] == [row.tick for row in result.clearing] != []


def test_a_stopped_run_writes_its_last_payment(tmp_path: Path, plan: RunPlan) -> None:
    headless = Headless(plan)
    with Artifacts(tmp_path, plan, lambda: NOON) as artifacts:
        artifacts.write(headless.do(Pay("a", "b", "UAH", "3.00")).events)
        artifacts.write(headless.do(Stop("test", "enough")).events)
        artifacts.finish(headless.run, headless.result())

    assert [event["type"] for event in lines(tmp_path)] == ["tx.updated"]
    assert read(tmp_path, "status.json")["state"] == "stopped"


def test_an_interrupted_run_keeps_its_lines_and_its_status_says_interrupted(tmp_path: Path, plan: RunPlan) -> None:
    headless = Headless(plan)
    with pytest.raises(KeyboardInterrupt), Artifacts(tmp_path, plan, lambda: NOON) as artifacts:
        headless.step(2, artifacts.write)
        raise KeyboardInterrupt

    status = read(tmp_path, "status.json")
    assert (status["state"], status["stop_reason"]) == ("stopped", "interrupted")
    assert lines(tmp_path)[-1]["tick_index"] == 1
    assert not (tmp_path / "summary.json").exists()


@pytest.mark.parametrize("name", NAMES)
def test_existing_artifacts_are_never_overwritten(name: str, tmp_path: Path, plan: RunPlan) -> None:
    (tmp_path / name).write_text("{}", encoding="utf-8")

    with pytest.raises(ArtifactsExist) as refused:
        Artifacts(tmp_path, plan, lambda: NOON)

    assert refused.value.found == [name]
    assert [path.name for path in tmp_path.iterdir()] == [name]
    with pytest.raises(ArtifactsExist):
        require_free(tmp_path, own_run=plan.config.run_id)


def test_other_files_in_the_directory_are_kept(tmp_path: Path, plan: RunPlan) -> None:
    (tmp_path / "notes.txt").write_text("mine", encoding="utf-8")

    write_run(tmp_path, plan)

    assert (tmp_path / "notes.txt").read_text(encoding="utf-8") == "mine"


def test_a_resumed_run_replaces_its_own_artifacts(tmp_path: Path, plan: RunPlan) -> None:
    write_run(tmp_path, plan, ticks=3)
    headless = Headless(plan)
    times = ticking()

    with Artifacts(tmp_path, plan, lambda: next(times), own_run=plan.config.run_id) as artifacts:
        assert not (tmp_path / "bundle.zip").exists()
        headless.step(7, artifacts.write)
        artifacts.finish(headless.run, headless.result())

    write_run(tmp_path / "whole", plan)
    assert (tmp_path / "events.ndjson").read_bytes() == (tmp_path / "whole" / "events.ndjson").read_bytes()


@pytest.mark.req("SIM-STO-2")
def test_no_line_is_lost_when_the_buffer_is_full() -> None:
    disk = FaultyDisk()
    written = [str(n).encode() for n in range(3000)]

    file = Lines(disk, "events.ndjson", most=2)
    for line in written:
        file.put(line)
    file.close()

    assert disk.read("events.ndjson") == b"".join(line + b"\n" for line in written)
    assert disk.after_crash(1).read("events.ndjson") == disk.read("events.ndjson")


def test_a_failing_disk_raises_and_leaves_no_gap() -> None:
    disk = FaultyDisk({1: "no_space"})
    file = Lines(disk, "lines")

    with pytest.raises(OSError):
        for n in range(1000):
            file.put(str(n).encode())
        file.close()
    with pytest.raises(OSError):
        file.put(b"after")
    with pytest.raises(OSError):
        file.close()

    assert [call.operation for call in disk.calls] == ["create", "append"]


@pytest.mark.parametrize(
    ("micros", "text"),
    [(0, "1970-01-01T00:00:00.000Z"), (NOON, "2023-11-14T22:13:20.123Z"), (999, "1970-01-01T00:00:00.000Z")],
)
@pytest.mark.req("SIM-TIME-1")
def test_timestamps_have_milliseconds_and_z(micros: int, text: str) -> None:
    assert moment(micros) == text


@pytest.mark.parametrize(
    "values",
    [
        {},
        {"amount_cap": "none", "clearing_policy": "adaptive", "adaptive_no_capacity_high": "0.750"},
        {"amount_cap": "500", "fixed_seed": "12", "profile_presets": "off", "adaptive_warmup_fallback_cadence": "-1"},
    ],
)
def test_settings_survive_a_round_trip_through_text(values: dict[str, str]) -> None:
    settings = change_settings(Settings(), values)

    assert from_environment(setting_texts(settings)) == settings
    assert len(differing_settings(Settings(), settings)) == len(values)
