"""Changes of governed objects by people: create, attach evidence, amend, decide, refill, report a rollback finished,
set a gate.

Every change goes through the same state machine as a job and is in the audit trail, with its actor and reason.
"""

from typing import Any

from msgspec.structs import replace

from pendula.governance import budgets, decisions
from pendula.governance.applying import (
    apply_ending,
    ask_rollback,
    count_granted,
    follow_up,
    put,
    record,
    record_governed,
    tier_without_trace,
)
from pendula.governance.decisions import How, with_next_action
from pendula.governance.gates import EVERYTHING, Gate, effective_risk
from pendula.governance.inputs import (
    action_context,
    explain_unfit_evidence,
    is_promotion,
    machine_of,
    object_not_found,
    refuse_too_many_references,
    rules_of,
    tiers,
    user_required,
)
from pendula.governance.machines import Machine
from pendula.governance.messages import (
    AMENDABLE,
    Amendment,
    Created,
    Decided,
    Decision,
    Evidence,
    Kept,
    NewObject,
    OneGate,
    Refill,
    RolledBack,
    SetGate,
    changes,
    ending_json,
    gate_of,
    object_of,
    or_code,
    rollback_of,
)
from pendula.governance.model import Epistemic, Governed, Impact, Risk
from pendula.governance.tables import tables_of
from pendula.jobs.audit import GATE_EVENT, OVERRIDE_EVENT, ROLLBACK_EVENT, STATE_EVENT, GovernanceEvent
from pendula.jobs.messages import Stated, plain
from pendula.jobs.model import Actor, Code, Policy, Refused
from pendula.jobs.reasons import Reason, Unknown, stated
from pendula.jobs.request_reading import Faults, read
from pendula.jobs.sentences import members_in_words, sentence_of
from pendula.jobs.store.protocol import Writer
from pendula.jobs.transaction import Body
from pendula.kernel.canonical import Json

OF_UNCERTAINTY = ("unknown_type", "decision_mode")  # meaningless for an object that is certain


def create(tx: Writer, body: Body, actor: Actor, policy: Policy, now: int) -> Created | Refused:
    """Put an object under governance and enqueue its first job."""
    request = read(NewObject, body, policy, now)
    if isinstance(request, Faults):
        return request.refusal()
    machine = machine_of(policy, request.object_type)
    if isinstance(machine, Refused):
        return machine
    if tables_of(tx).governed(request.object_type, request.object_id) is not None:
        details: dict[str, Json] = {"object_type": request.object_type, "object_id": request.object_id}
        message = f"{request.object_type} {request.object_id} is under governance already"
        return Refused(Code.OBJECT_EXISTS, message, details)
    subject = _new_object(request, machine, policy, now)
    if isinstance(subject, Refused):
        return subject
    put(tx, subject)
    count_granted(tx, None, subject)
    record_governed(tables_of(tx), now)
    _add_event(tx, STATE_EVENT, None, subject, request.because, actor)
    if subject.place in machine.rolls_back:
        ask_rollback(tx, subject, request.because, actor, now)
    followup = follow_up(tx, None, subject, actor, policy)
    return Created(object_of(subject), followup)


def attach_evidence(
    tx: Writer, object_type: str, object_id: str, body: Body, actor: Actor, policy: Policy, now: int
) -> Kept | Refused:
    """Add references to an object. A new unknown type can reopen an object that was closed as unknowable."""
    request = read(Evidence, body, policy)
    if isinstance(request, Faults):
        return request.refusal()
    found = _load(tx, object_type, object_id, policy, request.version)
    if isinstance(found, Refused):
        return found
    subject, machine = found
    if (refused := refuse_too_many_references(subject, request.evidence_refs)) is not None:
        return refused
    if subject.closed and request.unknown_type is not None and set(request.evidence_refs) <= set(subject.evidence):
        faults = Faults()
        faults.add("evidence_refs", Code.INVALID_FIELD, allowed="at least one new reference")
        return faults.refusal("a closed object needs new evidence to reopen")
    after = replace(subject, evidence=tuple(dict.fromkeys((*subject.evidence, *request.evidence_refs))))
    if request.unknown_type is not None and subject.place in machine.uncertain:
        risk = effective_risk(*tiers(tables_of(tx), subject))
        after = replace(
            after,
            unknown_type=request.unknown_type,
            decision_mode=budgets.decision_mode(request.unknown_type, risk),
            closed=subject.closed if request.unknown_type is Unknown.ONTIC_UNKNOWABLE else None,
        )
    return _store_change(
        tx,
        subject,
        with_next_action(after, machine, now),
        request.because,
        actor,
        policy=policy,
        refs=request.evidence_refs,
    )


