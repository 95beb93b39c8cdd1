"""Objects under governance, kept by people: made, given evidence, decided about, refilled, reported rolled back.

Every change goes through the same machine as that of a job, and is in the trail with who made it and why.
"""

from typing import Any

from msgspec.structs import replace

from pendula.jobs.audit import ROLLBACK_EVENT, STATE_EVENT, GovernanceEvent
from pendula.jobs.governance.bodies import (
    Amendment,
    Decision,
    NewObject,
    read_amendment,
    read_decision,
    read_evidence,
    read_new,
    read_reason,
    read_refill,
)
from pendula.jobs.governing import learning
from pendula.jobs.governing.carrying_out import ask_rollback, carry_out, count_granted, evidence_of, put
from pendula.jobs.governing.followups import follow_up
from pendula.jobs.governing.judging import (
    is_promotion,
    machine_of,
    no_object,
    overladen,
    question,
    tiers,
    unfit_evidence,
    user_required,
)
from pendula.jobs.governing.showing import changes, ending_json, object_json, rollback_json
from pendula.jobs.model import Actor, Code, Policy, Refused
from pendula.jobs.objects import budgets, deciding
from pendula.jobs.objects.applying import dated
from pendula.jobs.objects.endings import How
from pendula.jobs.objects.gates import risk_that_counts
from pendula.jobs.objects.governed import Epistemic, Governed, Impact, Risk, Unknown
from pendula.jobs.objects.machine import Machine
from pendula.jobs.objects.reasons import Reason
from pendula.jobs.request_reading import Faults
from pendula.jobs.sentences import members_in_words, sentence_of
from pendula.jobs.store.protocol import Writer
from pendula.jobs.transaction.replies import Answer, Body, Reply
from pendula.kernel.canonical import Json

OF_UNCERTAINTY = ("unknown_type", "decision_mode")  # of what is certain they would say nothing, and bind nobody


def create(tx: Writer, body: Body, actor: Actor, policy: Policy, now: int) -> Answer:
    """Put an object under governance; its first job is made with it."""
    request = read_new(body, now)
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
    learning.began(tx.governance, now)
    _tell(tx, STATE_EVENT, None, subject, request.reason, actor)
    if subject.place in machine.rolls_back:
        ask_rollback(tx, subject, request.reason, actor, now)
    followup = follow_up(tx, None, subject, actor, policy)
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
    if (refused := overladen(subject, request.refs)) is not None:
        return refused
    if subject.closed and request.unknown_type is not None and set(request.refs) <= set(subject.evidence):
        faults = Faults()
        faults.add("evidence_refs", Code.INVALID_FIELD, allowed="at least one reference that it does not have yet")
        return faults.refusal("what is closed opens again on new evidence alone")
    after = replace(subject, evidence=tuple(dict.fromkeys((*subject.evidence, *request.refs))))
    if request.unknown_type is not None and subject.place in machine.uncertain:
        risk = risk_that_counts(*tiers(tx.governance, subject))
        after = replace(
            after,
            unknown_type=request.unknown_type,
            decision_mode=budgets.decision_mode(request.unknown_type, risk),
            closed=subject.closed if request.unknown_type is Unknown.ONTIC_UNKNOWABLE else None,
        )
    return _kept(tx, subject, dated(after, machine, now), request.reason, actor, policy=policy, refs=request.refs)


def amend(tx: Writer, object_type: str, object_id: str, body: Body, actor: Actor, policy: Policy, now: int) -> Answer:
    """What a named user says otherwise of an object: its dates, what would prove it wrong, a higher tier."""
    request = read_amendment(body, now)
    if isinstance(request, Faults):
        return request.refusal()
    found = _nobody(actor) or _found(tx, object_type, object_id, policy, request.version)
    if isinstance(found, Refused):
        return found
    subject, machine = found
    if (refused := _not_amendable(subject, machine, request)) is not None:
        return refused
    after = replace(subject, **request.members)
    if subject.place in machine.uncertain:
        risk = risk_that_counts(*tiers(tx.governance, after))
        if after.decision_mode not in budgets.modes_allowed(after.unknown_type, risk):
            after = replace(after, decision_mode=budgets.decision_mode(after.unknown_type, risk))
    return _kept(tx, subject, dated(after, machine, now), request.reason, actor, policy=policy)


