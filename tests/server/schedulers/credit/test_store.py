"""The store of the simulator: exact amounts, whole records, rows deleted with their run."""

import sqlite3
from decimal import Decimal
from pathlib import Path
from typing import Any

import msgspec
import pytest

from pendula.credit.views import Bottleneck, Measured, Target
from pendula.server.schedulers.credit.records import (
    ErrorAt,
    Owner,
    Record,
    RunState,
    chosen_seed,
    run_name,
    seed_of_name,
)
from pendula.server.schedulers.credit.store import Artifact, SimulatorStoreUnusable, Store, Unwritten


def record(run_id: str = "run_1", **changes: Any) -> Record:
    facts: dict[str, Any] = {
        "scenario_id": "tiny",
        "owner": Owner("ann", "participant"),
        "mode": "real",
        "seed": 2**64 - 1,
        "seed_from": "request",
        "deterministic": True,
        "intensity_percent": 70,
        "created_at": "2026-01-01T00:00:00.000Z",
        "equivalents": ("HOUR", "UAH"),
    }
    return Record(run_id=run_id, **{**facts, **changes})


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "simulator.db")


@pytest.mark.req("SIM-STO-4")
def test_a_record_reads_back_unchanged(store: Store, tmp_path: Path) -> None:
    error = ErrorAt("INTERNAL_ERROR", "it broke", "2026-01-01T00:00:01.000Z")
    stored = record(state=RunState.ERROR, last_error=error, ops_sec=Decimal("3.25"), last_error_details={"kind": "x"})
    store.save(stored, {"ticks": 3})
    store.close()

    assert Store(tmp_path / "simulator.db").records() == [stored]


@pytest.mark.req("SIM-STO-4")
def test_every_state_of_a_record_is_stored(store: Store) -> None:
    for at, state in enumerate(RunState):
        store.save(record(f"run_{at}", state=state))

    assert [record.state for record in store.records()] == list(RunState)


@pytest.mark.req("SIM-STO-4")
@pytest.mark.parametrize(
    "changes", [{"mode": "dream"}, {"intensity_percent": 101}, {"sim_time_ms": -1}, {"errors_total": -1}]
)
def test_the_store_rejects_invalid_records(store: Store, changes: dict[str, Any]) -> None:
    with pytest.raises(SimulatorStoreUnusable):
        store.save(record(**changes))
    assert store.records() == []


@pytest.mark.req("SIM-STO-5")
def test_amounts_read_back_unchanged(store: Store) -> None:
    store.save(record())
    store.write({"run_1": Unwritten(measured=[Measured("UAH", "total_debt", 1000, "12345678901.12345678")])})

    points = {series.key: series.points for series in store.series("run_1", "UAH", range(0, 2001, 1000))}

    assert [point.v for point in points["total_debt"]] == [None, "12345678901.12345678", "12345678901.12345678"]


@pytest.mark.req("SIM-MET-3")
def test_a_missing_measurement_repeats_the_last_value(store: Store) -> None:
    store.save(record())
    rates = [(0, None), (1000, "50.00000000"), (2000, None), (3000, "0.00000000")]
    store.write({"run_1": Unwritten(measured=[Measured("UAH", "success_rate", at, value) for at, value in rates])})

    points = {series.key: series.points for series in store.series("run_1", "UAH", range(0, 3001, 1000))}

    assert [point.v for point in points["success_rate"]] == [None, "50.00000000", "50.00000000", "0.00000000"]


@pytest.mark.req("SIM-STO-4")
def test_deleting_a_run_deletes_its_rows(store: Store, tmp_path: Path) -> None:
    store.save(record())
    store.write({"run_1": Unwritten(measured=[Measured("UAH", "total_debt", 0, "1.00000000")])})
    worst = [Bottleneck(Target("b", "a"), Decimal("0.5"), "FREQUENT_ABORTS")]
    store.write({"run_1": Unwritten(bottlenecks=({"UAH": worst}, "2026-01-01T00:00:00.000Z"))})
    store.write({"run_1": Unwritten(artifacts=[Artifact("status.json", "/x", "application/json", 3, "00")])})
    ((details,),) = store._rows("SELECT details FROM bottlenecks WHERE run_id = 'run_1'")
    assert msgspec.json.decode(details, type=Bottleneck) == worst[0]

    store.delete("run_1")

    with sqlite3.connect(tmp_path / "simulator.db") as raw:
        counts = [raw.execute(f"SELECT count(*) FROM {name}").fetchone()[0] for name in TABLES]
    raw.close()
    assert counts == [0, 0, 0, 0]


TABLES = ("runs", "metrics", "bottlenecks", "artifacts")


def test_a_restart_deletes_measurements(store: Store) -> None:
    store.save(record())
    store.write({"run_1": Unwritten(measured=[Measured("UAH", "total_debt", 0, "1.00000000")])})
    store.write({"run_1": Unwritten(forget_measured=True)})

    assert {point.v for series in store.series("run_1", "UAH", range(1)) for point in series.points} == {None}


@pytest.mark.req("SIM-STO-4")
def test_scenarios_are_stored_with_their_document(store: Store) -> None:
    document = {"schema_version": "scenario/1", "scenario_id": "tiny", "name": "Tiny", "limit": Decimal("1.50")}
    store.add_scenario(document, ("UAH",), "2026-01-01T00:00:00.000Z")

    (stored,) = store.scenarios()

    assert stored.created_at == "2026-01-01T00:00:00.000Z"
    assert stored.document == {**document, "limit": Decimal("1.5")}


def test_a_store_of_another_format_is_rejected(store: Store, tmp_path: Path) -> None:
    store.close()
    with sqlite3.connect(tmp_path / "simulator.db") as raw:
        raw.execute("UPDATE store_format SET format = 99")
    raw.close()

    with pytest.raises(SimulatorStoreUnusable, match="99"):
        Store(tmp_path / "simulator.db")


def test_a_file_that_is_no_database_is_rejected(tmp_path: Path) -> None:
    (tmp_path / "simulator.db").write_bytes(b"something else" * 100)

    with pytest.raises(SimulatorStoreUnusable):
        Store(tmp_path / "simulator.db")


@pytest.mark.req("SIM-DET-3", "SIM-RUN-14")
def test_the_seed_of_a_name_is_the_first_bytes_of_its_digest() -> None:
    assert seed_of_name("run_20260128_120000_deadbeef") == 2293801917
    assert run_name(1_769_601_600_000_000, bytes.fromhex("deadbeef")) == "run_20260128_120000_deadbeef"


@pytest.mark.req("SIM-DET-3")
@pytest.mark.parametrize(
    ("given", "scenario", "fixed", "chosen"),
    [(1, 2, 3, (1, "request")), (None, 2, 3, (2, "scenario")), (None, None, 3, (3, "SIMULATOR_FIXED_SEED"))],
)
def test_seeds_are_chosen_by_precedence(
    given: int | None, scenario: int | None, fixed: int | None, chosen: tuple[int, str]
) -> None:
    assert chosen_seed(given, scenario, fixed, "run_1") == chosen


def test_two_hundred_records_take_less_than_300_kilobytes() -> None:
    assert len(msgspec.json.encode([record(f"run_{at}") for at in range(200)])) < 300_000
