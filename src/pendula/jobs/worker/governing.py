"""Under governance: the step before a verifier that reads the object and its gates and takes the budget.

It is the last before the handler, so that nothing is spent where another step refuses. What the gates, the budget or
the object forbid ends the delivery there, in the store; the verifier is not entered.
"""

import logging
from collections.abc import Callable, Sequence
from typing import Any, Protocol

from pendula.jobs.model import Code
from pendula.jobs.objects.reference_machines import REFERENCE
from pendula.jobs.scheduler import Scheduler
from pendula.jobs.worker.delivery import Delivery, Dropped, Ending, Failed, Step, Told
from pendula.jobs.worker.handlers import Handlers
from pendula.jobs.worker.leases import LEASE_CODES, is_rate_limit
from pendula.kernel.errors import InputRefused, WorldBroken, WrongUsage

log = logging.getLogger("pendula.jobs.worker")


class Governs(Protocol):
    """Governed objects as a worker sees them: `GovernedObjects` in this process, or those of a server."""

    def begin(self, job_id: str, **proof: Any) -> dict[str, Any]: ...

    def finish(self, job_id: str, **members: Any) -> dict[str, Any]: ...

    def settle(self, job_id: str, **proof: Any) -> dict[str, Any]: ...


def types_governed(client: object, handlers: Handlers, govern: bool | Sequence[str]) -> Sequence[str]:
    """The types whose objects decide by themselves here. No server is asked before the worker runs: name the types of
    its own machines."""
    if not isinstance(govern, bool):
        return govern
    if not govern:
        return ()
    known = client.calls.policy.machines if isinstance(client, Scheduler) else REFERENCE
    return sorted({*known, *handlers.verified})


def objects_of(client: object, handlers: Handlers) -> Governs | None:
    """The governed objects of a client; it need not have any where nothing is governed."""
    objects: Governs | None = getattr(client, "objects", None)
    if objects is None and handlers.governs:
        raise WrongUsage("Governed objects need a scheduler that has them; this client does not")
    return objects


def entering(objects: Governs, rest: Callable[[int], bool]) -> Step:
    """The step that begins a verification; `rest(n)` waits before the n-th repetition, False to give up."""

    def enter(delivery: Delivery) -> Ending | None:
        assert delivery.handler is not None
        if not delivery.handler.verifies:
            return None
        held = delivery.held
        held.reporting = True  # it may end here: whoever is refused a renewal meanwhile has only come second
        begun = _begun(delivery, objects, rest)
        if not isinstance(begun, dict):
            return begun
        if not begun["entered"]:
            return Told(begun["job"]["status"], begun.get("outcome"))
        held.reporting = held.settled = False
        _entered(delivery, begun)
        return None

    return enter


def _begun(delivery: Delivery, objects: Governs, rest: Callable[[int], bool]) -> dict[str, Any] | Ending:
    """The answer of the store; asked again while nobody answers, which takes no second unit of the budget."""
    held, tries = delivery.held, 0
    while held.lost is None:
        try:
            return objects.begin(held.job_id, **held.proof)
        except WorldBroken as trouble:
            log.warning("%s cannot be begun now: %s", held.job_id, trouble)
        except InputRefused as refused:
            if not is_rate_limit(refused):
                return _refused(refused)
        tries += 1
        if not rest(tries):
            return Dropped("store_lost")
    return Dropped(held.lost)


def _refused(refused: InputRefused) -> Ending:
    if refused.code in LEASE_CODES:
        return Dropped(refused.code)
    # An object that is not there, or of a kind without a state machine: trying again does not help.
    word = refused.code if refused.code == Code.OBJECT_NOT_FOUND else f"not_governed: {refused.code}"
    return Failed({"error": f"{word}: {refused.message}", "retryable": False})


def _entered(delivery: Delivery, begun: dict[str, Any]) -> None:
    delivery.context.object = begun["object"]
    delivery.context.mode = begun["mode"]
    delivery.begun = {"version": begun["version"], "gates": begun["gates"]}
