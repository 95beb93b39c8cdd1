"""The specification of the credit runner, section by section, through the outermost interface that applies."""

import asyncio
import json
import sys
from collections.abc import Callable
from decimal import Decimal
from itertools import pairwise
from pathlib import Path
from random import Random
from typing import Any

import pytest
from typer.testing import CliRunner

from pendula.cli.program import run
from pendula.credit import Headless, plan_run, simulate
from pendula.credit.settings import BY_VARIABLE, Settings, change_settings, setting_texts
from pendula.documents import from_value, read_file
from pendula.kernel.rng import tick_generator, tick_seed
from pendula.kernel.time import parse_utc
from pendula.server.settings import CreditSettings
from tests.credit.core import serving_core
from tests.credit.misbehaving import network
from tests.server.schedulers.credit.simulators import QUICK, STILL, Simulator, simulator
from tests.specifications.printed import specification

pytestmark = pytest.mark.anyio

EXAMPLES = Path(__file__).resolve().parents[2] / "examples" / "specifications"
PRESETS, CHOICE, CIRCLE = (EXAMPLES / f"credit-{name}.json" for name in ("presets", "choice", "circle"))
DOMAIN = ("tx.", "clearing.", "topology.", "audit.")
WIRE = {**network(), "scenario_id": "wire"}

Summary = dict[str, Any]
Program = Callable[..., tuple[int, Summary]]


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture
def pendula(monkeypatch: pytest.MonkeyPatch) -> Program:
    """`pendula(...)` with `--json` in this process: its exit code and its output."""
    for name in BY_VARIABLE:
        monkeypatch.delenv(name, raising=False)

    def call(*arguments: object) -> tuple[int, Summary]:
        with CliRunner().isolation() as (out, err, _):
            code = run([*(str(argument) for argument in arguments), "--json"])
            sys.stdout.flush()
            printed, refused = out.getvalue(), err.getvalue()
        return code, json.loads(printed or refused)

    return call


@pytest.fixture
def run_of(pendula: Program) -> Callable[..., Summary]:
    """`pendula credit run` of a file, which has to succeed."""

    def call(file: Path, ticks: int, *options: object) -> Summary:
        code, summary = pendula("credit", "run", file, "--ticks", ticks, *options)
        assert code == 0, summary
        return summary

    return call


def example(name: str) -> Any:
    return json.loads((EXAMPLES / f"credit-{name}.json").read_text(encoding="utf-8"))


def lines_of(folder: Path) -> list[Summary]:
    return [json.loads(line) for line in (folder / "events.ndjson").read_text(encoding="utf-8").splitlines()]


def domain(events: list[Summary]) -> list[Summary]:
    return [event for event in events if event["type"].startswith(DOMAIN)]


async def serve(sim: Simulator, scenario: Any, **body: Any) -> str:
    """Upload a scenario and start a run of it."""
    await sim.ok("/scenarios", {"scenario": scenario})
    name = scenario["scenario_id"]
    started = await sim.ok("/runs", {"scenario_id": name, "mode": "real", "intensity_percent": 100, **body})
    return str(started["run_id"])


async def until_streamed(sim: Simulator, run_id: str, wanted: Callable[[list[Summary]], bool]) -> list[Summary]:
    async with asyncio.timeout(240):
        while not wanted(events := await sim.events(run_id)):
            await asyncio.sleep(0.01)
        return events


# 1 Time


@pytest.mark.section("1 Two clocks", interface="HTTP")
async def test_1_every_event_has_the_wall_clock_and_the_status_has_virtual_time(tmp_path: Path) -> None:
    """Every event carries `ts`, the server's time; `run_status` carries `sim_time_ms`, virtual time since the start."""
    async with simulator(tmp_path / "data", {**STILL, "SIMULATOR_PACE_MS": "3"}) as sim:
        run_id = await serve(sim, example("presets"), settings={"amount_cap": "500"})
        await sim.after_tick(run_id, 4)
        await sim.ok(f"/runs/{run_id}/stop")
        events = await sim.events(run_id)

    assert all(parse_utc(event["ts"]) > 0 for event in events)
    assert events[-1]["type"] == "run_status"
    assert events[-1]["sim_time_ms"] % 1000 == 0
    assert events[-1]["sim_time_ms"] >= 4000


