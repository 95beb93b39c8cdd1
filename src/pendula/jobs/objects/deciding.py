"""What an action may do to an object: before the verifier is entered, and when it has spoken.

Pure functions of the object, its machine, the gates and the time. The order is that of WRK-4: the object, the gates,
the budget, the verifier, the change; no later step is taken when an earlier one refuses.
"""

from collections.abc import Iterable

from msgspec.structs import replace

from pendula.jobs.objects import budgets, gates
from pendula.jobs.objects.applying import applied, confirmed, dated
from pendula.jobs.objects.budgets import Entry
from pendula.jobs.objects.decay import has_faded
from pendula.jobs.objects.endings import (
    DEFER_US,
    DEFERRALS_MOST,
    Asked,
    Ending,
    Executed,
    How,
    Outcome,
    Verdict,
)
from pendula.jobs.objects.gates import Passage, Reading
from pendula.jobs.objects.governed import DAY_US, VERIFICATIONS, Governed, Unknown
from pendula.jobs.objects.machine import NEEDABLE, Arrow, Finding, Machine, Never
from pendula.jobs.objects.reasons import Reason, error_of, reason_json, stated
from pendula.kernel.time import format_utc

# What may make an object more trusted: such a verdict has to rest on evidence that is fit for it.
PROMOTING = frozenset({Finding.PASSED, Finding.NEW_EVIDENCE, Finding.SOME_EVIDENCE})
NOTHING_FOUND = Verdict(Finding.INCONCLUSIVE, Reason("nothing_looked_for"))
EXECUTED = Verdict(Finding.INCONCLUSIVE, Reason("nothing_found"))


def enter(subject: Governed, machine: Machine, asked: Asked) -> Governed | Ending:
    """The object with what the verifier costs it, to be stored before the verifier is entered; or why it is not."""
    if (barred := _barred(subject, machine, asked)) is not None:
        return barred
    match budgets.entry(subject, asked.action, machine, asked.limits.ontic_verify_limit):
        case Entry.FREE:
            return subject
        case Entry.PAID:
            return budgets.spent(subject, asked.now)
        case Entry.NO_BUDGET:
            return _exhausted(subject, machine, asked, _gates_of_risk(asked))
        case Entry.UNKNOWABLE if subject.closed:
            return _too_late(subject)
        case Entry.UNKNOWABLE:
            return _unseen(_closed(subject, machine, asked, _gates_of_risk(asked), NOTHING_FOUND), subject)


def _barred(subject: Governed, machine: Machine, asked: Asked) -> Ending | None:
    """What keeps the action from its object whatever the budget; a noop where nothing leads on."""
    if (strange := unknown_place(subject, machine)) is not None:
        return _conflict(subject, strange)
    if missing := budgets.missing_members(subject):
        return _incomplete(subject, missing)
    if rule := machine.forbidden(subject.place, machine.sought(asked.action, None)):
        return illegal(subject, asked, stated(rule.because))
    reading = _gates_of_risk(asked)
    if (stopped := _stopped(subject, asked, reading)) is not None:
        return stopped
    if not machine.has_row(subject.place, asked.action):
        ending = _noop(subject, machine, asked, NOTHING_FOUND, reading, Reason("no_way_on", {"place": subject.place}))
        return _unseen(ending, subject)
    return None


def entered_again(subject: Governed, machine: Machine, asked: Asked) -> Governed | Ending:
    """The object for a delivery that has begun, for which nothing more is taken; or why it may not go on after all."""
    if (barred := _barred(subject, machine, asked)) is not None:
        return barred
    if subject.closed and asked.action in VERIFICATIONS and subject.place in machine.uncertain:
        return _too_late(subject)
    return subject


