"""Objects under governance, kept by people: made, given evidence, decided about, refilled, reported rolled back.

Every change goes through the same machine as that of a job, and is in the trail with who made it and why.
"""

from typing import Any

from msgspec.structs import replace

from pendula.jobs.audit import ROLLBACK_EVENT, STATE_EVENT, GovernanceEvent
from pendula.jobs.calls.replies import Answer, Body, Reply
from pendula.jobs.governance.bodies import (
    NewObject,
    read_decision,
    read_evidence,
    read_new,
    read_reason,
    read_refill,
)
from pendula.jobs.governance.carrying_out import carry_out, count_granted, evidence_of, next_job, put
from pendula.jobs.governance.judging import machine_of, no_object, question, tiers, unfit_evidence
from pendula.jobs.governance.showing import changes, ending_json, object_json, rollback_json
from pendula.jobs.model import Actor, Code, Policy, Refused
from pendula.jobs.objects import budgets, deciding
from pendula.jobs.objects.applying import dated
from pendula.jobs.objects.endings import How
from pendula.jobs.objects.governed import Epistemic, Governed, Risk, Unknown
from pendula.jobs.objects.machine import Machine
from pendula.jobs.request_reading import Faults
from pendula.jobs.store.protocol import Writer
from pendula.kernel.canonical import Json


def create(tx: Writer, body: Body, actor: Actor, policy: Policy, now: int) -> Answer:
    """Put an object under governance; its first job is made with it."""
    request = read_new(body)
    if isinstance(request, Faults):
        return request.refusal()
    machine = machine_of(policy, request.object_type)
    if isinstance(machine, Refused):
        return machine
    if tx.governance.governed(request.object_type, request.object_id) is not None:
        details: dict[str, Json] = {"object_type": request.object_type, "object_id": request.object_id}
        message = f"{request.object_type} {request.object_id} is under governance already"
        return Refused(Code.OBJECT_EXISTS, message, details)
    subject = _made(request, machine, policy, now)
    if isinstance(subject, Refused):
        return subject
    put(tx, subject)
    count_granted(tx, None, subject)
    _tell(tx, STATE_EVENT, None, subject, request.reason, actor)
    followup = next_job(tx, subject, actor, policy, now, job=None)
    return Reply(201, {"object": object_json(subject), "followup_job_id": followup})


def attach_evidence(
    tx: Writer, object_type: str, object_id: str, body: Body, actor: Actor, policy: Policy, now: int
) -> Answer:
    """New references for an object. One that makes the unknowable knowable opens it again."""
    request = read_evidence(body)
    if isinstance(request, Faults):
        return request.refusal()
    found = _found(tx, object_type, object_id, policy, request.version)
    if isinstance(found, Refused):
        return found
    subject, machine = found
    after = replace(subject, evidence=tuple(dict.fromkeys((*subject.evidence, *request.refs))))
    if request.unknown_type is not None and subject.place in machine.uncertain:
        risk, _ = tiers(tx.governance, subject)
        after = replace(
            after,
            unknown_type=request.unknown_type,
            decision_mode=budgets.decision_mode(request.unknown_type, risk),
            closed=subject.closed if request.unknown_type is Unknown.ONTIC_UNKNOWABLE else None,
        )
    return _kept(tx, subject, dated(after, machine, now), request.reason, actor, policy=policy, refs=request.refs)


def refill(tx: Writer, object_type: str, object_id: str, body: Body, actor: Actor, policy: Policy, now: int) -> Answer:
    """A named user gives an object a new budget of verifications: the only refill beside new evidence."""
    request = read_refill(body)
    if isinstance(request, Faults):
        return request.refusal()
    if (refused := _nobody(actor)) is not None:
        return refused
    found = _found(tx, object_type, object_id, policy, None)
    if isinstance(found, Refused):
        return found
    subject, machine = found
    after = budgets.refilled(subject, policy.limits.auto_verify_budget)
    if request.budget is not None:
        after = replace(after, verify_budget_left=request.budget)
    return _kept(tx, subject, dated(after, machine, now), request.reason, actor, policy=policy)


def decide_by_hand(
    tx: Writer, object_type: str, object_id: str, body: Body, actor: Actor, policy: Policy, now: int
) -> Answer:
    """What a person found, through the same machine and the same gates as a job; the budget is for jobs."""
    request = read_decision(body)
    if isinstance(request, Faults):
        return request.refusal()
    if (refused := _nobody(actor)) is not None:
        return refused
    found = _found(tx, object_type, object_id, policy, request.version)
    if isinstance(found, Refused):
        return found
    subject, machine = found
    asked = replace(question(tx.governance, subject, request.action, policy, now), automatic=False)
    wrong = unfit_evidence(tx.governance, request.verdict.evidence, asked.risk)
    if wrong is not None and request.verdict.finding in deciding.PROMOTING:
        return Refused(Code.ILLEGAL_TRANSITION, wrong, {"object_type": object_type, "object_id": object_id})
    ending = deciding.conclude(subject, machine, asked, request.verdict)
    if ending.how is not How.ACK:
        code = Code.ILLEGAL_TRANSITION if ending.how is How.FAIL and ending.reading is None else Code.GATE_CLOSED
        details: dict[str, Json] = {"object_type": object_type, "object_id": object_id, **ending_json(ending, None)}
        return Refused(code, str(ending.error or ending.reason), details)
    carried = carry_out(tx, subject, ending, asked, actor, job=None, policy=policy)
    told: dict[str, Json] = {
        **ending_json(ending, carried.trace),
        "object": object_json(ending.subject),
        "followup_job_id": carried.followup,
    }
    return Reply(200, told)