@pytest.mark.section("1.1 Ticks", interface="command line")
@pytest.mark.parametrize(("base", "ends"), [("1000", 2000), ("250", 500)])
def test_1_1_virtual_time_is_the_tick_index_times_the_length_of_a_tick(
    run_of: Callable[..., Summary], tmp_path: Path, base: str, ends: int
) -> None:
    """`tick_index` counts from 0, and `sim_time_ms = tick_index * tick_ms_base`, 1000 unless it is set."""
    run_of(PRESETS, 3, "--set", f"SIMULATOR_TICK_MS_BASE={base}", "--out", tmp_path)

    last = json.loads((tmp_path / "last_tick.json").read_text(encoding="utf-8"))
    assert (last["tick_index"], last["sim_time_ms"]) == (2, ends)


# 2 The runner


@pytest.mark.section("2.1 State of a run", interface="HTTP")
async def test_2_1_a_run_has_its_ids_state_seed_tick_intensity_and_queue(tmp_path: Path) -> None:
    """A run has an id, its scenario, one of six states, a seed, a tick, an intensity and a queue."""
    async with simulator(tmp_path / "data", STILL) as sim:
        await sim.ok("/scenarios", {"scenario": example("presets")})
        run_id = (await sim.ok("/runs", example("run")))["run_id"]
        status, details = await sim.status(run_id), await sim.look(f"/runs/{run_id}/details")

    assert (status["scenario_id"], status["state"]) == ("credit-presets", "running")
    assert (status["intensity_percent"], status["queue_depth"]) == (50, 0)
    assert (details["seed"], details["tick_index"]) == (42, 0)


@pytest.mark.section("2.2 Main loop", interface="HTTP")
async def test_2_2_start_pause_resume_and_stop(tmp_path: Path) -> None:
    """A started run ticks; paused it has no tick but heartbeats; stopped it plans nothing more and its stream ends."""
    async with simulator(tmp_path / "data") as sim:
        run_id = await serve(sim, example("presets"), settings={"amount_cap": "500"})
        await sim.after_tick(run_id, 2)
        paused = await sim.ok(f"/runs/{run_id}/pause")
        before = len(domain(await sim.events(run_id)))
        last = (await sim.events(run_id))[-1]["event_id"]
        await until_streamed(sim, run_id, lambda found: found[-1]["event_id"] > last and len(found) > 2)
        assert len(domain(await sim.events(run_id))) == before
        assert (await sim.status(run_id))["sim_time_ms"] == paused["sim_time_ms"]
        assert (await sim.ok(f"/runs/{run_id}/resume"))["state"] == "running"
        await sim.until(run_id, lambda found: found["sim_time_ms"] > paused["sim_time_ms"])
        stopped = await sim.ok(f"/runs/{run_id}/stop")
        stream = await sim.get(f"/runs/{run_id}/events")

    assert stopped["state"] == "stopped"
    assert '"state":"stopped"' in stream.text.strip().splitlines()[-1]


@pytest.mark.section("2.2 Events of the scenario", interface="command line")
def test_2_2_actions_originate_from_behaviour_and_scenario_events(
    run_of: Callable[..., Summary], tmp_path: Path
) -> None:
    """A tick runs the scenario events of its time: here three payments that close a cycle, then a clearing."""
    summary = run_of(CIRCLE, 4, "--intensity", 0, "--out", tmp_path)

    kinds = [(event["type"], event["tick_index"]) for event in domain(lines_of(tmp_path))]
    assert kinds == [*[("tx.updated", 1)] * 3, ("clearing.plan", 2), ("clearing.done", 2)]
    assert [(row["reason"], row["cleared_amount"]) for row in summary["clearing"]] == [("SCENARIO", "2.50")]
    assert summary["totals"]["UAH"]["total_debt"] == "0.00000000"


# 3 Determinism


@pytest.mark.section("3.1 Seed", interface="HTTP")
async def test_3_1_the_seed_comes_from_the_request_or_from_the_server_and_is_kept(tmp_path: Path) -> None:
    """`POST /runs` may give the seed; without one the server chooses it and keeps it in the state of the run."""
    async with simulator(tmp_path / "data", {**STILL, "SIMULATOR_MAX_ACTIVE_RUNS": "0"}) as sim:
        given = await serve(sim, example("presets"), seed=7)
        kept = [(await sim.look(f"/runs/{given}/details"))["seed"]]
        await sim.ok(f"/runs/{given}/stop")
        body = {"scenario_id": "credit-presets", "mode": "real", "intensity_percent": 50}
        chosen = await sim.look(f"/runs/{(await sim.ok('/runs', body))['run_id']}/details")

    assert kept == [7]
    assert chosen["seed_from"] == "run_id"
    assert 0 <= chosen["seed"] < 2**32


