"""Who may break off whom: requests from outside, preempting admissions, cancelling and resuming."""

from pendula.actions.minute.ends import break_off
from pendula.actions.minute.follow_ups import tell_process
from pendula.actions.minute.turns import give_turn, hold, join, leave
from pendula.actions.model import Code, Resume
from pendula.actions.requests import Wish
from pendula.actions.rules import locks
from pendula.actions.rules.locks import Action, Stage
from pendula.actions.state.world_state import WorldState


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


def preempt(world: WorldState, action: Action, minute: int) -> None:
    """Interrupt those in the way, all or none, and those whose verb it is told to interrupt."""
    own = action.instance.id
    in_the_way = locks.holders(action)
    if not locks.is_first_everywhere(action):
        if in_the_way:
            world.writer.diagnose(Code.PREEMPT_REFUSED, own, f"{own} is not first in all its queues")
        return
    for holder in in_the_way:
        if not _yields(holder, action, minute):
            other = holder.instance.id
            world.writer.diagnose(Code.PREEMPT_REFUSED, own, f"{own} waits: {other} does not yield", by=other)
            return
    listed = _listed(world, action, in_the_way)
    for victim in sorted([*in_the_way, *(one for one in listed if _yields(one, action, minute))], key=_admission):
        _interrupt(world, victim, minute, own, 0, victim.definition.resume)
    for one in listed:
        if one.stage is Stage.RUNNING:
            message = f"{one.instance.id} does not yield to {own}"
            world.writer.diagnose(Code.INTERRUPT_IGNORED, one.instance.id, message, by=own)


def _listed(world: WorldState, action: Action, in_the_way: list[Action]) -> list[Action]:
    """Who runs and has a verb that the action is told to interrupt, by admission."""
    wanted = action.definition.interrupts
    if not wanted:
        return []
    return [
        other
        for other in world.running()
        if other not in in_the_way and (wanted == "*" or other.instance.verb in wanted)
    ]


def _yields(holder: Action, to: Action, minute: int) -> bool:
    return holder.definition.interruptible and to.priority > holder.priority and not _began_in(holder, minute)


def _began_in(action: Action, minute: int) -> bool:
    """Interrupts of a minute come before its starts: what began in it is too late to be broken off."""
    return action.t_end - action.remaining == minute


def _interrupt_if_allowed(world: WorldState, action: Action | None, wish: Wish, minute: int) -> None:
    if action is None or action.stage is not Stage.RUNNING:
        reason = "it does not run" if action else "it is unknown or over"
    elif not action.definition.interruptible:
        reason = "it cannot be interrupted"
    elif _began_in(action, minute):
        reason = "it began in this minute"
    elif wish.priority <= action.priority:
        reason = f"its priority {action.priority} is not below {wish.priority}"
    else:
        _interrupt(world, action, minute, wish.source, wish.hold_min, action.definition.resume)
        return
    message = f"{wish.target} is not interrupted: {reason}"
    world.writer.diagnose(Code.INTERRUPT_IGNORED, wish.target, message, by=wish.source)


def _interrupt(world: WorldState, action: Action, minute: int, by: str, hold_min: int, resume: Resume) -> None:
    """Break a running segment off: its rest is kept, its locks are free, its reservations stay."""
    break_off(world, action, minute, by, resume)
    match resume:
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
        world.writer.diagnose(Code.NOT_CANCELLABLE, wish.target, f"{wish.target} is unknown or over")
    elif action.stage is Stage.RUNNING:
        _interrupt(world, action, minute, "cancel", 0, Resume.DROP)
    else:
        leave(world, action)
        give_turn(world, action.locks)
        tell_process(world, action, {"cancelled": minute, "t": minute}, minute)


def _resume(world: WorldState, action: Action | None, wish: Wish, minute: int) -> None:
    if action is None or action.stage is not Stage.SUSPENDED:
        world.writer.diagnose(Code.NOT_RESUMABLE, wish.target, f"{wish.target} is not suspended")
    else:
        join(world, action, minute)


def _admission(action: Action) -> int:
    return action.admission