def amend(
    tx: Writer, object_type: str, object_id: str, body: Body, actor: Actor, policy: Policy, now: int
) -> Kept | Refused:
    """Change an object in the name of a user: its dates, `falsify_if`, or a higher tier."""
    request = read(Amendment, body, policy, now)
    if isinstance(request, Faults):
        return request.refusal()
    if not request.members:
        faults = Faults()
        faults.add("members", Code.MISSING_FIELD, allowed=[*AMENDABLE])
        return faults.refusal()
    found = _user_refusal(actor) or _load(tx, object_type, object_id, policy, request.version)
    if isinstance(found, Refused):
        return found
    subject, machine = found
    if (refused := _not_amendable(subject, machine, request)) is not None:
        return refused
    after = replace(subject, **request.members)
    if subject.place in machine.uncertain:
        risk = effective_risk(*tiers(tables_of(tx), after))
        if after.decision_mode not in budgets.allowed_modes(after.unknown_type, risk):
            after = replace(after, decision_mode=budgets.decision_mode(after.unknown_type, risk))
    return _store_change(tx, subject, with_next_action(after, machine, now), request.because, actor, policy=policy)


def _not_amendable(subject: Governed, machine: Machine, request: Amendment) -> Refused | None:
    """An object in a final state cannot change, and no tier can be lowered: that would bypass the gates."""
    if subject.place not in machine.follow:
        details: dict[str, Json] = {"object_type": subject.object_type, "object_id": subject.object_id}
        return Refused(
            Code.ILLEGAL_TRANSITION, f"{subject.place} is a final state: the object cannot be amended", details
        )
    faults = Faults()
    for name, tier in (("risk_tier", Risk), ("impact_tier", Impact)):
        words = list(tier)
        higher = words[words.index(getattr(subject, name)) :]
        if request.members.get(name, higher[0]) not in higher:
            faults.add(name, Code.INVALID_ENUM, allowed=[word.value for word in higher])
    return faults.refusal("a tier cannot be lowered") if faults.entries else None


def refill(
    tx: Writer, object_type: str, object_id: str, body: Body, actor: Actor, policy: Policy, now: int
) -> Kept | Refused:
    """Refill the verification budget in the name of a user; only new evidence refills it otherwise."""
    request = read(Refill, body, policy)
    if isinstance(request, Faults):
        return request.refusal()
    found = _user_refusal(actor) or _load(tx, object_type, object_id, policy, None)
    if isinstance(found, Refused):
        return found
    subject, machine = found
    after = budgets.refill(subject, rules_of(policy).limits.auto_verify_budget)
    if request.budget is not None:
        after = replace(after, verify_budget_left=request.budget)
    return _store_change(tx, subject, with_next_action(after, machine, now), request.because, actor, policy=policy)


def decide(
    tx: Writer, object_type: str, object_id: str, body: Body, actor: Actor, policy: Policy, now: int
) -> Decided | Refused:
    """Apply the finding of a person, through the same machine and gates as a job, without spending budget."""
    request = read(Decision, body, policy)
    if isinstance(request, Faults):
        return request.refusal()
    found = _user_refusal(actor) or _load(tx, object_type, object_id, policy, request.version)
    if isinstance(found, Refused):
        return found
    subject, machine = found
    refused = _unknown_words(request, machine, policy) or refuse_too_many_references(subject, request.verdict.evidence)
    if refused is not None:
        return refused
    context = replace(action_context(tables_of(tx), subject, request.action, policy, now), automatic=False)
    ending = decisions.conclude(subject, machine, context, request.verdict)
    if is_promotion(subject, ending, machine):
        wrong = explain_unfit_evidence(tables_of(tx), subject, request.verdict.evidence, context)
        if wrong is not None:
            return Refused(
                Code.ILLEGAL_TRANSITION, sentence_of(wrong), {"object_type": object_type, "object_id": object_id}
            )
    if ending.how is not How.ACK:
        code = Code.ILLEGAL_TRANSITION if ending.how is How.FAIL and ending.reading is None else Code.GATE_CLOSED
        details: dict[str, Json] = {"object_type": object_type, "object_id": object_id, **ending_json(ending, None)}
        return Refused(code, f"{request.action} on {subject.place}: {sentence_of(ending.reason)}", details)
    applied = apply_ending(tx, subject, ending, context, actor, job=None, policy=policy)
    shown = object_of(ending.subject)
    return Decided(**ending_json(ending, applied.trace), object=shown, followup_job_id=applied.followup)


