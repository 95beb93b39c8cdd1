"""Jobs go out: due ones to a worker, under a lease; before that, those whose lease ran out come back."""

import threading
from collections.abc import Callable, Iterable

from msgspec import Struct

from pendula.jobs import decide
from pendula.jobs.calls.finish import carry_out
from pendula.jobs.calls.replies import Reply, unreadable
from pendula.jobs.model import SECOND, SYSTEM, Actor, Job, Policy, PullOrder, job_json
from pendula.jobs.ordering import ASIDE_MOST, Busy, weighted
from pendula.jobs.requests import Pull
from pendula.jobs.store.protocol import Writer
from pendula.kernel.canonical import Json
from pendula.kernel.errors import InputRefused
from pendula.kernel.time import format_utc

POLL_SECONDS = 0.05  # how soon a waiting pull sees what another process wrote
LEAST_SECONDS = 0.001
RECLAIM_MOST = 256  # leases that one transaction takes back: nobody waits for the rest of them


class Pulled(Struct, frozen=True):
    """What a step of a pull found: the time up to which jobs were due, those given with their tokens, how many came
    back. It is `cut_short` where more was to do than one transaction should; the next step goes on.
    """

    due_by: int
    jobs: list[dict[str, Json]]
    reclaimed: int
    cut_short: bool = False

    def reply(self) -> Reply:
        body: dict[str, Json] = {
            "now": format_utc(self.due_by),
            "count": len(self.jobs),
            "reclaimed": self.reclaimed,
            "jobs": self.jobs,
        }
        return Reply(200, body)


def give_due(tx: Writer, request: Pull, policy: Policy, now: int, tokens: Callable[[], str]) -> Pulled:
    """Hand out what is due. Leases count from `now`, the store's time, whatever time the request names."""
    lease_us = request.lease_us or policy.lease_sec * SECOND
    worker = Actor("worker", request.worker_id)
    due_by = now if request.now is None else request.now
    reclaimed = reclaim(tx, policy, now)
    if reclaimed == RECLAIM_MOST:
        # What comes back may be due before anything else.
        return Pulled(due_by, [], reclaimed, cut_short=True)
    if not policy.one_running_per_object:
        tx.bring_back(ASIDE_MOST)
    given = []
    busy = Busy(tx.running_objects()) if policy.one_running_per_object else None
    for job in tx.due(request, due_by, _order(policy, busy)):
        token = tokens()
        try:
            done = decide.deliver(job, request.worker_id, decide.hashed(token), now, lease_us)
            after = tx.change(job, done.job, done.touched, done.reason, worker)
            given.append(job_json(after, token))
        except (IndexError, TypeError, InputRefused) as trouble:
            raise unreadable(job, trouble) from trouble
    if busy is not None and busy.aside:
        tx.set_aside(busy.aside)
    return Pulled(due_by, given, reclaimed, cut_short=busy is not None and busy.is_full and not given)


def reclaim(tx: Writer, policy: Policy, now: int) -> int:
    """Put back jobs whose lease has run out; how many. Where it is `RECLAIM_MOST`, there may be more."""
    lost = tx.expired(now, RECLAIM_MOST)
    for job in lost:
        carry_out(tx, job, decide.expired(job, now, policy), SYSTEM)
    return len(lost)


def _order(policy: Policy, busy: Busy | None) -> Callable[[Iterable[Job], int], list[Job]] | None:
    starts = policy.head_start_sec if policy.pull_order is PullOrder.WEIGHTED else (0, 0, 0)
    if busy is not None or policy.pull_order is PullOrder.WEIGHTED:
        return lambda jobs, limit: weighted(jobs, limit, starts, busy)
    return None


class Writes:
    """How often this process wrote, so that pulls that wait look again at once."""

    def __init__(self) -> None:
        self.count = 0
        self._changed = threading.Condition()

    def tell(self) -> None:
        with self._changed:
            self.count += 1
            self._changed.notify_all()

    def wait(self, seen: int, seconds: float) -> None:
        """Until there are more than `seen`, no longer than so many seconds."""
        with self._changed:
            if self.count == seen:
                self._changed.wait(max(seconds, LEAST_SECONDS))


def seconds_to_wait(request: Pull, coming: int | None, now: int, until: int) -> float:
    """How long until something may have come: a job due at `coming`, or a write elsewhere at the next look."""
    # A request's own `now` does not move, so only a write can bring it something.
    # What is due already and did not come is not for this caller.
    due = until if coming is None or request.now is not None or coming <= now else coming
    return min(POLL_SECONDS, max(0, min(due, until) - now) / SECOND)