def acknowledged(subject: Governed, machine: Machine, asked: Asked) -> Ending:
    """What follows from an ack without a finding, with the gates as they are now: the state stays.

    Only the unknowable that was verified as often as it may be is closed by it, as by any verdict.
    """
    if (strange := unknown_place(subject, machine)) is not None:
        return _conflict(subject, strange)
    reading = _gates_of_risk(asked)
    if (stopped := _stopped(subject, asked, reading)) is not None:
        return stopped
    if asked.action in VERIFICATIONS and _is_at_its_limit(subject, machine, asked):
        return _closed(subject, machine, asked, reading, EXECUTED)
    ending = _noop(subject, machine, asked, EXECUTED, reading, EXECUTED.because)
    return ending if machine.has_row(subject.place, asked.action) else _unseen(ending, subject)


def conclude(subject: Governed, machine: Machine, asked: Asked, said: Verdict) -> Ending:
    """What follows from a verdict, with the gates as they are now."""
    if (strange := unknown_place(subject, machine)) is not None:
        return _conflict(subject, strange)
    reading = _gates_of_risk(asked)
    if (stopped := _stopped(subject, asked, reading)) is not None:
        return stopped
    verdict = _found(subject, machine, asked, said)
    if rule := _forbidden(subject, machine, asked, verdict):
        return illegal(subject, asked, stated(rule.because))
    arrow = machine.arrow(subject.place, asked.action, verdict.finding)
    if arrow is None:
        if _is_at_its_limit(subject, machine, asked):
            return _closed(subject, machine, asked, reading, verdict)
        return _noop(subject, machine, asked, verdict, reading, _nowhere(machine, asked, verdict))
    return _followed(subject, arrow, machine, asked, verdict, reading)


def _nowhere(machine: Machine, asked: Asked, verdict: Verdict) -> Reason:
    """The reason of a verdict that leads nowhere; a word that no machine has is told, for it may be misspelt."""
    if machine.knows(verdict.finding):
        return verdict.because
    facts = {"action": asked.action, "object_type": machine.object_type, "finding": verdict.finding}
    return Reason("unknown_finding", {"because": reason_json(verdict.because), **facts})


def unknown_place(subject: Governed, machine: Machine) -> Reason | None:
    """Why nothing may be decided by this machine: the object came to its place by another one.

    Whoever decided all the same would find no way on from there, and take the object's next date away.
    """
    if subject.place in machine.trust:
        return None
    return Reason("unknown_place", {"object_type": subject.object_type, "place": subject.place})


def by_itself(subject: Governed, machine: Machine, asked: Asked) -> Verdict:
    """What decay and archive find without anybody: it is all in the object."""
    if asked.action == "decay":
        return _aged(subject, machine, asked)
    if subject.place in machine.awaits_rollback:
        if subject.rollback_pending:
            return Verdict(Finding.INCONCLUSIVE, Reason("rollback_unfinished"))
        return Verdict(Finding.ROLLED_BACK, Reason("rollback_finished"))
    if subject.expires_at is not None and subject.expires_at <= asked.now:
        return Verdict(Finding.EXPIRED, Reason("expired", {"at": format_utc(subject.expires_at)}))
    return Verdict(Finding.INCONCLUSIVE, Reason("not_expired"))


def put_off(subject: Governed, machine: Machine, asked: Asked) -> Governed:
    """The object with a new date: the job of its own was stopped for good, and nobody would ever come back to it."""
    return _not_at_once(dated(subject, machine, asked.now), asked)


def _aged(subject: Governed, machine: Machine, asked: Asked) -> Verdict:
    if _is_overdue(subject, asked.now) and machine.arrow(subject.place, "decay", Finding.OVERDUE) is not None:
        return Verdict(Finding.OVERDUE, Reason("review_overdue"))
    if has_faded(subject, asked.risk, asked.now):
        return Verdict(Finding.FADED, Reason("faded"))
    return Verdict(Finding.INCONCLUSIVE, Reason("not_faded"))


def _is_overdue(subject: Governed, now: int) -> bool:
    return subject.review_due_at is not None and subject.review_due_at <= now


