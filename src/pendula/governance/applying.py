"""Apply an ending to an object: state, audit events, decision trace, alerts, rollback and follow-up job.

The caller ends the job itself, in the same transaction. An object has one scheduled job, for its next date: created
with the date and replaced with it. Jobs that a client enqueued for the object stay.
"""

from collections.abc import Iterator, Sequence
from functools import partial

from msgspec import Struct

from pendula.governance.decisions import ActionContext, Ending, How, Outcome
from pendula.governance.gates import is_high_risk
from pendula.governance.messages import changes
from pendula.governance.model import DAY_US, Governed, Mode, Risk
from pendula.governance.tables import GovernedTables, tables_of
from pendula.jobs import decide
from pendula.jobs.audit import GATE_EVENT, INVESTIGATION_EVENT, ROLLBACK_EVENT, STATE_EVENT, GovernanceEvent
from pendula.jobs.decide import SUPERSEDED
from pendula.jobs.messages import Enqueue
from pendula.jobs.model import VERIFICATIONS, Actor, Job, Policy, Status
from pendula.jobs.reasons import Reason, reason_json
from pendula.jobs.store.protocol import Listing, ObjectRow, Writer
from pendula.jobs.transaction import FOLLOWUP, enqueue_next
from pendula.kernel.canonical import Json
from pendula.kernel.time import format_utc

Change = tuple[dict[str, Json] | None, dict[str, Json]]  # members before and after


class AppliedEnding(Struct, frozen=True):
    """The ids of the decision trace and of the follow-up job."""

    trace: str | None = None
    followup: str | None = None


def apply_ending(
    tx: Writer,
    before: Governed,
    ending: Ending,
    context: ActionContext,
    actor: Actor,
    *,
    job: Job | None,
    policy: Policy,
) -> AppliedEnding:
    trace = _add_trace(tx, ending, context, job)
    _count(tx, before, ending)
    tell = partial(
        record,
        tx,
        subject=ending.subject,
        reason=ending.reason,
        actor=actor,
        now=context.now,
        refs=ending.evidence,
        job=job,
        tier=tier_without_trace(context.risk) if trace is None else context.risk.value,
        trace=trace,
    )
    if trace is not None and (ending.subject == before or ending.how is not How.ACK):
        tell(GATE_EVENT, change=_checked(ending))
    if ending.subject != before:
        put(tx, ending.subject)
        tell(STATE_EVENT, change=_moved(before, ending.subject))
    if ending.escalation is not None:
        _escalate(tx, ending, context, job)
    if ending.rollback:
        ask_rollback(tx, ending.subject, ending.reason, actor, context.now, refs=ending.evidence, job=job)
    if ending.closes:
        _close_waiting(tx, ending.subject, actor, context.now, but=job)
    if ending.how is not How.ACK and ending.subject == before:
        return AppliedEnding(trace)
    return AppliedEnding(trace, follow_up(tx, before, ending.subject, actor, policy, job=job))


def put(tx: Writer, subject: Governed) -> None:
    """Store the object and its row in the table of all objects."""
    tables_of(tx).put(subject)
    row = ObjectRow(subject.object_type, subject.object_id, subject.next_action_at, subject.version, subject.status)
    tx.put_object(row)


def record(
    tx: Writer,
    event_type: str,
    subject: Governed,
    change: Change,
    reason: Reason,
    actor: Actor,
    now: int,
    *,
    refs: Sequence[str] = (),
    job: Job | None = None,
    tier: str | None = None,
    trace: str | None = None,
) -> None:
    """Write the audit event of a change: the members before and after it."""
    before, after = change
    event = GovernanceEvent(
        event_type=event_type,
        object_type=subject.object_type,
        object_id=subject.object_id,
        before=before,
        after=after,
        reason=reason,
        evidence=evidence_of(subject, refs),
        job=job,
        risk_tier=tier,
        trace_id=trace,
    )
    tx.governance_event(event, actor, now)


def tier_without_trace(risk: Risk) -> str | None:
    """The tier of an event without a decision trace, which an event of high tier must name."""
    return None if risk is Risk.HIGH else risk.value


def evidence_of(subject: Governed, refs: Sequence[str]) -> tuple[str, ...]:
    """The references of a decision; by default the evidence of the object, else its sources."""
    return tuple(refs) or subject.evidence or subject.sources