@pytest.mark.section("3.1 Fixed seed", interface="command line")
def test_3_1_a_process_can_fix_the_seed(run_of: Callable[..., Summary], monkeypatch: pytest.MonkeyPatch) -> None:
    """The environment can fix the seed for tests, so that two runs are equal."""
    given = run_of(PRESETS, 5, "--cap", 500, "--seed", 9)
    monkeypatch.setenv("SIMULATOR_FIXED_SEED", "9")

    assert run_of(PRESETS, 5, "--cap", 500)["digests"] == given["digests"]


@pytest.mark.section("3.2 Generator", interface="library")
def test_3_2_the_generator_is_the_mersenne_twister_of_python() -> None:
    """The generator is `random.Random(seed)`: the same numbers on every machine."""
    ours, theirs = tick_generator(42, 0), Random(42_000_126)

    assert [ours.random() for _ in range(3)] == [theirs.random() for _ in range(3)]


@pytest.mark.section("3.3 Order", interface="command line")
def test_3_3_the_order_of_the_file_has_no_effect(run_of: Callable[..., Summary], tmp_path: Path) -> None:
    """Participants are held by id and lines by equivalent and ends: a shuffled file gives the same run."""
    scenario, luck = example("presets"), Random(3)
    for name in ("participants", "trustlines", "groups", "behaviorProfiles"):
        luck.shuffle(scenario[name])
    shuffled = tmp_path / "shuffled.json"
    shuffled.write_text(json.dumps(scenario), encoding="utf-8")

    assert run_of(shuffled, 30, "--cap", 500)["digests"] == run_of(PRESETS, 30, "--cap", 500)["digests"]


@pytest.mark.section("3.4 Generator of a tick", interface="library")
def test_3_4_the_seed_of_a_tick_follows_from_seed_and_tick() -> None:
    """`tick_seed = (seed * 1_000_003 + tick_index) & 0xFFFFFFFF`."""
    rows = [(42, 0), (42, 1), (1, 0), (4_294_967_295, 7)]

    assert [tick_seed(*row) for row in rows] == [(seed * 1_000_003 + tick) & 0xFFFFFFFF for seed, tick in rows]


@pytest.mark.section("3.4 Pause", interface="HTTP")
async def test_3_4_a_pause_does_not_shift_the_random_sequence(tmp_path: Path) -> None:
    """The plan of a tick depends on seed and tick alone: a pause does not change a run."""
    async with simulator(tmp_path / "data", QUICK) as sim:
        run_id = await serve(sim, example("presets"), seed=42, settings={"amount_cap": "500"})
        await sim.after_tick(run_id, 3)
        await sim.ok(f"/runs/{run_id}/pause")
        await sim.ok(f"/runs/{run_id}/resume")
        await sim.after_tick(run_id, 6)
        ticks = (await sim.ok(f"/runs/{run_id}/stop"))["sim_time_ms"] // 1000
        digests = (await sim.look(f"/runs/{run_id}/details"))["digests"]

    alone = simulate(
        read_file(PRESETS), seed=42, ticks=ticks, settings=change_settings(Settings(), {"amount_cap": "500"})
    )
    assert digests == alone.digests


# 4 Intensity


@pytest.mark.section("4.1 Intensity of zero", interface="HTTP")
async def test_4_1_at_zero_percent_the_run_continues_without_domain_events(tmp_path: Path) -> None:
    """At 0 % nothing is planned and no domain event is sent, but time advances and `run_status` continues."""
    quick = {"clearing_every_n_ticks": "1", "amount_cap": "500"}
    async with simulator(tmp_path / "data") as sim:
        run_id = await serve(sim, example("presets"), intensity_percent=0, settings=quick)
        await sim.after_tick(run_id, 5)
        silent, status = await sim.events(run_id), await sim.status(run_id)
        await sim.ok(f"/runs/{run_id}/intensity", {"intensity_percent": 100})
        await until_streamed(sim, run_id, lambda found: bool(domain(found)))

    assert domain(silent) == []
    assert {event["type"] for event in silent} == {"run_status"}
    assert (status["state"], status["attempts_total"]) == ("running", 0)


@pytest.mark.section("4.2 Budget of a tick", interface="command line")
@pytest.mark.parametrize(
    ("percent", "most", "tried"), [(100, 20, 20), (65, 20, 13), (99, 20, 19), (4, 20, 0), (50, 8, 4)]
)
def test_4_2_the_budget_is_the_share_of_the_most_actions_rounded_down(
    run_of: Callable[..., Summary], percent: int, most: int, tried: int
) -> None:
    """`floor(actions_per_tick_max * intensity / 100)`, with 0 and 20 unless SIMULATOR_ACTIONS_PER_TICK_MAX is set."""
    limit = ("--set", f"SIMULATOR_ACTIONS_PER_TICK_MAX={most}")

    assert (
        run_of(CHOICE, 1, "--intensity", percent, *limit, "--set", "behaviorProfiles[*].props.base_p=1")["counters"][
            "attempts_total"
        ]
        == tried
    )