def _gates_of_risk(asked: Asked) -> Reading | None:
    """What the gates say, where they have to be asked: before any effect on something of high risk."""
    return gates.read(asked.gates, gates.REQUIRED) if gates.is_high_risk(asked.risk, asked.impact) else None


def _stopped(subject: Governed, asked: Asked, reading: Reading | None) -> Ending | None:
    """Why the gates let nothing through at all."""
    if reading is None:
        return None
    match reading.passage:
        case Passage.UNAVAILABLE:
            return _unavailable(subject, reading)
        case Passage.DEFERRED if asked.deferrals < DEFERRALS_MOST:
            return _deferred(subject, asked, reading)
        case Passage.DEFERRED | Passage.BLOCKED:
            return _blocked(subject, reading)
        case _:
            return None


def _found(subject: Governed, machine: Machine, asked: Asked, said: Verdict) -> Verdict:
    """What was said, measured by what it rests on and by what the object itself knows better."""
    if (untrue := _untrue(subject, said.finding, asked.now)) is not None:
        return replace(said, finding=Finding.INCONCLUSIVE, reason=untrue)
    enough = len(set(subject.evidence) | set(said.evidence)) >= asked.limits.min_evidence_count
    if said.finding in PROMOTING and not enough:
        said = replace(said, finding=Finding.INSUFFICIENT, reason=_too_few(said, asked))
    ways = {arrow.finding for arrow in machine.arrows if (arrow.source, arrow.action) == (subject.place, asked.action)}
    # A review that is overdue and not passed has failed: else the object would be due again at once, for ever.
    undecided = said.finding not in ways and said.finding != Finding.PASSED
    if undecided and Finding.OVERDUE in ways and _is_overdue(subject, asked.now):
        return replace(said, finding=Finding.OVERDUE)
    return said


def _too_few(said: Verdict, asked: Asked) -> Reason:
    facts = {"because": reason_json(said.because), "needed": asked.limits.min_evidence_count}
    return Reason("too_little_evidence", facts)


def _untrue(subject: Governed, finding: str, now: int) -> Reason | None:
    """Why nobody may say this of the object, whatever they found."""
    if finding == Finding.ROLLED_BACK and subject.rollback_pending:
        return Reason("rollback_unfinished")
    if finding == Finding.EXHAUSTED and (subject.verify_budget_left > 0 or not budgets.is_over(subject, now)):
        return Reason("not_exhausted")
    return None


def _forbidden(subject: Governed, machine: Machine, asked: Asked, verdict: Verdict) -> Never | None:
    return machine.forbidden(subject.place, machine.sought(asked.action, verdict.finding))


def _followed(
    subject: Governed, arrow: Arrow, machine: Machine, asked: Asked, verdict: Verdict, reading: Reading | None
) -> Ending:
    """The arrow, unless something stands before it."""
    if subject.closed and verdict.unknown_type in (None, Unknown.ONTIC_UNKNOWABLE) and machine.promotes(arrow):
        return _noop(subject, machine, asked, verdict, reading, Reason("needs_evidence_to_open"))
    if machine.promotes(arrow):
        own = gates.read([gate for gate in asked.gates if gate.name in arrow.gates], arrow.gates)
        if (stopped := _stopped(subject, asked, own)) is not None:
            return stopped
        if Passage.LOWERING_ONLY in (own.passage, Passage.OPEN if reading is None else reading.passage):
            return _limited(subject, machine, asked, verdict, reading)
        if reading is not None and asked.automatic and subject.place in machine.uncertain:
            return _escalated(subject, machine, asked, verdict, reading)
    if needed := lacking(subject, machine.needs.get(arrow.target, ())):
        return illegal(subject, asked, Reason("members_needed", {"place": arrow.target, "members": needed}))
    after = applied(subject, arrow, machine, verdict, asked)
    return Ending(
        how=How.ACK,
        outcome=Outcome.TRANSITIONED,
        subject=after,
        reason=verdict.because,
        evidence=verdict.evidence,
        executed=None if reading is None else _how_executed(arrow, machine, reading),
        reading=reading,
        rollback=arrow.target in machine.rolls_back,
    )


