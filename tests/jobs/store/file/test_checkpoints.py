"""A write-ahead log that grows under a foreign reader: no call checkpoints it, and it shrinks after the reader."""

import logging
import sqlite3
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from pendula.jobs.calls import Calls
from pendula.jobs.model import Policy
from pendula.jobs.scheduler import Scheduler
from pendula.jobs.store.file import checkpoints
from pendula.jobs.store.file.opening import LOG_BYTES
from pendula.jobs.store.sqlite import SqliteStore
from tests.jobs.stores import Clock
from tests.kernel.interrupting import everywhere

LARGE = 1 << 20


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checkpoints, "LARGE_BYTES", LARGE)
    monkeypatch.setattr(checkpoints, "PAUSE_SECONDS", 0.01)
    monkeypatch.setattr(checkpoints, "WARN_SECONDS", 0.05)


def wait_until(condition: Callable[[], bool]) -> None:
    end = time.monotonic() + 120
    while not condition():
        assert time.monotonic() < end, "it did not come in two minutes"
        time.sleep(0.01)


def enqueue_many(scheduler: Scheduler, name: str, until: Callable[[], bool]) -> int:
    """Enqueue batches until the condition holds; returns the number of jobs."""
    made = 0
    while not until():
        jobs: list[Any] = [
            {"object_type": "memory", "object_id": f"{name}{made + n}", "action": "verify", "payload": "x" * 1000}
            for n in range(100)
        ]
        scheduler.enqueue_batch(jobs)
        made += 100
        assert made < 100_000
    return made


def pages_of_writer(store: SqliteStore) -> int:
    pages: int = store._connection.execute("PRAGMA wal_autocheckpoint").fetchone()[0]
    return pages


@pytest.mark.req("JOB-STO-5", "JOB-STO-6")
def test_a_log_grown_under_a_reader_is_checkpointed_beside_the_writer_and_truncated(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "jobs.db"
    log = Path(f"{path}-wal")
    store = SqliteStore(path)
    scheduler = Scheduler(Calls(store, Policy(), Clock()))
    scheduler.enqueue(object_type="memory", object_id="small", action="verify")
    small = pages_of_writer(store)

    with caplog.at_level(logging.WARNING, "pendula.jobs.store"), closing(sqlite3.connect(path)) as reader:
        reader.execute("BEGIN")
        reader.execute("SELECT count(*) FROM jobs").fetchone()
        enqueue_many(scheduler, "held", lambda: log.stat().st_size > LOG_BYTES + 2 * LARGE)
        scheduler.enqueue(object_type="memory", object_id="large", action="verify")
        held = pages_of_writer(store)
        wait_until(lambda: any("a reader has held" in line for line in caplog.messages))
        grown = log.stat().st_size
    wait_until(lambda: log.stat().st_size < LARGE)

    assert small == checkpoints.STEP_PAGES
    assert held == 0, "the writer leaves the checkpoint to the thread beside it"
    assert grown > LOG_BYTES
    scheduler.enqueue(object_type="memory", object_id="again", action="verify")
    assert pages_of_writer(store) == checkpoints.STEP_PAGES
    scheduler.close()


@pytest.mark.req("JOB-STO-6")
def test_a_store_closes_while_a_reader_keeps_its_log_large(tmp_path: Path) -> None:
    path = tmp_path / "jobs.db"
    log = Path(f"{path}-wal")
    store = SqliteStore(path)
    scheduler = Scheduler(Calls(store, Policy(), Clock()))
    scheduler.enqueue(object_type="memory", object_id="first", action="verify")
    with closing(sqlite3.connect(path)) as reader:
        reader.execute("BEGIN")
        reader.execute("SELECT count(*) FROM jobs").fetchone()
        made = enqueue_many(scheduler, "held", lambda: log.stat().st_size > 2 * LARGE)
        scheduler.close()

    with closing(sqlite3.connect(path)) as after:
        assert after.execute("SELECT count(*) FROM jobs").fetchone() == (made + 1,)


@pytest.mark.req("JOB-STO-5")
def test_an_interrupt_anywhere_in_a_close_does_not_block_the_next_close(tmp_path: Path) -> None:
    beside = checkpoints.Checkpoints(tmp_path / "jobs.db", lambda: sqlite3.connect(tmp_path / "jobs.db"))

    assert everywhere(beside.close, beside.close) > 3
