import logging
import threading
from collections.abc import Callable, Iterator

import pytest

from pendula.jobs.background import BackgroundLoop
from pendula.kernel.errors import WorldBroken

LOG = logging.getLogger("pendula.jobs.test")
WAIT_SEC = 240.0


def looped(work: Callable[[], float | None]) -> BackgroundLoop:
    return BackgroundLoop("test-loop", work, log=LOG, trouble="it cannot be done", pause_sec=0.0)


def raising_first(error: BaseException, again: threading.Event) -> Callable[[], None]:
    rounds: Iterator[int] = iter(range(1_000_000))

    def work() -> None:
        if next(rounds) == 0:
            raise error
        again.set()

    return work


@pytest.mark.parametrize("error", [ValueError("a defect"), SystemExit(3)], ids=["defect", "exit"])
def test_a_loop_logs_an_error_and_continues(error: BaseException, caplog: pytest.LogCaptureFixture) -> None:
    again = threading.Event()
    loop = looped(raising_first(error, again))

    loop.start()
    went_on = again.wait(WAIT_SEC)
    loop.close()

    assert went_on
    [record] = caplog.records
    assert record.message == "it cannot be done now"
    assert record.exc_info is not None
    assert record.exc_info[1] is error


def test_a_lost_store_is_logged_in_one_line(caplog: pytest.LogCaptureFixture) -> None:
    again = threading.Event()
    loop = looped(raising_first(WorldBroken("no disk"), again))

    loop.start()
    again.wait(WAIT_SEC)
    loop.close()

    [record] = caplog.records
    assert record.message == "it cannot be done now: no disk"
    assert record.exc_info is None


def test_a_loop_that_sleeps_without_a_limit_is_woken() -> None:
    rounds = threading.Semaphore(0)
    loop = looped(rounds.release)  # returns None: sleep without a limit

    loop.start()
    first = rounds.acquire(timeout=WAIT_SEC)
    loop.wake()
    second = rounds.acquire(timeout=WAIT_SEC)
    loop.close()

    assert first
    assert second


def test_no_round_starts_after_close() -> None:
    done = []
    loop = looped(lambda: done.append("round"))

    loop.close()
    loop.start()
    loop.close()

    assert done == []


@pytest.mark.parametrize("rest", [float("nan"), -1.0, 1e300])
def test_an_invalid_rest_does_not_end_the_thread(rest: float) -> None:
    rounds: list[int] = []
    twice = threading.Event()

    def work() -> float:
        rounds.append(1)
        if len(rounds) >= 2:
            twice.set()
        return rest

    loop = looped(work)
    loop.start()
    while not twice.is_set():
        loop.wake()
        twice.wait(0.01)
    loop.close()

    assert len(rounds) >= 2
