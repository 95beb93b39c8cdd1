"""Report endings to the store, with retries until it answers or the lease is lost."""

import logging
from collections.abc import Callable
from typing import Any, Protocol, assert_never

from pendula.jobs import decide
from pendula.jobs.hooks import GovernedCalls
from pendula.jobs.model import Code, Status
from pendula.jobs.store.protocol import FilesClosed
from pendula.jobs.worker.delivery import Acked, DeliveryReport, Dropped, Ending, Failed, Finished, Settled, Unhandled
from pendula.jobs.worker.leases import LEASE_CODES, Lease, is_rate_limit
from pendula.kernel.errors import InputRefused, WorldBroken

log = logging.getLogger("pendula.jobs.worker")


class EndCalls(Protocol):
    """The calls that end a job."""

    def ack(self, job_id: str, **members: Any) -> dict[str, Any]: ...

    def fail(self, job_id: str, **members: Any) -> dict[str, Any]: ...

    def release(self, job_id: str, **members: Any) -> dict[str, Any]: ...


class EndReporter:
    def __init__(self, client: EndCalls, wait: Callable[[int], bool], objects: GovernedCalls | None = None) -> None:
        """`wait(n)` waits before retry n and returns False to give up."""
        self._client = client
        self._wait = wait
        self._objects = objects

    def report(self, lease: Lease, ending: Ending) -> Ending:
        """Report the ending and return the actual one: `Dropped` if the store did not accept it."""
        tries = 0
        lease.reporting = True
        while True:
            if isinstance(ending, DeliveryReport):
                return ending
            if isinstance(ending, Dropped):
                log.warning("the result of %s is discarded: %s", lease.job_id, ending.reason)
                return ending
            try:
                if isinstance(ending, Finished | Settled):
                    return self._govern(lease, ending)
                return self._send(lease, ending)
            except FilesClosed as trouble:
                log.error("the end of %s cannot be reported: %s", lease.job_id, trouble)
                ending = Dropped("store_lost")
                continue
            except WorldBroken as trouble:
                log.warning("the end of %s cannot be reported now: %s", lease.job_id, trouble)
            except InputRefused as refused:
                if not is_rate_limit(refused):
                    ending = _ending_after_rejection(ending, refused)
                    continue
            tries += 1
            if lease.lost is not None or not self._wait(tries):
                ending = Dropped(lease.lost or "store_lost")

    def _send(self, lease: Lease, ending: Acked | Failed | Unhandled) -> Ending:
        match ending:
            case Acked():
                reply = self._client.ack(lease.job_id, **lease.proof, **ending.members)
                if (status := reply["job"]["status"]) != Status.SUCCEEDED:
                    # A gate of the governed object changed meanwhile.
                    log.warning("%s was executed and is %s: %s", lease.job_id, status, reply["job"]["last_error"])
                    return DeliveryReport(status, reply["job"]["outcome"])
                if ending.follows and not reply["already_acked"] and reply["followup_job_id"] is None:
                    log.error("%s does not run again: auto_followup is off", lease.job_id)
            case Failed():
                self._client.fail(lease.job_id, **lease.proof, **ending.members)
            case Unhandled():
                log.warning("%s is released: this worker has no handler for it", lease.job_id)
                self._client.release(lease.job_id, **lease.proof)
            case _:
                assert_never(ending)
        return ending

    def _govern(self, lease: Lease, ending: Finished | Settled) -> DeliveryReport:
        """End the job and change its object in one call."""
        assert self._objects is not None
        if isinstance(ending, Finished):
            reply = self._objects.finish(lease.job_id, **lease.proof, **ending.members)
        else:
            reply = self._objects.settle(lease.job_id, **lease.proof)
        return DeliveryReport(reply["job"]["status"], reply.get("outcome"))


def tally_field(ending: Ending) -> str:
    """The field of `Tally` that counts this ending."""
    match ending:
        case Acked() | DeliveryReport(status=Status.SUCCEEDED):
            return "succeeded"
        case Unhandled() | DeliveryReport(outcome=decide.OUTCOME_DEFERRED):
            return "released"
        case Dropped():
            return "dropped"
        case _:
            return "failed"


def _ending_after_rejection(ending: Acked | Failed | Unhandled | Finished | Settled, refused: InputRefused) -> Ending:
    """The ending to report after the store has rejected one: a failure, or nothing if the lease is lost."""
    if refused.code in LEASE_CODES:
        return Dropped(refused.code)
    if refused.code == Code.OBJECT_NOT_FOUND and isinstance(ending, Finished | Settled):
        return Failed({"error": f"{refused.code}: {refused.message}", "retryable": False})
    if isinstance(ending, Acked | Finished | Settled):
        return Failed({"error": f"the answer of the handler was rejected: {refused.code}: {refused.message}"})
    if isinstance(ending, Failed) and "retry_delay_sec" in ending.members:
        members = {name: value for name, value in ending.members.items() if name != "retry_delay_sec"}
        return Failed(members)
    return Dropped(refused.code)
