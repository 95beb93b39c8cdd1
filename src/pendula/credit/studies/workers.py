"""Many runs of one scenario: one after the other, on processes of this machine, or on a Dask cluster.

What comes back is in the order of the tasks and the same bytes wherever they ran: a run depends on its scenario, seed
and settings alone. The scenario travels once to each worker. The first run that fails ends the others, and so does an
interrupt; a worker does not outlive the process that started it.
"""

import os
import signal
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from importlib.util import find_spec
from multiprocessing import get_context, parent_process
from multiprocessing.synchronize import Event
from queue import SimpleQueue
from threading import Thread
from typing import Any

from msgspec import Struct

from pendula import __version__
from pendula.credit.engine import Run
from pendula.credit.planning.draws import Draws
from pendula.credit.settings import Settings
from pendula.credit.studies.figures import Figures, Stopped, figures_of, needs_solver
from pendula.credit.studies.variations import varied
from pendula.documents import Document, from_value
from pendula.kernel.canonical import decode, encode
from pendula.kernel.errors import LimitExceeded, MissingExtra, WorldBroken, WrongUsage

RUNS_MOST = 1_000_000
WORKERS_MOST = 1024
CONNECT_SECONDS = 10

Watch = Callable[[int], None]


class TaskFailed(WorldBroken):
    """One of many runs came to grief. Facts: `settings` in words, `seed`, `exception`."""

    code = "task_failed"


class WorkerLost(WorldBroken):
    """A worker process ended before its run did. Facts: `settings` and `seed` of the first run without a result."""

    code = "worker_lost"


class ClusterFailed(WorldBroken):
    """The Dask cluster does not answer, has no workers, or they have another Pendula. Facts: `address`."""

    code = "cluster_failed"


class Job(Struct, frozen=True):
    """What all runs share; the scenario as canonical JSON."""

    scenario: bytes
    ticks: int
    skip: int = 0
    intensity: int = 100
    lenient: bool = False
    trail: bool = False


class Task(Struct, frozen=True):
    """One run; `about` names its settings in words, for whoever has to look for it. `changes` are of the scenario."""

    settings: Settings
    seed: int
    about: str
    changes: tuple[tuple[str, str], ...] = ()


class Where(Struct, frozen=True):
    """Where runs are made: in `workers` processes, 1 being this one, or on the Dask scheduler at the address."""

    workers: int = 1
    dask: str | None = None


def job_of(document: Document, ticks: int, skip: int, intensity: int, lenient: bool, trail: bool = False) -> Job:
    """The job of a document; raises `WrongUsage` for ticks that leave nothing to count."""
    if not 0 <= skip < ticks:
        raise WrongUsage(f"Of {ticks} ticks {skip} are left out; at least one must be counted", ticks=ticks, skip=skip)
    if not 0 <= intensity <= 100:
        raise WrongUsage(f"The intensity is {intensity}; allowed is 0 to 100 per cent", intensity=intensity)
    return Job(encode(document.value), ticks, skip, intensity, lenient, trail)


def seeds_of(seeds: Iterable[int]) -> tuple[int, ...]:
    """Different seeds, none of them negative; raises `WrongUsage`."""
    found = tuple(seeds)
    if not found or len(set(found)) < len(found) or min(found) < 0:
        raise WrongUsage("Many runs need different seeds of 0 and above", seeds=list(found[:100]))
    return found


def spread(job: Job, tasks: Sequence[Task], where: Where, watch: Watch | None = None) -> list[Figures]:
    """The figures of each task, in order; `watch` is told how many are done.

    From a script, more than one worker needs the script's own `if __name__ == "__main__":`, because each worker is a
    fresh interpreter that imports it. Raises `TaskFailed`, `WorkerLost`, `ClusterFailed`, `MissingExtra`.
    """
    if len(tasks) > RUNS_MOST:
        message = f"Too many runs: {len(tasks)}, allowed are {RUNS_MOST}"
        raise LimitExceeded(message, limit="runs", value=len(tasks), allowed=RUNS_MOST)
    if not 1 <= where.workers <= WORKERS_MOST:
        raise WrongUsage(f"{where.workers} workers; allowed is 1 to {WORKERS_MOST}", workers=where.workers)
    tell = _unseen if watch is None else watch
    if where.dask is not None:
        return _on_cluster(job, tasks, where.dask, tell)
    _require_solver(tasks)
    workers = min(where.workers, len(tasks))
    return _here(job, tasks, tell) if workers <= 1 else _on_processes(job, tasks, workers, tell)


def _unseen(_done: int) -> None:
    """Progress that nobody looks at."""


def _require_solver(tasks: Sequence[Task]) -> None:
    """Say what is missing before anything runs."""
    if any(needs_solver(task.settings) for task in tasks):
        from pendula.credit.outside.solver import OrTools

        OrTools()


def _opened(job: Job) -> Document:
    return from_value(decode(job.scenario), "scenario")


def _run(
    job: Job, document: Document, task: Task, draws: Draws | None = None, stop: Callable[[], bool] | None = None
) -> Figures:
    try:
        return figures_of(
            from_value(varied(decode(job.scenario), task.changes), "scenario") if task.changes else document,
            task.settings,
            task.seed,
            job.ticks,
            skip=job.skip,
            intensity=job.intensity,
            lenient=job.lenient,
            trail=job.trail,
            draws=draws,
            stop=stop,
        )
    except Stopped:
        raise
    except Exception as error:
        kind = type(error).__name__
        raise TaskFailed(
            f"The run with {task.about}, seed {task.seed} failed: {kind}: {error}",
            settings=task.about,
            seed=task.seed,
            exception=kind,
        ) from error


