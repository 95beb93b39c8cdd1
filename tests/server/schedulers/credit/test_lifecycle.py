"""Runs over HTTP: every command in every state, once and twice."""

import asyncio
import re
from pathlib import Path

import pytest

from pendula.server.schedulers.credit.owners import LOCAL_OWNER
from tests.server.schedulers.credit.simulators import RING, STILL, Simulator, simulator

pytestmark = pytest.mark.anyio


@pytest.mark.req("SIM-API-5", "SIM-RUN-4", "SIM-RUN-14", "SIM-TEST-2")
async def test_a_created_run_is_running(still: Simulator) -> None:
    run_id = await still.start()

    assert re.fullmatch(r"run_\d{8}_\d{6}_[0-9a-f]{8}", run_id)
    status = await still.status(run_id)
    assert (status["state"], status["sim_time_ms"], status["last_error"]) == ("running", 0, None)


@pytest.mark.req("SIM-API-8", "SIM-RUN-3", "SIM-RUN-8", "SIM-TEST-3")
async def test_repeated_pause_resume_and_stop_give_200(still: Simulator) -> None:
    run_id = await still.start()

    states = [
        (await still.ok(f"/runs/{run_id}/{verb}"))["state"]
        for verb in ("resume", "pause", "pause", "resume", "resume", "pause", "stop", "stop", "pause", "resume")
    ]

    assert states == ["running", "paused", "paused", "running", "running", "paused", *["stopped"] * 4]


@pytest.mark.req("SIM-RUN-8")
@pytest.mark.parametrize("verb", ["pause", "resume", "stop", "intensity"])
async def test_each_accepted_command_publishes_the_status(still: Simulator, verb: str) -> None:
    run_id = await still.start()
    before = len(await still.events(run_id))
    await still.ok(f"/runs/{run_id}/{verb}", {"intensity_percent": 3} if verb == "intensity" else None)

    published = (await still.events(run_id))[before:]

    assert {event["type"] for event in published} == {"run_status"}
    # A stop has two statuses: stopping and stopped.
    assert len(published) == (2 if verb == "stop" else 1)


@pytest.mark.req("SIM-RUN-7", "SIM-RUN-13", "SIM-API-9")
async def test_a_stop_passes_through_stopping_and_stores_source_and_reason(still: Simulator) -> None:
    run_id = await still.start()

    status = await still.ok(f"/runs/{run_id}/stop?source=ui&reason=enough")

    states = [event["state"] for event in await still.events(run_id) if event["type"] == "run_status"]
    assert states[-2:] == ["stopping", "stopped"]
    assert (status["stop_source"], status["stop_reason"]) == ("ui", "enough")
    assert status["started_at"] <= status["stop_requested_at"] <= status["stopped_at"]


@pytest.mark.req("SIM-RUN-7")
async def test_a_stopped_run_has_no_more_ticks_or_events(sim: Simulator) -> None:
    before = asyncio.all_tasks()
    run_id = await sim.start()
    await sim.after_tick(run_id, 2)

    await sim.ok(f"/runs/{run_id}/stop")

    assert asyncio.all_tasks() == before
    assert not (await sim.service.find(LOCAL_OWNER, run_id)).is_open


@pytest.mark.req("SIM-TIME-7", "SIM-RUN-6", "SIM-TEST-3")
async def test_a_paused_run_has_heartbeats_and_nothing_else(sim: Simulator) -> None:
    run_id = await sim.start()
    await sim.after_tick(run_id, 3)
    paused = await sim.ok(f"/runs/{run_id}/pause")
    last = (await sim.events(run_id))[-1]["event_id"]
    while len(events := await sim.events(run_id, after=last)) < 5:
        await asyncio.sleep(0.005)

    assert {event["type"] for event in events} == {"run_status"}
    assert (await sim.status(run_id))["sim_time_ms"] == paused["sim_time_ms"]


@pytest.mark.req("SIM-RUN-9", "SIM-API-10")
async def test_a_restart_repeats_the_plan_and_continues_event_numbers(sim: Simulator) -> None:
    run_id = await sim.start(intensity_percent=100)
    first = await _payments(sim, run_id, 40)
    last = (await sim.events(run_id))[-1]["event_id"]

    status = await sim.ok(f"/runs/{run_id}/restart")
    assert (status["run_id"], status["state"]) == (run_id, "running")
    second = await _payments(sim, run_id, 40, last)

    assert second == first
    assert (await sim.events(run_id, after=last))[0]["event_id"] > last


async def _payments(sim: Simulator, run_id: str, count: int, after: str | None = None) -> list[tuple[str, ...]]:
    """The first `count` payments after an event, tried or made."""
    query = {} if after is None else {"after": after}
    while True:
        events = await sim.events(run_id, **query)
        begun = min((at for at, event in enumerate(events) if event.get("sim_time_ms") == 0), default=0)
        tried = [event for event in events[begun:] if event["type"].startswith("tx.")]
        if len(tried) >= count:
            return [(event["type"], event["from"], event["to"], event["amount"]) for event in tried[:count]]
        await asyncio.sleep(0.01)


