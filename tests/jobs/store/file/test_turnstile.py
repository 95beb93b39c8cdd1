"""The order of writers: waiting with a limit, timeouts, returning, queueing in order."""

import fcntl
import os
import sqlite3
import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from pendula.jobs.model import StorageBusy
from pendula.jobs.store import sqlite
from pendula.jobs.store.file.turnstile import Turnstile
from pendula.jobs.store.sqlite import SqliteStore
from pendula.jobs.upkeep.verification import check
from tests.jobs.stores import opened
from tests.waiting import SECONDS, joined

LONG = 30.0  # never reached: a passing test acquires the file long before
SHORT = 0.02


@pytest.fixture
def two(tmp_path: Path) -> Iterator[tuple[Turnstile, Turnstile]]:
    """Two writers of one file with separate handles, as in two processes."""
    first, second = Turnstile(tmp_path / "jobs.db"), Turnstile(tmp_path / "jobs.db")
    yield first, second
    first.close()
    second.close()


def until_it_queues(database: Path) -> None:
    """Wait until a writer is in the turnstile and waits for the lock."""
    handle = os.open(database.with_name(database.name + ".turn"), os.O_RDWR)
    until = time.monotonic() + SECONDS
    try:
        while time.monotonic() < until:
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                return
            fcntl.flock(handle, fcntl.LOCK_UN)
            time.sleep(0.001)
        raise AssertionError(f"nothing queues within {SECONDS:g} s")
    finally:
        os.close(handle)


def test_a_free_file_is_acquired_at_once_and_by_one_writer_only(two: tuple[Turnstile, Turnstile]) -> None:
    first, second = two

    assert first.acquire(0)
    assert not second.acquire(SHORT)
    first.release()
    assert second.acquire(LONG)
    second.release()


def test_a_waiting_writer_acquires_the_file_on_release(two: tuple[Turnstile, Turnstile], tmp_path: Path) -> None:
    first, second = two
    assert first.acquire(0)
    granted: list[bool] = []
    waiting = threading.Thread(target=lambda: granted.append(second.acquire(LONG)))
    waiting.start()
    until_it_queues(tmp_path / "jobs.db")

    first.release()
    joined(waiting)

    assert granted == [True]
    assert not first.acquire(SHORT)
    second.release()


def test_a_writer_that_timed_out_does_not_keep_a_later_release(
    two: tuple[Turnstile, Turnstile], tmp_path: Path
) -> None:
    first, second = two
    assert first.acquire(0)
    assert not second.acquire(SHORT)
    until_it_queues(tmp_path / "jobs.db")

    first.release()

    assert first.acquire(LONG), "the one that gave up still holds the file"
    first.release()


def test_a_writer_that_timed_out_can_acquire_again(two: tuple[Turnstile, Turnstile], tmp_path: Path) -> None:
    first, second = two
    for _ in range(20):
        assert first.acquire(LONG)
        assert not second.acquire(SHORT / 10)
        until_it_queues(tmp_path / "jobs.db")
        asked = threading.Event()
        granted: list[bool] = []

        def again(asked: threading.Event = asked, granted: list[bool] = granted) -> None:
            asked.set()
            granted.append(second.acquire(LONG))

        waiting = threading.Thread(target=again)
        waiting.start()
        assert asked.wait(SECONDS)
        first.release()
        joined(waiting)

        assert granted == [True]
        assert not first.acquire(0)
        second.release()


def test_a_writer_that_returns_queues_behind_the_waiting_ones(two: tuple[Turnstile, Turnstile], tmp_path: Path) -> None:
    first, second = two
    order: list[str] = []
    assert first.acquire(0)

    def wait() -> None:
        assert second.acquire(LONG)
        order.append("second")
        second.release()

    waiting = threading.Thread(target=wait)
    waiting.start()
    until_it_queues(tmp_path / "jobs.db")
    first.release()
    assert first.acquire(LONG)
    order.append("first")
    first.release()
    joined(waiting)

    assert order == ["second", "first"]


