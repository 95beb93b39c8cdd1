"""Sweeps: rows in a fixed order, equal bytes on any worker, correct figures."""

import csv
import pickle
from collections.abc import Iterator
from io import StringIO
from typing import Any

import pytest

from pendula import spreading
from pendula.credit.authoring.villages import village
from pendula.credit.events import ClearingDecision, ClearingDone
from pendula.credit.runs.headless import simulate
from pendula.credit.settings import InvalidSetting, Settings, change_settings
from pendula.credit.studies import figures
from pendula.credit.studies.figures import Job, Kind, Task, figures_of, spread, within_budget
from pendula.credit.studies.sweeps import InvalidGrid, combinations, summarise, sweep
from pendula.documents import Document, DocumentRefused, from_value
from pendula.kernel.canonical import Json
from pendula.kernel.errors import LimitExceeded, MissingExtra, WrongUsage
from pendula.spreading import ClusterFailed, TaskFailed, Where
from tests.credit.conftest import network

GRID = {"clearing_policy": ("static", "adaptive"), "amount_cap": ("50", "none")}
BASE = change_settings(Settings(), {"clearing_every_n_ticks": "3"})


@pytest.fixture(scope="module")
def small() -> Document:
    return from_value(village(12, 7))


@pytest.fixture(scope="module")
def reference(small: Document) -> str:
    return sweep(small, GRID, (1, 2), 8, settings=BASE).csv()


@pytest.fixture(scope="module")
def cluster() -> Iterator[str]:
    distributed = pytest.importorskip("distributed")
    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, processes=False, dashboard_address=":0", protocol="tcp"
    ) as workers:
        yield workers.scheduler_address


def ring() -> Document:
    return from_value(network(("b", "a", 20), ("c", "b", 20), ("a", "c", 20)))


def test_rows_are_in_grid_order_with_seeds_varying_fastest(reference: str) -> None:
    rows = list(csv.DictReader(StringIO(reference)))

    assert [(row["clearing_policy"], row["amount_cap"], row["seed"]) for row in rows] == [
        (policy, cap, seed) for policy in ("static", "adaptive") for cap in ("50.00000000", "") for seed in ("1", "2")
    ]


def test_a_row_has_the_digests_of_its_own_run(small: Document, reference: str) -> None:
    last = list(csv.DictReader(StringIO(reference)))[-1]
    settings = change_settings(BASE, {"clearing_policy": "adaptive", "amount_cap": "none"})

    alone = simulate(small, seed=2, ticks=8, settings=settings)

    assert {"plan": last["plan_digest"], "ledger": last["ledger_digest"]} == alone.digests
    assert int(last["committed"]) == alone.counters.committed_total
    assert last["total_debt_UNIT"] == alone.metrics["UNIT"]["total_debt"]


@pytest.mark.req("SIM-TEST-20")
@pytest.mark.parametrize("workers", [2, 3])
def test_any_number_of_workers_gives_the_same_bytes(workers: int, small: Document, reference: str) -> None:
    # Each worker is a fresh interpreter with its own hash seed.
    assert sweep(small, GRID, (1, 2), 8, workers, settings=BASE).csv() == reference


@pytest.mark.req("SIM-TEST-20")
def test_a_dask_cluster_gives_the_same_bytes(cluster: str, small: Document, reference: str) -> None:
    seen: list[int] = []

    columns = sweep(small, GRID, (1, 2), 8, dask=cluster, settings=BASE, watch=seen.append)

    assert columns.csv() == reference
    assert seen == list(range(1, 9))


def test_a_cluster_names_the_failed_run(cluster: str) -> None:
    with pytest.raises(TaskFailed, match="seed 9 failed: DocumentRefused"):
        spread(Job(b"{}", 1), [Task(Settings(), 9, "nothing special")], Where(dask=cluster))


def test_a_cluster_with_another_pendula_is_rejected(
    cluster: str, small: Document, monkeypatch: pytest.MonkeyPatch
) -> None:
    others = iter(["0.0.1 (decisions 0)"])
    ours = figures._signature()
    monkeypatch.setattr(figures, "_signature", lambda: next(others, ours))

    with pytest.raises(ClusterFailed, match=r"has Pendula 0\.0\.1"):
        sweep(small, {}, (1,), 1, dask=cluster)


