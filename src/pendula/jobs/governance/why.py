"""Why an object is in its state, what comes next and when, and what is in the way: one sentence, and the facts."""

from msgspec.structs import replace

from pendula.jobs.audit import Row
from pendula.jobs.calls.replies import Answer, Reply, utc_or_null
from pendula.jobs.governance.judging import machine_of, no_object, question, tiers
from pendula.jobs.governance.showing import object_json
from pendula.jobs.model import Policy, Refused, Status
from pendula.jobs.objects import deciding
from pendula.jobs.objects.endings import Ending
from pendula.jobs.objects.governed import Governed
from pendula.jobs.objects.machine import Machine
from pendula.jobs.store.protocol import AuditListing, Listing, Reader
from pendula.kernel.canonical import Json, decode
from pendula.kernel.time import format_utc

EVENTS_AT_ONCE = 1000


def why(look: Reader, object_type: str, object_id: str, policy: Policy, now: int) -> Answer:
    machine = machine_of(policy, object_type)
    if isinstance(machine, Refused):
        return machine
    subject = look.governance.governed(object_type, object_id)
    if subject is None:
        return no_object(object_type, object_id)
    cause = _cause(look, subject)
    obstacle = _obstacle(look, subject, machine, policy, now)
    job = _next_job(look, subject)
    risk, impact = tiers(look.governance, subject)
    body: dict[str, Json] = {
        "sentence": _sentence(subject, cause, obstacle, job),
        "status": subject.place,
        "because": cause,
        "next_action": subject.next_action,
        "next_action_at": utc_or_null(subject.next_action_at),
        "next_job_id": job,
        "in_the_way": obstacle,
        "risk_tier": risk.value,
        "impact_tier": impact.value,
        "ways_out": [
            {"action": arrow.action, "finding": arrow.finding, "leads_to": arrow.target}
            for arrow in machine.arrows
            if arrow.source == subject.place
        ],
        "object": object_json(subject),
    }
    return Reply(200, body)


def _cause(look: Reader, subject: Governed) -> dict[str, Json] | None:
    """The last event that changed its state."""
    last: dict[str, Json] | None = None
    page = AuditListing(
        object_type=subject.object_type,
        object_id=subject.object_id,
        event_type="state_transition",
        limit=EVENTS_AT_ONCE,
    )
    while rows := look.events(page):
        last = next(filter(None, (_moving(row) for row in reversed(rows))), last)
        page = replace(page, after=rows[-1].n)
    return last


def _moving(row: Row) -> dict[str, Json] | None:
    """What an event tells of a change of the state, where it does."""
    event = decode(row.body.encode())
    assert isinstance(event, dict)
    after = event["after"]
    assert isinstance(after, dict)
    if event["before"] is not None and after.get("transitioned") is not True:
        return None
    told: dict[str, Json] = {"event": event["id"], "at": event["timestamp"], "reason": event["reason"]}
    return {**told, "job_id": event["job_id"], "actor": event["actor"], "evidence_refs": event["evidence_refs"]}


def _obstacle(look: Reader, subject: Governed, machine: Machine, policy: Policy, now: int) -> str | None:
    """What would stop its next action if it came now."""
    if subject.rollback_pending:
        return "the rollback of what was built on it is not finished"
    if subject.closed is not None:
        return f"it is closed: it {subject.closed}"
    if subject.next_action is None:
        return None
    ending = deciding.enter(subject, machine, question(look.governance, subject, subject.next_action, policy, now))
    if isinstance(ending, Ending) and ending.error is not None:
        return ending.reason
    if isinstance(ending, Ending) and ending.outcome.value in ("budget_exhausted", "deferred"):
        return ending.reason
    return None


def _next_job(look: Reader, subject: Governed) -> str | None:
    for status in (Status.RUNNING, Status.QUEUED):
        listing = Listing(object_type=subject.object_type, object_id=subject.object_id, status=status, limit=1)
        if found := look.jobs(listing):
            return found[0].job_id
    return None


def _sentence(subject: Governed, cause: dict[str, Json] | None, obstacle: str | None, job: str | None) -> str:
    since = "" if cause is None else f" since {cause['at']}, because {cause['reason']}"
    if subject.next_action is None or subject.next_action_at is None:
        coming = "nothing is left to do"
    else:
        coming = f"next comes {subject.next_action} at {format_utc(subject.next_action_at)}"
        coming += "" if job is None else f" ({job})"
    in_the_way = "" if obstacle is None else f"; in the way: {obstacle}"
    return f"{subject.object_type} {subject.object_id} is {subject.place}{since}; {coming}{in_the_way}."
