"""An ending is carried out: the object, its trail and trace, who is told, what is closed, what comes next; or nothing.

What becomes of the job itself is carried out by the caller, in the same transaction.
"""

from collections.abc import Sequence

from msgspec import Struct

from pendula.jobs.audit import GATE_EVENT, INVESTIGATION_EVENT, ROLLBACK_EVENT, STATE_EVENT, GovernanceEvent
from pendula.jobs.governing.followups import follow_up, give_up, waiting_jobs
from pendula.jobs.governing.learning import explored
from pendula.jobs.governing.showing import changes
from pendula.jobs.model import Actor, Job, Policy, Status
from pendula.jobs.objects.endings import Asked, Ending, How, Outcome
from pendula.jobs.objects.gates import is_high_risk
from pendula.jobs.objects.governed import VERIFICATIONS, Governed, Risk
from pendula.jobs.objects.reasons import Reason, reason_json
from pendula.jobs.store.protocol import ObjectRow, Writer
from pendula.kernel.canonical import Json
from pendula.kernel.time import format_utc


class Carried(Struct, frozen=True):
    """What was written: the id of the decision trace, and of the job that comes next."""

    trace: str | None = None
    followup: str | None = None


def carry_out(
    tx: Writer, before: Governed, ending: Ending, asked: Asked, actor: Actor, *, job: Job | None, policy: Policy
) -> Carried:
    trace = _traced(tx, ending, asked, job)
    _counted(tx, before, ending)
    if trace is not None and (ending.subject == before or ending.how is not How.ACK):
        _gate_event(tx, ending, asked, actor, job, trace)
    if ending.subject != before:
        put(tx, ending.subject)
        _told(tx, before, ending, asked, actor, job=job, trace=trace)
    if ending.escalation is not None:
        _escalated(tx, ending, asked, job)
    if ending.rollback:
        ask_rollback(tx, ending.subject, ending.reason, actor, asked.now, refs=ending.evidence, job=job)
    if ending.closes:
        _close_waiting(tx, ending.subject, actor, asked.now, but=job)
    if ending.how is not How.ACK and ending.subject == before:
        return Carried(trace)
    return Carried(trace, follow_up(tx, before, ending.subject, actor, policy, job=job))


def put(tx: Writer, subject: Governed) -> None:
    """The object with its row among all objects, which shows its state and its next time."""
    tx.governance.put(subject)
    row = ObjectRow(subject.object_type, subject.object_id, subject.next_action_at, subject.version, subject.status)
    tx.put_object(row)


def evidence_of(subject: Governed, said: Sequence[str]) -> tuple[str, ...]:
    """The references a decision rests on; where there are none, the sources of the object."""
    return tuple(said) or subject.evidence or subject.sources


def _traced(tx: Writer, ending: Ending, asked: Asked, job: Job | None) -> str | None:
    """How a decision of high risk came about, kept."""
    if ending.executed is None or ending.reading is None:
        return None
    body: dict[str, Json] = {
        "at": format_utc(asked.now),
        "action": asked.action,
        "outcome": ending.executed.value,
        "verdicts": {**ending.reading.verdicts},
        "versions": {**ending.reading.versions},
        "reason": reason_json(ending.reason),
        "evidence_refs": [*evidence_of(ending.subject, ending.evidence)],
        "risk_tier": asked.risk.value,
        "job_id": None if job is None else job.job_id,
    }
    return tx.governance.add_trace(ending.subject.object_type, ending.subject.object_id, body)


def _counted(tx: Writer, before: Governed, ending: Ending) -> None:
    governance = tx.governance
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
    """Units of budget that the object was given, to be held against those it used."""
    granted = after.verify_budget_left - (0 if before is None else before.verify_budget_left)
    if granted > 0:
        tx.governance.count("budget_granted", after.object_type, granted)