@pytest.mark.section("4.2 Defaults", interface="command line")
def test_4_2_the_printed_settings_are_the_defaults(run_of: Callable[..., Summary]) -> None:
    """The names and default values that the specification prints are those of a run without any setting."""
    printed, defaults = example("settings"), setting_texts(Settings())

    assert {name: defaults[name] for name in printed} == {name: str(value) for name, value in printed.items()}
    text = specification("credit")
    assert [name for name in printed if name.startswith("SIMULATOR_REAL") and name not in text] == []
    plain, given = run_of(CHOICE, 5), run_of(CHOICE, 5, "--set", EXAMPLES / "credit-settings.json")
    assert given["digests"] == plain["digests"]


@pytest.mark.section("4.3 Payments in flight", interface="command line")
def test_4_3_no_more_calls_are_in_flight_than_the_setting_allows(
    run_of: Callable[..., Summary], tmp_path: Path
) -> None:
    """SIMULATOR_REAL_MAX_IN_FLIGHT bounds the calls at the same time, 1 unless it is set; results and order stay."""
    file = tmp_path / "wire.json"
    file.write_text(json.dumps(WIRE), encoding="utf-8")
    found = {}
    for most in (1, 3):
        with serving_core(WIRE, expect=most) as core:
            setting = () if most == 1 else ("--set", f"SIMULATOR_REAL_MAX_IN_FLIGHT={most}")
            found[most] = run_of(file, 4, "--engine", core.url, *setting)["digests"]
            assert core.most_inside == most

    assert found[1] == found[3]


@pytest.mark.section("4.3 Payments a second", interface="command line")
def test_4_3_a_core_receives_no_more_payments_a_second_than_the_limit(
    run_of: Callable[..., Summary], tmp_path: Path
) -> None:
    """`max_payments_per_sec` bounds the calls of every second of the wall clock; further ones wait."""
    file = tmp_path / "wire.json"
    file.write_text(json.dumps(WIRE), encoding="utf-8")
    with serving_core(WIRE) as core:
        run_of(file, 3, "--engine", core.url, "--set", "max_payments_per_sec=4", "--set", "actions_per_tick_max=5")

    assert len(core.arrivals) == 12
    assert all(later - earlier >= 1 for earlier, later in zip(core.arrivals, core.arrivals[4:], strict=False))


@pytest.mark.section("4.3 Actions above a limit", interface="HTTP")
async def test_4_3_actions_above_the_limit_wait_and_queue_depth_counts_them(tmp_path: Path) -> None:
    """Actions above a limit wait for the next tick; `queue_depth` in the status and on the stream counts them."""
    settings = {"max_payments_per_sec": "2", "actions_per_tick_max": "5"}
    scenario = example("choice")
    for profile in scenario["behaviorProfiles"]:
        profile["props"]["base_p"] = 1
    async with simulator(tmp_path / "data", {**STILL, "SIMULATOR_PACE_MS": "2"}) as sim:
        run_id = await serve(sim, scenario, settings=settings)
        await sim.until(run_id, lambda found: found["queue_depth"] >= 6)
        status = await sim.ok(f"/runs/{run_id}/stop")
        streamed = [event for event in await sim.events(run_id) if event["type"] == "run_status"][-1]

    ticks = status["sim_time_ms"] // 1000
    assert (status["queue_depth"], status["attempts_total"]) == (3 * ticks, 2 * ticks)
    assert streamed["queue_depth"] == status["queue_depth"]


@pytest.mark.section("4.3 Errors that end a run", interface="command line")
@pytest.mark.parametrize(
    ("settings", "code", "errors"),
    [((), "PAYMENT_TIMEOUT", 5), (("max_timeouts_per_tick=0", "max_errors_total=7"), "INTERNAL_ERROR", 7)],
)
def test_4_3_too_many_timeouts_or_errors_end_the_run(
    pendula: Program, tmp_path: Path, settings: tuple[str, ...], code: str, errors: int
) -> None:
    """Five timeouts in a tick, or 200 errors in all, end the run in `error`, unless other numbers are set."""
    file = tmp_path / "wire.json"
    file.write_text(json.dumps(WIRE), encoding="utf-8")
    hasty = ("routing_timeout_ms=1", "work_units_per_ms=1", *settings)
    given = [part for one in hasty for part in ("--set", one)]
    folder = tmp_path / "out"

    ended, _ = pendula_output(pendula, "credit", "run", file, "--ticks", 3, *given, "--out", folder)

    status = json.loads((folder / "status.json").read_text(encoding="utf-8"))
    assert ended == 3
    assert (status["state"], status["last_error"]["code"], status["errors_total"]) == ("error", code, errors)


