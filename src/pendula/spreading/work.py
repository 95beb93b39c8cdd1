"""The work protocol: data shared by all tasks, and tasks that can run in any order.

Work is sent once to each worker and opened there; a bench is what the worker keeps between tasks.
"""

from collections.abc import Callable, Sequence
from typing import Protocol, TypeVar

from msgspec import Struct

from pendula.kernel.canonical import Json
from pendula.kernel.errors import WorldBroken

RUNS_MOST = 1_000_000
WORKERS_MOST = 1024

T = TypeVar("T", contravariant=True)
R = TypeVar("R", covariant=True)
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


class Bench(Protocol[T, R]):
    """Opened work."""

    def run(self, task: T, stop: Callable[[], bool] | None = None) -> R:
        """The result of a task. Raises `Stopped` once `stop` returns true, and any error of the task."""


class Work(Protocol[T, R]):
    """Data shared by all tasks; it and the tasks can be pickled."""

    def open(self) -> Bench[T, R]: ...

    def words(self, task: T) -> str:
        """A description of a task within a sentence: `the run with …, seed 3`."""

    def facts(self, task: T) -> dict[str, Json]: ...

    def order(self, tasks: Sequence[T]) -> Sequence[int]:
        """The indices of the tasks in the order in which they start."""

    def signature(self) -> str:
        """Equal signatures guarantee equal results."""


def attempt(work: Work[T, R], bench: Bench[T, R], task: T, stop: Callable[[], bool] | None = None) -> R:
    """The result of a task. Raises `Stopped`, or `TaskFailed` for everything else."""
    try:
        return bench.run(task, stop)
    except Stopped:
        raise
    except Exception as error:
        kind, words = type(error).__name__, work.words(task)
        message = f"{words[0].upper()}{words[1:]} failed: {kind}: {error}"
        raise TaskFailed(message, **work.facts(task), exception=kind) from error