def _add_trace(tx: Writer, ending: Ending, context: ActionContext, job: Job | None) -> str | None:
    """Store the trace of a high-risk decision."""
    if ending.executed is None or ending.reading is None:
        return None
    body: dict[str, Json] = {
        "at": format_utc(context.now),
        "action": context.action,
        "outcome": ending.executed.value,
        "verdicts": {**ending.reading.verdicts},
        "versions": {**ending.reading.versions},
        "reason": reason_json(ending.reason),
        "evidence_refs": [*evidence_of(ending.subject, ending.evidence)],
        "risk_tier": context.risk.value,
        "job_id": None if job is None else job.job_id,
    }
    return tables_of(tx).add_trace(ending.subject.object_type, ending.subject.object_id, body)


def _count(tx: Writer, before: Governed, ending: Ending) -> None:
    governance = tables_of(tx)
    governance.count("outcome", ending.outcome.value)
    if ending.reading is not None:
        for name, verdict in ending.reading.verdicts.items():
            governance.count("gate", f"{name} {verdict}")
    if ending.escalation is not None:
        governance.count("escalation", ending.subject.object_type)
    if ending.closes:
        governance.count("ontic_closure", ending.subject.object_type)
    count_granted(tx, before, ending.subject)
    if ending.subject.place != before.place:
        governance.count("entered", f"{ending.subject.object_type} {ending.subject.place}")


def count_granted(tx: Writer, before: Governed | None, after: Governed) -> None:
    """Count granted units of budget, for comparison with those used."""
    granted = after.verify_budget_left - (0 if before is None else before.verify_budget_left)
    if granted > 0:
        tables_of(tx).count("budget_granted", after.object_type, granted)


def _moved(before: Governed, after: Governed) -> Change:
    old, new = changes(before, after)
    return {**_place(before), **(old or {})}, {**_place(after), **new, "transitioned": after.place != before.place}


def _checked(ending: Ending) -> Change:
    """The gates did not let the state change: blocked, deferred or unavailable."""
    assert ending.reading is not None
    assert ending.executed is not None
    place = _place(ending.subject)
    return place, {**place, "verdicts": {**ending.reading.verdicts}, "outcome": ending.executed.value}


def _place(subject: Governed) -> dict[str, Json]:
    axes: dict[str, Json] = {"status": subject.status}
    return axes if subject.epistemic is None else {**axes, "epistemic_state": subject.epistemic}


def _escalate(tx: Writer, ending: Ending, context: ActionContext, job: Job | None) -> None:
    """Store an alert that asks a person to decide."""
    assert ending.escalation is not None
    subject = ending.subject
    cause = f"{subject.version}" if job is None else f"{job.job_id}:{job.delivery_count}"
    if job is not None and job.status != Status.RUNNING:
        cause += f":{tx.next_event_id()}"  # without a delivery the same job can be blocked again after a requeue
    alert_id = f"escalation:{subject.ref}:{cause}"
    body: dict[str, Json] = {
        "alert": "governance.escalation",
        "alert_id": alert_id,
        "severity": "critical" if is_high_risk(context.risk, context.impact) else "warning",
        "object_type": subject.object_type,
        "object_id": subject.object_id,
        "action": context.action,
        "reason": reason_json(ending.escalation),
        "status": subject.place,
        "job_id": None if job is None else job.job_id,
        "at": format_utc(context.now),
    }
    tx.alert(alert_id, body)


def ask_rollback(
    tx: Writer,
    subject: Governed,
    reason: Reason,
    actor: Actor,
    now: int,
    *,
    refs: Sequence[str] = (),
    job: Job | None = None,
) -> None:
    """Store one durable request for the rollback service."""
    n = tables_of(tx).ask_rollback(subject, reason, None if job is None else job.job_id, now)
    asked: dict[str, Json] = {"rollback_id": f"rb_{n:012d}", "rollback_pending": True}
    record(tx, ROLLBACK_EVENT, subject, (None, asked), reason, actor, now, refs=refs, job=job)


def _close_waiting(tx: Writer, subject: Governed, actor: Actor, now: int, *, but: Job | None) -> None:
    """End the waiting verifications of the object."""
    for waiting in waiting_jobs(tx, subject):
        if waiting.action in VERIFICATIONS and (but is None or waiting.job_id != but.job_id):
            give_up(tx, waiting, Outcome.LIMIT_REACHED.value, actor, now)


def spend(tx: Writer, before: Governed, after: Governed, actor: Actor, job: Job, now: int) -> None:
    """Take one unit of the budget, durably, before the verification runs."""
    put(tx, after)
    reason = Reason("verification_begins", {"number": after.verifications})
    record(tx, INVESTIGATION_EVENT, after, changes(before, after), reason, actor, now, job=job)
    tables_of(tx).count("verification", after.object_type)
    record_exploration(tables_of(tx), after, now)


RUNNING_MOST = 1000  # jobs of one object