def pendula_output(pendula: Program, *arguments: object) -> tuple[int, str]:
    """The exit code and the whole output, including a refusal beside a result."""
    with CliRunner().isolation() as (out, err, _):
        code = run([*(str(argument) for argument in arguments), "--json"])
        sys.stdout.flush()
        return code, out.getvalue().decode() + err.getvalue().decode()


# 5 Actions


@pytest.mark.section("5.1 Payment attempt", interface="HTTP")
async def test_5_1_a_payment_attempt_is_made_published_and_counted(tmp_path: Path) -> None:
    """An attempt has a sender, a receiver, an equivalent and an amount; its result is published and counted."""
    async with simulator(tmp_path / "data") as sim:
        run_id = await serve(sim, example("presets"), settings={"amount_cap": "500"})
        await sim.after_tick(run_id, 20)
        status = await sim.ok(f"/runs/{run_id}/stop")
        events = [event for event in await sim.events(run_id) if event["type"].startswith("tx.")]

    assert {"from", "to", "equivalent", "amount"} <= events[0].keys()
    made_ones = [event for event in events if event["type"] == "tx.updated"]
    assert status["attempts_total"] == len(events)
    assert status["committed_total"] == len(made_ones) > 0
    assert status["rejected_total"] == len(events) - len(made_ones)


@pytest.mark.section("5.1 Clearing attempt", interface="HTTP")
async def test_5_1_a_clearing_is_announced_before_it_runs(tmp_path: Path) -> None:
    """A clearing emits `clearing.plan`, then `clearing.done` with the same plan."""
    async with simulator(tmp_path / "data") as sim:
        run_id = await serve(sim, example("circle"), intensity_percent=0)
        await sim.after_tick(run_id, 4)
        await sim.ok(f"/runs/{run_id}/stop")
        events = [event for event in await sim.events(run_id) if event["type"].startswith("clearing.")]

    assert [event["type"] for event in events] == ["clearing.plan", "clearing.done"]
    assert events[0]["plan_id"] == events[1]["plan_id"]
    assert events[1]["cleared_amount"] == "2.50"


@pytest.mark.section("5.1 Static cadence", interface="command line")
@pytest.mark.parametrize(("setting", "every"), [((), 25), (("--set", "SIMULATOR_CLEARING_EVERY_N_TICKS=10"), 10)])
def test_5_1_the_static_policy_clears_at_a_fixed_interval_of_ticks(
    run_of: Callable[..., Summary], setting: tuple[str, ...], every: int
) -> None:
    """The default policy clears every 25 ticks, or at the interval in SIMULATOR_CLEARING_EVERY_N_TICKS."""
    summary = run_of(PRESETS, 60, "--cap", 500, *setting)

    assert summary["clearing"]
    assert {(row["tick"] % every, row["reason"]) for row in summary["clearing"]} == {(0, "STATIC_CADENCE")}


@pytest.mark.section("5.1 Adaptive policy", interface="command line")
def test_5_1_the_adaptive_policy_decides_at_every_tick_from_its_signals(
    run_of: Callable[..., Summary], tmp_path: Path
) -> None:
    """The adaptive policy decides for each equivalent at every tick, from a rolling rate, the volume and the cost of
    the last call, and calls in flight or waiting; depth and budget grow with the rate, with a minimum interval.
    """
    run_of(EXAMPLES / "credit-tight.json", 60, "--set", EXAMPLES / "credit-adaptive.json", "--out", tmp_path)

    decisions = [event for event in lines_of(tmp_path) if event["type"] == "clearing.decision"]
    assert [one["tick_index"] for one in decisions] == list(range(60))
    signals = {"rate", "clearing_volume", "clearing_cost_ms", "in_flight", "queue_depth"}
    answers = {"should_run", "time_budget_ms", "max_depth"}
    assert all(signals | answers <= one.keys() for one in decisions)
    calls = [one for one in decisions if one["should_run"]]
    assert {"RATE_HIGH_ENTER", "SKIP_MIN_INTERVAL"} <= {one["reason"] for one in decisions}
    assert all(later["tick_index"] - one["tick_index"] >= 2 for one, later in pairwise(calls))
    assert all(3 <= one["max_depth"] <= 6 and 50 <= one["time_budget_ms"] <= 250 for one in calls)
    assert any(one["clearing_cost_ms"] > 0 for one in decisions)


