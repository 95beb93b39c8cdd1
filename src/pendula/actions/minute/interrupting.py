"""Interrupts: requests from outside, preempting admissions, cancelling and resuming.

Interrupts of a minute come before its starts. A request that arrives after its minute was run meets actions that
started in it: they are interrupted in the same minute, once. One that started a second time in it is interrupted in the
next minute, or two alarms could interrupt each other without end.
"""

import msgspec

from pendula.actions.messages import ActionRequest
from pendula.actions.minute.ends import force_end, stop_segment, undo_start
from pendula.actions.minute.follow_ups import notify_process, reject_submission
from pendula.actions.minute.turns import add_queue_heads, hold, hold_while, join, remove_action
from pendula.actions.minute.world_state import JOINING, REQUESTED, WorldState, by_admission
from pendula.actions.model import Code, Resume
from pendula.actions.rules import locks
from pendula.actions.rules.locks import Action, Stage
from pendula.actions.rules.validation import Fault
from pendula.kernel.canonical import Json


def apply_requests(world: WorldState, requests: list[ActionRequest], minute: int) -> None:
    """Apply the external requests of one minute, by the admission of their target, then in order of arrival."""
    known = [(world.actions.get(request.target), request) for request in requests]
    known.sort(key=lambda pair: pair[0].admission if pair[0] else world.next_admission)
    for target, request in known:
        # An earlier request of this minute may have ended the target.
        action = None if target is None or target.stage is Stage.OVER else target
        match request.kind:
            case "interrupt":
                _interrupt_if_allowed(world, action, request, minute)
            case "cancel":
                _cancel(world, action, request, minute)
            case "resume":
                _resume(world, action, request, minute)


def retry_preemptions(world: WorldState, actions: list[Action], minute: int) -> None:
    """Preemptions deferred from the previous minute, because a holder had started twice in it."""
    for action in sorted(actions, key=by_admission):
        if action.stage is Stage.WAITING:
            preempt(world, action, minute)


def preempt(world: WorldState, action: Action, minute: int) -> None:
    """Interrupt the holders that block the action, all or none, and the actions of its listed verbs."""

    def strength(holder: Action) -> tuple[bool, bool, int]:
        stays = _refusal_facts(holder, action.priority) is not None
        return stays, _restarted_in(holder, minute), holder.priority

    blocking_holders = locks.blocking_holders(action, strength)
    own = action.instance.id
    if not locks.is_first_everywhere(action):
        if blocking_holders:
            world.writer.diagnose(Code.PREEMPT_REFUSED, own, "not_first_in_queues")
        return
    if action.lines:
        if blocking_holders:
            facts: dict[str, Json] = {"resources": [line.name for line in action.lines]}
            world.writer.diagnose(Code.PREEMPT_REFUSED, own, "waits_for_resources", facts)
        return
    too_early = False
    for holder in blocking_holders:
        why = _refusal_facts(holder, action.priority)
        if why is None and _restarted_in(holder, minute):
            too_early = True
        if why is not None:
            other = holder.instance.id
            world.writer.diagnose(Code.PREEMPT_REFUSED, own, "holder_does_not_yield", why, by=other)
            return
    if too_early:
        world.queue.push(minute + 1, JOINING, action)
        return
    listed = _listed(world, action, blocking_holders)
    victims = [*blocking_holders, *(one for one in listed if _yields(one, action, minute))]
    for victim in sorted(victims, key=by_admission):
        _interrupt(world, victim, minute, own, action.definition.hold_min, victim.definition.resume, cause=action)
    for one in listed:
        if one.stage is Stage.RUNNING:
            _skip_or_defer(world, action, one, minute)


def _skip_or_defer(world: WorldState, action: Action, one: Action, minute: int) -> None:
    """Note that an action of a listed verb does not yield, or defer its interrupt to the next minute."""
    own, other = action.instance.id, one.instance.id
    why = _refusal_facts(one, action.priority)
    if why is None:
        request = ActionRequest(
            "interrupt", other, minute + 1, action.priority, own, action.definition.hold_min, cause=own
        )
        world.queue.push(request.minute, REQUESTED, request)
        return
    world.writer.diagnose(Code.INTERRUPT_IGNORED, other, "does_not_yield", why, by=own)


def _listed(world: WorldState, action: Action, blocking_holders: list[Action]) -> list[Action]:
    """Running actions of the listed verbs, by admission."""
    listed, index = action.definition.interrupts, world.running_by_verb
    if not listed or index is None:
        return []
    blocking = {holder.admission for holder in blocking_holders}
    verbs = index if listed == "*" else dict.fromkeys(listed)
    actions = [one for verb in verbs for one in index.get(verb, {}).values() if one.admission not in blocking]
    return sorted(actions, key=by_admission)


