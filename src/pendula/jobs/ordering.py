"""Which due jobs go first where time alone does not decide: a head start by priority, one job an object."""

from collections.abc import Callable, Iterable, Sequence
from heapq import heappop, heappush

from pendula.jobs.model import SECOND, Job

Object = tuple[str, str]

ASIDE_MOST = 1000  # so many jobs of busy objects are set aside by one step


class Busy:
    """The objects of which a job runs, and the due jobs that have to wait for that. Of the others `counts` is False."""

    def __init__(self, objects: set[Object], counts: Callable[[Job], bool] = lambda _: True) -> None:
        self._objects = objects
        self._counts = counts
        self.aside: list[Job] = []

    @property
    def is_full(self) -> bool:
        """Whether enough was set aside for one step; what comes after was not looked at."""
        return len(self.aside) >= ASIDE_MOST

    def takes(self, job: Job) -> bool:
        """Whether the job's object is free; it is busy from now on. Otherwise the job is set aside."""
        if not self._counts(job):
            return True
        key = (job.object_type, job.object_id)
        if key in self._objects:
            self.aside.append(job)
            return False
        self._objects.add(key)
        return True


def weighted(jobs: Iterable[Job], limit: int, head_start_sec: Sequence[int], busy: Busy | None = None) -> list[Job]:
    """The first `limit` by `run_at` less the head start of their priority; `jobs` come by `run_at`.

    Nothing beyond the largest head start after the last one taken is looked at. With `busy`, one job an object that is
    not among its own; the objects of what is taken join them. It ends where too many were set aside.
    """
    starts = [seconds * SECOND for seconds in head_start_sec]
    most = max(starts)
    chosen: list[Job] = []
    waiting: list[tuple[int, int, int, int, Job]] = []
    coming = iter(jobs)
    job = next(coming, None)
    while len(chosen) < limit and not (busy is not None and busy.is_full):
        # Whoever comes later than this cannot go before the best that waits.
        while job is not None and (not waiting or job.run_at - most <= waiting[0][0]):
            heappush(waiting, (job.run_at - starts[job.priority], job.run_at, job.priority, job.seq, job))
            job = next(coming, None)
        if not waiting:
            break
        best = heappop(waiting)[-1]
        if busy is None or busy.takes(best):
            chosen.append(best)
    return chosen
