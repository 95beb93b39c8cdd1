"""Scenarios, records, metrics and artifacts of the simulator; owners; the demo; the disabled store."""

import hashlib
import io
import json
import zipfile
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from pendula.credit.runs.artifacts import BUNDLED, NAMES, read_bundle, repeat_bundle
from pendula.kernel.errors import WorldBroken
from pendula.server.schedulers.credit.owners import LOCAL_OWNER, OwnerCookies
from pendula.server.schedulers.credit.store import SimulatorStoreUnusable, Store
from pendula.server.security.identity import Role, TokenStore
from tests.server.schedulers.credit import strict
from tests.server.schedulers.credit.simulators import BASE, QUICK, RING, STILL, VILLAGE, Simulator, simulator

pytestmark = pytest.mark.anyio

TINY: dict[str, Any] = {
    "schema_version": "scenario/1",
    "scenario_id": "tiny",
    "name": "Two who trust",
    "baseEquivalent": "UAH",
    "participants": [{"id": "a", "type": "person"}, {"id": "b", "type": "business"}],
    "trustlines": [{"from": "a", "to": "b", "limit": "10"}],
}


# Scenarios


@pytest.mark.req("SIM-API-2", "SIM-API-28", "SIM-SCN-6", "SIM-SCN-7")
@pytest.mark.parametrize(
    ("body", "name"),
    [({"scenario": TINY}, "tiny"), (TINY, "tiny"), ({"scenario": TINY, "scenario_id": "other"}, "other")],
    ids=["wrapped", "bare", "renamed"],
)
async def test_an_uploaded_scenario_survives_a_restart(tmp_path: Path, body: dict[str, Any], name: str) -> None:
    async with simulator(tmp_path / "data", STILL) as sim:
        summary = await sim.ok("/scenarios", body)
        strict.SUMMARY(summary)
    async with simulator(tmp_path / "data", STILL) as sim:
        listed = {one["scenario_id"]: one for one in (await sim.look("/scenarios"))["items"]}
        await sim.start(scenario_id=name)

    assert listed[name] == summary
    assert {"village-100", "ring-of-five"} <= set(listed)


@pytest.mark.req("SIM-API-2", "SIM-API-3")
@pytest.mark.parametrize("name", ["a/b", "a\\b", "..", ".", "a\x00b", "x" * 201])
async def test_a_scenario_id_that_fits_in_no_path_is_refused(still: Simulator, name: str) -> None:
    response = await still.post("/scenarios", {**TINY, "scenario_id": name})

    assert (response.status_code, response.json()["error"]["code"]) == (400, "SCENARIO_INVALID")


@pytest.mark.req("SIM-API-2", "SIM-API-3")
@pytest.mark.parametrize("name", ["a b", "é", "v1.2", "<b>", "?#%", "x" * 200])
async def test_a_scenario_with_special_characters_in_its_id_can_be_fetched(still: Simulator, name: str) -> None:
    await still.ok("/scenarios", {**TINY, "scenario_id": name})

    assert (await still.look(f"/scenarios/{quote(name)}"))["scenario_id"] == name


@pytest.mark.req("SIM-SCN-6")
@pytest.mark.parametrize("name", ["tiny", "village-100"])
async def test_a_scenario_of_a_known_id_is_refused(still: Simulator, name: str) -> None:
    await still.ok("/scenarios", TINY)

    response = await still.post("/scenarios", {"scenario": TINY, "scenario_id": name})

    assert (response.status_code, response.json()["error"]["code"]) == (409, "SCENARIO_EXISTS")


