"""Served runs with an external payment service; determinism, queue depth, pace and debug events."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from pendula.server.settings import CreditSettings, load
from tests.credit.core import Core, serving_core
from tests.credit.misbehaving import network
from tests.server.schedulers.credit.simulators import QUICK, STILL, Simulator, simulator

pytestmark = pytest.mark.anyio

WIRE = {**network(), "scenario_id": "wire"}
RUN = {"scenario_id": "wire", "mode": "real", "intensity_percent": 100, "seed": 42}
SETTINGS = {"clearing_every_n_ticks": "3", "amount_cap": "3", "max_in_flight": "4"}


@asynccontextmanager
async def wired(data: Path, core: Core, environment: dict[str, str] = QUICK) -> AsyncIterator[Simulator]:
    token = data.parent / "token"
    token.write_text("secret-word\n", encoding="utf-8")
    engines = CreditSettings(engines={"core": core.url}, engine_tokens={"core": str(token)})
    async with simulator(data, environment, credit=engines) as sim:
        await sim.ok("/scenarios", {"scenario": WIRE})
        yield sim


@pytest.mark.req("SIM-PAY-24", "SIM-API-5")
async def test_a_run_pays_and_clears_through_an_allowed_service(tmp_path: Path) -> None:
    with serving_core(WIRE) as core:
        async with wired(tmp_path / "data", core) as sim:
            run_id = (await sim.ok("/runs", {**RUN, "engine": "core", "settings": SETTINGS}))["run_id"]
            await sim.after_tick(run_id, 7)
            stopped = await sim.ok(f"/runs/{run_id}/stop")
            details = await sim.look(f"/runs/{run_id}/details")
            snapshot = await sim.look(f"/runs/{run_id}/graph/snapshot", equivalent="UAH")
            events = await sim.events(run_id)

        assert stopped["state"] == "stopped"
        assert stopped["committed_total"] > 0
        assert stopped["errors_total"] == 0
        assert (details["engine"], details["deterministic"]) == ("core", False)
        assert core.paths.count("/clearing") >= 2
        assert any(event["type"] == "clearing.done" for event in events)
        owed = {(link["target"], link["source"]): link["used"] for link in snapshot["links"]}
        for debtor, creditor, amount in core.debts("UAH"):
            assert owed[debtor, creditor] == f"{amount // 10**8}.{amount // 10**6 % 100:02}"
        assert core.posts[0][2]["authorization"] == "Bearer secret-word"


@pytest.mark.req("SIM-PAY-24", "SIM-RUN-9")
async def test_a_run_through_a_service_restarts_and_is_read_after_a_stop(tmp_path: Path) -> None:
    with serving_core(WIRE) as core:
        async with wired(tmp_path / "data", core) as sim:
            run_id = (await sim.ok("/runs", {**RUN, "engine": "core", "settings": {"amount_cap": "3"}}))["run_id"]
            await sim.after_tick(run_id, 2)
            await sim.ok(f"/runs/{run_id}/stop")
            why = await sim.ok(f"/runs/{run_id}/why", {"question": {"run": True}})
            posts = len(core.posts)
            await sim.ok(f"/runs/{run_id}/restart")
            await sim.until(run_id, lambda status: status["attempts_total"] > 0)

        assert why["code"] == "run_stopped"
        assert len(core.posts) > posts


@pytest.mark.req("SIM-PAY-24", "SIM-SCN-4")
async def test_a_service_that_is_not_allowed_is_refused_with_the_allowed_ones(tmp_path: Path) -> None:
    with serving_core(WIRE) as core:
        async with wired(tmp_path / "data", core, STILL) as sim:
            unknown = await sim.post("/runs", {**RUN, "engine": "cor"})
            address = await sim.post("/runs", {**RUN, "engine": core.url})
            promised = await sim.post("/runs", {**RUN, "engine": "core", "deterministic": True})

    assert (unknown.status_code, unknown.json()["error"]["code"]) == (400, "UNKNOWN_ENGINE")
    assert "did you mean core?" in unknown.json()["error"]["message"]
    assert unknown.json()["error"]["details"]["allowed"] == ["core"]
    assert address.status_code == 400
    assert (promised.status_code, promised.json()["error"]["details"]["conflict_kind"]) == (
        409,
        "engine_not_deterministic",
    )


@pytest.mark.req("SIM-PAY-24")
async def test_what_if_is_refused_for_a_run_with_an_external_engine(tmp_path: Path) -> None:
    with serving_core(WIRE) as core:
        async with wired(tmp_path / "data", core, STILL) as sim:
            run_id = (await sim.ok("/runs", {**RUN, "engine": "core"}))["run_id"]
            refused = await sim.post(f"/runs/{run_id}/what-if", {"settings": {"amount_cap": "1"}, "ticks": 2})

    assert refused.status_code == 409
    assert "An external service" in refused.json()["error"]["message"]


@pytest.mark.req("SIM-PAY-24")
def test_services_are_configured_in_the_settings_file(tmp_path: Path) -> None:
    file = tmp_path / "pendula.toml"
    file.write_text('[credit.engines]\ncore = "http://127.0.0.1:9000/api"\n', encoding="utf-8")

    assert load({"config": str(file)}, {}).credit.engines == {"core": "http://127.0.0.1:9000/api"}
    assert load({}, {"PENDULA_CREDIT_ENGINES": "core=https://core.example"}).credit.engines == {
        "core": "https://core.example"
    }


@pytest.mark.req("SIM-DET-12", "SIM-API-24")
@pytest.mark.parametrize("value", [True, False])
async def test_a_run_of_the_embedded_engine_is_always_deterministic(still: Simulator, value: bool) -> None:
    run_id = await still.start(deterministic=value)

    details = await still.look(f"/runs/{run_id}/details")

    assert (details["deterministic"], details["engine"]) == (True, None)


@pytest.mark.req("SIM-GUARD-2", "SIM-EVT-2", "SIM-MET-1")
async def test_the_queue_depth_of_status_and_stream_is_that_of_the_run(tmp_path: Path) -> None:
    async with simulator(tmp_path / "data", {**STILL, "SIMULATOR_PACE_MS": "1"}) as sim:
        settings = {"max_payments_per_sec": "1", "actions_per_tick_max": "3", "amount_cap": "500"}
        run_id = await sim.start(intensity_percent=100, settings=settings)
        await sim.until(run_id, lambda status: status["queue_depth"] > 3)
        paused = await sim.ok(f"/runs/{run_id}/pause")
        statuses = [event for event in await sim.events(run_id) if event["type"] == "run_status"]
        await sim.service._store.ask(lambda store: store.records(), of=run_id)

    assert paused["queue_depth"] > 3
    assert statuses[-1]["queue_depth"] == paused["queue_depth"]


@pytest.mark.req("SIM-TIME-5", "SIM-EVT-6")
async def test_heartbeat_and_pace_are_two_settings(tmp_path: Path) -> None:
    slow_ticks = {**STILL, "SIMULATOR_HEARTBEAT_MS": "5", "SIMULATOR_PACE_MS": "3600000"}
    async with simulator(tmp_path / "slow", slow_ticks) as sim:
        run_id = await sim.start()
        async with asyncio.timeout(240):
            while len([one for one in await sim.events(run_id) if one["type"] == "run_status"]) < 5:
                await asyncio.sleep(0.01)
        assert (await sim.status(run_id))["sim_time_ms"] == 0
    async with simulator(tmp_path / "fast", {**STILL, "SIMULATOR_PACE_MS": "5"}) as sim:
        run_id = await sim.start()
        await sim.after_tick(run_id, 5)
        assert len([one for one in await sim.events(run_id) if one["type"] == "run_status"]) == 1


@pytest.mark.req("SIM-EVT-2")
@pytest.mark.parametrize("value", ["on", "off"])
async def test_a_debug_event_of_each_tick_is_streamed_on_request(sim: Simulator, value: str) -> None:
    run_id = await sim.start(settings={"emit_tick_events": value})
    await sim.after_tick(run_id, 3)
    await sim.ok(f"/runs/{run_id}/stop")

    ticks: list[dict[str, Any]] = [one for one in await sim.events(run_id) if one["type"] == "tick"]
    written = (await sim.get(f"/runs/{run_id}/artifacts/events.ndjson")).text.count('"type":"tick"')

    assert [(one["tick_index"], one["sim_time_ms"]) for one in ticks[:3]] == (
        [(0, 0), (1, 1000), (2, 2000)] if value == "on" else []
    )
    assert written == len(ticks)