@pytest.mark.section("5.1 Settings of the adaptive policy", interface="library")
def test_5_1_depth_and_budget_grow_with_the_rate() -> None:
    """Between the two thresholds depth and time budget grow in proportion, and a global ceiling is hard."""
    from pendula.credit.state.clearing_policy import AdaptivePolicy

    values = {name: str(value) for name, value in example("adaptive").items()}
    found = []
    for refused, ceiling in ((10, "6"), (20, "6"), (30, "6"), (90, "6"), (90, "4")):
        settings = change_settings(Settings(), {**values, "clearing_max_depth": ceiling})
        policy = AdaptivePolicy(settings)
        policy.active = True
        for _ in range(4):
            policy.observe(100, refused)
        decision = policy.decide(100)
        found.append((decision.max_depth, decision.time_budget_ms))

    assert found == [(3, 50), (4, 150), (6, 250), (6, 250), (4, 250)]


# 6 Profiles


@pytest.mark.section("6 Profiles", interface="command line")
def test_6_amounts_are_bounded_by_line_cap_and_profile(run_of: Callable[..., Summary], tmp_path: Path) -> None:
    """`amount <= min(trustline.limit, SIMULATOR_REAL_AMOUNT_CAP, amount_model.max)`; the cap is 3.00 by default."""
    wide = ("--set", "behaviorProfiles[*].props.amount_model.UAH.max=5", "--set", "trustlines[*].limit=2.75")
    for folder, options, most in (("usual", (), "3.00"), ("low", ("--cap", "1.50"), "1.50"), ("line", wide, "2.75")):
        run_of(CHOICE, 10, *options, "--out", tmp_path / folder)
        amounts = [Decimal(one["amount"]) for one in lines_of(tmp_path / folder) if one["type"] == "tx.updated"]
        assert amounts
        assert Decimal(1) <= min(amounts)
        assert max(amounts) <= Decimal(most)


@pytest.mark.section("6 Prefix stability", interface="library")
def test_6_a_smaller_intensity_plans_a_prefix() -> None:
    """The plan follows from seed and tick, and a smaller intensity plans the first actions of a larger one."""
    settings = change_settings(Settings(), {"amount_cap": "500"})
    planner = Headless(plan_run(read_file(PRESETS), seed=42, settings=settings)).run.network.planner
    for tick in range(10):
        large = planner.plan(42, tick, 20)
        assert planner.plan(42, tick, 5) == large[:5]


@pytest.mark.section("6.1 Presets by profile id", interface="command line")
def test_6_1_the_six_ids_are_presets_and_rules_are_ignored(run_of: Callable[..., Summary], tmp_path: Path) -> None:
    """The six ids of the specification have their own rates, amounts and receivers; `rules` can be ignored."""
    run_of(PRESETS, 200, "--cap", 500, "--out", tmp_path)

    senders: dict[str, int] = {}
    for event in lines_of(tmp_path):
        if event["type"].startswith("tx."):
            profile = event["from"].rpartition("-")[0]
            senders[profile] = senders.get(profile, 0) + 1
    assert set(senders) == {"anchor_hub", "producer", "retail", "service", "household", "agent"}
    plain = run_of(PRESETS, 200, "--cap", 500, "--set", "SIMULATOR_PROFILE_PRESETS=off")
    preset = json.loads((tmp_path / "summary.json").read_text(encoding="utf-8"))
    assert preset["digests"]["plan"] != plain["digests"]["plan"]


@pytest.mark.section("6.2 Probability by intensity", interface="library")
@pytest.mark.parametrize(
    ("percent", "chance"),
    [(0, 0), (25, Decimal("0.1")), (50, Decimal("0.2")), (75, Decimal("0.5")), (100, Decimal("0.8"))],
)
def test_6_2_the_chance_of_a_payment_follows_from_profile_and_intensity(percent: int, chance: Decimal) -> None:
    """`p = base_p(profile, intensity_percent)`: an option of a profile."""
    planner = Headless(plan_run(read_file(CHOICE))).run.network.planner

    assert planner.by_profile["neighbour"].rate(percent) == float(chance)


@pytest.mark.section("6.2 Cluster bias", interface="command line")
def test_6_2_the_bias_sets_the_share_of_receivers_in_the_own_group(
    run_of: Callable[..., Summary], tmp_path: Path
) -> None:
    """With the chance `cluster_bias` the receiver is of the sender's group, otherwise of the others."""
    run_of(CHOICE, 20, "--out", tmp_path)

    groups = {participant["id"]: participant["groupId"] for participant in example("choice")["participants"]}
    pairs = {(one["from"], groups[one["from"]] == groups[one["to"]]) for one in lines_of(tmp_path) if "from" in one}
    assert pairs == {("ann", True), ("bea", True), ("cid", True), ("dan", False)}