async def test_a_scenario_that_cannot_be_stored_is_refused_with_a_remedy(
    still: Simulator, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise SimulatorStoreUnusable("no space", file="simulator.db", reason="database or disk is full")

    with monkeypatch.context() as patched:
        patched.setattr(Store, "add_scenario", full)
        refused = await still.post("/scenarios", TINY)
    listed = [one["scenario_id"] for one in (await still.get("/scenarios")).json()["items"]]
    again = await still.post("/scenarios", TINY)

    error = refused.json()["error"]
    assert (refused.status_code, error["code"]) == (503, "SCENARIO_NOT_STORED")
    assert "database or disk is full. Check the disk of the server" in error["message"]
    assert "tiny" not in listed
    assert again.status_code == 200


@pytest.mark.req("SIM-SCN-4")
async def test_an_invalid_scenario_is_refused_with_up_to_fifty_faults(still: Simulator) -> None:
    lines = [{"from": "a", "to": f"nobody-{at}", "limit": "x"} for at in range(80)]

    response = await still.post("/scenarios", {**TINY, "trustlines": lines})

    error = response.json()["error"]
    assert (response.status_code, error["code"], len(error["details"]["errors"])) == (400, "SCENARIO_INVALID", 50)


@pytest.mark.req("SIM-SCN-7")
async def test_only_bundled_scenarios_on_the_list_are_shown(tmp_path: Path) -> None:
    async with simulator(tmp_path / "data", {**STILL, "SIMULATOR_SCENARIO_ALLOWLIST": "ring-of-five"}) as sim:
        await sim.ok("/scenarios", TINY)
        listed = [one["scenario_id"] for one in (await sim.look("/scenarios"))["items"]]

    assert listed == ["ring-of-five", "tiny"]


@pytest.mark.req("SIM-API-3")
async def test_an_unknown_scenario_is_not_found(still: Simulator) -> None:
    for path in ("/scenarios/nothing", "/scenarios/nothing/graph/preview"):
        response = await still.get(path)
        assert (response.status_code, response.json()["error"]["code"]) == (404, "SCENARIO_NOT_FOUND")
    assert (await still.post("/runs", {**RING, "scenario_id": "nothing"})).status_code == 404


@pytest.mark.req("SIM-RUN-4")
async def test_a_run_does_not_change_its_scenario(still: Simulator) -> None:
    before = await still.look("/scenarios/ring-of-five/graph/preview")
    run_id = await still.start()
    line = {"from_pid": "anna", "to_pid": "bakery", "equivalent": "HOUR"}
    await still.ok(f"/runs/{run_id}/actions/trustline-close", line)

    after = await still.look("/scenarios/ring-of-five/graph/preview")

    assert after["links"] == before["links"]


# Artifacts and records


@pytest.mark.req("SIM-TEST-18", "SIM-STO-1", "SIM-STO-3", "SIM-API-16")
async def test_a_stopped_run_leaves_its_files_with_their_checksums(sim: Simulator) -> None:
    run_id = await sim.start()
    await sim.after_tick(run_id, 5)
    events = await sim.events(run_id)
    await sim.ok(f"/runs/{run_id}/stop")

    index = await sim.look(f"/runs/{run_id}/artifacts")
    files = {one["name"]: (await sim.client.get(one["url"])) for one in index["items"]}

    assert set(files) == set(NAMES)
    for one in index["items"]:
        assert files[one["name"]].headers["content-type"].startswith(one["content_type"])
        assert hashlib.sha256(files[one["name"]].content).hexdigest() == one["sha256"]
        assert len(files[one["name"]].content) == one["size_bytes"]
    lines = [json.loads(line) for line in files["events.ndjson"].text.splitlines()]
    streamed = [event for event in events if event["type"] != "run_status"]
    assert lines[: len(streamed)] == streamed
    status = files["status.json"].json()
    assert (status["seed"], status["state"], len(status["settings"]) > 40) == (7, "stopped", True)
    with zipfile.ZipFile(io.BytesIO(files["bundle.zip"].content)) as archive:
        assert archive.read("status.json") == files["status.json"].content
        assert set(archive.namelist()) == set(BUNDLED)


@pytest.mark.req("SIM-STO-1", "SIM-DET-2")
@pytest.mark.parametrize("again", [False, True], ids=["once", "restarted"])
async def test_the_bundle_of_a_run_with_manual_commands_repeats_it(sim: Simulator, tmp_path: Path, again: bool) -> None:
    run_id = await sim.start()
    pay = {"from_pid": "anna", "to_pid": "farm", "equivalent": "HOUR", "amount": "1.5"}
    await sim.after_tick(run_id, 3)
    await sim.ok(f"/runs/{run_id}/intensity", {"intensity_percent": 90})
    if again:
        await sim.ok(f"/runs/{run_id}/stop")
        await sim.ok(f"/runs/{run_id}/restart")
    await sim.post(f"/runs/{run_id}/actions/payment-real", pay)
    await sim.post(f"/runs/{run_id}/actions/payment-real", {**pay, "amount": "1000"})
    await sim.after_tick(run_id, 6)
    await sim.ok(f"/runs/{run_id}/actions/clearing-real", {"equivalent": "HOUR"})
    await sim.ok(f"/runs/{run_id}/stop")
    response = await sim.client.get(f"{BASE}/runs/{run_id}/artifacts/bundle.zip")
    (tmp_path / "bundle.zip").write_bytes(response.content)

    result = repeat_bundle(read_bundle(tmp_path / "bundle.zip"))

    details = await sim.look(f"/runs/{run_id}/details")
    assert (result.digests, result.ticks) == (details["digests"], details["tick_index"])


@pytest.mark.req("SIM-STO-1", "SIM-STO-8")
async def test_the_bundle_of_a_continued_run_repeats_it(sim: Simulator, tmp_path: Path) -> None:
    first = await sim.start()
    await sim.after_tick(first, 3)
    await sim.ok(f"/runs/{first}/stop")
    run_id = (await sim.ok(f"/runs/{first}/continue"))["run_id"]
    await sim.after_tick(run_id, 8)
    await sim.ok(f"/runs/{run_id}/stop")
    response = await sim.client.get(f"{BASE}/runs/{run_id}/artifacts/bundle.zip")
    (tmp_path / "bundle.zip").write_bytes(response.content)

    assert repeat_bundle(read_bundle(tmp_path / "bundle.zip")).ticks >= 8


@pytest.mark.req("SIM-API-23")
@pytest.mark.parametrize("name", ["nothing.json", "%2e%2e", "%2e%2e%2fjournal", "..%2f..%2fowners.key", "journal"])
async def test_only_artifacts_can_be_fetched(still: Simulator, name: str) -> None:
    run_id = await still.start()

    assert (await still.client.get(f"{BASE}/runs/{run_id}/artifacts/{name}")).status_code == 404


@pytest.mark.req("SIM-RUN-11", "SIM-STO-4")
async def test_records_beyond_those_in_memory_are_found_in_the_store(tmp_path: Path) -> None:
    async with simulator(tmp_path / "data", {**STILL, "SIMULATOR_MAX_RUN_RECORDS": "2"}) as sim:
        runs = []
        for _ in range(4):
            runs.append(await sim.start())
            await sim.ok(f"/runs/{runs[-1]}/stop")
            sim.service._open.clear()
        sim.service._evict_old_records()

        assert sorted(sim.service._records) == sorted(runs[-2:])
        assert [(await sim.status(run_id))["state"] for run_id in runs] == ["stopped"] * 4


async def test_an_ended_run_keeps_no_engine_and_no_thread(sim: Simulator) -> None:
    run_id = await sim.start()
    run = await sim.service.find(LOCAL_OWNER, run_id)
    await sim.ok(f"/runs/{run_id}/stop")

    assert run.host is None
    assert run.journal_bytes is None


@pytest.mark.req("SIM-STO-6")
async def test_expired_runs_and_files_are_removed(tmp_path: Path) -> None:
    async with simulator(tmp_path / "data", {**STILL, "SIMULATOR_ARTIFACTS_TTL_HOURS": "1"}) as sim:
        run_id = await sim.start()
        await sim.ok(f"/runs/{run_id}/stop")
        record = sim.service._records[run_id]
        sim.service._open.clear()
        folder = sim.service.context.runs_folder / run_id

        record.stopped_at = "2026-01-01T00:00:00.000Z" if record.stopped_at is None else record.stopped_at
        await sim.service.remove_expired()
        assert (folder / "artifacts").exists()
        record.stopped_at = "2020-01-01T00:00:00.000Z"
        await sim.service.remove_expired()

        assert not folder.exists()
        assert (await sim.get(f"/runs/{run_id}")).status_code == 404


async def test_the_newest_events_are_available_after_they_left_the_buffer(tmp_path: Path) -> None:
    async with simulator(tmp_path / "data") as sim:
        run_id = await sim.start()
        await sim.after_tick(run_id, 5)
        await sim.ok(f"/runs/{run_id}/stop")
        await sim.until(run_id, lambda status: status["state"] == "stopped")
        kept = [one["event_id"] for one in await sim.events(run_id)]
        path = f"/runs/{run_id}/events/last"
        assert [one["event_id"] for one in await sim.look(path, limit=3)] == kept[-3:]
        await sim.service._open[run_id].wait_ended()
        sim.service._open.clear()  # as after a restart, or when the events have expired

        assert await sim.events(run_id) == []
        last = await sim.look(path, limit=1000)
        fewer = await sim.look(path, limit=2)

        ids = [one["event_id"] for one in last]
        assert ids
        assert [one for one in kept if one in ids] == ids
        assert fewer == last[-2:]
        assert {"tx.updated", "tx.failed"} & {one["type"] for one in last}
        assert (await sim.get(path, limit=1001)).status_code == 400


# Metrics


@pytest.mark.req("SIM-MET-3", "SIM-API-14")
async def test_a_series_holds_the_last_value_at_or_before_each_point(sim: Simulator) -> None:
    run_id = (await sim.ok("/runs", VILLAGE))["run_id"]
    await sim.after_tick(run_id, 6)
    await sim.ok(f"/runs/{run_id}/stop")

    metrics = await sim.look(f"/runs/{run_id}/metrics", from_ms=500, to_ms=5500, step_ms=500)

    debts = next(one["points"] for one in metrics["series"] if one["key"] == "total_debt")
    assert [point["t_ms"] for point in debts] == list(range(500, 5501, 500))
    # A value holds until the next measurement, a second later.
    assert all(debts[at]["v"] == debts[at + 1]["v"] for at in range(1, 10, 2))
    assert len({point["v"] for point in debts}) == 6


@pytest.mark.req("SIM-MET-3")
@pytest.mark.parametrize(
    "query",
    [
        {"from_ms": 10, "to_ms": 9},
        {"step_ms": 0},
        {"from_ms": -1},
        {"to_ms": "soon"},
        {"from_ms": 0, "to_ms": 2_000_000, "step_ms": 1000},
    ],
)
async def test_an_invalid_span_is_400(still: Simulator, query: dict[str, Any]) -> None:
    run_id = await still.start()

    assert (await still.get(f"/runs/{run_id}/metrics", **query)).status_code == 400


@pytest.mark.req("SIM-MET-3")
async def test_two_thousand_points_are_allowed(still: Simulator) -> None:
    run_id = await still.start()

    metrics = await still.look(f"/runs/{run_id}/metrics", from_ms=0, to_ms=1999, step_ms=1)

    assert {len(one["points"]) for one in metrics["series"]} == {2000}
    assert metrics["series"][0]["points"][0] == {"t_ms": 0, "v": None}


@pytest.mark.req("SIM-MET-4", "SIM-STO-7", "SIM-MET-8")
async def test_a_failing_store_stops_no_run_and_metrics_are_503(
    sim: Simulator, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object, **__: object) -> None:
        raise WorldBroken("the disk is gone")

    run_id = await sim.start()
    for name in ("write", "save", "series"):
        monkeypatch.setattr(Store, name, broken)
    await sim.after_tick(run_id, 5)
    metrics = await sim.get(f"/runs/{run_id}/metrics")

    assert metrics.status_code == 503
    assert (await sim.ok(f"/runs/{run_id}/stop"))["state"] == "stopped"
    assert sim.service._store.failures > 0


@pytest.mark.req("SIM-STO-7")
async def test_without_a_store_everything_but_stored_metrics_works(tmp_path: Path) -> None:
    async with simulator(tmp_path / "data", {**QUICK, "SIMULATOR_DB_ENABLED": "off"}) as sim:
        run_id = await sim.start()
        await sim.after_tick(run_id, 3)
        metrics = await sim.get(f"/runs/{run_id}/metrics")
        bottlenecks = await sim.get(f"/runs/{run_id}/bottlenecks")
        stopped = await sim.ok(f"/runs/{run_id}/stop")

    assert (metrics.status_code, metrics.json()["error"]["code"]) == (503, "METRICS_UNAVAILABLE")
    assert (bottlenecks.status_code, stopped["state"]) == (200, "stopped")
    assert not (tmp_path / "data/stores/credit/simulator.db").exists()


# Owners and the demo


@pytest.mark.req("SIM-API-21", "SIM-API-28", "SIM-API-19")
async def test_an_admin_sees_all_runs(tmp_path: Path) -> None:
    tokens = TokenStore(tmp_path / "data")
    keys = {name: tokens.new(name, role)[1] for name, role in (("ann", Role.OPERATOR), ("root", Role.ADMIN))}
    async with simulator(tmp_path / "data", STILL) as sim:
        sim.client.headers["authorization"] = f"Bearer {keys['ann']}"
        run_id = await sim.start()
        assert (await sim.ok("/session/ensure")) == {"actor_kind": "participant", "owner_id": "ann"}
        del sim.client.headers["authorization"]
        sim.client.headers["x-admin-token"] = keys["root"]
        assert (await sim.ok("/session/ensure"))["actor_kind"] == "admin"
        assert [one["run_id"] for one in (await sim.look("/admin/runs"))["items"]] == [run_id]
        assert (await sim.ok("/admin/runs/stop-all"))["stopped"] == [run_id]
        sim.client.headers["x-admin-token"] = keys["ann"]
        refused = await sim.get("/runs/active")
        assert refused.status_code == 401
        assert "Authorization: Bearer" in refused.json()["error"]["message"]


@pytest.mark.req("SIM-API-28")
async def test_an_empty_admin_token_is_ignored(still: Simulator) -> None:
    answered = await still.client.get(f"{BASE}/runs/active", headers={"x-admin-token": " "})

    assert answered.status_code == 200, answered.text


@pytest.mark.req("SIM-API-22")
def test_a_cookie_is_valid_only_unchanged_and_within_its_lifetime() -> None:
    now = [1_000_000_000_000_000]
    cookies = OwnerCookies(b"key", lambda: now[0], 604_800, 300)
    owner, value = cookies.new()
    name, since, signature = value.split(".")

    assert cookies.owner(value) == owner
    assert cookies.owner(f"anon_other.{since}.{signature}") is None
    assert cookies.owner(f"{name}.{int(since) + 1}.{signature}") is None
    assert OwnerCookies(b"other key", lambda: now[0], 604_800, 300).owner(value) is None
    for junk in ("", ".", "a.b.c", f"{name}.٣.{signature}", f"{name}.{since}.ü"):
        assert cookies.owner(junk) is None
    now[0] += 604_800_000_000
    assert cookies.owner(value) == owner
    now[0] += 1_000_000
    assert cookies.owner(value) is None
    now[0] -= 604_800_000_000 + 302_000_000
    assert cookies.owner(value) is None


@pytest.mark.req("SIM-RUN-10")
async def test_the_demo_stops_for_a_run_and_stays_until_it_restarts(tmp_path: Path) -> None:
    async with simulator(tmp_path / "data", STILL, demo=True) as sim:
        demo = (await sim.look("/runs/active"))["run_id"]
        own = await sim.start()

        await sim.service._ensure_demo()  # as housekeeping does

        stopped = await sim.status(demo)
        assert (stopped["state"], stopped["stop_reason"]) == ("stopped", "another run starts")
        assert (await sim.get(f"/runs/{demo}/graph/snapshot")).status_code == 200
        assert (await sim.look("/runs/active"))["run_id"] == own
        await sim.ok(f"/runs/{own}/stop")
        await sim.service._ensure_demo()
        again = (await sim.look("/runs/active"))["run_id"]
        assert again not in (None, demo, own)
        assert (await sim.get(f"/runs/{demo}")).status_code == 404


# Manual actions


@pytest.mark.req("SIM-API-25")
async def test_a_repeated_action_applies_once_and_another_under_its_id_is_a_conflict(still: Simulator) -> None:
    run_id = await still.start()
    path = f"/runs/{run_id}/actions/payment-real"
    pay = {"from_pid": "anna", "to_pid": "bakery", "equivalent": "HOUR", "amount": "2", "client_action_id": "x"}

    first, second = await still.ok(path, pay), await still.ok(path, pay)
    other = await still.post(path, {**pay, "amount": "3"})

    assert first == second
    assert (await still.status(run_id))["committed_total"] == 1
    assert (other.status_code, other.json()["code"]) == (409, "CONFLICT")


@pytest.mark.req("SIM-EVT-4")
async def test_the_event_of_a_manual_payment_has_its_hops(still: Simulator) -> None:
    run_id = await still.start()
    pay = {"from_pid": "anna", "to_pid": "farm", "equivalent": "HOUR", "amount": "2"}
    await still.ok(f"/runs/{run_id}/actions/payment-real", pay)

    (event,) = [one for one in await still.events(run_id) if one["type"] == "tx.updated"]

    assert [(one["from"], one["to"]) for one in event["edges"]] == [("anna", "bakery"), ("bakery", "farm")]
    assert {patch["id"] for patch in event["node_patch"]} == {"anna", "farm"}


@pytest.mark.req("SIM-MET-6")
async def test_labels_of_counters_are_no_ids(sim: Simulator) -> None:
    run_id = await sim.start()
    await sim.after_tick(run_id, 3)
    text = (await sim.client.get("/metrics")).text

    ours = [line for line in text.splitlines() if "credit" in line or "geo_simulator" in line]
    assert any(line.startswith("geo_simulator_actions_total{") for line in ours)
    assert [line for line in ours if run_id in line or "anna" in line] == []


@pytest.mark.req("SIM-EVT-2")
async def test_a_run_in_fixtures_mode_is_served(sim: Simulator) -> None:
    run_id = await sim.start(mode="fixtures", intensity_percent=100)
    await sim.after_tick(run_id, 30)

    kinds = {event["type"] for event in await sim.events(run_id)}

    assert {"run_status", "tx.updated", "clearing.plan", "clearing.done"} <= kinds


@pytest.mark.req("SIM-STO-3")
@pytest.mark.parametrize(("every", "listed"), [("1", True), ("0", False)])
async def test_the_stored_index_of_artifacts_is_refreshed_during_a_run_unless_disabled(
    tmp_path: Path, every: str, listed: bool
) -> None:
    async with simulator(tmp_path / "data", {**QUICK, "SIMULATOR_REAL_ARTIFACTS_SYNC_EVERY_MS": every}) as sim:
        run_id = await sim.start()
        await sim.after_tick(run_id, 5)
        running = await sim.service.query_store(run_id, lambda store: store._rows("SELECT name FROM artifacts"))
        await sim.ok(f"/runs/{run_id}/stop")
        ended = await sim.service.query_store(run_id, lambda store: store._rows("SELECT name FROM artifacts"))

    assert bool(running) is listed
    assert len(ended) == len(NAMES)


@pytest.mark.req("SIM-MET-6")
async def test_counters_can_be_disabled(tmp_path: Path) -> None:
    async with simulator(tmp_path / "data", {**STILL, "METRICS_ENABLED": "off"}) as sim:
        await sim.start()

        assert "geo_simulator" not in (await sim.client.get("/metrics")).text
