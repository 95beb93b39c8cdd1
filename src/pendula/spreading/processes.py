"""Runs tasks in this process, or in worker processes of this machine.

The first failed task, or an interrupt, stops the others; a worker does not outlive the process that started it.
"""

import os
import signal
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from multiprocessing import get_context, parent_process
from multiprocessing.synchronize import Event
from queue import SimpleQueue
from threading import Thread
from typing import Any, TypeVar

from pendula.kernel.errors import LimitExceeded, WrongUsage
from pendula.spreading.cluster import on_cluster
from pendula.spreading.work import RUNS_MOST, WORKERS_MOST, Bench, Watch, Where, Work, WorkerLost, attempt

T = TypeVar("T")
R = TypeVar("R")


def spread(work: Work[T, R], tasks: Sequence[T], where: Where, watch: Watch | None = None) -> list[R]:
    """The result of each task, in order; `watch` receives the number of finished tasks.

    From a script, more than one worker needs the script's own `if __name__ == "__main__":`, because each worker is a
    fresh interpreter that imports it. Raises `TaskFailed`, `WorkerLost`, `ClusterFailed`, `MissingExtra`.
    """
    if len(tasks) > RUNS_MOST:
        message = f"Too many runs: {len(tasks)}; the limit is {RUNS_MOST}"
        raise LimitExceeded(message, limit="runs", value=len(tasks), allowed=RUNS_MOST)
    if not 1 <= where.workers <= WORKERS_MOST:
        raise WrongUsage(f"{where.workers} workers are not possible; choose 1 to {WORKERS_MOST}", workers=where.workers)
    report = _unseen if watch is None else watch
    if where.dask is not None:
        return on_cluster(work, tasks, where.dask, report)
    workers = min(where.workers, len(tasks))
    return _here(work, tasks, report) if workers <= 1 else _on_processes(work, tasks, workers, report)


def _unseen(_done: int) -> None:
    """Ignore progress."""


def _here(work: Work[T, R], tasks: Sequence[T], watch: Watch) -> list[R]:
    bench, found = work.open(), dict[int, R]()
    for at in work.order(tasks):
        found[at] = attempt(work, bench, tasks[at])
        watch(len(found))
    return [found[at] for at in range(len(tasks))]


class _Worker:
    """State of a worker process."""

    work: Work[Any, Any]
    bench: Bench[Any, Any]
    stop: Event


def _on_processes(work: Work[T, R], tasks: Sequence[T], workers: int, watch: Watch) -> list[R]:
    context = get_context("spawn")
    stop = context.Event()
    with ProcessPoolExecutor(workers, context, initializer=_begin, initargs=(work, stop)) as pool:
        places: dict[Future[R], int] = {}
        found: dict[int, R] = {}
        # Waiting on a queue can be interrupted safely. Waiting on futures takes all their locks, and an interrupt there
        # would leave some locked, so that the pool could not shut down.
        done: SimpleQueue[Future[R]] = SimpleQueue()
        try:
            with _interrupts_held():
                for at in work.order(tasks):
                    future: Future[R] = pool.submit(_run_in_worker, tasks[at])
                    places[future] = at
                    future.add_done_callback(done.put)
            while len(found) < len(tasks):
                future = done.get()
                found[places[future]] = future.result()
                watch(len(found))
        except BrokenProcessPool:
            lost = next(task for at, task in enumerate(tasks) if at not in found)
            raise WorkerLost(
                f"A worker process ended before its run did, at the earliest {work.words(lost)}; the machine may be"
                " short of memory",
                **work.facts(lost),
            ) from None
        finally:
            # On any early exit, including an interrupt, workers stop before their next tick and are joined.
            stop.set()
            pool.shutdown(wait=True, cancel_futures=True)
    return [found[at] for at in range(len(tasks))]


@contextmanager
def _interrupts_held() -> Iterator[None]:
    """Block keyboard interrupts in processes started meanwhile; this process forwards them."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _begin(work: Work[Any, Any], stop: Event) -> None:
    """Initialize a worker process."""
    # For systems where signals cannot be blocked while a process starts.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    Thread(target=_leave_with_parent, daemon=True).start()
    _Worker.work, _Worker.bench, _Worker.stop = work, work.open(), stop


def _leave_with_parent() -> None:
    parent = parent_process()
    assert parent is not None
    parent.join()
    # The parent is gone, and the main thread may be waiting for work.
    os._exit(1)


def _run_in_worker(task: Any) -> Any:
    return attempt(_Worker.work, _Worker.bench, task, _Worker.stop.is_set)