def test_an_occupied_turnstile_blocks_writers_even_if_the_lock_is_free(
    two: tuple[Turnstile, Turnstile], tmp_path: Path
) -> None:
    first, _ = two
    handle = os.open(tmp_path / "jobs.db.turn", os.O_RDWR)
    fcntl.flock(handle, fcntl.LOCK_EX)

    passed = first.acquire(SHORT)
    os.close(handle)

    assert not passed
    assert first.acquire(LONG)
    first.release()


def test_a_writer_closed_while_it_waits_leaves_the_queue(tmp_path: Path) -> None:
    first, second, third = (Turnstile(tmp_path / "jobs.db") for _ in range(3))
    assert first.acquire(0)
    assert not second.acquire(SHORT)
    until_it_queues(tmp_path / "jobs.db")

    second.close()
    first.release()

    assert third.acquire(LONG)
    third.release()
    first.close()
    third.close()


def test_a_closed_holder_releases_the_file(tmp_path: Path) -> None:
    first, second = Turnstile(tmp_path / "jobs.db"), Turnstile(tmp_path / "jobs.db")
    assert first.acquire(0)
    first.close()

    assert second.acquire(LONG)
    second.release()
    second.close()


def test_at_most_one_writer_holds_the_file(tmp_path: Path) -> None:
    gates = [Turnstile(tmp_path / "jobs.db") for _ in range(4)]
    together = threading.Barrier(4, timeout=240)
    inside: list[int] = []
    seen: list[list[int]] = []

    def write(number: int) -> None:
        together.wait()
        for _ in range(100):
            assert gates[number].acquire(LONG)
            inside.append(number)
            time.sleep(0)
            seen.append(list(inside))
            inside.remove(number)
            gates[number].release()

    threads = [threading.Thread(target=write, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    joined(*threads)
    for gate in gates:
        gate.close()

    assert len(seen) == 400
    assert all(len(one) == 1 for one in seen)


# Progress


@contextmanager
def standing_in(database: Path, *names: str) -> Iterator[None]:
    """Another process holds these locks and makes no progress, like a frozen one."""
    handles = [os.open(database.with_name(database.name + name), os.O_RDWR) for name in names]
    for handle in handles:
        fcntl.flock(handle, fcntl.LOCK_EX)
    yield
    for handle in handles:
        os.close(handle)


@pytest.mark.req("JOB-STO-5")
@pytest.mark.parametrize("names", [(".turn",), (".lock",), (".turn", ".lock")])
def test_a_stuck_turnstile_is_bypassed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, names: tuple[str, ...]) -> None:
    monkeypatch.setattr(sqlite, "TURNSTILE_SECONDS", SHORT)
    scheduler, _ = opened(tmp_path)
    waits: list[float] = []
    gate = scheduler.calls.store._turnstile  # type: ignore[attr-defined]
    acquire = gate.acquire

    def watched(timeout: float) -> bool:
        waits.append(timeout)
        return bool(acquire(timeout))

    monkeypatch.setattr(gate, "acquire", watched)
    with standing_in(tmp_path / "jobs.db", *names):
        for number in range(5):
            scheduler.defer("memory", f"m{number}", "verify")
    stuck = list(waits)
    monkeypatch.setattr(scheduler.calls.store, "_stuck_until", 0.0)
    scheduler.defer("memory", "later", "verify")

    assert stuck == [SHORT, 0, 0, 0, 0], "one wait, and then in passing"
    assert scheduler.metrics().jobs.queued == 6
    assert check(scheduler.calls.store) == []
    scheduler.close()


@pytest.mark.req("JOB-STO-5")
def test_a_writer_that_bypasses_the_turnstile_still_waits_for_the_lock(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sqlite, "TURNSTILE_SECONDS", SHORT)
    store = SqliteStore(tmp_path / "jobs.db", busy_seconds=0.1)

    with (
        standing_in(tmp_path / "jobs.db", ".turn"),
        closing(sqlite3.connect(tmp_path / "jobs.db", isolation_level=None)) as other,
    ):
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(StorageBusy):
            store.write(lambda _: None)
        other.execute("ROLLBACK")
        store.write(lambda _: None)
    store.close()