def _not_amendable(subject: Governed, machine: Machine, request: Amendment) -> Refused | None:
    """What is at its end stays as it is, and no tier goes down: the gates would be walked around."""
    if subject.place not in machine.follow:
        details: dict[str, Json] = {"object_type": subject.object_type, "object_id": subject.object_id}
        return Refused(Code.ILLEGAL_TRANSITION, f"{subject.place} is its end: nothing changes there any more", details)
    faults = Faults()
    for name, tier in (("risk_tier", Risk), ("impact_tier", Impact)):
        words = list(tier)
        higher = words[words.index(getattr(subject, name)) :]
        if request.members.get(name, higher[0]) not in higher:
            faults.add(name, Code.INVALID_ENUM, allowed=[word.value for word in higher])
    return faults.refusal("a tier is never lowered") if faults.found else None


def refill(tx: Writer, object_type: str, object_id: str, body: Body, actor: Actor, policy: Policy, now: int) -> Answer:
    """A named user gives an object a new budget of verifications: the only refill beside new evidence."""
    request = read_refill(body)
    if isinstance(request, Faults):
        return request.refusal()
    found = _nobody(actor) or _found(tx, object_type, object_id, policy, None)
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
    found = _nobody(actor) or _found(tx, object_type, object_id, policy, request.version)
    if isinstance(found, Refused):
        return found
    subject, machine = found
    refused = _unknown_words(request, machine, policy) or overladen(subject, request.verdict.evidence)
    if refused is not None:
        return refused
    asked = replace(question(tx.governance, subject, request.action, policy, now), automatic=False)
    ending = deciding.conclude(subject, machine, asked, request.verdict)
    if is_promotion(subject, ending, machine):
        wrong = unfit_evidence(tx.governance, subject, request.verdict.evidence, asked)
        if wrong is not None:
            return Refused(
                Code.ILLEGAL_TRANSITION, sentence_of(wrong), {"object_type": object_type, "object_id": object_id}
            )
    if ending.how is not How.ACK:
        code = Code.ILLEGAL_TRANSITION if ending.how is How.FAIL and ending.reading is None else Code.GATE_CLOSED
        details: dict[str, Json] = {"object_type": object_type, "object_id": object_id, **ending_json(ending, None)}
        return Refused(code, f"{request.action} on {subject.place}: {sentence_of(ending.reason)}", details)
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
    finished = tx.governance.finish_rollbacks(object_type, object_id, now)
    if finished and not subject.rollback_pending:  # a machine of one's own may ask for one and not wait for it
        asked, over = replace(subject, rollback_pending=True), replace(subject, updated_at=now)
        _tell(tx, ROLLBACK_EVENT, asked, over, reason, actor)
    if subject.rollback_pending:
        after = dated(replace(subject, rollback_pending=False), machine, now)
        put(tx, after)
        reported = replace(subject, rollback_pending=False, updated_at=now)
        _tell(tx, ROLLBACK_EVENT, subject, reported, reason, actor)
        _tell(tx, STATE_EVENT, subject, after, reason, actor)
        follow_up(tx, subject, after, actor, policy)
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
        unsure = _unsure(subject, policy, now)
        if isinstance(unsure, Refused):
            return unsure
        subject = unsure
    elif stray := [name for name in OF_UNCERTAINTY if name in request.members]:
        faults = Faults()
        for name in stray:
            faults.add(name, Code.INVALID_FIELD, allowed="left out where an object is not uncertain")
        return faults.refusal(f"what is {place} is not uncertain, and has no {' and no '.join(stray)}")
    if lacking := deciding.lacking(subject, machine.needs.get(place, ())):
        return _incomplete(subject, lacking)
    return dated(_begun(subject, machine, now), machine, now)


