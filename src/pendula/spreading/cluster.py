"""Work done on a Dask cluster. Workers that have another Pendula are refused: their results could differ."""

from collections.abc import Sequence
from importlib.util import find_spec
from typing import Any, TypeVar

from pendula.kernel.errors import MissingExtra
from pendula.spreading.work import ClusterFailed, TaskFailed, Watch, Work, attempt

CONNECT_SECONDS = 10

T = TypeVar("T")
R = TypeVar("R")


def on_cluster(work: Work[T, R], tasks: Sequence[T], address: str, tell: Watch) -> list[R]:
    library = _distributed()
    try:
        client = library.Client(address, timeout=CONNECT_SECONDS, set_as_default=False)
    except (OSError, ValueError, ImportError) as error:
        reason = str(error) or type(error).__name__
        raise ClusterFailed(f"No Dask scheduler answers at {address}: {reason}", address=address) from error
    with client, client.as_current():
        if not client.nthreads():
            raise ClusterFailed(f"The Dask cluster at {address} has no workers", address=address)
        kept = client.scatter(work, broadcast=True)
        futures = [client.submit(_run_on_cluster, kept, task, pure=False) for task in tasks]
        try:
            return _gathered(library, futures, work, tasks, (address, tell))
        finally:
            client.cancel(futures)


def _gathered(
    library: Any, futures: list[Any], work: Work[T, R], tasks: Sequence[T], told: tuple[str, Watch]
) -> list[R]:
    address, tell = told
    places = {future.key: at for at, future in enumerate(futures)}
    found: dict[int, R] = {}
    for future in library.as_completed(futures):
        task = tasks[places[future.key]]
        try:
            who, result = future.result()
        except TaskFailed:
            raise
        except Exception as error:
            message = f"The cluster could not do {work.words(task)}: {error}"
            raise ClusterFailed(message, address=address, exception=type(error).__name__) from error
        ours = work.signature()
        if who != ours:
            message = f"A worker of the cluster has Pendula {who}, here is {ours}; results could differ"
            raise ClusterFailed(message, address=address)
        found[places[future.key]] = result
        tell(len(found))
    return [found[at] for at in range(len(tasks))]


def _run_on_cluster(work: Work[T, R], task: T) -> tuple[str, R]:
    return work.signature(), attempt(work, work.open(), task)


def _distributed() -> Any:
    if find_spec("distributed") is None:
        raise MissingExtra.of("dask", "A Dask cluster", ["distributed"])
    import distributed

    return distributed
