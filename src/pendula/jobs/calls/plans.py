"""Calls on time plans: put, pause, resume, run now, remove, list; and the next occurrence, which is always stored.

The transaction that stores an occurrence checks whether the plan is paused, so that a pause cannot be missed.
"""

from collections.abc import Mapping
from typing import Any

from msgspec.structs import replace

from pendula.jobs import decide
from pendula.jobs.audit import PlanChange
from pendula.jobs.messages import Enqueue, Enqueued, NewPlan, OnePlan, PlanRemoved, Plans, Recurring, Stated
from pendula.jobs.model import SYSTEM, Actor, Code, Policy, Refused, Status
from pendula.jobs.plans import (
    DECLARED_US,
    PLANS_MOST,
    Plan,
    Source,
    asked_for,
    occurrence,
    planned,
    trail_json,
)
from pendula.jobs.reasons import Reason, stated
from pendula.jobs.request_reading import Faults, read
from pendula.jobs.store.protocol import Store, Writer
from pendula.jobs.transaction import Body, Stored, no_plan, store_all, stored_reply
from pendula.kernel.canonical import Json
from pendula.kernel.time import format_utc

DECLARED = Reason("declared")


def listed(store: Store, now: int) -> Plans:
    """All plans, by name."""
    return Plans([planned(plan, now) for plan in store.read(lambda look: look.plans())])


def put(tx: Writer, name: str, body: Body, policy: Policy, actor: Actor, now: int) -> OnePlan | Refused:
    """Create or change a plan; an unchanged one is left alone."""
    entry = read(Recurring, body, policy, now, path={"name": name})
    if isinstance(entry, Faults):
        return entry.refusal()
    stored = tx.plan(name)
    if stored is not None and (refused := _in_settings(stored, now)):
        return refused
    if stored is None and len(tx.plans()) >= PLANS_MOST:
        return Refused(Code.TOO_MANY_PLANS, f"there are {PLANS_MOST} plans, which is the limit", {"name": name})
    plan = keep_next(tx, _store_plan(tx, stored, entry, Source.CALL, Reason("put"), actor, now=now), policy, now)
    return NewPlan(planned(plan, now)) if stored is None else OnePlan(planned(plan, now))


def declare(tx: Writer, now: int, entry: Recurring) -> Plan:
    """Store the plan of a settings file; a pause stays."""
    stored = tx.plan(entry.name)
    return _store_plan(tx, stored, entry, Source.SETTINGS, DECLARED, SYSTEM, now=now)


def still_declared(tx: Writer, now: int, name: str) -> None:
    """Record that a settings file still has the plan."""
    stored = tx.plan(name)
    if stored is not None and stored.declared_at + DECLARED_US <= now:
        tx.put_plan(replace(stored, declared_at=now))


def pause(tx: Writer, name: str, body: Body, policy: Policy, actor: Actor, now: int) -> OnePlan | Refused:
    """Stop occurrences; the queued one is cancelled. A paused plan stays as it is."""
    named = _plan_and_reason(tx, name, body, policy)
    if isinstance(named, Refused):
        return named
    plan, reason = named
    if plan.paused_at is None:
        _cancel_occurrence(tx, plan, Reason("plan_paused", {"plan": name}), actor, now)
        plan = replace(plan, paused_at=now, paused_by=actor.id, occurs_at=None, changed_at=now)
        tx.put_plan(plan)
        _write_event(tx, name, _pause_shown(None), _pause_shown(plan), reason or Reason("paused"), actor, at=now)
    return OnePlan(planned(plan, now))


def resume(tx: Writer, name: str, body: Body, policy: Policy, actor: Actor, now: int) -> OnePlan | Refused:
    """Continue from now; missed occurrences are skipped. A plan that is not paused stays as it is."""
    named = _plan_and_reason(tx, name, body, policy)
    if isinstance(named, Refused):
        return named
    plan, reason = named
    if plan.paused_at is not None:
        before = _pause_shown(plan)
        plan = replace(plan, paused_at=None, paused_by=None, changed_at=now)
        tx.put_plan(plan)
        _write_event(tx, name, before, _pause_shown(None), reason or Reason("resumed"), actor, at=now)
        if plan.is_kept(now):
            plan = keep_next(tx, plan, policy, now)
    return OnePlan(planned(plan, now))


def run_now(tx: Writer, name: str, body: Body, policy: Policy, actor: Actor, now: int) -> Enqueued | Refused:
    """Enqueue one job of the plan now, paused or not. While such a job is queued, it is returned again."""
    named = _plan_and_reason(tx, name, body, policy)
    if isinstance(named, Refused):
        return named
    plan, _ = named
    waiting = None if plan.asked_job_id is None else tx.job(plan.asked_job_id)
    if waiting is not None and waiting.status == Status.QUEUED:
        return stored_reply(waiting, True)
    request = read(Enqueue, asked_for(plan, now), policy, now)
    if isinstance(request, Faults):
        return request.refusal()
    [stored] = store_all(tx, [request], actor, now)
    if isinstance(stored, Refused):
        return stored
    tx.put_plan(replace(plan, asked_job_id=stored[0].job_id))
    return stored_reply(*stored)


