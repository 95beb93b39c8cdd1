"""Runs many tasks: in this process, in worker processes of this machine, or on a Dask cluster.

Results are in the order of the tasks and do not depend on where they ran. Work is sent once to each worker and opened
there; a bench is what the worker keeps between tasks. The first failed task, or an interrupt, stops the others; a
worker does not outlive the process that started it. Workers of a cluster with another Pendula version are refused:
their results could differ.
"""

import os
import signal
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from importlib.util import find_spec
from multiprocessing import get_context, parent_process
from multiprocessing.synchronize import Event
from queue import SimpleQueue
from threading import Thread
from typing import Any, Protocol, TypeVar

from msgspec import Struct

from pendula.kernel.canonical import Json
from pendula.kernel.errors import LimitExceeded, MissingExtra, WorldBroken, WrongUsage

RUNS_MOST = 1_000_000
WORKERS_MOST = 1024
CONNECT_SECONDS = 10

T = TypeVar("T")
R = TypeVar("R")
Task = TypeVar("Task", contravariant=True)
Found = TypeVar("Found", covariant=True)
Watch = Callable[[int], None]


class Stopped(Exception):
    """Raised by a task that stops before its end."""


class TaskFailed(WorldBroken):
    """One of many runs failed. Facts: those of its work, such as `settings` and `seed`, and `exception`."""

    code = "task_failed"


class WorkerLost(WorldBroken):
    """A worker process ended before its run did. Facts: those of the first run without a result."""

    code = "worker_lost"


class ClusterFailed(WorldBroken):
    """The Dask cluster does not answer, has no workers, or has another Pendula version. Facts: `address`."""

    code = "cluster_failed"


class Where(Struct, frozen=True):
    """Where tasks run: in `workers` processes (1 means this one), or on the Dask scheduler at `address`."""

    workers: int = 1
    dask: str | None = None


class Bench(Protocol[Task, Found]):
    """Opened work."""

    def run(self, task: Task, stop: Callable[[], bool] | None = None) -> Found:
        """The result of a task. Raises `Stopped` once `stop` returns true, and any error of the task."""


class Work(Protocol[Task, Found]):
    """Data shared by all tasks; it and the tasks can be pickled."""

    def open(self) -> Bench[Task, Found]: ...

    def words(self, task: Task) -> str:
        """A description of a task within a sentence: `the run with …, seed 3`."""

    def facts(self, task: Task) -> dict[str, Json]: ...

    def order(self, tasks: Sequence[Task]) -> Sequence[int]:
        """The indices of the tasks in the order in which they start."""

    def signature(self) -> str:
        """Equal signatures guarantee equal results."""


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
        return _on_cluster(work, tasks, where.dask, report)
    workers = min(where.workers, len(tasks))
    return _here(work, tasks, report) if workers <= 1 else _on_processes(work, tasks, workers, report)


def _unseen(_done: int) -> None:
    """Ignore progress."""


def _here(work: Work[T, R], tasks: Sequence[T], watch: Watch) -> list[R]:
    bench, found = work.open(), dict[int, R]()
    for at in work.order(tasks):
        found[at] = _attempt(work, bench, tasks[at])
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
    return _attempt(_Worker.work, _Worker.bench, task, _Worker.stop.is_set)


def _attempt(work: Work[T, R], bench: Bench[T, R], task: T, stop: Callable[[], bool] | None = None) -> R:
    """The result of a task. Raises `Stopped`, or `TaskFailed` for everything else."""
    try:
        return bench.run(task, stop)
    except Stopped:
        raise
    except Exception as error:
        kind, words = type(error).__name__, work.words(task)
        message = f"{words[0].upper()}{words[1:]} failed: {kind}: {error}"
        raise TaskFailed(message, **work.facts(task), exception=kind) from error


def _on_cluster(work: Work[T, R], tasks: Sequence[T], address: str, watch: Watch) -> list[R]:
    library = _distributed()
    try:
        client = library.Client(address, timeout=CONNECT_SECONDS, set_as_default=False)
    except (OSError, ValueError, ImportError) as error:
        reason = str(error) or type(error).__name__
        raise ClusterFailed(f"No Dask scheduler answers at {address}: {reason}", address=address) from error
    with client, client.as_current():
        if not client.nthreads():
            raise ClusterFailed(f"The Dask cluster at {address} has no workers", address=address)
        shared = client.scatter(work, broadcast=True)
        futures = [client.submit(_run_on_cluster, shared, task, pure=False) for task in tasks]
        try:
            return _gathered(library, futures, work, tasks, address, watch)
        finally:
            client.cancel(futures)


def _gathered(
    library: Any, futures: list[Any], work: Work[T, R], tasks: Sequence[T], address: str, watch: Watch
) -> list[R]:
    places = {future.key: at for at, future in enumerate(futures)}
    results: dict[int, R] = {}
    for future in library.as_completed(futures):
        task = tasks[places[future.key]]
        try:
            who, result = future.result()
        except TaskFailed:
            raise
        except Exception as error:
            message = f"The cluster failed on {work.words(task)}: {error}"
            raise ClusterFailed(message, address=address, exception=type(error).__name__) from error
        ours = work.signature()
        if who != ours:
            message = f"A worker of the cluster has Pendula {who}, this program has {ours}; results could differ"
            raise ClusterFailed(message, address=address)
        results[places[future.key]] = result
        watch(len(results))
    return [results[at] for at in range(len(tasks))]


def _run_on_cluster(work: Work[T, R], task: T) -> tuple[str, R]:
    return work.signature(), _attempt(work, work.open(), task)


def _distributed() -> Any:
    if find_spec("distributed") is None:
        raise MissingExtra.of("dask", "A Dask cluster", ["distributed"])
    import distributed

    return distributed