def _how_executed(arrow: Arrow, machine: Machine, reading: Reading) -> Executed:
    """At high risk only what is certain, and behind open gates alone, counts as executed."""
    if arrow.source in machine.uncertain:
        return Executed.ESCALATED if machine.promotes(arrow) else Executed.LIMITED  # upwards a person alone gets here
    return Executed.EXECUTED if reading.passage is Passage.OPEN else Executed.LIMITED


def lacking(subject: Governed, needed: Iterable[str]) -> list[str]:
    """Which of these members it does not carry; of some joined by a bar, one is enough."""
    there = {name for name, member in NEEDABLE.items() if getattr(subject, member) not in (None, ())}
    return [need for need in needed if there.isdisjoint(need.split("|"))]


def _noop(
    subject: Governed, machine: Machine, asked: Asked, verdict: Verdict, reading: Reading | None, reason: Reason
) -> Ending:
    return Ending(
        how=How.ACK,
        outcome=Outcome.NOOP,
        subject=_not_at_once(confirmed(subject, machine, verdict, asked), asked),
        reason=reason,
        evidence=verdict.evidence,
        executed=None if reading is None else Executed.ABSTAINED,
        reading=reading,
    )


def _not_at_once(subject: Governed, asked: Asked) -> Governed:
    """What came to nothing is not due again in the same moment, or a worker could go round in it for ever."""
    at = subject.next_action_at
    is_due = subject.next_action == asked.action and at is not None and at <= asked.now
    return replace(subject, next_action_at=asked.now + DAY_US) if is_due else subject


def _limited(subject: Governed, machine: Machine, asked: Asked, verdict: Verdict, reading: Reading | None) -> Ending:
    ending = _noop(subject, machine, asked, verdict, reading, Reason("lowering_only"))
    return ending if reading is None else replace(ending, executed=Executed.LIMITED)


def _escalated(subject: Governed, machine: Machine, asked: Asked, verdict: Verdict, reading: Reading) -> Ending:
    reason = Reason("person_required")
    ending = _noop(subject, machine, asked, verdict, reading, reason)
    return replace(ending, executed=Executed.ESCALATED, escalation=reason)


def _exhausted(subject: Governed, machine: Machine, asked: Asked, reading: Reading | None) -> Ending:
    """The budget is used up: when the time is over, too, the object is set aside, and perhaps a person is asked."""
    reason = Reason("no_budget")
    arrow = machine.arrow(subject.place, asked.action, Finding.EXHAUSTED)
    if arrow is None or not budgets.is_over(subject, asked.now):
        after, escalation = dated(subject, machine, asked.now), None
    else:
        after = applied(subject, arrow, machine, Verdict(Finding.EXHAUSTED, reason), asked)
        after = replace(after, last_verified_at=subject.last_verified_at)  # nobody looked
        reason = Reason("no_budget_no_time")
        escalation = reason if budgets.needs_a_person(subject, asked.risk, asked.impact) else None
    executed = Executed.ESCALATED if escalation else Executed.ABSTAINED
    return Ending(
        how=How.ACK,
        outcome=Outcome.BUDGET_EXHAUSTED,
        subject=after,
        reason=reason,
        executed=None if reading is None else executed,
        reading=reading,
        escalation=escalation,
    )


def _is_at_its_limit(subject: Governed, machine: Machine, asked: Asked) -> bool:
    """Whether it is closed now. Where a verification would come next it has to be set aside by that, or it would wait
    for a job that nobody may enqueue any more."""
    if subject.unknown_type is not Unknown.ONTIC_UNKNOWABLE or subject.closed or subject.place not in machine.uncertain:
        return False
    is_spent = subject.verifications >= asked.limits.ontic_verify_limit
    return is_spent and machine.can_be_closed(subject.place, asked.action)


