"""Tasks on a Dask cluster. Workers with another Pendula version are refused: their results could differ."""

from collections.abc import Sequence
from importlib.util import find_spec
from typing import Any, TypeVar

from pendula.kernel.errors import MissingExtra
from pendula.spreading.work import ClusterFailed, TaskFailed, Watch, Work, attempt

CONNECT_SECONDS = 10

T = TypeVar("T")
R = TypeVar("R")


def on_cluster(work: Work[T, R], tasks: Sequence[T], address: str, watch: Watch) -> list[R]:
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
    return work.signature(), attempt(work, work.open(), task)


def _distributed() -> Any:
    if find_spec("distributed") is None:
        raise MissingExtra.of("dask", "A Dask cluster", ["distributed"])
    import distributed

    return distributed