def follow_up(
    tx: Writer, before: Governed | None, after: Governed, actor: Actor, policy: Policy, *, job: Job | None = None
) -> str | None:
    """Enqueue the job for the object's next date and return its id. The job for the previous date is given up, unless
    it is `job` itself."""
    if not policy.auto_followup:
        return None
    following = _next(tx, after, actor, policy, job)
    if before is not None and not (job is not None and stands_for(before, job)):
        instead = "nothing_left" if following is None else following
        for waiting in waiting_jobs(tx, before):
            if waiting.job_id != following and stands_for(before, waiting):
                give_up(tx, waiting, f"{SUPERSEDED}{instead}", actor, after.updated_at)
                tables_of(tx).count("superseded", after.object_type)
    return following


def waiting_jobs(tx: Writer, subject: Governed) -> list[Job]:
    """The queued jobs of an object, the oldest first."""
    jobs = (tx.job(job_id) for job_id in tables_of(tx).waiting(subject.object_type, subject.object_id))
    return [job for job in jobs if job is not None and job.status == Status.QUEUED]


def give_up(tx: Writer, job: Job, error: str, actor: Actor, now: int) -> None:
    """End a waiting job that is not needed any more."""
    done = decide.given_up(job, error, now)
    tx.change(job, done.job, done.touched, done.reason, actor)


def _next(tx: Writer, subject: Governed, actor: Actor, policy: Policy, job: Job | None) -> str | None:
    if subject.next_action is None or subject.next_action_at is None:
        return None
    follow = Enqueue(
        object_type=subject.object_type,
        object_id=subject.object_id,
        action=subject.next_action,
        run_at=subject.next_action_at,
        priority=policy.default_priority if job is None else job.priority,
        max_attempts=policy.default_max_attempts if job is None else job.max_attempts,
        idempotency_key=None,
        correlation_id=None if job is None else job.correlation_id,
        queue="default" if job is None else job.queue,
    )
    after = f"{subject.ref} {subject.version}" if job is None else job.idempotency_key
    return enqueue_next(tx, follow, after, actor, subject.updated_at)


def stands_for(subject: Governed, job: Job) -> bool:
    """Whether this is the scheduled job of the object's date. (A retry changes `run_at`, never `scheduled_for`.)"""
    if (job.action, job.scheduled_for) != (subject.next_action, subject.next_action_at):
        return False
    derived = decide.derived_key(job, job.scheduled_for)
    return job.idempotency_key == derived or job.idempotency_key.startswith(FOLLOWUP)


def is_awaited(tx: Writer, subject: Governed, *, but: Job) -> bool:
    """Whether another job waits or runs for the object's date."""
    listing = Listing(
        object_type=subject.object_type, object_id=subject.object_id, status=Status.RUNNING, limit=RUNNING_MOST
    )
    jobs = [*waiting_jobs(tx, subject), *tx.jobs(listing)]
    return any(job.job_id != but.job_id and stands_for(subject, job) for job in jobs)


STALLED_PERIODS = 3
GOVERNED_ON, EXPLORED_ON = "governed_on", "explored_on"
INTERNAL_COUNTS = frozenset({GOVERNED_ON, EXPLORED_ON})  # kinds of counts that only this module reads
EXPLORING = frozenset({Mode.EXPLORE, Mode.COLLECT})


class Stall(Struct, frozen=True):
    """A number of whole periods without an exploratory verification, since an instant; the last was on day `last`."""

    periods: int
    last: int
    since: int


def record_governed(tx: GovernedTables, now: int) -> None:
    """Record that an object came under governance, which starts the count of periods."""
    tx.count(GOVERNED_ON, str(now // DAY_US))


def record_exploration(tx: GovernedTables, subject: Governed, now: int) -> None:
    """Record a verification, if it is exploratory."""
    if subject.decision_mode in EXPLORING:
        tx.count(EXPLORED_ON, str(now // DAY_US))


def stall(look: GovernedTables, period_days: int, now: int) -> Stall | None:
    """The current stall, or None; there is none without governed objects."""
    counts = look.counts()
    first = min(_days(counts, GOVERNED_ON), default=None)
    if first is None:
        return None
    last = max([first, *_days(counts, EXPLORED_ON)])
    current, latest = now // DAY_US // period_days, last // period_days
    periods = current - latest - 1
    since = (latest + 1) * period_days * DAY_US
    return Stall(periods, last, since) if periods >= STALLED_PERIODS else None


def _days(counts: list[tuple[str, str, int]], kind: str) -> Iterator[int]:
    return (int(word) for counted, word, _ in counts if counted == kind)
