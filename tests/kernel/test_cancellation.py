"""Work in steps ends at its next step once it is cancelled, and only the work that was cancelled."""

import threading

import pytest

from pendula.kernel.cancellation import Cancellation, Cancelled, cancellable, check


def test_work_ends_at_its_next_step_once_it_is_cancelled() -> None:
    cancellation, steps = Cancellation(), 0

    with pytest.raises(Cancelled), cancellable(cancellation):
        while True:
            check()
            steps += 1
            if steps == 3:
                cancellation.cancel()

    assert steps == 3
    check()


def test_other_threads_continue() -> None:
    cancellation = Cancellation()
    cancellation.cancel()
    found: list[str] = []

    def work() -> None:
        check()
        found.append("done")

    with cancellable(cancellation):
        thread = threading.Thread(target=work)
        thread.start()
        thread.join()

    assert found == ["done"]
