"""Who may break off whom: requests from outside, preempting admissions, cancelling and resuming.

Interrupts of a minute come before its starts. A wish that comes when its minute has been lived through meets actions
that began in it: those are broken off in the same minute, once. One that began again in it is broken off in the next,
or two alarms could push an action to and fro for ever.
"""

import msgspec

from pendula.actions.minute.ends import break_off, end_by_force, take_back
from pendula.actions.minute.follow_ups import tell_process, turn_away
from pendula.actions.minute.turns import give_turn, hold, hold_while, join, leave
from pendula.actions.model import Code, Resume
from pendula.actions.requests import Wish
from pendula.actions.rules import locks
from pendula.actions.rules.locks import Action, Stage
from pendula.actions.rules.validation import Fault
from pendula.actions.state.ranks import JOINING, REQUESTED
from pendula.actions.state.world_state import WorldState, by_admission
from pendula.kernel.canonical import Json


def grant(world: WorldState, wishes: list[Wish], minute: int) -> None:
    """External requests of one minute, by the admission of their target, then as they came."""
    known = [(world.actions.get(wish.target), wish) for wish in wishes]
    known.sort(key=lambda pair: pair[0].admission if pair[0] else world.next_admission)
    for found, wish in known:
        action = None if found is None or found.stage is Stage.OVER else found  # over since an earlier request
        match wish.kind:
            case "interrupt":
                _interrupt_if_allowed(world, action, wish, minute)
            case "cancel":
                _cancel(world, action, wish, minute)
            case "resume":
                _resume(world, action, wish, minute)


def try_again(world: WorldState, actions: list[Action], minute: int) -> None:
    """Those who met somebody a minute ago who had begun in it for the second time."""
    for action in sorted(actions, key=by_admission):
        if action.stage is Stage.WAITING:
            preempt(world, action, minute)


def preempt(world: WorldState, action: Action, minute: int) -> None:
    """Interrupt those in the way, all or none, and those whose verb it is told to interrupt."""

    def strength(holder: Action) -> tuple[bool, bool, int]:
        stays = _why_not(holder, action.priority) is not None
        return stays, _is_too_early(holder, minute), holder.priority

    in_the_way = locks.in_the_way(action, strength)
    own = action.instance.id
    if not locks.is_first_everywhere(action):
        if in_the_way:
            world.writer.diagnose(Code.PREEMPT_REFUSED, own, "not_first_in_queues")
        return
    if action.lines:
        if in_the_way:
            facts: dict[str, Json] = {"resources": [line.name for line in action.lines]}
            world.writer.diagnose(Code.PREEMPT_REFUSED, own, "waits_for_resources", facts)
        return
    too_early = False
    for holder in in_the_way:
        why = _why_not(holder, action.priority)
        if why is None and _is_too_early(holder, minute):
            too_early = True
        if why is not None:
            other = holder.instance.id
            world.writer.diagnose(Code.PREEMPT_REFUSED, own, "holder_does_not_yield", why, by=other)
            return
    if too_early:
        world.queue.push(minute + 1, JOINING, action)
        return
    listed = _listed(world, action, in_the_way)
    victims = [*in_the_way, *(one for one in listed if _yields(one, action, minute))]
    for victim in sorted(victims, key=by_admission):
        _interrupt(world, victim, minute, own, action.definition.hold_min, victim.definition.resume, cause=action)
    for one in listed:
        if one.stage is Stage.RUNNING:
            _pass_over(world, action, one, minute)


def _pass_over(world: WorldState, action: Action, one: Action, minute: int) -> None:
    """Somebody of a listed verb who does not yield, or not in this minute."""
    own, other = action.instance.id, one.instance.id
    why = _why_not(one, action.priority)
    if why is None:
        wish = Wish("interrupt", other, minute + 1, action.priority, own, action.definition.hold_min, cause=own)
        world.queue.push(wish.minute, REQUESTED, wish)
        return
    world.writer.diagnose(Code.INTERRUPT_IGNORED, other, "does_not_yield", why, by=own)


def _listed(world: WorldState, action: Action, in_the_way: list[Action]) -> list[Action]:
    """Who runs and has a verb that the action is told to interrupt, by admission."""
    wanted, index = action.definition.interrupts, world.running_by_verb
    if not wanted or index is None:
        return []
    others = {one.admission for one in in_the_way}
    verbs = index if wanted == "*" else dict.fromkeys(wanted)
    found = [one for verb in verbs for one in index.get(verb, {}).values() if one.admission not in others]
    return sorted(found, key=by_admission)


