"""What work is: one thing that all tasks share, tasks that can be done in any order, and where they are done.

Work travels once to each worker and is opened there; a bench is what a worker keeps between its tasks.
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
    """Raised by a task that is told to stop before it has ended."""


class TaskFailed(WorldBroken):
    """One of many runs came to grief. Facts: those of its work, as `settings` in words and `seed`, and `exception`."""

    code = "task_failed"


class WorkerLost(WorldBroken):
    """A worker process ended before its run did. Facts: those of the first run without a result."""

    code = "worker_lost"


class ClusterFailed(WorldBroken):
    """The Dask cluster does not answer, has no workers, or they have another Pendula. Facts: `address`."""

    code = "cluster_failed"


class Where(Struct, frozen=True):
    """Where runs are made: in `workers` processes, 1 being this one, or on the Dask scheduler at the address."""

    workers: int = 1
    dask: str | None = None


class Bench(Protocol[T, R]):
    """Work that was opened."""

    def run(self, task: T, stop: Callable[[], bool] | None = None) -> R:
        """The result of a task. Raises `Stopped` when `stop` says so, and whatever goes wrong."""


class Work(Protocol[T, R]):
    """What all tasks share; it and the tasks can be pickled."""

    def open(self) -> Bench[T, R]: ...

    def words(self, task: T) -> str:
        """A task in words that go on in a sentence: `the run with …, seed 3`."""

    def facts(self, task: T) -> dict[str, Json]: ...

    def order(self, tasks: Sequence[T]) -> Sequence[int]:
        """The places of the tasks in the order in which they are begun."""

    def signature(self) -> str:
        """Equal where results are certain to be equal."""


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
