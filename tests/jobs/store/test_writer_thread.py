"""The queue of callers: which callers share a commit, callers that leave, and callers after the close."""

import threading
from collections.abc import Iterator
from typing import Any

import pytest

from pendula.jobs.store.protocol import StoreUnusable
from pendula.jobs.store.writer_thread import NOTHING, Call, WriterThread


class Serving:
    """Serves calls without a store, and records how they were grouped."""

    def __init__(self) -> None:
        self.groups: list[list[str]] = []
        self.go_on = threading.Event()
        self.inside = threading.Event()
        self.line = WriterThread(self.serve, lambda: StoreUnusable("closed"))

    def serve(self, group: list[Call[Any]]) -> None:
        if not self.groups:
            self.groups.append([])
            self.inside.set()
            assert self.go_on.wait(240)
        self.groups[-1] += [call.metadata["name"] for call in group]  # type: ignore[misc]
        self.groups.append([])
        for call in group:
            call.result = call.metadata["name"]


@pytest.fixture
def serving() -> Iterator[Serving]:
    serving = Serving()
    yield serving
    serving.go_on.set()
    serving.line.close()


def call(name: str, *, own: bool = False) -> Call[Any]:
    return Call(lambda _: None, {"name": name}, effect=(lambda _: None) if own else None)


def queued(serving: Serving, *calls: Call[Any]) -> list[threading.Thread]:
    """Threads with these calls: the first is being served, the others are queued in order."""
    threads = []
    for number, one in enumerate(calls):
        thread = threading.Thread(target=serving.line.submit, args=(one,))
        thread.start()
        threads.append(thread)
        assert serving.inside.wait(240)
        while len(serving.line) < number:
            pass
    return threads


def test_queued_callers_are_served_together_and_foreign_code_alone(serving: Serving) -> None:
    threads = queued(
        serving, call("first"), call("a"), call("b"), call("effect", own=True), call("c"), call("d"),
        call("last effect", own=True),
    )  # fmt: skip

    serving.go_on.set()
    for thread in threads:
        thread.join(240)

    assert [group for group in serving.groups if group] == [
        ["first"], ["a", "b"], ["effect"], ["c", "d"], ["last effect"]
    ]  # fmt: skip


def test_a_caller_that_left_the_queue_is_not_served(serving: Serving) -> None:
    gone = call("gone")
    assert gone.begun.acquire(blocking=False), "what an interrupted caller does"
    threads = queued(serving, call("first"))
    serving.line._queue.put(gone)
    threads.append(threading.Thread(target=serving.line.submit, args=(call("stays"),)))
    threads[1].start()
    while len(serving.line) < 2:
        pass

    serving.go_on.set()
    for thread in threads:
        thread.join(240)

    assert [group for group in serving.groups if group] == [["first"], ["stays"]]


def test_an_unknown_second_thread_serves_no_caller(serving: Serving) -> None:
    """An interrupt during the start of the thread leaves it running, and the next caller starts another one."""
    threads = queued(serving, call("first"))
    stray = threading.Thread(target=serving.line._run)
    stray.start()
    stray.join(240)

    assert not stray.is_alive()
    serving.go_on.set()
    threads[0].join(240)
    assert not threads[0].is_alive()


def test_an_unexpected_error_is_raised_to_all_and_the_next_caller_is_served() -> None:
    failing = [True]

    def serve(group: list[Call[Any]]) -> None:
        if failing.pop():
            raise AttributeError("a mistake of ours")

    line = WriterThread(serve, lambda: StoreUnusable("closed"))
    with pytest.raises(StoreUnusable, match="aborted"):
        line.submit(call("first"))
    failing.append(False)

    assert line.submit(call("second")) is None
    line.close()


def test_a_caller_after_the_close_is_rejected(serving: Serving) -> None:
    serving.go_on.set()
    serving.line.submit(call("first"))
    serving.line.close()

    for own in (False, True):
        with pytest.raises(StoreUnusable, match="closed"):
            serving.line.submit(call("late", own=own))


def test_an_unused_queue_closes_at_once() -> None:
    line = WriterThread(lambda _: None, lambda: StoreUnusable("closed"))

    line.close()

    with pytest.raises(StoreUnusable, match="closed"):
        line.submit(Call(lambda _: None, NOTHING))