def _yields(holder: Action, to: Action, minute: int) -> bool:
    return _why_not(holder, to.priority) is None and not _is_too_early(holder, minute)


def _why_not(action: Action, priority: int) -> dict[str, Json] | None:
    """Why an action never yields to this priority, as facts: the priorities, or nothing where it cannot be interrupted
    at all. None if it does yield."""
    if not action.definition.interruptible:
        return {}
    if priority <= action.priority:
        return {"priority": action.priority, "needed": priority}
    return None


def _is_too_early(action: Action, minute: int) -> bool:
    """Whether it began in this minute for the second time and therefore is not broken off in it."""
    return action.segment > 0 and action.t_end - action.remaining == minute


def _interrupt_if_allowed(world: WorldState, action: Action | None, wish: Wish, minute: int) -> None:
    facts: dict[str, Json] = {}
    if action is None or action.stage is not Stage.RUNNING:
        reason = "not_running" if action else "nothing_to_interrupt"
    elif not action.definition.interruptible:
        reason = "not_interruptible"
    elif wish.priority <= action.priority:
        reason, facts = "priority_too_low", {"priority": action.priority, "needed": wish.priority}
    elif _is_too_early(action, minute):
        world.queue.push(minute + 1, REQUESTED, msgspec.structs.replace(wish, minute=minute + 1))
        return
    elif wish.cause is None:
        _interrupt(world, action, minute, wish.source, wish.hold_min, action.definition.resume)
        return
    elif (cause := world.actions.get(wish.cause)) is not None and _lasts(cause):
        _interrupt(world, action, minute, wish.source, wish.hold_min, action.definition.resume, cause=cause)
        return
    else:
        reason, facts = "cause_is_over", {"cause": wish.cause}
    world.writer.diagnose(Code.INTERRUPT_IGNORED, wish.target, reason, facts, by=wish.source)


def _lasts(cause: Action) -> bool:
    """Whether a preempting action has its first segment before it, or in progress: no other preempts."""
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
    """Break a running segment off: its rest is kept, its locks are free, its reservations stay.

    With a `cause` it is held until that one ends, and `hold_min` minutes longer.
    """
    if action.ending >= world.pass_start and action.t_end - action.remaining == minute:
        take_back(world, action)
        if cause is None:
            join(world, action, action.joined)
        else:
            hold_while(world, action, cause, hold_min)
        return
    break_off(world, action, minute, by, resume)
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
            leave(world, action)
            tell_process(world, action, {"interrupted": minute, "by": by, "t": minute}, minute)


def _cancel(world: WorldState, action: Action | None, wish: Wish, minute: int) -> None:
    if action is None:
        if not _cancel_before_it_comes(world, wish.target, minute):
            world.writer.diagnose(Code.NOT_CANCELLABLE, wish.target, "nothing_to_cancel")
    elif action.stage is Stage.RUNNING and not action.definition.interruptible:
        if not wish.force:
            world.writer.diagnose(Code.NOT_INTERRUPTIBLE, wish.target, "needs_force")
            return
        end_by_force(world, action, minute)
        tell_process(world, action, {"interrupted": minute, "by": "cancel", "t": minute}, minute)
    elif action.stage is Stage.RUNNING:
        _interrupt(world, action, minute, "cancel", 0, Resume.DROP)
    else:
        leave(world, action)
        give_turn(world, action.locks)
        tell_process(world, action, {"cancelled": minute, "t": minute}, minute)


def _cancel_before_it_comes(world: WorldState, target: str, minute: int) -> bool:
    """Take back a submission for later; tells whether there is one."""
    found = world.take_from_coming(target)
    if found is None:
        return False
    turn_away(world, found, Fault(Code.CANCELLED, "cancelled_before_admission", {"id": target}), minute)
    return True


def _resume(world: WorldState, action: Action | None, wish: Wish, minute: int) -> None:
    if action is None or action.stage is not Stage.SUSPENDED:
        world.writer.diagnose(Code.NOT_RESUMABLE, wish.target, "not_suspended")
    else:
        join(world, action, minute)