def test_a_cluster_without_workers_is_rejected(small: Document) -> None:
    distributed = pytest.importorskip("distributed")
    with (
        distributed.LocalCluster(n_workers=0, processes=False, dashboard_address=":0") as empty,
        pytest.raises(ClusterFailed, match="no workers"),
    ):
        sweep(small, {}, (1,), 1, dask=empty.scheduler_address)


def test_a_missing_extra_is_reported_with_its_install_command(small: Document, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spreading, "find_spec", lambda _: None)

    with pytest.raises(MissingExtra, match=r'pip install "pendula\[dask\]"'):
        sweep(small, {}, (1,), 1, dask="tcp://127.0.0.1:1")


def test_columns_are_flat_and_have_one_kind_each(small: Document) -> None:
    columns = sweep(small, {"adaptive_no_capacity_high": ["0.5", "0.7"], "clearing_enabled": ["on", "off"]}, (3,), 2)
    types: dict[Kind, type] = {Kind.INTEGER: int, Kind.DECIMAL: str, Kind.TEXT: str}

    assert list(columns.kinds) == list(columns.values)
    for name, kind in columns.kinds.items():
        assert len(columns.values[name]) == len(columns) == 4
        assert {type(value) for value in columns.values[name]} <= {types[kind], type(None)}, name
    assert columns.values["adaptive_no_capacity_high"] == ["0.50000000", "0.50000000", "0.70000000", "0.70000000"]
    assert columns.values["clearing_enabled"] == ["on", "off", "on", "off"]


def test_clearing_is_counted_after_the_skipped_ticks() -> None:
    settings = change_settings(Settings(), {"clearing_every_n_ticks": "4"})
    alone = simulate(ring(), seed=5, ticks=14, settings=settings)
    late = [row for row in alone.clearing if row.tick >= 5]

    counted = figures_of(ring(), settings, 5, 14, skip=5, trail=True)

    assert counted.calls == 2
    assert counted.intervals == (4,)
    assert counted.work > 0
    assert counted.over_budget == 0
    assert len(late) == 2
    assert counted.cycles == sum(row.cleared_cycles for row in late)
    assert figures.written(figures.share(counted.cleared["UAH"], 10**8)) == f"{sum(map(_amount, late)):.8f}"
    assert counted.trail is not None
    assert sum(counted.trail.finished) == alone.counters.attempts_total
    assert sum(counted.trail.committed[5:]) == counted.committed
    assert sum(counted.trail.finished[5:]) == counted.attempts
    assert counted.trail.debts["UAH"][-1] == counted.debts["UAH"]


def _amount(row: Any) -> float:
    return float(row.cleared_amount)


def test_the_first_interval_starts_after_the_skipped_ticks() -> None:
    often = change_settings(Settings(), {"clearing_every_n_ticks": "2"})

    assert figures_of(ring(), often, 1, 9, skip=4).intervals == (2, 2)


def test_adaptive_calls_are_counted_and_stay_within_their_budgets(small: Document) -> None:
    eager = {"adaptive_window_ticks": "1", "adaptive_no_capacity_high": "0.02", "adaptive_no_capacity_low": "0.01"}
    settings = change_settings(Settings(), {**eager, "clearing_policy": "adaptive", "amount_cap": "none"})

    counted = figures_of(small, settings, 1, 40)

    assert counted.calls > 1
    assert min(counted.intervals) >= settings.adaptive_min_interval_ticks
    assert counted.over_budget == 0


ADAPTIVE = change_settings(Settings(), {"clearing_policy": "adaptive"})


@pytest.mark.parametrize(
    ("settings", "work", "since", "decided", "kept"),
    [
        (Settings(), 250_000, None, None, True),
        (Settings(), 250_001, None, None, False),
        (ADAPTIVE, 50_000, 5, (True, 3, 50), True),
        (ADAPTIVE, 50_001, 5, (True, 3, 50), False),
        (ADAPTIVE, 1, 4, (True, 3, 50), False),
        (ADAPTIVE, 1, 5, (True, 7, 50), False),
        (ADAPTIVE, 1, 5, (True, 6, 251), False),
        (ADAPTIVE, 1, 5, (False, 3, 50), False),
        (ADAPTIVE, 1, 5, None, False),
    ],
)
def test_a_call_beyond_its_settings_is_over_budget(
    settings: Settings, work: int, since: int | None, decided: tuple[bool, int, int] | None, kept: bool
) -> None:
    decision = None
    if decided is not None:
        limits = decided[1], decided[2], 0
        decision = ClearingDecision(
            9,
            "UAH",
            decided[0],
            "RUN_ACTIVE",
            (1, 2),
            *limits,
            clearing_volume="0",
            clearing_cost_ms=0,
            in_flight=0,
            queue_depth=0,
        )

    assert within_budget(settings, work, since, decision, None) is kept