def _yields(holder: Action, to: Action, minute: int) -> bool:
    return _refusal_facts(holder, to.priority) is None and not _restarted_in(holder, minute)


def _refusal_facts(action: Action, priority: int) -> dict[str, Json] | None:
    """Why an action does not yield to this priority: the two priorities, or no facts if it is not interruptible.

    None if it yields.
    """
    if not action.definition.interruptible:
        return {}
    if priority <= action.priority:
        return {"priority": action.priority, "needed": priority}
    return None


def _restarted_in(action: Action, minute: int) -> bool:
    """Whether the action started for the second time in this minute, so that it is interrupted in the next."""
    return action.segment > 0 and action.t_end - action.remaining == minute


def _interrupt_if_allowed(world: WorldState, action: Action | None, request: ActionRequest, minute: int) -> None:
    facts: dict[str, Json] = {}
    if action is None or action.stage is not Stage.RUNNING:
        reason = "not_running" if action else "nothing_to_interrupt"
    elif not action.definition.interruptible:
        reason = "not_interruptible"
    elif request.priority <= action.priority:
        reason, facts = "priority_too_low", {"priority": action.priority, "needed": request.priority}
    elif _restarted_in(action, minute):
        world.queue.push(minute + 1, REQUESTED, msgspec.structs.replace(request, minute=minute + 1))
        return
    elif request.cause is None:
        _interrupt(world, action, minute, request.source, request.hold_min, action.definition.resume)
        return
    elif (cause := world.actions.get(request.cause)) is not None and _is_in_first_segment(cause):
        _interrupt(world, action, minute, request.source, request.hold_min, action.definition.resume, cause=cause)
        return
    else:
        reason, facts = "cause_is_over", {"cause": request.cause}
    world.writer.diagnose(Code.INTERRUPT_IGNORED, request.target, reason, facts, by=request.source)


def _is_in_first_segment(cause: Action) -> bool:
    """Whether a preempting action waits for its first segment or runs it: later segments do not preempt."""
    return cause.segment == 0 and cause.stage in (Stage.WAITING, Stage.RUNNING)


def _interrupt(
    world: WorldState,
    action: Action,
    minute: int,
    by: str,
    hold_min: int,
    resume: Resume,
    *,
    cause: Action | None = None,
) -> None:
    """Interrupt a running segment: the remaining time and the reservations are kept, the locks are released.

    With a `cause` the action is held until the cause ends, and `hold_min` minutes longer.
    """
    if action.ending >= world.pass_start and action.t_end - action.remaining == minute:
        undo_start(world, action)
        if cause is None:
            join(world, action, action.joined)
        else:
            hold_while(world, action, cause, hold_min)
        return
    stop_segment(world, action, minute, by, resume)
    match resume:
        case Resume.AUTO if cause is not None:
            hold_while(world, action, cause, hold_min)
        case Resume.AUTO if hold_min:
            hold(world, action, minute + hold_min)
        case Resume.AUTO:
            join(world, action, minute)
        case Resume.MANUAL:
            pass
        case Resume.DROP:
            remove_action(world, action)
            notify_process(world, action, {"interrupted": minute, "by": by, "t": minute}, minute)


def _cancel(world: WorldState, action: Action | None, request: ActionRequest, minute: int) -> None:
    if action is None:
        if not _cancel_pending(world, request.target, minute):
            world.writer.diagnose(Code.NOT_CANCELLABLE, request.target, "nothing_to_cancel")
    elif action.stage is Stage.RUNNING and not action.definition.interruptible:
        if not request.force:
            world.writer.diagnose(Code.NOT_INTERRUPTIBLE, request.target, "needs_force")
            return
        force_end(world, action, minute)
        notify_process(world, action, {"interrupted": minute, "by": "cancel", "t": minute}, minute)
    elif action.stage is Stage.RUNNING:
        _interrupt(world, action, minute, "cancel", 0, Resume.DROP)
    else:
        remove_action(world, action)
        add_queue_heads(world, action.locks)
        notify_process(world, action, {"cancelled": minute, "t": minute}, minute)


def _cancel_pending(world: WorldState, target: str, minute: int) -> bool:
    """Withdraw a pending submission; False if there is none."""
    submission = world.withdraw(target)
    if submission is None:
        return False
    reject_submission(world, submission, Fault(Code.CANCELLED, "cancelled_before_admission", {"id": target}), minute)
    return True


def _resume(world: WorldState, action: Action | None, request: ActionRequest, minute: int) -> None:
    if action is None or action.stage is not Stage.SUSPENDED:
        world.writer.diagnose(Code.NOT_RESUMABLE, request.target, "not_suspended")
    else:
        join(world, action, minute)