def rollback_finished(
    tx: Writer, object_type: str, object_id: str, body: Body, actor: Actor, policy: Policy, now: int
) -> RolledBack | Refused:
    """Record that the rollback service has finished; the object may be archived now."""
    request = read(Stated, body, policy)
    if isinstance(request, Faults):
        return request.refusal()
    reason = or_code(request.reason, "rollback_reported")
    found = _load(tx, object_type, object_id, policy, None)
    if isinstance(found, Refused):
        return found
    subject, machine = found
    finished = tables_of(tx).finish_rollbacks(object_type, object_id, now)
    if finished and not subject.rollback_pending:  # a custom machine may request a rollback without waiting for it
        pending, reported = replace(subject, rollback_pending=True), replace(subject, updated_at=now)
        _add_event(tx, ROLLBACK_EVENT, pending, reported, reason, actor)
    if subject.rollback_pending:
        after = with_next_action(replace(subject, rollback_pending=False), machine, now)
        put(tx, after)
        reported = replace(subject, rollback_pending=False, updated_at=now)
        _add_event(tx, ROLLBACK_EVENT, subject, reported, reason, actor)
        _add_event(tx, STATE_EVENT, subject, after, reason, actor)
        follow_up(tx, subject, after, actor, policy)
        subject = after
    rollbacks = [rollback_of(entry) for entry in tables_of(tx).rollbacks(object_type, object_id)]
    return RolledBack(object_of(subject), rollbacks)


def _new_object(request: NewObject, machine: Machine, policy: Policy, now: int) -> Governed | Refused:
    status, _, epistemic = machine.first.partition("/")
    place = _place(request, status, epistemic)
    if place not in machine.trust:
        faults = Faults()
        states = sorted({name.partition("/")[0] for name in machine.trust})
        faults.add("status", Code.INVALID_ENUM, allowed=[*states], places=[*sorted(machine.trust)])
        return faults.refusal(f"there is no state {place}; the states are {', '.join(sorted(machine.trust))}")
    status, _, axis = place.partition("/")
    members: dict[str, Any] = {"created_at": now, "updated_at": now, **request.members}
    members.setdefault("auto_verify_budget", rules_of(policy).limits.auto_verify_budget)
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
        unsure = _make_uncertain(subject, policy, now)
        if isinstance(unsure, Refused):
            return unsure
        subject = unsure
    elif stray := [name for name in OF_UNCERTAINTY if name in request.members]:
        faults = Faults()
        for name in stray:
            faults.add(name, Code.INVALID_FIELD, allowed="left out for an object that is not uncertain")
        return faults.refusal(f"{place} is not an uncertain state: leave {' and '.join(stray)} out")
    if lacking := decisions.lacking(subject, machine.needs.get(place, ())):
        return _incomplete(subject, lacking)
    return with_next_action(_with_first_dates(subject, machine, now), machine, now)


def _with_first_dates(subject: Governed, machine: Machine, now: int) -> Governed:
    """Set the dates of its first place, as if the object had just arrived there."""
    begun = replace(subject, rollback_pending=subject.place in machine.awaits_rollback)
    if subject.place in machine.stale:
        begun = replace(begun, stale_since=now)
    follow, interval = machine.follow.get(subject.place), subject.review_interval
    if follow is None or follow.at != "review_due_at" or interval is None or subject.review_due_at is not None:
        return begun
    return replace(begun, review_due_at=now + interval)


def _make_uncertain(subject: Governed, policy: Policy, now: int) -> Governed | Refused:
    """Make the object uncertain, in the requested mode if its risk allows that."""
    risk, mode = effective_risk(subject.risk_tier, subject.impact_tier), subject.decision_mode
    unsure = budgets.make_uncertain(subject, subject.unknown_type, risk, rules_of(policy).limits.uncertainty_ttl, now)
    if mode is None:
        return unsure
    allowed = budgets.allowed_modes(unsure.unknown_type, risk)
    if mode not in allowed:
        faults = Faults()
        faults.add("decision_mode", Code.INVALID_ENUM, allowed=[option.value for option in allowed])
        return faults.refusal(f"mode {mode.value} is not allowed at risk {risk.value}")
    return replace(unsure, decision_mode=mode)


