"""The step before a verifier: reads the governed object and its gates and takes the budget.

It is the last step before the handler, so that no budget is spent when another step ends the delivery. If the gates,
the budget or the object forbid the action, the job ends in the store and the verifier does not run.
"""

import logging
from collections.abc import Callable, Sequence
from typing import Any

from pendula.jobs.hooks import GovernedCalls, governance
from pendula.jobs.model import Code, Policy
from pendula.jobs.scheduler import Scheduler
from pendula.jobs.worker.delivery import Delivery, DeliveryReport, Dropped, Ending, Failed, Step
from pendula.jobs.worker.handlers import Handlers
from pendula.jobs.worker.leases import LEASE_CODES, is_rate_limit
from pendula.kernel.errors import InputRefused, WorldBroken

log = logging.getLogger("pendula.jobs.worker")


def governed_types(client: object, handlers: Handlers, govern: bool | Sequence[str]) -> Sequence[str]:
    """The object types whose decay and archive jobs this worker settles. For a server with its own machines, name the
    types: the worker does not ask the server."""
    if not isinstance(govern, bool):
        return govern
    if not govern:
        return ()
    policy = client.calls.policy if isinstance(client, Scheduler) else Policy()
    known = governance().object_types(policy)
    return sorted({*known, *handlers.verified_types})


def governed_objects(client: object, handlers: Handlers) -> GovernedCalls | None:
    """The governed objects of a client, if its handlers need them or it brings its own as `objects`."""
    own: GovernedCalls | None = getattr(client, "objects", None)
    return governance().job_calls(client) if own is None and handlers.has_governed else own


def begin_step(objects: GovernedCalls, wait: Callable[[int], bool]) -> Step:
    """The step that begins a verification; `wait(n)` waits before retry n and returns False to give up."""

    def enter(delivery: Delivery) -> Ending | None:
        assert delivery.handler is not None
        if not delivery.handler.verifies:
            return None
        lease = delivery.lease
        lease.reporting = True  # the job may end here, and a concurrent renewal would be rejected because of that
        begun = _begin(delivery, objects, wait)
        if not isinstance(begun, dict):
            return begun
        if not begun["entered"]:
            return DeliveryReport(begun["job"]["status"], begun.get("outcome"))
        lease.reporting = lease.settled = False
        _enter(delivery, begun)
        return None

    return enter


def _begin(delivery: Delivery, objects: GovernedCalls, wait: Callable[[int], bool]) -> dict[str, Any] | Ending:
    """Call `begin`, with retries while the store is unreachable; a repeated call takes no second unit of budget."""
    lease, tries = delivery.lease, 0
    while lease.lost is None:
        try:
            return objects.begin(lease.job_id, **lease.proof)
        except WorldBroken as trouble:
            log.warning("%s cannot be begun now: %s", lease.job_id, trouble)
        except InputRefused as refused:
            if not is_rate_limit(refused):
                return _ending_of_refusal(refused)
        tries += 1
        if not wait(tries):
            return Dropped("store_lost")
    return Dropped(lease.lost)


def _ending_of_refusal(refused: InputRefused) -> Ending:
    if refused.code in LEASE_CODES:
        return Dropped(refused.code)
    # The object does not exist, or its type has no state machine: a retry does not help.
    word = refused.code if refused.code == Code.OBJECT_NOT_FOUND else f"not_governed: {refused.code}"
    return Failed({"error": f"{word}: {refused.message}", "retryable": False})


def _enter(delivery: Delivery, begun: dict[str, Any]) -> None:
    delivery.context.object = begun["object"]
    delivery.context.mode = begun["mode"]
    delivery.begun = {"version": begun["version"], "gates": begun["gates"]}