@pytest.mark.section("6.2 Amounts", interface="command line")
def test_6_2_amounts_are_lognormal_normal_or_triangular_texts(run_of: Callable[..., Summary], tmp_path: Path) -> None:
    """Amounts are drawn log-normal, normal or triangular, and are written as exact decimal texts."""
    found = {}
    for family in ("normal", "triangular", "lognormal"):
        choose = ("--set", f"behaviorProfiles[*].props.amount_model.UAH.family={family}")
        model = "behaviorProfiles[*].props.amount_model.UAH"
        more = ("--set", f"{model}.p50=2", "--set", f"{model}.p90=2.5")
        run_of(CHOICE, 10, *choose, *more, "--out", tmp_path / family)
        found[family] = [one["amount"] for one in lines_of(tmp_path / family) if one["type"] == "tx.updated"]

    assert len({tuple(amounts) for amounts in found.values()}) == 3
    for amounts in found.values():
        assert all(isinstance(one, str) and len(one.partition(".")[2]) == 2 for one in amounts)
        assert Decimal("1.5") < sum(map(Decimal, amounts)) / len(amounts) < Decimal("2.5")


# 7 The payment engine


@pytest.mark.section("7 Calls of the core", interface="HTTP")
async def test_7_a_run_calls_a_real_core_for_payments_and_clearing(tmp_path: Path) -> None:
    """The runner calls the endpoints of a core for payments and clearing, each call with its own key."""
    settings = {"clearing_every_n_ticks": "3", "amount_cap": "3"}
    with serving_core(WIRE) as core:
        async with simulator(tmp_path / "data", credit=CreditSettings(engines={"core": core.url})) as sim:
            run_id = await serve(sim, WIRE, engine="core", settings=settings)
            await sim.after_tick(run_id, 7)
            status = await sim.ok(f"/runs/{run_id}/stop")

    keys = [headers["idempotency-key"] for _, _, headers in core.posts]
    assert len(keys) == len(set(keys))
    assert core.paths.count("/payments") == status["attempts_total"]
    assert core.paths.count("/clearing") >= 2
    assert status["errors_total"] == 0


@pytest.mark.section("7 Refusals", interface="HTTP")
async def test_7_a_refusal_does_not_end_a_run(tmp_path: Path) -> None:
    """A payment without a route or above a limit fails with an event, and the run continues."""
    scenario = example("circle")
    scenario["events"] = [
        {"time": 0, "type": "payment", "params": {"from": "ann", "to": "bea", "amount": "999"}},
        {"time": 0, "type": "payment", "params": {"from": "ann", "to": "nobody", "amount": "1"}},
    ]
    async with simulator(tmp_path / "data") as sim:
        run_id = await serve(sim, scenario, intensity_percent=0)
        status = await sim.after_tick(run_id, 3)
        codes = [event["error"]["code"] for event in await sim.events(run_id) if event["type"] == "tx.failed"]

    assert (status["state"], status["rejected_total"], status["errors_total"]) == ("running", 2, 0)
    assert codes == ["ROUTING_NO_CAPACITY", "PARTICIPANT_NOT_FOUND"]


@pytest.mark.section("7 Timeouts", interface="command line")
def test_7_a_core_that_does_not_answer_in_time_ends_the_run(pendula: Program, tmp_path: Path) -> None:
    """Time limits and retries are set; technical errors are counted, and too many put the run into `error`."""
    file, folder = tmp_path / "wire.json", tmp_path / "out"
    file.write_text(json.dumps(WIRE), encoding="utf-8")
    with serving_core(WIRE) as core:
        core.hang = True
        limits = ("PAYMENT_TOTAL_TIMEOUT_SECONDS=1", "SIMULATOR_REAL_MAX_IN_FLIGHT=5", "SIMULATOR_PAYMENT_RETRIES=0")
        given = [part for one in limits for part in ("--set", one)]
        code, _ = pendula_output(
            pendula, "credit", "run", file, "--ticks", 2, "--engine", core.url, *given, "--out", folder
        )

    status = json.loads((folder / "status.json").read_text(encoding="utf-8"))
    assert code == 3
    assert (status["state"], status["last_error"]["code"]) == ("error", "PAYMENT_TIMEOUT")
    assert status["timeouts_total"] == status["errors_total"] == 5


# 8 Events and metrics