@pytest.mark.req("SIM-RUN-3", "SIM-RUN-9")
async def test_a_stopped_run_can_be_restarted(sim: Simulator) -> None:
    run_id = await sim.start()
    await sim.after_tick(run_id, 3)
    await sim.ok(f"/runs/{run_id}/stop?reason=enough")

    status = await sim.ok(f"/runs/{run_id}/restart")

    assert (status["state"], status["stopped_at"], status["stop_reason"]) == ("running", None, None)
    await sim.after_tick(run_id, 2)


@pytest.mark.req("SIM-API-11", "SIM-INT-5")
@pytest.mark.parametrize("paused", [True, False])
async def test_intensity_changes_while_a_run_is_active(still: Simulator, paused: bool) -> None:
    run_id = await still.start()
    if paused:
        await still.ok(f"/runs/{run_id}/pause")

    assert (await still.ok(f"/runs/{run_id}/intensity", {"intensity_percent": 12}))["intensity_percent"] == 12


@pytest.mark.req("SIM-INT-6")
@pytest.mark.parametrize("value", [-1, 101, 2.5, "12", None, True])
async def test_an_invalid_intensity_is_refused_and_changes_nothing(still: Simulator, value: object) -> None:
    run_id = await still.start()

    response = await still.post(f"/runs/{run_id}/intensity", {"intensity_percent": value})

    assert (response.status_code, response.json()["error"]["code"]) == (400, "INVALID_REQUEST")
    assert (await still.status(run_id))["intensity_percent"] == 50


@pytest.mark.req("SIM-RUN-10")
async def test_one_run_of_an_owner_is_active_at_a_time(still: Simulator) -> None:
    run_id = await still.start()

    response = await still.post("/runs", RING)

    error = response.json()["error"]
    assert (response.status_code, error["code"]) == (409, "RUN_CONFLICT")
    assert error["details"] == {"conflict_kind": "owner_active_exists", "active_run_id": run_id}
    await still.ok(f"/runs/{run_id}/stop")
    await still.start()


@pytest.mark.req("SIM-RUN-10")
async def test_a_second_owner_is_refused_if_the_server_is_full(still: Simulator) -> None:
    run_id = await still.start()
    await still.ok("/session/ensure")

    error = (await still.post("/runs", RING)).json()["error"]

    assert error["details"] == {"conflict_kind": "global_active_limit", "active_run_id": run_id}


@pytest.mark.req("SIM-RUN-10", "SIM-API-21")
async def test_two_owners_run_side_by_side_and_do_not_see_each_other(tmp_path: Path) -> None:
    async with simulator(tmp_path / "data", {**STILL, "SIMULATOR_MAX_ACTIVE_RUNS": "0"}) as sim:
        first = await sim.start()
        owner = (await sim.ok("/session/ensure"))["owner_id"]
        second = await sim.start()

        assert (await sim.get(f"/runs/{first}")).status_code == 404
        assert (await sim.look("/runs/active"))["run_id"] == second
        assert (await sim.ok("/session/ensure"))["owner_id"] == owner
        sim.client.cookies.clear()
        assert (await sim.look("/runs/active"))["run_id"] == first
        assert (await sim.get(f"/runs/{second}")).status_code == 404


@pytest.mark.req("SIM-API-7")
@pytest.mark.parametrize("path", ["", "/details", "/graph/snapshot", "/metrics", "/events", "/artifacts"])
async def test_an_unknown_run_is_not_found(still: Simulator, path: str) -> None:
    response = await still.get(f"/runs/run_20260101_000000_00000000{path}")

    assert (response.status_code, response.json()["error"]["code"]) == (404, "RUN_NOT_FOUND")


@pytest.mark.req("SIM-API-6")
async def test_without_a_run_none_is_active(still: Simulator) -> None:
    assert (await still.look("/runs/active"))["run_id"] is None


@pytest.mark.req("SIM-DET-3")
@pytest.mark.parametrize(
    ("request_seed", "fixed", "source"),
    [(5, "9", "request"), (None, "9", "SIMULATOR_FIXED_SEED"), (None, "", "run_id")],
)
async def test_the_seed_comes_from_request_then_setting_then_name(
    tmp_path: Path, request_seed: int | None, fixed: str, source: str
) -> None:
    async with simulator(tmp_path / "data", {**STILL, "SIMULATOR_FIXED_SEED": fixed}) as sim:
        details = await sim.look(f"/runs/{await sim.start(seed=request_seed)}/details")

    assert details["seed_from"] == source


@pytest.mark.req("SIM-RUN-10")
async def test_a_tick_due_during_another_is_skipped_and_counted(sim: Simulator) -> None:
    run_id = await sim.start()
    run = await sim.service.find(LOCAL_OWNER, run_id)
    gate = asyncio.Event()

    async def slow() -> None:
        await gate.wait()

    run._tick = slow  # type: ignore[method-assign]
    while run.late_beats < 3:
        await asyncio.sleep(0.005)
    before = (await sim.status(run_id))["sim_time_ms"]
    gate.set()

    assert before == (await sim.status(run_id))["sim_time_ms"]
