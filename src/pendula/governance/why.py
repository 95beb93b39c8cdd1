"""Explain why an object is in its state, what comes next and when, and any obstacle: one sentence, and the facts."""

from msgspec.structs import replace

from pendula.governance import decisions
from pendula.governance.decisions import ActionContext, Ending, Outcome
from pendula.governance.gates import NO_GATES, REQUIRED, Passage, explain_missing, is_high_risk, read
from pendula.governance.inputs import action_context, machine_of, object_not_found, tiers
from pendula.governance.machines import Arrow, Machine
from pendula.governance.messages import WayOut, WhyObject, object_of
from pendula.governance.model import Governed
from pendula.governance.tables import tables_of
from pendula.jobs.audit import Row
from pendula.jobs.messages import utc_or_null
from pendula.jobs.model import Job, Policy, Refused, Status
from pendula.jobs.sentences import members_in_words, sentence_of
from pendula.jobs.store.protocol import AuditListing, Listing, Reader
from pendula.kernel.canonical import Json, decode
from pendula.kernel.time import format_utc

EVENTS_AT_ONCE = 1000
JOBS_LOOKED_AT = 100  # waiting jobs of one object; usually there is one, more only if more were enqueued


def why(look: Reader, object_type: str, object_id: str, policy: Policy, now: int) -> WhyObject | Refused:
    machine = machine_of(policy, object_type)
    if isinstance(machine, Refused):
        return machine
    subject = tables_of(look).governed(object_type, object_id)
    if subject is None:
        return object_not_found(object_type, object_id)
    cause = _cause(look, subject)
    job = _next_job(look, subject)
    obstacle = _obstacle(look, subject, machine, policy, now) or _explain_missing_job(look, subject, job, policy)
    coming, at = (subject.next_action, subject.next_action_at) if job is None else (job.action, job.run_at)
    risk, impact = tiers(tables_of(look), subject)
    return WhyObject(
        sentence=_sentence(subject, cause, obstacle, job),
        status=subject.place,
        because=cause,
        next_action=coming,
        next_action_at=utc_or_null(at),
        next_job_id=None if job is None else job.job_id,
        in_the_way=obstacle,
        risk_tier=risk,
        impact_tier=impact,
        ways_out=[
            WayOut(arrow.action, arrow.finding, arrow.target)
            for arrow in machine.arrows
            if arrow.source == subject.place
        ],
        object=object_of(subject),
    )


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
        last = next(filter(None, (_transition_facts(row) for row in reversed(rows))), last)
        page = replace(page, after=rows[-1].n)
    return last


def _transition_facts(row: Row) -> dict[str, Json] | None:
    """The facts of an audit event, if it changed the state."""
    event = decode(row.body.encode())
    assert isinstance(event, dict)
    after = event["after"]
    reason = event["reason"]
    assert isinstance(after, dict)
    assert isinstance(reason, dict)
    if event["before"] is not None and after.get("transitioned") is not True:
        return None
    facts: dict[str, Json] = {"event": event["id"], "at": event["timestamp"], "reason": sentence_of(reason)}
    return {**facts, "job_id": event["job_id"], "actor": event["actor"], "evidence_refs": event["evidence_refs"]}


def _obstacle(look: Reader, subject: Governed, machine: Machine, policy: Policy, now: int) -> str | None:
    """What would stop the next action if it ran now, or keep it from raising the trust."""
    if subject.rollback_pending:
        return "the rollback of what was built on it is not finished"
    if subject.closed is not None:
        return f"it is closed: it {subject.closed}"
    if subject.next_action is None:
        return None
    context = action_context(tables_of(look), subject, subject.next_action, policy, now)
    ending = decisions.enter(subject, machine, context)
    if not isinstance(ending, Ending):
        return _explain_no_promotion(subject, machine, context)
    stops = ending.error is not None or ending.outcome in (Outcome.BUDGET_EXHAUSTED, Outcome.DEFERRED)
    return sentence_of(ending.reason) if stops else None


def _explain_no_promotion(subject: Governed, machine: Machine, context: ActionContext) -> str | None:
    """Why every promotion by the next action is blocked; None if one is open or there is none."""
    upwards = [
        arrow
        for arrow in machine.arrows
        if (arrow.source, arrow.action) == (subject.place, context.action) and machine.promotes(arrow)
    ]
    obstacles = [_obstacle_of(arrow, subject, machine, context) for arrow in upwards]
    return obstacles[0] if obstacles and None not in obstacles else None


def _obstacle_of(arrow: Arrow, subject: Governed, machine: Machine, context: ActionContext) -> str | None:
    """The first obstacle of a promotion, in the order in which a job would meet them."""
    is_risky = is_high_risk(context.risk, context.impact)
    own = read([gate for gate in context.gates if gate.name in arrow.gates], arrow.gates)
    for reading in (own, read(context.gates, REQUIRED) if is_risky else NO_GATES):
        match reading.passage:
            case Passage.UNAVAILABLE:
                return sentence_of(explain_missing(reading))
            case Passage.BLOCKED:
                return f"{reading.decided_by} blocks it"
            case Passage.DEFERRED:
                return f"{reading.decided_by} puts it off"
            case Passage.LOWERING_ONLY:
                return f"{reading.decided_by} allows only what lowers trust"
    if is_risky and subject.place in machine.uncertain:
        return "no job promotes an uncertain object of high risk; a person has to decide"
    if needed := decisions.lacking(subject, machine.needs.get(arrow.target, ())):
        return f"to become {arrow.target} it needs {members_in_words(needed)}"
    return None


def _explain_missing_job(look: Reader, subject: Governed, job: Job | None, policy: Policy) -> str | None:
    """An object with a date but no job: its last job was cancelled or given up and must be requeued."""
    if job is not None or subject.next_action is None or not policy.auto_followup:
        return None
    listing = Listing(object_type=subject.object_type, object_id=subject.object_id, limit=1)
    last_job = "".join(f": {job.job_id} is {job.status}" for job in look.jobs(listing))
    return f"no job waits for it{last_job}"


def _next_job(look: Reader, subject: Governed) -> Job | None:
    """The running job of the object, else the queued one that is due first."""
    for status in (Status.RUNNING, Status.QUEUED):
        listing = Listing(
            object_type=subject.object_type, object_id=subject.object_id, status=status, limit=JOBS_LOOKED_AT
        )
        if jobs := look.jobs(listing):
            return min(jobs, key=lambda job: (job.run_at, job.seq))
    return None


def _sentence(subject: Governed, cause: dict[str, Json] | None, obstacle: str | None, job: Job | None) -> str:
    since = "" if cause is None else f" since {cause['at']}, because {cause['reason']}"
    in_the_way = "" if obstacle is None else f"; in the way: {obstacle}"
    verb = "is" if cause is None else "has been"
    state = f"{subject.object_type} {subject.object_id} {verb} {subject.place}{since}"
    return f"{state}; {_describe_next(subject, job)}{in_the_way}."


def _describe_next(subject: Governed, job: Job | None) -> str:
    if job is not None and job.status == Status.RUNNING:
        return f"{job.action} is at work ({job.job_id}, {job.worker_id})"
    if job is not None:
        again = f", after {job.attempt} of {job.max_attempts} attempts" if job.attempt else ""
        return f"next comes {job.action} at {format_utc(job.run_at)} ({job.job_id}{again})"
    if subject.next_action is None or subject.next_action_at is None:
        return "nothing is left to do"
    return f"next comes {subject.next_action} at {format_utc(subject.next_action_at)}"
