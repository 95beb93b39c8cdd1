"""Which due jobs go first where time alone does not decide: a head start by priority, one job an object."""

from collections.abc import Iterable, Iterator, Sequence
from heapq import heappop, heappush

from pendula.jobs.model import SECOND, Job


def weighted(jobs: Iterable[Job], limit: int, head_start_sec: Sequence[int]) -> list[Job]:
    """The first `limit` by `run_at` less the head start of their priority; `jobs` come by `run_at`.

    Nothing beyond the largest head start after the last one taken is looked at.
    """
    starts = [seconds * SECOND for seconds in head_start_sec]
    most = max(starts)
    chosen: list[Job] = []
    waiting: list[tuple[int, int, int, int, Job]] = []
    coming = iter(jobs)
    job = next(coming, None)
    while len(chosen) < limit:
        # Whoever comes later than this cannot go before the best that waits.
        while job is not None and (not waiting or job.run_at - most <= waiting[0][0]):
            heappush(waiting, (job.run_at - starts[job.priority], job.run_at, job.priority, job.seq, job))
            job = next(coming, None)
        if not waiting:
            break
        chosen.append(heappop(waiting)[-1])
    return chosen


def one_per_object(jobs: Iterable[Job], busy: set[tuple[str, str]]) -> Iterator[Job]:
    """The first job of each object nobody works on."""
    taken = set(busy)
    for job in jobs:
        key = (job.object_type, job.object_id)
        if key not in taken:
            taken.add(key)
            yield job