@pytest.mark.parametrize(("reduction", "kept"), [("60.00", True), ("60.01", False)])
def test_circles_deeper_than_allowed_are_over_budget(reduction: str, kept: bool) -> None:
    done = ClearingDone(9, "UAH", "plan", "STATIC_CADENCE", 1, "10.00", reduction, (), "done")

    assert within_budget(Settings(), 1, None, None, done) is kept


@pytest.mark.parametrize("workers", [1, 2])
def test_a_failed_run_is_named_with_its_settings_and_seed(workers: int) -> None:
    tasks = [Task(Settings(), seed, "amount_cap=50") for seed in (7, 7)]

    with pytest.raises(TaskFailed, match="The run with amount_cap=50, seed 7 failed: DocumentRefused") as caught:
        spread(Job(b"{}", 1), tasks, Where(workers))

    assert caught.value.details == {"settings": "amount_cap=50", "seed": 7, "exception": "DocumentRefused"}
    assert pickle.loads(pickle.dumps(caught.value)).details == caught.value.details


@pytest.mark.parametrize(
    ("grid", "error", "message"),
    [
        ({"clearing_polcy": ["static"]}, InvalidGrid, "did you mean clearing_policy"),
        ({"amount_cap": ["1"], "SIMULATOR_REAL_AMOUNT_CAP": ["2"]}, InvalidGrid, "varies twice"),
        ({"amount_cap": []}, InvalidGrid, "no values"),
        ({"amount_cap": ["5", "5.00"]}, InvalidGrid, "amount_cap=5 and amount_cap=5.00 are the same settings"),
        ({"amount_cap": ["5", "many"]}, InvalidSetting, "With amount_cap=many"),
        ({"adaptive_max_depth_min": ["3", "9"]}, InvalidSetting, "With adaptive_max_depth_min=9"),
    ],
)
def test_an_invalid_grid_is_rejected_before_any_run(
    grid: dict[str, list[str]], error: type[Exception], message: str, small: Document
) -> None:
    done: list[int] = []

    with pytest.raises(error, match=message):
        sweep(small, grid, (1,), 2, watch=done.append)

    assert done == []


def test_too_many_runs_are_rejected_before_they_are_listed() -> None:
    grid = {name: [str(number) for number in range(1, 1000)] for name in ("routing_max_paths", "tick_ms_base")}

    with pytest.raises(LimitExceeded, match="998001000"):
        combinations(grid, Settings(), seeds=1000)


@pytest.mark.parametrize("seeds", [(), (1, 1), (-1,)])
def test_invalid_seeds_are_rejected(seeds: tuple[int, ...], small: Document) -> None:
    with pytest.raises(WrongUsage, match="distinct and not negative"):
        sweep(small, {}, seeds, 1)


@pytest.mark.parametrize("more", [{"skip": 3}, {"workers": 0}, {"intensity": 101}])
def test_options_out_of_range_are_rejected(more: dict[str, Any], small: Document) -> None:
    with pytest.raises(WrongUsage):
        sweep(small, {}, (1,), 3, **more)


def test_a_scenario_with_faults_is_rejected_before_any_run() -> None:
    faulty: dict[str, Json] = {"schema_version": "scenario/1"}

    with pytest.raises(DocumentRefused):
        sweep(from_value(faulty), {}, (1,), 1)


def test_medians_over_seeds_have_a_row_for_each_combination(small: Document) -> None:
    columns = sweep(small, {"amount_cap": ["5", "50"]}, (1, 2, 3), 3)
    attempts = columns.values["attempts"]

    medians = summarise(columns, ["amount_cap"])

    assert medians.values["amount_cap"] == ["5.00000000", "50.00000000"]
    assert medians.values["runs"] == [3, 3]
    assert medians.values["attempts"] == [
        f"{sorted(attempts[at : at + 3], key=lambda value: int(value or 0))[1]}.00000000" for at in (0, 3)
    ]
    assert "plan_digest" not in medians.values
    assert "seed" not in medians.values