def rollback_finished(
    tx: Writer, object_type: str, object_id: str, body: Body, actor: Actor, policy: Policy, now: int
) -> Answer:
    """The rollback service reports that all built on the object is taken back: it may be archived."""
    reason = read_reason(body)
    if isinstance(reason, Faults):
        return reason.refusal()
    found = _found(tx, object_type, object_id, policy, None)
    if isinstance(found, Refused):
        return found
    subject, machine = found
    tx.governance.finish_rollbacks(object_type, object_id, now)
    if subject.rollback_pending:
        after = dated(replace(subject, rollback_pending=False), machine, now)
        put(tx, after)
        reported = replace(subject, rollback_pending=False, updated_at=now)
        _tell(tx, ROLLBACK_EVENT, subject, reported, reason, actor)
        _tell(tx, STATE_EVENT, subject, after, reason, actor)
        subject = after
    told: list[Json] = [rollback_json(one) for one in tx.governance.rollbacks(object_type, object_id)]
    return Reply(200, {"object": object_json(subject), "rollbacks": told})


def _made(request: NewObject, machine: Machine, policy: Policy, now: int) -> Governed | Refused:
    status, _, epistemic = machine.first.partition("/")
    place = _place(request, status, epistemic)
    if place not in machine.trust:
        faults = Faults()
        states = sorted({name.partition("/")[0] for name in machine.trust})
        faults.add("status", Code.INVALID_ENUM, allowed=[*states], places=[*sorted(machine.trust)])
        return faults.refusal(f"there is no state {place}; the states are {', '.join(sorted(machine.trust))}")
    status, _, axis = place.partition("/")
    members: dict[str, Any] = {"created_at": now, "updated_at": now, **request.members}
    members.setdefault("auto_verify_budget", policy.limits.auto_verify_budget)
    subject = Governed(
        object_type=request.object_type,
        object_id=request.object_id,
        status=status,
        epistemic=axis or None,
        version=0,
        verify_budget_left=members["auto_verify_budget"],
        **members,
    )
    if place in machine.uncertain:
        ttl = policy.limits.uncertainty_ttl
        mode = subject.decision_mode
        subject = budgets.made_uncertain(subject, subject.unknown_type, subject.risk_tier, ttl, now)
        subject = subject if mode is None else replace(subject, decision_mode=mode)
    if lacking := deciding.lacking(subject, machine.needs.get(place, ())):
        return _incomplete(subject, lacking)
    return dated(subject, machine, now)


def _place(request: NewObject, first_status: str, first_axis: str) -> str:
    status = request.status or first_status
    axis = request.epistemic or _usual_axis(status, first_status, first_axis)
    return f"{status}/{axis}" if axis else status


def _usual_axis(status: str, first_status: str, first_axis: str) -> str:
    """The second axis where only the first is told."""
    if not first_axis or status == first_status:
        return first_axis
    return {"active": Epistemic.SUPPORTED, "refuted": Epistemic.REFUTED}.get(status, Epistemic.UNCERTAIN).value


def _incomplete(subject: Governed, lacking: list[str]) -> Refused:
    faults = Faults()
    for name in lacking:
        faults.add(name, Code.MISSING_FIELD)
    return faults.refusal(f"an object in {subject.place} needs {', '.join(lacking)}")


def _found(
    tx: Writer, object_type: str, object_id: str, policy: Policy, version: int | None
) -> tuple[Governed, Machine] | Refused:
    machine = machine_of(policy, object_type)
    if isinstance(machine, Refused):
        return machine
    subject = tx.governance.governed(object_type, object_id)
    if subject is None:
        return no_object(object_type, object_id)
    if version is not None and version != subject.version:
        details: dict[str, Json] = {"version": subject.version, "given": version}
        return Refused(Code.STATE_CONFLICT, f"the object is at version {subject.version}, not {version}", details)
    return subject, machine


def _nobody(actor: Actor) -> Refused | None:
    """What only a named user may do."""
    if actor.type == "user" and actor.id:
        return None
    return Refused(Code.USER_REQUIRED, "only a named user may do this; say who you are", {"actor": actor.type})


def _kept(
    tx: Writer,
    before: Governed,
    after: Governed,
    reason: str,
    actor: Actor,
    *,
    policy: Policy,
    refs: tuple[str, ...] = (),
) -> Reply:
    put(tx, after)
    count_granted(tx, before, after)
    _tell(tx, STATE_EVENT, before, after, reason, actor, refs=refs)
    followup = next_job(tx, after, actor, policy, after.updated_at, job=None)
    return Reply(200, {"object": object_json(after), "followup_job_id": followup})


def _tell(
    tx: Writer,
    event_type: str,
    before: Governed | None,
    after: Governed,
    reason: str,
    actor: Actor,
    *,
    refs: tuple[str, ...] = (),
) -> None:
    old, new = changes(before, after)
    event = GovernanceEvent(
        event_type=event_type,
        object_type=after.object_type,
        object_id=after.object_id,
        before=old,
        after=new,
        reason=reason,
        evidence=evidence_of(after, refs),
        # No decision was made here, so there is no trace to name, which the tier high would need.
        risk_tier=None if after.risk_tier is Risk.HIGH else after.risk_tier.value,
    )
    tx.governance_event(event, actor, after.updated_at)
