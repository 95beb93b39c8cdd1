"""Jobs go out: due ones to a worker, under a lease; before that, those whose lease ran out come back."""

from collections.abc import Callable, Iterable

from msgspec import Struct

from pendula.jobs import decide
from pendula.jobs.background import Bell
from pendula.jobs.governing import deliveries
from pendula.jobs.model import SECOND, SYSTEM, Actor, Job, Policy, PullOrder, Status, job_json
from pendula.jobs.objects.governed import VERIFICATIONS
from pendula.jobs.ordering import ASIDE_MOST, Busy, weighted
from pendula.jobs.requests import Pull
from pendula.jobs.store.protocol import Writer
from pendula.jobs.transaction.ending import carry_out
from pendula.jobs.transaction.replies import Reply, unreadable
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


def give_due(
    tx: Writer, request: Pull, policy: Policy, now: int, tokens: Callable[[], str], withheld: set[int] | None = None
) -> Pulled:
    """Hand out what is due. Leases count from `now`, the store's time, whatever time the request names.

    What governance does not let out goes into `withheld`, and is not looked at again with these in the same pull.
    """
    withheld = set() if withheld is None else withheld
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
    fences_from: int | None = None  # asked for with the first job
    is_governing = tx.any_governed()
    busy, before = _busy(tx, policy, is_governing=is_governing), len(withheld)
    found = tx.due(request, due_by, _order(policy, busy))
    if busy is not None and busy.aside:
        tx.set_aside(busy.aside)  # before anything ends that could bring them back
    for due in found:
        # What was withheld may have ended others of its object.
        job = due if len(withheld) == before else tx.job(due.job_id)
        if job is None or job.seq in withheld or job.status != Status.QUEUED:
            continue
        fences_from = tx.fences_from() if fences_from is None else fences_from
        fence = decide.next_fence(job, fences_from)
        if is_governing and not deliveries.begin_delivery(tx, job, fence, worker, policy, now):
            withheld.add(job.seq)
            continue
        token = tokens()
        try:
            done = decide.deliver(job, request.worker_id, decide.hashed(token), now, lease_us, fences_from)
            after = tx.change(job, done.job, done.touched, done.reason, worker)
            given.append(job_json(after, token))
        except (IndexError, TypeError, InputRefused) as trouble:
            raise unreadable(job, trouble) from trouble
    has_more = len(withheld) > before or (busy is not None and busy.is_full)
    return Pulled(due_by, given, reclaimed, cut_short=has_more and not given)


def _busy(tx: Writer, policy: Policy, *, is_governing: bool) -> Busy | None:
    """What must not run beside what runs: any job of an object, or a second verification of a governed one.

    Each verification takes a unit of the object's budget, and all but the first to finish would end in a conflict.
    """
    if policy.one_running_per_object:
        return Busy(tx.running_objects())
    if not is_governing:
        return None
    return Busy(
        tx.running_objects(VERIFICATIONS),
        lambda job: job.action in VERIFICATIONS and tx.is_governed(job.object_type, job.object_id),
    )


def reclaim(tx: Writer, policy: Policy, now: int) -> int:
    """Put back jobs whose lease has run out; how many. Where it is `RECLAIM_MOST`, there may be more."""
    lost = tx.expired(now, RECLAIM_MOST)
    for job in lost:
        after = carry_out(tx, job, decide.expired(job, now, policy), SYSTEM)
        deliveries.reschedule_object(tx, job, after, SYSTEM, policy, now)
    return len(lost)


def _order(policy: Policy, busy: Busy | None) -> Callable[[Iterable[Job], int], list[Job]] | None:
    starts = policy.head_start_sec if policy.pull_order is PullOrder.WEIGHTED else (0, 0, 0)
    if busy is not None or policy.pull_order is PullOrder.WEIGHTED:
        return lambda jobs, limit: weighted(jobs, limit, starts, busy)
    return None


class Writes:
    """Wakes pulls that wait when this process wrote. There is no lock that an interrupt could leave held."""

    def __init__(self) -> None:
        self._bells: dict[Bell, None] = {}

    def tell(self) -> None:
        for bell in tuple(self._bells):
            bell.ring()

    def join(self, bell: Bell) -> None:
        """Ring this bell at every write from here on."""
        self._bells[bell] = None

    def leave(self, bell: Bell) -> None:
        self._bells.pop(bell, None)


def seconds_to_wait(request: Pull, coming: int | None, now: int, until: int) -> float:
    """How long until something may have come: a job due at `coming`, or a write elsewhere at the next look."""
    # A request's own `now` does not move, so only a write can bring it something.
    # What is due already and did not come is not for this caller.
    due = until if coming is None or request.now is not None or coming <= now else coming
    return min(POLL_SECONDS, max(0, min(due, until) - now) / SECOND)
