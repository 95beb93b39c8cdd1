"""Every response over HTTP has exactly the members of the protocol."""

from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from tests.credit.networks import PUBLIC
from tests.server.schedulers.credit import strict
from tests.server.schedulers.credit.simulators import QUICK, STILL, VILLAGE, Simulator, simulator

pytestmark = pytest.mark.anyio

PEOPLE = {"from_pid": "anna", "to_pid": "bakery", "equivalent": "HOUR"}
ACTIONS: list[tuple[str, dict[str, Any], strict.Check]] = [
    ("payment-real", {**PEOPLE, "amount": "2.5"}, strict.PAID),
    ("clearing-real", {"equivalent": "HOUR"}, strict.CLEARED),
    (
        "trustline-create",
        {"from_pid": "anna", "to_pid": "dmytro", "equivalent": "HOUR", "limit": "5"},
        strict.LINE_CREATED,
    ),
    ("trustline-update", {**PEOPLE, "new_limit": "12"}, strict.LINE_UPDATED),
    ("trustline-close", {"from_pid": "farm", "to_pid": "dmytro", "equivalent": "HOUR"}, strict.LINE_CLOSED),
    ("tx-once", {"equivalent": "HOUR"}, strict.TX_SHOWN),
    ("tx-once", {"equivalent": "hour", "from": "anna", "to": "farm", "amount": "3", "ttl_ms": 900}, strict.TX_SHOWN),
    ("clearing-once", {"equivalent": "HOUR"}, strict.CLEARING_SHOWN),
    (
        "clearing-once",
        {"equivalent": "HOUR", "cycle_edges": [{"from": "anna", "to": "farm"}], "cleared_amount": "4.50", "seed": 3},
        strict.CLEARING_SHOWN,
    ),
]


@pytest.mark.req("SIM-API-1", "SIM-API-3", "SIM-API-4", "SIM-API-24")
async def test_scenarios_match_the_protocol(still: Simulator) -> None:
    strict.SCENARIOS(await still.look("/scenarios"))
    strict.SUMMARY(await still.look("/scenarios/village-100"))
    strict.SNAPSHOT(await still.look("/scenarios/village-100/graph/preview", equivalent="UNIT", mode="real"))


@pytest.mark.req("SIM-API-5", "SIM-API-7", "SIM-API-8", "SIM-API-9", "SIM-API-24")
async def test_runs_match_the_protocol_in_every_state(sim: Simulator) -> None:
    strict.ACTIVE(await sim.look("/runs/active"))
    created = await sim.ok("/runs", {**VILLAGE, "deterministic": True})
    strict.CREATED(created)
    run_id = created["run_id"]
    strict.ACTIVE(await sim.look("/runs/active"))
    await sim.after_tick(run_id, 3)
    for verb in ("pause", "resume", "restart", "stop"):
        strict.STATUS(await sim.ok(f"/runs/{run_id}/{verb}"))
        strict.STATUS(await sim.status(run_id))
    strict.STATUS(await sim.ok(f"/runs/{run_id}/restart"))
    strict.STATUS(await sim.ok(f"/runs/{run_id}/intensity", {"intensity_percent": 1}))


@pytest.mark.req("SIM-API-13", "SIM-API-14", "SIM-API-15", "SIM-API-16", "SIM-API-26", "SIM-API-27", "SIM-STO-3")
@pytest.mark.parametrize("stopped", [False, True])
async def test_views_of_a_run_match_the_protocol_while_it_runs_and_afterwards(sim: Simulator, stopped: bool) -> None:
    run_id = (await sim.ok("/runs", VILLAGE))["run_id"]
    await sim.after_tick(run_id, 15)
    if stopped:
        await sim.ok(f"/runs/{run_id}/stop")

    strict.SNAPSHOT(await sim.look(f"/runs/{run_id}/graph/snapshot", equivalent="UNIT"))
    metrics = await sim.look(f"/runs/{run_id}/metrics", equivalent="UNIT", from_ms=0, to_ms=20_000, step_ms=5000)
    strict.METRICS(metrics)
    assert {one["key"]: one["unit"] for one in metrics["series"]} == strict.KEYS
    more = await sim.look(f"/runs/{run_id}/metrics", equivalent="UNIT", from_ms=0, to_ms=9000, extended="true")
    keys = {one["key"]: one["unit"] for one in more["series"]}
    ours = {"wanted": "amount", "served": "amount", "volume": "amount", "served_share": "%"}
    assert keys == strict.KEYS | ours | {"no_capacity_rate": None, "clearing_cost_ms": None}
    demand = (await sim.look(f"/runs/{run_id}/details"))["demand"]["UNIT"]
    assert Decimal(demand["wanted"]) > Decimal(demand["served"]) > 0
    bottlenecks = await sim.look(f"/runs/{run_id}/bottlenecks", equivalent="UNIT", limit=5)
    strict.BOTTLENECKS(bottlenecks)
    assert len(bottlenecks["items"]) == 5
    strict.ARTIFACTS(await sim.look(f"/runs/{run_id}/artifacts"))
    targets = await sim.look(
        f"/runs/{run_id}/payment-targets", equivalent="UNIT", from_pid="agent-1", include_max_available="true"
    )
    strict.TARGETS(targets)
    assert targets["items"]
    strict.PARTICIPANTS(await sim.look(f"/runs/{run_id}/actions/participants-list"))
    strict.TRUSTLINES(await sim.look(f"/runs/{run_id}/actions/trustlines-list", equivalent="UNIT"))