def _begun(subject: Governed, machine: Machine, now: int) -> Governed:
    """With the dates of the place in which it begins, as if it had come there just now."""
    begun = replace(subject, rollback_pending=subject.place in machine.awaits_rollback)
    if subject.place in machine.stale:
        begun = replace(begun, stale_since=now)
    follow, interval = machine.follow.get(subject.place), subject.review_interval
    if follow is None or follow.at != "review_due_at" or interval is None or subject.review_due_at is not None:
        return begun
    return replace(begun, review_due_at=now + interval)


def _unsure(subject: Governed, policy: Policy, now: int) -> Governed | Refused:
    """From now on uncertain, in the mode that was asked for unless its risk forbids that."""
    risk, wish = risk_that_counts(subject.risk_tier, subject.impact_tier), subject.decision_mode
    unsure = budgets.made_uncertain(subject, subject.unknown_type, risk, policy.limits.uncertainty_ttl, now)
    if wish is None:
        return unsure
    allowed = budgets.modes_allowed(unsure.unknown_type, risk)
    if wish not in allowed:
        faults = Faults()
        faults.add("decision_mode", Code.INVALID_ENUM, allowed=[mode.value for mode in allowed])
        return faults.refusal(f"at risk {risk.value} nobody decides in mode {wish.value}")
    return replace(unsure, decision_mode=wish)


def _unknown_words(request: Decision, machine: Machine, policy: Policy) -> Refused | None:
    """A person who misspells a word is told; a job that does ends in a noop that says so."""
    faults = Faults()
    known = sorted({*policy.vocabulary.actions, *(arrow.action for arrow in machine.arrows)})
    if request.action not in known:
        faults.add("action", Code.INVALID_ENUM, allowed=[*known])
    elif not machine.knows(request.verdict.finding):
        faults.add("finding", Code.INVALID_ENUM, allowed=[*machine.findings(request.action)])
    return faults.refusal() if faults.found else None


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
        faults.add(name.replace("|", " or "), Code.MISSING_FIELD)
    return faults.refusal(f"an object in {subject.place} needs {members_in_words(lacking)}")


def _found(
    tx: Writer, object_type: str, object_id: str, policy: Policy, version: int | None
) -> tuple[Governed, Machine] | Refused:
    machine = machine_of(policy, object_type)
    if isinstance(machine, Refused):
        return machine
    subject = tx.governance.governed(object_type, object_id)
    if subject is None:
        return no_object(object_type, object_id)
    if (strange := deciding.unknown_place(subject, machine)) is not None:
        return Refused(Code.STATE_CONFLICT, sentence_of(strange), {"object_type": object_type, "object_id": object_id})
    if version is not None and version != subject.version:
        details: dict[str, Json] = {"version": subject.version, "given": version}
        return Refused(Code.STATE_CONFLICT, f"the object is at version {subject.version}, not {version}", details)
    return subject, machine


def _nobody(actor: Actor) -> Refused | None:
    """What only a named user may do."""
    if actor.type == "user" and actor.id:
        return None
    return user_required("do this", {"actor": actor.type})


def _kept(
    tx: Writer,
    before: Governed,
    after: Governed,
    reason: Reason,
    actor: Actor,
    *,
    policy: Policy,
    refs: tuple[str, ...] = (),
) -> Reply:
    put(tx, after)
    count_granted(tx, before, after)
    _tell(tx, STATE_EVENT, before, after, reason, actor, refs=refs)
    followup = follow_up(tx, before, after, actor, policy)
    return Reply(200, {"object": object_json(after), "followup_job_id": followup})


def _tell(
    tx: Writer,
    event_type: str,
    before: Governed | None,
    after: Governed,
    reason: Reason,
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
