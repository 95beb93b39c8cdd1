"""The leases a worker holds, renewed by one thread that no handler can block.

A lease is renewed when a third of it has passed. Its time is counted from before the call that granted it, by a clock
that nobody can set and that goes on while the machine sleeps, so a worker gives a lease up sooner than the store does,
never later, whatever its wall clock says.
"""

import logging
import threading
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from typing import Any, Protocol

from pendula.jobs.background import CLOSE_SEC, BackgroundLoop
from pendula.jobs.model import SECOND, Code
from pendula.jobs.requests import NOTE_MOST
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
    """This delivery may not go on: its lease has run out or another delivery holds the job. Nothing was written."""

    code = "lease_gone"


class Renewing(Protocol):
    def renew(self, job_id: str, **members: Any) -> dict[str, Any]: ...


class Held:
    """One delivery in our hands. `lost` says why it is ours no more; its result is thrown away then."""

    def __init__(
        self,
        client: Renewing,
        worker_id: str,
        job: dict[str, Any],
        granted: int,
        asked_at: int,
        ticks: Callable[[], int] = steady_us,
    ) -> None:
        """`granted` is the store's time of the grant, `asked_at` our own before we asked for it."""
        self.job = job
        self.job_id = str(job["job_id"])
        self.proof = {"worker_id": worker_id, "lease_token": job["lease_token"]}
        self.length_us = max(SECOND, parse_utc(job["lease_expires_at"]) - granted)
        self.confirmed_at = asked_at
        self.lost: str | None = None
        self.stopped = False
        self.cancel_requested = job.get("cancel_requested_at") is not None
        self.reporting = False  # its end is on the way: whoever is refused a renewal now may just have come second
        self.settled = False  # and was: the answer to that word decides
        self._client = client
        self._ticks = ticks
        self._granted = granted
        self._granted_at = ticks()
        self._progress: dict[str, Any] = {}

    @property
    def renew_at(self) -> int:
        return self.confirmed_at + self.length_us // 3

    @property
    def over_at(self) -> int:
        """When it may have run out, if nothing is heard."""
        return self.confirmed_at + self.length_us

    def store_now(self) -> int:
        """The store's time, as far as it can be told from here; a little early, never late."""
        return self._granted + self._ticks() - self._granted_at

    def lose(self, why: str) -> None:
        if self.lost is None:
            self.lost = why

    def stop(self) -> None:
        """Tell the handler that nobody waits for it any more."""
        self.stopped = True

    def tell(self, fraction: float, note: str) -> None:
        """Keep for the next renewal how far the work is."""
        fit = "".join(char if char.isprintable() else " " for char in note[:NOTE_MOST]).strip()
        self._progress = {"progress": Decimal(str(fraction)), **({"progress_note": fit} if fit else {})}

    def renew(self) -> None:
        """Ask for a new deadline, and hear whether to stop.

        Raises `LeaseGone` when it is refused, `WorldBroken` when nobody answers.
        """
        if self.lost is not None:
            raise LeaseGone(f"The lease of {self.job_id} is lost: {self.lost}", job_id=self.job_id, reason=self.lost)
        asked_at = self._ticks()
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
        self.confirmed_at = max(self.confirmed_at, asked_at)
        if reply.get("cancel_requested_at") is not None:
            self.cancel_requested = True

    def is_confirmed(self) -> bool:
        """Whether it is certainly ours now; asks the store when half of the lease has passed unconfirmed."""
        now = self._ticks()
        if self.lost is None and now < self.confirmed_at + self.length_us // 2:
            return True
        try:
            self.renew()
        except LeaseGone:
            return False
        except WorldBroken as trouble:
            if self._ticks() >= self.over_at:
                self.lose(UNCONFIRMED)
            log.warning("the lease of %s cannot be confirmed: %s", self.job_id, trouble)
            return False
        return True


class Leases:
    """Everything a worker holds at a time."""

    def __init__(self, ticks: Callable[[], int] = steady_us) -> None:
        self._ticks = ticks
        self._held: dict[str, Held] = {}
        self._lock = threading.Lock()
        self._loop = BackgroundLoop(
            "pendula-jobs-leases", self.sweep, log=log, trouble="leases cannot be renewed", pause_sec=PAUSE_SEC
        )

    def hold(self, held: Held) -> None:
        with self._lock:
            self._held[held.proof["lease_token"]] = held
        self._loop.wake()

    def let_go(self, held: Held) -> None:
        with self._lock:
            self._held.pop(held.proof["lease_token"], None)

    def __len__(self) -> int:
        with self._lock:
            return len(self._held)

    def start(self) -> None:
        self._loop.start()

    def close(self, seconds: float = CLOSE_SEC) -> None:
        """No renewal any more; one that is under way is waited for, for so long."""
        self._loop.close(seconds)

    def sweep(self) -> float | None:
        """Renew what is due. How many seconds until the next look, None when nothing is held."""
        with self._lock:
            mine = [held for held in self._held.values() if held.lost is None and not held.settled]
        reached = True
        for held in sorted(mine, key=lambda one: (one.renew_at, one.job_id)):
            now = self._ticks()
            if now >= held.over_at:
                self._give_up(held)
            elif now >= held.renew_at and reached:
                reached = self._renew(held)
        return self._pause(mine, reached)

    def _renew(self, held: Held) -> bool:
        """Whether anybody answered; after one silence the others are left for the next look."""
        try:
            held.renew()
        except LeaseGone as gone:
            log.log(logging.DEBUG if held.settled else logging.WARNING, "%s", gone)
        except WorldBroken as trouble:
            log.warning("the lease of %s cannot be renewed now: %s", held.job_id, trouble)
            return False
        return True

    def _give_up(self, held: Held) -> None:
        log.warning("the lease of %s has run out unconfirmed", held.job_id)
        held.lose(UNCONFIRMED)

    def _pause(self, mine: list[Held], reached: bool) -> float | None:
        left = [held for held in mine if held.lost is None and not held.settled]
        if not left:
            return None
        now = self._ticks()
        soonest = min(held.renew_at for held in left)
        if not reached:
            # Again soon, several times before the shortest lease is over.
            soonest = now + min(SECOND, min(held.length_us for held in left) // 10)
        return max(0, soonest - now) / SECOND


def is_rate_limit(refused: InputRefused) -> bool:
    """A refusal that means: later."""
    return getattr(refused, "status", None) == TOO_MANY_REQUESTS


def proof_of(job: Mapping[str, Any]) -> tuple[str, str]:
    return str(job["worker_id"]), str(job["lease_token"])


def named(held: Sequence[Held]) -> str:
    """Which handlers are at work, the first few by name."""
    shown = [f"{one.job['action']} {one.job['object_type']} {one.job['object_id']} ({one.job_id})" for one in held]
    more = f" and {len(held) - NAMED_MOST} more" if len(held) > NAMED_MOST else ""
    return f"{len(held)} handler{'s' if len(held) > 1 else ''}: {', '.join(shown[:NAMED_MOST])}{more}"
