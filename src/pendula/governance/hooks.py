"""What jobs ask of governance within their transactions: the functions of `pendula.jobs.hooks.Hooks`."""

from collections import Counter
from collections.abc import Collection, Mapping
from typing import Any

from pendula.governance import decisions
from pendula.governance.decisions import Ending, Outcome
from pendula.governance.deliveries import begin_delivery, end_by_ack, reschedule_object
from pendula.governance.gates import is_high_risk
from pendula.governance.inputs import action_context, rules_of, tiers
from pendula.governance.objects import GovernedObjects, governed
from pendula.governance.settings import read_settings
from pendula.governance.tables import tables_of
from pendula.governance.upkeep import GovernedTrail, check_learning, forgotten
from pendula.jobs.client import RemoteScheduler
from pendula.jobs.hooks import GovernedCalls
from pendula.jobs.messages import Enqueue, plain
from pendula.jobs.model import VERIFICATIONS, Code, Job, Policy, Refused
from pendula.jobs.scheduler import Scheduler
from pendula.jobs.sentences import sentence_of
from pendula.jobs.store.protocol import EnqueueWriter, Reader
from pendula.kernel.canonical import Json
from pendula.kernel.errors import WrongUsage

__all__ = [
    "check_learning",
    "forgotten",
    "job_calls",
    "may_deliver",
    "may_enqueue",
    "may_finish",
    "object_types",
    "on_dead_letter",
    "on_end",
    "past_places",
    "read_settings",
    "trail",
    "why_withheld",
]

may_deliver = begin_delivery
may_finish = end_by_ack
on_end = reschedule_object
trail = GovernedTrail


def may_enqueue(tx: EnqueueWriter, request: Enqueue) -> Refused | None:
    """The refusal of a verification of an object whose verification limit is reached."""
    if request.action not in VERIFICATIONS or not tx.is_closed(request.object_type, request.object_id):
        return None
    details: dict[str, Json] = {"object_type": request.object_type, "object_id": request.object_id}
    message = f"{request.object_id} has reached its verification limit; add evidence to reopen it"
    return Refused(Code.ONTIC_VERIFICATION_CLOSED, message, details)


def on_dead_letter(tx: Reader, job: Job) -> bool:
    """Whether a dead letter is about an object of high risk."""
    subject = tables_of(tx).governed(job.object_type, job.object_id)
    return subject is not None and is_high_risk(*tiers(tables_of(tx), subject))


def why_withheld(look: Reader, job: Job, policy: Policy, now: int) -> tuple[str, str] | None:
    """The outcome and the sentence, if a due job is withheld by its object, a gate or the budget."""
    tables = tables_of(look)
    subject, machine = tables.governed(job.object_type, job.object_id), rules_of(policy).machines.get(job.object_type)
    if subject is None or machine is None:
        return None
    context = action_context(tables, subject, job.action, policy, now, deferrals=tables.job(job.seq).deferrals)
    ending = decisions.enter(subject, machine, context)
    if not isinstance(ending, Ending) or ending.outcome is Outcome.NOOP:
        return None
    return ending.outcome.value, sentence_of(ending.reason)


def past_places(look: Reader, before: Mapping[Any, Mapping[str, Json] | None]) -> list[Json]:
    """How many objects were in each place, given the members of later changed ones before their changes."""
    tables = tables_of(look)
    counts = Counter({(kind, place): n for kind, place, n in tables.places()})
    for (kind, name), members in before.items():
        subject = tables.governed(kind, name)
        if subject is None:
            continue  # an object that no machine governs has no place
        counts[kind, subject.place] -= 1
        if members is not None:
            status, axis = members.get("status", subject.status), members.get("epistemic_state", subject.epistemic)
            counts[kind, str(status) if axis is None else f"{status}/{axis}"] += 1
    return [{"object_type": kind, "place": place, "objects": n} for (kind, place), n in sorted(counts.items()) if n > 0]


class JobCalls:
    """The calls on governed jobs, with replies as a worker hands them to handlers."""

    def __init__(self, objects: GovernedObjects) -> None:
        self._objects = objects

    def begin(self, job_id: str, **proof: Any) -> dict[str, Any]:
        return plain(self._objects.begin(job_id, **proof))

    def finish(self, job_id: str, **members: Any) -> dict[str, Any]:
        return plain(self._objects.finish(job_id, **members))

    def settle(self, job_id: str, **proof: Any) -> dict[str, Any]:
        return plain(self._objects.settle(job_id, **proof))


def job_calls(client: object) -> GovernedCalls:
    """The calls of a worker on its governed jobs. Raises `WrongUsage` if its client has none."""
    if isinstance(client, Scheduler | RemoteScheduler):
        return JobCalls(governed(client))
    raise WrongUsage("this client has no governed objects; its handlers need a scheduler that has them")


def object_types(policy: Policy) -> Collection[str]:
    """The object types that have a state machine."""
    return rules_of(policy).machines