@pytest.mark.req("SIM-API-18")
async def test_the_active_run_needs_no_id(still: Simulator) -> None:
    run_id = await still.start()

    strict.SNAPSHOT(await still.look("/graph/snapshot", equivalent="HOUR"))
    ego = await still.look("/graph/ego", equivalent="HOUR", pid="anna", depth=1)
    strict.SNAPSHOT(ego)
    assert [node["id"] for node in ego["nodes"]] == ["anna", "bakery", "cafe"]
    assert len((await still.look("/graph/ego", pid="anna", depth=2))["nodes"]) == 5
    assert [event["run_id"] for event in await still.look("/events/poll")] == [run_id]


@pytest.mark.req("SIM-API-25", "SIM-API-17", "SIM-API-24", "SIM-ACT-7")
@pytest.mark.parametrize(("name", "body", "form"), ACTIONS, ids=[f"{at}-{row[0]}" for at, row in enumerate(ACTIONS)])
async def test_an_action_matches_the_protocol_and_echoes_its_id(
    still: Simulator, name: str, body: dict[str, Any], form: strict.Check
) -> None:
    run_id = await still.start()

    plain = await still.ok(f"/runs/{run_id}/actions/{name}", body)
    form(plain)
    assert plain["client_action_id"] is None
    if name not in ("trustline-create", "trustline-close"):
        named = await still.ok(f"/runs/{run_id}/actions/{name}", {**body, "client_action_id": "mine, № 1"})
        form(named)
        assert named["client_action_id"] == "mine, № 1"


@pytest.mark.req("SIM-API-25")
@pytest.mark.parametrize(
    ("name", "body", "status", "code"),
    [
        ("payment-real", {**PEOPLE, "amount": "999"}, 409, "ROUTING_NO_CAPACITY"),
        ("payment-real", {**PEOPLE, "amount": "0"}, 400, "INVALID_INPUT"),
        ("payment-real", {**PEOPLE, "amount": "1e-3x"}, 400, "INVALID_INPUT"),
        ("payment-real", {**PEOPLE, "to_pid": "nobody", "amount": "1"}, 404, "PARTICIPANT_NOT_FOUND"),
        ("payment-real", {**PEOPLE, "equivalent": "EUR", "amount": "1"}, 404, "EQUIVALENT_NOT_FOUND"),
        ("payment-real", PEOPLE, 400, "INVALID_REQUEST"),
        ("payment-real", {**PEOPLE, "amount": "1", "ammount": "2"}, 400, "INVALID_REQUEST"),
        ("clearing-real", {"equivalent": "EUR"}, 404, "EQUIVALENT_NOT_FOUND"),
        ("clearing-real", {"equivalent": "HOUR", "max_depth": 13}, 400, "INVALID_REQUEST"),
        ("trustline-create", {**PEOPLE, "limit": "5"}, 409, "CONFLICT"),
        ("trustline-create", {**PEOPLE, "to_pid": "dmytro", "limit": "-1"}, 400, "INVALID_INPUT"),
        ("trustline-update", {**PEOPLE, "to_pid": "dmytro", "new_limit": "5"}, 409, "TRUSTLINE_NOT_ACTIVE"),
        ("trustline-close", {**PEOPLE, "to_pid": "dmytro"}, 409, "TRUSTLINE_NOT_ACTIVE"),
        ("tx-once", {"equivalent": "EUR"}, 404, "EQUIVALENT_NOT_FOUND"),
        ("tx-once", {"equivalent": "HOUR", "amount": "much"}, 400, "INVALID_REQUEST"),
    ],
)
async def test_a_refused_action_has_no_error_member(
    still: Simulator, name: str, body: dict[str, Any], status: int, code: str
) -> None:
    run_id = await still.start()

    response = await still.post(f"/runs/{run_id}/actions/{name}", body)

    strict.REFUSED(response.json())
    assert (response.status_code, response.json()["code"]) == (status, code)