def remove(tx: Writer, name: str, body: Body, policy: Policy, actor: Actor, now: int) -> PlanRemoved | Refused:
    """Remove a plan, its pause and its queued occurrence; not one from a settings file."""
    named = _plan_and_reason(tx, name, body, policy)
    if isinstance(named, Refused):
        return named
    plan, reason = named
    if refused := _in_settings(plan, now):
        return refused
    _cancel_occurrence(tx, plan, Reason("plan_removed", {"plan": name}), actor, now)
    tx.drop_plan(name)
    _write_event(
        tx,
        name,
        {**trail_json(plan.entry), "removed": False},
        {"removed": True},
        reason or Reason("removed"),
        actor,
        at=now,
    )
    return PlanRemoved(removed=True, name=name)


def keep_next(tx: Writer, plan: Plan, policy: Policy, now: int) -> Plan:
    """Store the next occurrence of a plan unless it is there or the plan is paused.

    An occurrence whose job was cancelled before it began (by a pause, or for another payload) is stored again, under
    the key of the next turn.
    """
    at = None if plan.paused_at is not None else plan.next_after(now)
    if at is None or at == plan.occurs_at:
        return plan
    stored = _enqueue_occurrence(tx, plan, at, policy, now)
    while _is_cancelled(stored):
        plan = replace(plan, turn=plan.turn + 1)
        stored = _enqueue_occurrence(tx, plan, at, policy, now)
    after = replace(plan, occurs_at=at, job_id=None if isinstance(stored, Refused) else stored[0].job_id)
    tx.put_plan(after)
    return after


def plan_again(tx: Writer, plan: Plan, policy: Policy, actor: Actor, now: int) -> bool:
    """Replace a stored occurrence that is no longer the next one; returns whether it was replaced."""
    if plan.occurs_at is None or plan.occurs_at == plan.next_after(now):
        return False
    _cancel_occurrence(tx, plan, Reason("time_set"), actor, now)
    keep_next(tx, replace(plan, occurs_at=None, job_id=None), policy, now)
    return True


# Inside


def _is_cancelled(stored: Stored) -> bool:
    if isinstance(stored, Refused):
        return stored.details.get("differs") == ["payload"]
    return stored[0].status == Status.FAILED and not stored[0].delivery_count


def _enqueue_occurrence(tx: Writer, plan: Plan, at: int, policy: Policy, now: int) -> Stored:
    request = read(Enqueue, occurrence(plan, at), policy, now)
    return request.refusal() if isinstance(request, Faults) else store_all(tx, [request], SYSTEM, now)[0]


def _store_plan(
    tx: Writer, stored: Plan | None, entry: Recurring, source: Source, reason: Reason, actor: Actor, *, now: int
) -> Plan:
    if stored is None:
        plan = Plan(entry, source.value, now, now)
        _write_event(tx, entry.name, None, trail_json(entry), reason, actor, at=now)
    elif stored.entry == entry:
        plan = replace(stored, source=source.value, declared_at=now)
    else:
        _cancel_occurrence(tx, stored, Reason("plan_changed", {"plan": entry.name}), actor, now)
        plan = replace(stored, entry=entry, source=source.value, changed_at=now, declared_at=now, occurs_at=None)
        _write_event(tx, entry.name, trail_json(stored.entry), trail_json(entry), reason, actor, at=now)
    tx.put_plan(plan)
    return plan


def _plan_and_reason(tx: Writer, name: str, body: Body, policy: Policy) -> tuple[Plan, Reason | None] | Refused:
    """The plan and the stated reason; an unknown plan is reported before the faults of the body."""
    plan = tx.plan(name)
    if plan is None:
        return no_plan(name)
    request = read(Stated, body, policy)
    if isinstance(request, Faults):
        return request.refusal()
    return plan, None if request.reason is None else stated(request.reason)


def _in_settings(plan: Plan, now: int) -> Refused | None:
    if plan.source == Source.CALL or not plan.is_kept(now):
        return None
    message = f"the plan {plan.name} is declared in a settings file; change it there"
    return Refused(Code.PLAN_IN_SETTINGS, message, {"name": plan.name})


def _cancel_occurrence(tx: Writer, plan: Plan, why: Reason, actor: Actor, now: int) -> None:
    """Cancel the queued occurrence, unless a delivery of it has begun: then it is retried like any job."""
    job = None if plan.job_id is None else tx.job(plan.job_id)
    if job is not None and job.status == Status.QUEUED and not job.delivery_count:
        done = decide.cancelled(job, why, now)
        assert not isinstance(done, Refused)
        tx.change(job, done.job, done.touched, done.reason, actor)


def _write_event(
    tx: Writer,
    name: str,
    before: Mapping[str, Json] | None,
    after: Mapping[str, Json],
    reason: Reason,
    actor: Actor,
    *,
    at: int,
) -> None:
    tx.plan_event(PlanChange(name, before, after, reason), actor, at)


def _pause_shown(plan: Plan | None) -> dict[str, Any]:
    if plan is None or plan.paused_at is None:
        return {"paused_at": None, "paused_by": None}
    return {"paused_at": format_utc(plan.paused_at), "paused_by": plan.paused_by}