def _told(
    tx: Writer, before: Governed, ending: Ending, asked: Asked, actor: Actor, *, job: Job | None, trace: str | None
) -> None:
    old, new = changes(before, ending.subject)
    transitioned = ending.subject.place != before.place
    event = GovernanceEvent(
        event_type=STATE_EVENT,
        object_type=before.object_type,
        object_id=before.object_id,
        before={**_place(before), **(old or {})},
        after={**_place(ending.subject), **new, "transitioned": transitioned},
        reason=ending.reason,
        evidence=evidence_of(ending.subject, ending.evidence),
        job=job,
        risk_tier=_tier(asked, trace),
        trace_id=trace,
    )
    tx.governance_event(event, actor, asked.now)


def _place(subject: Governed) -> dict[str, Json]:
    both: dict[str, Json] = {"status": subject.status}
    return both if subject.epistemic is None else {**both, "epistemic_state": subject.epistemic}


def _tier(asked: Asked, trace: str | None) -> str | None:
    # At tier high an event names its trace; without one nothing was decided at that tier.
    return None if asked.risk is Risk.HIGH and trace is None else asked.risk.value


def _gate_event(tx: Writer, ending: Ending, asked: Asked, actor: Actor, job: Job | None, trace: str) -> None:
    """The gates were asked and the state did not change: blocked, put off, or not to be read."""
    assert ending.reading is not None
    assert ending.executed is not None
    subject = ending.subject
    event = GovernanceEvent(
        event_type=GATE_EVENT,
        object_type=subject.object_type,
        object_id=subject.object_id,
        before=_place(subject),
        after={**_place(subject), "verdicts": {**ending.reading.verdicts}, "outcome": ending.executed.value},
        reason=ending.reason,
        evidence=evidence_of(subject, ending.evidence),
        job=job,
        risk_tier=_tier(asked, trace),
        trace_id=trace,
    )
    tx.governance_event(event, actor, asked.now)


def _escalated(tx: Writer, ending: Ending, asked: Asked, job: Job | None) -> None:
    """A person is asked, through the delivery that alerts have."""
    assert ending.escalation is not None
    subject = ending.subject
    cause = f"{subject.version}" if job is None else f"{job.job_id}:{job.delivery_count}"
    if job is not None and job.status != Status.RUNNING:
        cause += f":{tx.next_event_id()}"  # without a delivery it may be stopped again after a requeue
    alert_id = f"escalation:{subject.ref}:{cause}"
    body: dict[str, Json] = {
        "alert": "governance.escalation",
        "alert_id": alert_id,
        "severity": "critical" if is_high_risk(asked.risk, asked.impact) else "warning",
        "object_type": subject.object_type,
        "object_id": subject.object_id,
        "action": asked.action,
        "reason": reason_json(ending.escalation),
        "status": subject.place,
        "job_id": None if job is None else job.job_id,
        "at": format_utc(asked.now),
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
    """Hand the object to the rollback service: one durable wish."""
    n = tx.governance.ask_rollback(subject, reason, None if job is None else job.job_id, now)
    event = GovernanceEvent(
        event_type=ROLLBACK_EVENT,
        object_type=subject.object_type,
        object_id=subject.object_id,
        before=None,
        after={"rollback_id": f"rb_{n:012d}", "rollback_pending": True},
        reason=reason,
        evidence=evidence_of(subject, refs),
        job=job,
    )
    tx.governance_event(event, actor, now)


def _close_waiting(tx: Writer, subject: Governed, actor: Actor, now: int, *, but: Job | None) -> None:
    """No verification of it is waited for any more."""
    for waiting in waiting_jobs(tx, subject):
        if waiting.action in VERIFICATIONS and (but is None or waiting.job_id != but.job_id):
            give_up(tx, waiting, Outcome.LIMIT_REACHED.value, actor, now)


def spend(tx: Writer, before: Governed, after: Governed, actor: Actor, job: Job, now: int) -> None:
    """One unit of the budget, durably, before anything is verified."""
    put(tx, after)
    old, new = changes(before, after)
    event = GovernanceEvent(
        event_type=INVESTIGATION_EVENT,
        object_type=after.object_type,
        object_id=after.object_id,
        before=old,
        after=new,
        reason=Reason("verification_begins", {"number": after.verifications}),
        evidence=evidence_of(after, ()),
        job=job,
    )
    tx.governance_event(event, actor, now)
    tx.governance.count("verification", after.object_type)
    explored(tx.governance, after, now)
