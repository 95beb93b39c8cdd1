"""Who may write next: waiting with a limit, giving up, coming back, queueing in order."""

import fcntl
import os
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from pendula.jobs.store.turnstile import Turnstile

LONG = 30.0  # never waited for: a test that works gets its turn long before
SHORT = 0.02


@pytest.fixture
def two(tmp_path: Path) -> Iterator[tuple[Turnstile, Turnstile]]:
    """Two writers of one file, as two processes would be: each has its own handles."""
    first, second = Turnstile(tmp_path / "jobs.db"), Turnstile(tmp_path / "jobs.db")
    yield first, second
    first.close()
    second.close()


def until_it_queues(database: Path) -> None:
    """Until somebody stands in the turnstile and waits for the lock."""
    handle = os.open(database.with_name(database.name + ".turn"), os.O_RDWR)
    try:
        while True:
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                return
            fcntl.flock(handle, fcntl.LOCK_UN)
            time.sleep(0.001)
    finally:
        os.close(handle)


def test_a_free_file_is_given_at_once_and_to_one_only(two: tuple[Turnstile, Turnstile]) -> None:
    first, second = two

    assert first.acquire(0)
    assert not second.acquire(SHORT)
    first.release()
    assert second.acquire(LONG)
    second.release()


def test_whoever_waits_gets_it_when_it_is_let_go(two: tuple[Turnstile, Turnstile], tmp_path: Path) -> None:
    first, second = two
    assert first.acquire(0)
    granted: list[bool] = []
    waiting = threading.Thread(target=lambda: granted.append(second.acquire(LONG)))
    waiting.start()
    until_it_queues(tmp_path / "jobs.db")

    first.release()
    waiting.join()

    assert granted == [True]
    assert not first.acquire(SHORT)
    second.release()


def test_whoever_gave_up_does_not_keep_what_comes_later(two: tuple[Turnstile, Turnstile], tmp_path: Path) -> None:
    first, second = two
    assert first.acquire(0)
    assert not second.acquire(SHORT)
    until_it_queues(tmp_path / "jobs.db")

    first.release()

    assert first.acquire(LONG), "the one that gave up still holds the file"
    first.release()


def test_whoever_gave_up_and_asks_again_is_served(two: tuple[Turnstile, Turnstile], tmp_path: Path) -> None:
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
        asked.wait()
        first.release()
        waiting.join()

        assert granted == [True]
        assert not first.acquire(0)
        second.release()


def test_whoever_comes_back_from_writing_queues_behind_those_who_wait(
    two: tuple[Turnstile, Turnstile], tmp_path: Path
) -> None:
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
    waiting.join()

    assert order == ["second", "first"]


def test_nobody_passes_while_another_stands_in_the_turnstile_even_if_the_lock_is_free(
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


def test_a_writer_that_is_closed_while_it_waits_gets_out_of_the_way(tmp_path: Path) -> None:
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


def test_a_closed_holder_lets_go(tmp_path: Path) -> None:
    first, second = Turnstile(tmp_path / "jobs.db"), Turnstile(tmp_path / "jobs.db")
    assert first.acquire(0)
    first.close()

    assert second.acquire(LONG)
    second.release()
    second.close()


def test_there_is_never_more_than_one_inside(tmp_path: Path) -> None:
    gates = [Turnstile(tmp_path / "jobs.db") for _ in range(4)]
    together = threading.Barrier(4)
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
    for thread in threads:
        thread.join()
    for gate in gates:
        gate.close()

    assert len(seen) == 400
    assert all(len(one) == 1 for one in seen)
