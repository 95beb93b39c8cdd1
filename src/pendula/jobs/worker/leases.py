"""The leases a worker holds, renewed by one thread that no handler can block.

A lease is renewed when a third of it has passed. Its time counts from before the call that granted it, on a monotonic
clock that also runs while the machine sleeps. So a worker gives a lease up before the store does, never later, whatever
its wall clock says.
"""

import logging
import threading
from collections.abc import Callable, Sequence
from decimal import Decimal
from typing import Protocol, TypedDict, Unpack

from pendula.jobs.background import CLOSE_SEC, BackgroundLoop
from pendula.jobs.messages import NOTE_MOST, Job, Renewed
from pendula.jobs.model import SECOND, Code
from pendula.jobs.scheduler_calls import RenewMembers
from pendula.kernel.errors import InputRefused, PendulaError, WorldBroken
from pendula.kernel.time import parse_utc
from pendula.kernel.wallclock import steady_us

log = logging.getLogger("pendula.jobs.worker")

TOO_MANY_REQUESTS = 429
PAUSE_SEC = 1.0
UNCONFIRMED = "lease_unconfirmed"
NAMED_MOST = 5
LEASE_CODES = frozenset(
    {Code.LEASE_LOST, Code.LEASE_EXPIRED, Code.LEASE_TOKEN_REQUIRED, Code.JOB_NOT_RUNNING, Code.JOB_NOT_FOUND}
)


class LeaseGone(PendulaError):
    """The lease of this delivery has run out, or another delivery holds the job. Nothing was written."""

    code = "lease_gone"


class Progress(TypedDict, total=False):
    """What the next renewal reports."""

    progress: Decimal
    progress_note: str


class Proof(TypedDict):
    """The proof of a lease, as calls take it."""

    worker_id: str
    lease_token: str


class Renewer(Protocol):
    def renew(self, job_id: str, **members: Unpack[RenewMembers]) -> Renewed: ...


