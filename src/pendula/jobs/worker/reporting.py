"""The store is told how deliveries ended, again and again until it has heard or the lease is over."""

import logging
from collections.abc import Callable
from typing import Any, Protocol, assert_never

from pendula.jobs.model import Code, Status
from pendula.jobs.objects.endings import Outcome
from pendula.jobs.store.protocol import FilesClosed
from pendula.jobs.worker.delivery import Acked, Dropped, Ending, Failed, Found, Settled, Told, Unhandled
from pendula.jobs.worker.governing import Governs
from pendula.jobs.worker.leases import LEASE_CODES, Held, is_rate_limit
from pendula.kernel.errors import InputRefused, WorldBroken

log = logging.getLogger("pendula.jobs.worker")


class Ends(Protocol):
    """How a store is told."""

    def ack(self, job_id: str, **members: Any) -> dict[str, Any]: ...

    def fail(self, job_id: str, **members: Any) -> dict[str, Any]: ...

    def release(self, job_id: str, **members: Any) -> dict[str, Any]: ...


class EndReporter:
    """Reports to the store how deliveries ended, again and again until it has heard or the lease is over."""

    def __init__(self, client: Ends, rest: Callable[[int], bool], objects: Governs | None = None) -> None:
        """`rest(n)` waits before the n-th repetition; False when it is no use to go on."""
        self._client = client
        self._rest = rest
        self._objects = objects

    def report(self, held: Held, ending: Ending) -> Ending:
        """How it ended in truth: dropped where the store did not accept it."""
        tries = 0
        held.reporting = True
        while True:
            if isinstance(ending, Told):
                return ending
            if isinstance(ending, Dropped):
                log.warning("the result of %s is thrown away: %s", held.job_id, ending.reason)
                return ending
            try:
                if isinstance(ending, Found | Settled):
                    return self._govern(held, ending)
                return self._send(held, ending)
            except FilesClosed as trouble:
                log.error("the end of %s can never be told: %s", held.job_id, trouble)
                ending = Dropped("store_lost")
                continue
            except WorldBroken as trouble:
                log.warning("the end of %s cannot be told now: %s", held.job_id, trouble)
            except InputRefused as refused:
                if not is_rate_limit(refused):
                    ending = _instead(ending, refused)
                    continue
            tries += 1
            if held.lost is not None or not self._rest(tries):
                ending = Dropped(held.lost or "store_lost")

    def _send(self, held: Held, ending: Acked | Failed | Unhandled) -> Ending:
        match ending:
            case Acked():
                reply = self._client.ack(held.job_id, **held.proof, **ending.members)
                if (status := reply["job"]["status"]) != Status.SUCCEEDED:
                    # Under governance: a gate that turned meanwhile.
                    log.warning("%s was executed and is %s: %s", held.job_id, status, reply["job"]["last_error"])
                    return Told(status, reply["job"]["outcome"])
                if ending.follows and not reply["already_acked"] and reply["followup_job_id"] is None:
                    log.error("%s is not run again: follow-ups are switched off (auto_followup)", held.job_id)
            case Failed():
                self._client.fail(held.job_id, **held.proof, **ending.members)
            case Unhandled():
                log.warning("%s is handed back: this worker has no handler for it", held.job_id)
                self._client.release(held.job_id, **held.proof)
            case _:
                assert_never(ending)
        return ending

    def _govern(self, held: Held, ending: Found | Settled) -> Told:
        """One call that ends the job and changes the object, or neither."""
        assert self._objects is not None
        if isinstance(ending, Found):
            reply = self._objects.finish(held.job_id, **held.proof, **ending.members)
        else:
            reply = self._objects.settle(held.job_id, **held.proof)
        return Told(reply["job"]["status"], reply.get("outcome"))


def counted_as(ending: Ending) -> str:
    """The word for it in a worker's tally."""
    match ending:
        case Acked() | Told(status=Status.SUCCEEDED):
            return "succeeded"
        case Unhandled() | Told(outcome=Outcome.DEFERRED):
            return "released"
        case Dropped():
            return "dropped"
        case _:
            return "failed"


def _instead(ending: Acked | Failed | Unhandled | Found | Settled, refused: InputRefused) -> Ending:
    """What to say when the store does not take it: the fault, or nothing where the lease is lost."""
    if refused.code in LEASE_CODES:
        return Dropped(refused.code)
    if refused.code == Code.OBJECT_NOT_FOUND and isinstance(ending, Found | Settled):
        return Failed({"error": f"{refused.code}: {refused.message}", "retryable": False})
    if isinstance(ending, Acked | Found | Settled):
        return Failed({"error": f"the answer of the handler was refused: {refused.code}: {refused.message}"})
    if isinstance(ending, Failed) and "retry_delay_sec" in ending.members:
        members = {name: value for name, value in ending.members.items() if name != "retry_delay_sec"}
        return Failed(members)
    return Dropped(refused.code)