def _here(job: Job, tasks: Sequence[Task], tell: Watch) -> list[Figures]:
    """Runs of one seed follow each other and share their draws; what comes back is in the order of the tasks."""
    document, found = _opened(job), dict[int, Figures]()
    draws, seed = Draws(), -1
    for at in _by_seed(tasks):
        if tasks[at].seed != seed:
            draws, seed = Draws(), tasks[at].seed
        found[at] = _run(job, document, tasks[at], draws)
        tell(len(found))
    return [found[at] for at in range(len(tasks))]


def _by_seed(tasks: Sequence[Task]) -> list[int]:
    """The places of the tasks, those of one seed together."""
    seeds = {seed: order for order, seed in enumerate(dict.fromkeys(task.seed for task in tasks))}
    return sorted(range(len(tasks)), key=lambda at: (seeds[tasks[at].seed], at))


class _Worker:
    """What a worker process keeps from its beginning to its end."""

    job: Job
    document: Document
    stop: Event
    draws: Draws
    seed: int


def _on_processes(job: Job, tasks: Sequence[Task], workers: int, tell: Watch) -> list[Figures]:
    context = get_context("spawn")
    stop = context.Event()
    with ProcessPoolExecutor(workers, context, initializer=_begin, initargs=(job, stop)) as pool:
        places: dict[Future[Figures], int] = {}
        found: dict[int, Figures] = {}
        # Waiting for a queue can be interrupted anywhere. Waiting for futures takes the locks of all of them, and an
        # interrupt in the middle of that would leave some taken: the pool could never be shut down.
        done: SimpleQueue[Future[Figures]] = SimpleQueue()
        try:
            with _interrupts_held():
                for at in _by_seed(tasks):
                    future = pool.submit(_run_in_worker, tasks[at])
                    places[future] = at
                    future.add_done_callback(done.put)
            while len(found) < len(tasks):
                future = done.get()
                found[places[future]] = future.result()
                tell(len(found))
        except BrokenProcessPool:
            lost = next(task for at, task in enumerate(tasks) if at not in found)
            raise WorkerLost(
                f"A worker process ended before its run did, at the earliest the run with {lost.about}, seed"
                f" {lost.seed}; the machine may be short of memory",
                settings=lost.about,
                seed=lost.seed,
            ) from None
        finally:
            # Whatever ends this early, an interrupt too: workers give up before their next tick, and are waited for.
            stop.set()
            pool.shutdown(wait=True, cancel_futures=True)
    return [found[at] for at in range(len(tasks))]


@contextmanager
def _interrupts_held() -> Iterator[None]:
    """Processes that start meanwhile are not interrupted from the keyboard: we are, and tell them."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _begin(job: Job, stop: Event) -> None:
    """The first thing a worker process does."""
    # Where signals cannot be held back while a process starts, from here on at least.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    Thread(target=_leave_with_parent, daemon=True).start()
    _Worker.job, _Worker.document, _Worker.stop = job, _opened(job), stop
    _Worker.draws, _Worker.seed = Draws(), -1


def _leave_with_parent() -> None:
    parent = parent_process()
    assert parent is not None
    parent.join()
    # Nobody is left who could be told, and the main thread may wait for work for ever.
    os._exit(1)


def _run_in_worker(task: Task) -> Figures:
    if task.seed != _Worker.seed:
        _Worker.draws, _Worker.seed = Draws(), task.seed
    return _run(_Worker.job, _Worker.document, task, _Worker.draws, _Worker.stop.is_set)


def _on_cluster(job: Job, tasks: Sequence[Task], address: str, tell: Watch) -> list[Figures]:
    library = _distributed()
    try:
        client = library.Client(address, timeout=CONNECT_SECONDS, set_as_default=False)
    except (OSError, ValueError, ImportError) as error:
        reason = str(error) or type(error).__name__
        raise ClusterFailed(f"No Dask scheduler answers at {address}: {reason}", address=address) from error
    with client, client.as_current():
        if not client.nthreads():
            raise ClusterFailed(f"The Dask cluster at {address} has no workers", address=address)
        kept = client.scatter(job, broadcast=True)
        futures = [client.submit(_run_on_cluster, kept, task, pure=False) for task in tasks]
        try:
            return _gathered(library, futures, tasks, address, tell)
        finally:
            client.cancel(futures)


def _gathered(library: Any, futures: list[Any], tasks: Sequence[Task], address: str, tell: Watch) -> list[Figures]:
    places = {future.key: at for at, future in enumerate(futures)}
    found: dict[int, Figures] = {}
    for future in library.as_completed(futures):
        task = tasks[places[future.key]]
        try:
            who, figures = future.result()
        except TaskFailed:
            raise
        except Exception as error:
            message = f"The cluster could not do the run with {task.about}, seed {task.seed}: {error}"
            raise ClusterFailed(message, address=address, exception=type(error).__name__) from error
        if who != _signature():
            message = f"A worker of the cluster has Pendula {who}, here is {_signature()}; results could differ"
            raise ClusterFailed(message, address=address)
        found[places[future.key]] = figures
        tell(len(found))
    return [found[at] for at in range(len(tasks))]


def _run_on_cluster(job: Job, task: Task) -> tuple[str, Figures]:
    return _signature(), _run(job, _opened(job), task)


def _signature() -> str:
    """Equal where runs are certain to be equal."""
    return f"{__version__} (decisions {Run.decisions})"


def _distributed() -> Any:
    if find_spec("distributed") is None:
        raise MissingExtra.of("dask", "A Dask cluster", ["distributed"])
    import distributed

    return distributed
