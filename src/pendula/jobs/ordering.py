"""Which due jobs go first where time alone does not decide: a head start by priority, one job an object."""

from collections.abc import Iterable, Sequence
from heapq import heappop, heappush

from pendula.jobs.model import SECOND, Job

Object = tuple[str, str]


def weighted(
    jobs: Iterable[Job], limit: int, head_start_sec: Sequence[int], busy: set[Object] | None = None
) -> list[Job]:
    """The first `limit` by `run_at` less the head start of their priority; `jobs` come by `run_at`.

    Nothing beyond the largest head start after the last one taken is looked at. With `busy`, one job an object that is
    not among these; the objects of what is taken join them.
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
        best = heappop(waiting)[-1]
        if busy is not None:
            key = (best.object_type, best.object_id)
            if key in busy:
                continue
            busy.add(key)
        chosen.append(best)
    return chosen
