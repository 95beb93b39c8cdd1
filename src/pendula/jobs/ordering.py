"""The order of due jobs beyond their time: a head start by priority, one running job per object."""

from collections.abc import Callable, Iterable, Sequence
from heapq import heappop, heappush

from pendula.jobs.model import SECOND, Job

Object = tuple[str, str]

ASIDE_MOST = 1000  # jobs of busy objects that one step sets aside


class Busy:
    """The objects with a running job, and the due jobs that must wait for them. `counts` is False for other jobs."""

    def __init__(self, objects: set[Object], counts: Callable[[Job], bool] = lambda _: True) -> None:
        self._objects = objects
        self._counts = counts
        self.aside: list[Job] = []

    @property
    def is_full(self) -> bool:
        """Whether one step has set aside enough jobs; later ones were not looked at."""
        return len(self.aside) >= ASIDE_MOST

    def takes(self, job: Job) -> bool:
        """Reserve the object of the job; returns False and sets the job aside where it is busy."""
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

    Jobs later than the largest head start after the last chosen one are not read. With `busy`, one job per free object,
    which is busy then; it stops where too many jobs were set aside.
    """
    starts = [seconds * SECOND for seconds in head_start_sec]
    most = max(starts)
    chosen: list[Job] = []
    waiting: list[tuple[int, int, int, int, Job]] = []
    coming = iter(jobs)
    job = next(coming, None)
    while len(chosen) < limit and not (busy is not None and busy.is_full):
        # A later job cannot be ahead of the best candidate.
        while job is not None and (not waiting or job.run_at - most <= waiting[0][0]):
            heappush(waiting, (job.run_at - starts[job.priority], job.run_at, job.priority, job.seq, job))
            job = next(coming, None)
        if not waiting:
            break
        best = heappop(waiting)[-1]
        if busy is None or busy.takes(best):
            chosen.append(best)
    return chosen