def _closed(subject: Governed, machine: Machine, asked: Asked, reading: Reading | None, verdict: Verdict) -> Ending:
    """The unknowable is not asked again: set aside with its boundary stated."""
    shut = budgets.closed(subject)
    arrow = machine.arrow(subject.place, asked.action, Finding.EXHAUSTED)
    if arrow is None:
        # Whatever was said of it, nothing is confirmed by that: no new review is drawn.
        after = confirmed(shut, machine, replace(verdict, finding=Finding.EXHAUSTED), asked)
    else:
        after = applied(shut, arrow, machine, verdict, asked)
        after = dated(replace(budgets.closed(after), version=subject.version), machine, asked.now)
    return Ending(
        how=How.ACK,
        outcome=Outcome.CLOSED,
        subject=after,
        reason=Reason("limit_reached", {"limit": asked.limits.ontic_verify_limit, "closed": shut.closed}),
        evidence=verdict.evidence,
        executed=None if reading is None else Executed.ABSTAINED,
        reading=reading,
        closes=True,
    )


def _unseen(ending: Ending, before: Governed) -> Ending:
    """Nobody has looked at the object: when it was last verified stays."""
    return replace(ending, subject=replace(ending.subject, last_verified_at=before.last_verified_at))


def _too_late(subject: Governed) -> Ending:
    """A verification of what was closed while the job waited or ran."""
    return Ending(
        how=How.FAIL,
        outcome=Outcome.LIMIT_REACHED,
        subject=subject,
        reason=Reason("closed", {"closed": subject.closed}),
        error=Outcome.LIMIT_REACHED.value,
    )


def _incomplete(subject: Governed, missing: list[str]) -> Ending:
    return Ending(
        how=How.FAIL,
        outcome=Outcome.INCOMPLETE,
        subject=subject,
        reason=Reason("members_missing", {"object_type": subject.object_type, "members": missing}),
        error=f"{Outcome.INCOMPLETE}: {','.join(missing)}",
    )


def _conflict(subject: Governed, because: Reason) -> Ending:
    return Ending(
        how=How.RETRY,
        outcome=Outcome.CONFLICT,
        subject=subject,
        reason=because,
        error=f"{Outcome.CONFLICT}: {error_of(because)}",
    )


def illegal(subject: Governed, asked: Asked, because: Reason) -> Ending:
    return Ending(
        how=How.FAIL,
        outcome=Outcome.ILLEGAL,
        subject=subject,
        reason=because,
        error=f"{Outcome.ILLEGAL}: {asked.action}: {subject.place}: {error_of(because)}",
    )


def _unavailable(subject: Governed, reading: Reading) -> Ending:
    return Ending(
        how=How.RETRY,
        outcome=Outcome.UNAVAILABLE,
        subject=subject,
        reason=gates.unset(reading),
        executed=Executed.ABSTAINED,
        reading=reading,
        error=f"{Outcome.UNAVAILABLE}: {reading.decided_by}",
    )


def _deferred(subject: Governed, asked: Asked, reading: Reading) -> Ending:
    return Ending(
        how=How.DEFER,
        outcome=Outcome.DEFERRED,
        subject=subject,
        reason=Reason(
            "gate_deferred", {"gate": reading.decided_by, "deferral": asked.deferrals + 1, "limit": DEFERRALS_MOST}
        ),
        executed=Executed.ABSTAINED,
        reading=reading,
        retry_at=asked.now + DEFER_US,
    )


def _blocked(subject: Governed, reading: Reading) -> Ending:
    return Ending(
        how=How.FAIL,
        outcome=Outcome.BLOCKED,
        subject=subject,
        reason=Reason("gate_blocked", {"gate": reading.decided_by}),
        executed=Executed.BLOCKED,
        reading=reading,
        escalation=Reason("gate_blocked_job", {"gate": reading.decided_by}),
        error=f"{Outcome.BLOCKED}: {reading.decided_by}",
    )