class Lease:
    """One delivery and its lease. `lost` is the reason why the lease is gone; the result is discarded then."""

    def __init__(
        self,
        client: Renewer,
        worker_id: str,
        job: Job,
        granted: int,
        requested_at: int,
        ticks: Callable[[], int] = steady_us,
    ) -> None:
        """`granted` is the store's time of the grant, `requested_at` our own time before the request."""
        self.job = job
        self.job_id = job.job_id
        assert job.lease_token is not None
        assert job.lease_expires_at is not None
        self.proof = Proof(worker_id=worker_id, lease_token=job.lease_token)
        self.length_us = max(SECOND, parse_utc(job.lease_expires_at) - granted)
        self.confirmed_at = requested_at
        self.lost: str | None = None
        self.stopped = False
        self.cancel_requested = job.cancel_requested_at is not None
        self.reporting = False  # the ending is being reported: a rejected renewal may just have come after it
        self.settled = False  # a renewal was rejected meanwhile: the reply to the report decides
        self._client = client
        self._ticks = ticks
        self._granted = granted
        self._granted_at = ticks()
        self._progress = Progress()

    @property
    def renew_at(self) -> int:
        return self.confirmed_at + self.length_us // 3

    @property
    def expires_at(self) -> int:
        """When the lease may have run out, unless it is renewed."""
        return self.confirmed_at + self.length_us

    def store_now(self) -> int:
        """An estimate of the store's time; a little early, never late."""
        return self._granted + self._ticks() - self._granted_at

    def lose(self, reason: str) -> None:
        if self.lost is None:
            self.lost = reason

    def stop(self) -> None:
        """Signal the handler that its result is not needed any more."""
        self.stopped = True

    def set_progress(self, fraction: float, note: str) -> None:
        """Remember the progress for the next renewal."""
        text = "".join(char if char.isprintable() else " " for char in note[:NOTE_MOST]).strip()
        self._progress = Progress(progress=Decimal(str(fraction)))
        if text:
            self._progress["progress_note"] = text

    def renew(self) -> None:
        """Extend the lease and read whether cancellation was requested.

        Raises `LeaseGone` if the store rejects the renewal, `WorldBroken` if it cannot be reached.
        """
        if self.lost is not None:
            raise LeaseGone(f"The lease of {self.job_id} is lost: {self.lost}", job_id=self.job_id, reason=self.lost)
        requested_at = self._ticks()
        try:
            reply = self._client.renew(self.job_id, **self.proof, lease_sec=self.length_us // SECOND, **self._progress)
        except InputRefused as refused:
            if is_rate_limit(refused):
                raise WorldBroken(refused.message) from refused
            if self.reporting:
                self.settled = True
            else:
                self.lose(refused.code)
            message = f"The lease of {self.job_id} is lost: {refused.message}"
            raise LeaseGone(message, job_id=self.job_id, reason=refused.code) from refused
        self.confirmed_at = max(self.confirmed_at, requested_at)
        if reply.cancel_requested_at is not None:
            self.cancel_requested = True

    def is_confirmed(self) -> bool:
        """Whether the lease is certainly held now; renews it when half of it has passed unconfirmed."""
        now = self._ticks()
        if self.lost is None and now < self.confirmed_at + self.length_us // 2:
            return True
        try:
            self.renew()
        except LeaseGone:
            return False
        except WorldBroken as trouble:
            if self._ticks() >= self.expires_at:
                self.lose(UNCONFIRMED)
            log.warning("the lease of %s cannot be confirmed: %s", self.job_id, trouble)
            return False
        return True


class Leases:
    """All leases of a worker."""

    def __init__(self, ticks: Callable[[], int] = steady_us) -> None:
        self._ticks = ticks
        self._lease: dict[str, Lease] = {}
        self._lock = threading.Lock()
        self._loop = BackgroundLoop(
            "pendula-jobs-leases", self.sweep, log=log, trouble="leases cannot be renewed", pause_sec=PAUSE_SEC
        )

    def hold(self, lease: Lease) -> None:
        with self._lock:
            self._lease[lease.proof["lease_token"]] = lease
        self._loop.wake()

    def let_go(self, lease: Lease) -> None:
        with self._lock:
            self._lease.pop(lease.proof["lease_token"], None)

    def __len__(self) -> int:
        with self._lock:
            return len(self._lease)

    def start(self) -> None:
        self._loop.start()

    def close(self, seconds: float = CLOSE_SEC) -> None:
        """Stop renewing; wait up to `seconds` for a renewal in progress."""
        self._loop.close(seconds)

    def sweep(self) -> float | None:
        """Renew what is due; return the seconds until the next sweep, None when no lease is held."""
        with self._lock:
            active = [lease for lease in self._lease.values() if lease.lost is None and not lease.settled]
        reached = True
        # Ordered by time, then by job id, so that two runs renew in the same order.
        for lease in sorted(active, key=lambda lease: (lease.renew_at, lease.job_id)):
            now = self._ticks()
            if now >= lease.expires_at:
                self._give_up(lease)
            elif now >= lease.renew_at and reached:
                reached = self._renew(lease)
        return self._pause(active, reached)

    def _renew(self, lease: Lease) -> bool:
        """Whether the store answered; if not, the other leases wait for the next sweep."""
        try:
            lease.renew()
        except LeaseGone as gone:
            log.log(logging.DEBUG if lease.settled else logging.WARNING, "%s", gone)
        except WorldBroken as trouble:
            log.warning("the lease of %s cannot be renewed now: %s", lease.job_id, trouble)
            return False
        return True

    def _give_up(self, lease: Lease) -> None:
        log.warning("the lease of %s has run out unconfirmed", lease.job_id)
        lease.lose(UNCONFIRMED)

    def _pause(self, active: list[Lease], reached: bool) -> float | None:
        left = [lease for lease in active if lease.lost is None and not lease.settled]
        if not left:
            return None
        now = self._ticks()
        soonest = min(lease.renew_at for lease in left)
        if not reached:
            # Retry soon: several times before the shortest lease runs out.
            soonest = now + min(SECOND, min(lease.length_us for lease in left) // 10)
        return max(0, soonest - now) / SECOND


def is_rate_limit(refused: InputRefused) -> bool:
    return getattr(refused, "status", None) == TOO_MANY_REQUESTS


def proof_of(job: Job) -> tuple[str, str]:
    return str(job.worker_id), str(job.lease_token)


def describe_leases(leases: Sequence[Lease]) -> str:
    """A summary of running handlers; the first few by name."""
    jobs = [(lease.job, lease.job_id) for lease in leases]
    names = [f"{job.action} {job.object_type} {job.object_id} ({job_id})" for job, job_id in jobs]
    more = f" and {len(leases) - NAMED_MOST} more" if len(leases) > NAMED_MOST else ""
    return f"{len(leases)} handler{'s' if len(leases) > 1 else ''}: {', '.join(names[:NAMED_MOST])}{more}"