def _unknown_words(request: Decision, machine: Machine, policy: Policy) -> Refused | None:
    """Reject unknown actions and findings of a person. (For a job they end in a noop whose reason names them.)"""
    faults = Faults()
    known = sorted({*policy.vocabulary.actions, *(arrow.action for arrow in machine.arrows)})
    if request.action not in known:
        faults.add("action", Code.INVALID_ENUM, allowed=[*known])
    elif not machine.has_finding(request.verdict.finding):
        faults.add("finding", Code.INVALID_ENUM, allowed=[*machine.findings(request.action)])
    return faults.refusal() if faults.entries else None


def _place(request: NewObject, first_status: str, first_axis: str) -> str:
    status = request.status or first_status
    axis = request.epistemic_state or _usual_axis(status, first_status, first_axis)
    return f"{status}/{axis}" if axis else status


def _usual_axis(status: str, first_status: str, first_axis: str) -> str:
    """The default of the second axis when only the first is given."""
    if not first_axis or status == first_status:
        return first_axis
    return {"active": Epistemic.SUPPORTED, "refuted": Epistemic.REFUTED}.get(status, Epistemic.UNCERTAIN).value


def _incomplete(subject: Governed, lacking: list[str]) -> Refused:
    faults = Faults()
    for name in lacking:
        faults.add(name.replace("|", " or "), Code.MISSING_FIELD)
    return faults.refusal(f"an object in {subject.place} needs {members_in_words(lacking)}")


def _load(
    tx: Writer, object_type: str, object_id: str, policy: Policy, version: int | None
) -> tuple[Governed, Machine] | Refused:
    machine = machine_of(policy, object_type)
    if isinstance(machine, Refused):
        return machine
    subject = tables_of(tx).governed(object_type, object_id)
    if subject is None:
        return object_not_found(object_type, object_id)
    if (strange := decisions.explain_unknown_place(subject, machine)) is not None:
        return Refused(Code.STATE_CONFLICT, sentence_of(strange), {"object_type": object_type, "object_id": object_id})
    if version is not None and version != subject.version:
        details: dict[str, Json] = {"version": subject.version, "given": version}
        return Refused(Code.STATE_CONFLICT, f"the object is at version {subject.version}, not {version}", details)
    return subject, machine


def _user_refusal(actor: Actor) -> Refused | None:
    if actor.type == "user" and actor.id:
        return None
    return user_required("do this", {"actor": actor.type})


def _store_change(
    tx: Writer,
    before: Governed,
    after: Governed,
    reason: Reason,
    actor: Actor,
    *,
    policy: Policy,
    refs: tuple[str, ...] = (),
) -> Kept:
    put(tx, after)
    count_granted(tx, before, after)
    _add_event(tx, STATE_EVENT, before, after, reason, actor, refs=refs)
    followup = follow_up(tx, before, after, actor, policy)
    return Kept(object_of(after), followup)


def _add_event(
    tx: Writer,
    event_type: str,
    before: Governed | None,
    after: Governed,
    reason: Reason,
    actor: Actor,
    *,
    refs: tuple[str, ...] = (),
) -> None:
    tier = tier_without_trace(after.risk_tier)
    record(tx, event_type, after, changes(before, after), reason, actor, after.updated_at, refs=refs, tier=tier)


def set_gate(tx: Writer, body: Body, actor: Actor, policy: Policy, now: int) -> OneGate | Refused:
    """Set the verdict of a gate. `override` requires a named user, whom the audit event records."""
    request = read(SetGate, body, policy)
    if isinstance(request, Faults):
        return request.refusal()
    scope = request.scope or EVERYTHING
    is_override = request.verdict == "override"
    if is_override and not (actor.type == "user" and actor.id):
        return user_required("override a gate", {"gate": request.gate})
    gates = tables_of(tx).gates(scope)
    before = next((gate for gate in gates if (gate.name, gate.scope) == (request.gate, scope)), None)
    gate = Gate(
        name=request.gate,
        scope=scope,
        verdict=request.verdict,
        version=1 if before is None else before.version + 1,
        set_at=now,
        set_by=actor.id,
        reason=request.reason,
        override_by=actor.id if is_override else None,
    )
    tables_of(tx).put_gate(gate)
    shown = gate_of(gate)
    kind, _, name = scope.partition(":")
    event = GovernanceEvent(
        event_type=OVERRIDE_EVENT if is_override else GATE_EVENT,
        object_type=kind if name else "decision",
        object_id=name or scope,
        before=None if before is None else plain(gate_of(before)),
        after=plain(shown),
        reason=stated(request.reason),
        evidence=(f"gate:{request.gate}",),
    )
    tx.governance_event(event, actor, now)
    return OneGate(shown)