@pytest.mark.req("SIM-API-25")
async def test_other_refusals_under_actions_have_no_error_member(still: Simulator) -> None:
    path = "/runs/run_20260101_000000_00000000/actions/payment-real"
    missing = await still.post(path, {**PEOPLE, "amount": "1"})
    foreign = await still.post(path, {}, headers={"origin": "http://evil.example"})

    for response, code in ((missing, "RUN_NOT_FOUND"), (foreign, "foreign_origin")):
        strict.REFUSED(response.json())
        assert response.json()["code"] == code


@pytest.mark.req("SIM-API-17")
async def test_actions_are_refused_if_they_are_disabled(tmp_path: Path) -> None:
    async with simulator(tmp_path / "data", {**STILL, "SIMULATOR_ACTIONS_ENABLE": "0"}) as sim:
        run_id = await sim.start()
        response = await sim.post(f"/runs/{run_id}/actions/payment-real", {**PEOPLE, "amount": "1"})

    assert (response.status_code, response.json()["code"]) == (403, "ACTIONS_DISABLED")


@pytest.mark.req("SIM-API-19", "SIM-API-28")
async def test_a_visitor_gets_an_owner_and_lists_its_runs(still: Simulator) -> None:
    owner = await still.ok("/session/ensure")
    strict.OWNER(owner)
    run_id = await still.start()

    assert owner["actor_kind"] == "anon"
    assert [one["run_id"] for one in (await still.look("/admin/runs"))["items"]] == [run_id]
    assert (await still.ok("/admin/runs/stop-all"))["stopped"] == [run_id]
    assert (await still.status(run_id))["state"] == "stopped"


@pytest.mark.req("SIM-EVT-2", "SIM-EVT-3", "SIM-EVT-5", "SIM-API-24")
async def test_every_event_of_a_busy_run_has_what_its_type_requires(tmp_path: Path) -> None:
    async with simulator(tmp_path / "data", {**QUICK, "SIMULATOR_REAL_ENABLE_INJECT": "1"}) as sim:
        run_id = (await sim.ok("/runs", VILLAGE))["run_id"]
        await sim.after_tick(run_id, 27)
        await sim.ok(f"/runs/{run_id}/pause")
        events = await sim.events(run_id)

    for event in events:
        strict.event(event)
    kinds = {event["type"] for event in events}
    assert {"run_status", "tx.updated", "tx.failed", "clearing.done", "topology.changed"} <= kinds
    assert not kinds & {"tick", "note", "clearing.decision"}


@pytest.mark.req("SIM-EVT-2", "SIM-API-24")
async def test_manual_changes_of_the_network_match_the_protocol(still: Simulator) -> None:
    run_id = await still.start()
    for name, body, _ in ACTIONS:
        await still.ok(f"/runs/{run_id}/actions/{name}", body)

    events = await still.events(run_id)

    for event in events:
        strict.event(event)
    assert sum(event["type"] == "topology.changed" for event in events) == 3


@pytest.mark.req("SIM-API-24")
async def test_our_additions_are_only_in_details(still: Simulator) -> None:
    run_id = await still.start()

    details = await still.look(f"/runs/{run_id}/details")

    assert {"seed", "tick_index", "dropped_total", "digests", "settings"} <= set(details)
    assert (details["seed"], details["tick_index"]) == (7, 0)


@pytest.mark.req("SIM-API-13")
async def test_a_link_shows_used_and_available_capacity(still: Simulator) -> None:
    run_id = await still.start()
    await still.ok(f"/runs/{run_id}/actions/payment-real", {**PEOPLE, "amount": "9"})

    picture = await still.look(f"/runs/{run_id}/graph/snapshot")
    (link,) = [one for one in picture["links"] if (one["source"], one["target"]) == ("bakery", "anna")]
    nodes = {node["id"]: node for node in picture["nodes"]}

    assert (link["trust_limit"], link["used"], link["available"]) == ("10.00", "9.00", "1.00")
    assert (link["viz_alpha_key"], nodes["anna"]["net_balance"], nodes["bakery"]["net_sign"]) == ("hi", "-9.00", 1)
    assert nodes["anna"]["viz_color_key"] in picture["palette"]


@pytest.mark.req("SIM-SCN-4", "SIM-API-2")
@pytest.mark.parametrize("name", ["missing_scenario_id", "missing_equivalent_fields"])
async def test_the_public_negative_scenarios_are_refused_with_places(still: Simulator, name: str) -> None:
    path = PUBLIC / "negative" / f"{name}.json"
    if not path.is_file():
        pytest.skip("the public scenarios are not installed")
    headers = {"content-type": "application/json"}
    response = await still.client.post("/api/v1/simulator/scenarios", content=path.read_bytes(), headers=headers)

    strict.ERROR(response.json())
    assert (response.status_code, response.json()["error"]["code"]) == (400, "SCENARIO_INVALID")
    assert all(set(one) == {"path", "message"} for one in response.json()["error"]["details"]["errors"])