@pytest.mark.section("8.1 What has to be emitted", interface="HTTP")
async def test_8_1_run_status_is_sent_at_every_heartbeat_and_at_the_end(tmp_path: Path) -> None:
    """`run_status` is emitted regularly; an error of the run shows in its state and `last_error`."""
    hasty = {"routing_timeout_ms": "1", "work_units_per_ms": "1"}
    async with simulator(tmp_path / "data", {**STILL, "SIMULATOR_HEARTBEAT_MS": "3"}) as sim:
        run_id = await serve(sim, WIRE, settings=hasty)
        await sim.until(run_id, lambda found: found["state"] == "error")
        events = [event for event in await sim.events(run_id) if event["type"] == "run_status"]

    assert events[0]["state"] == "running"
    assert (events[-1]["state"], events[-1]["last_error"]["code"]) == ("error", "PAYMENT_TIMEOUT")


@pytest.mark.section("8.1 Debug ticks", interface="HTTP")
async def test_8_1_a_tick_event_is_sent_only_on_request(tmp_path: Path) -> None:
    """A `tick` event is for debugging: there is none unless the run asks for it."""
    async with simulator(tmp_path / "data") as sim:
        await sim.ok("/scenarios", {"scenario": example("presets")})
        counts = []
        for setting in ({}, {"emit_tick_events": "on"}):
            body = {"scenario_id": "credit-presets", "mode": "real", "intensity_percent": 10, "settings": setting}
            run_id = (await sim.ok("/runs", body))["run_id"]
            await sim.after_tick(run_id, 3)
            ticks = (await sim.ok(f"/runs/{run_id}/stop"))["sim_time_ms"] // 1000
            counts.append(len([event for event in await sim.events(run_id) if event["type"] == "tick"]) == ticks)

    assert counts == [False, True]


@pytest.mark.section("8.2 Best effort", interface="command line")
def test_8_2_without_clearing_no_clearing_event_is_sent(run_of: Callable[..., Summary], tmp_path: Path) -> None:
    """`clearing.plan` and `clearing.done` are sent if clearing is on and clears something."""
    run_of(PRESETS, 60, "--cap", 500, "--set", "CLEARING_ENABLED=false", "--out", tmp_path)

    assert {event["type"] for event in lines_of(tmp_path)} - {"tx.failed"} == {"tx.updated"}


@pytest.mark.section("8.3 ops_sec and queue_depth", interface="HTTP")
async def test_8_3_ops_sec_is_smoothed_and_queue_depth_is_zero_without_a_queue(tmp_path: Path) -> None:
    """`ops_sec` is the number of actions a second over the last seconds, `queue_depth` the length of the queue or 0."""
    async with simulator(tmp_path / "data") as sim:
        run_id = await serve(sim, WIRE)
        status = await sim.until(run_id, lambda found: found["ops_sec"] > 0)

    assert status["queue_depth"] == 0


# 9 What can be tested


@pytest.mark.section("9 Number of attempts (SB-08)", interface="command line")
def test_9_a_fixed_seed_gives_the_expected_number_of_attempts(run_of: Callable[..., Summary], tmp_path: Path) -> None:
    """With a fixed seed and a simple scenario, N ticks attempt the expected number of payments."""
    minimal = {
        "schema_version": "scenario/1",
        "scenario_id": "two",
        "baseEquivalent": "UAH",
        "participants": [{"id": "p1", "type": "person"}, {"id": "p2", "type": "person"}],
        "trustlines": [{"from": "p1", "to": "p2", "limit": "1000"}],
    }
    file = tmp_path / "two.json"
    file.write_text(json.dumps(minimal), encoding="utf-8")

    assert run_of(file, 5, "--seed", 42)["counters"]["attempts_total"] == 100


@pytest.mark.section("9 Same actions (SB-NF-04)", interface="HTTP")
async def test_9_two_runs_of_one_seed_plan_the_same_and_end_the_same(tmp_path: Path) -> None:
    """Two runs of one seed have the same internal actions, over HTTP, on the command line and in the library."""
    document = from_value(example("presets"))
    settings = change_settings(Settings(), {"amount_cap": "500"})
    async with simulator(tmp_path / "data", QUICK) as sim:
        run_id = await serve(sim, example("presets"), seed=5, settings={"amount_cap": "500"})
        await sim.after_tick(run_id, 5)
        ticks = (await sim.ok(f"/runs/{run_id}/stop"))["sim_time_ms"] // 1000
        details = await sim.look(f"/runs/{run_id}/details")
    again = simulate(document, seed=5, ticks=ticks, settings=settings)

    assert details["deterministic"] is True
    assert details["digests"] == again.digests
