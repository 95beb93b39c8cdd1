"""Whose turn it is: standing in the queues of locks, starting when first in all of them, leaving without a start."""

from bisect import insort
from collections.abc import Iterable
from typing import TypeAlias

from pendula.actions.minute.follow_ups import turn_away
from pendula.actions.model import Code
from pendula.actions.rules import locks
from pendula.actions.rules.locks import Action, Lock, Stage, can_start
from pendula.actions.rules.validation import Fault
from pendula.actions.state.ranks import JOINING, WAKING
from pendula.actions.state.world_state import WorldState, by_admission

Candidate: TypeAlias = tuple[int, Action]

# Looking a member up in its class costs as much as the comparison it is for.
WAITING, RUNNING, OVER = Stage.WAITING, Stage.RUNNING, Stage.OVER


def join(world: WorldState, action: Action, minute: int) -> None:
    """Stand in the queues; the turn may come in this very minute, or when those before it are gone."""
    if locks.join(action, minute) or action.plan.fails:
        world.candidates.append((action.key, action))


def hold(world: WorldState, action: Action, until: int) -> None:
    action.stage = Stage.HELD
    action.joined = until
    world.queue.push(until, JOINING, action)


def hold_while(world: WorldState, action: Action, cause: Action, hold_min: int) -> None:
    """Hold an interrupted action until the one that interrupted it ends, and `hold_min` minutes longer."""
    action.stage = Stage.HELD
    action.joined = world.clock.minute
    action.cause, action.hold_min = cause, hold_min
    world.holding.setdefault(cause.instance.id, []).append(action)


def release(world: WorldState, cause: Action, minute: int) -> None:
    """Let those that an action interrupted join their queues, by admission: it is over, or interrupted itself."""
    for action in sorted(world.holding.pop(cause.instance.id, ()), key=by_admission):
        if action.stage is not Stage.HELD or action.cause is not cause:
            continue  # it was cancelled meanwhile
        action.cause = None
        if action.hold_min:
            hold(world, action, minute + action.hold_min)
        else:
            join(world, action, minute)


def give_turn(world: WorldState, free: Iterable[Lock]) -> None:
    """Whoever is first in the queues of free locks may have its turn in this minute."""
    for lock in free:
        if lock.holder is None and (first := lock.first()) is not None:
            world.candidates.append((first.key, first))


def give_turns(world: WorldState, minute: int) -> None:
    """One pass in queue order over everybody whose turn it may be."""
    candidates, world.candidates = world.candidates, []
    if len(candidates) > 1:
        candidates.sort()
    push, started, recording = world.queue.push, world.started, world.writer.recording
    listed = world.running_by_verb is not None
    for place, (_, action) in enumerate(candidates, 1):
        if action.stage is not WAITING:
            continue
        if can_start(action) and (not action.lines or _supply(world, action, candidates, place)):
            for lock in action.locks:
                if lock.ahead:
                    lock.leave(action)
                else:
                    lock.line.popleft()
                if lock.seats is None:
                    lock.holder = action
                else:
                    lock.take(action)
                    if lock.holder is None:
                        _look_at_next((lock,), candidates, place)
            action.stage = RUNNING
            action.t_end = t_end = minute + action.remaining
            action.ending = push(t_end, action.admission, action)
            if listed:
                world.note_running(action)
            if recording:
                started.append(action)
        elif action.plan.fails and action.segment == 0:
            _give_up(world, action, minute, candidates, place)


def _supply(world: WorldState, action: Action, candidates: list[Candidate], place: int) -> bool:
    """Reserve what it waited for, now that everything else is there; then others may be supplied, too."""
    if world.resources.reserve(action.plan.needs):
        return False
    lines, action.lines = action.lines, ()
    for line in lines:
        line.leave(action)
    _look_at_next(lines, candidates, place)
    return True


def _look_at_next(queues: Iterable[Lock], candidates: list[Candidate], place: int) -> None:
    """Whoever is first in these queues has its turn in the pass that goes on, after the one it has come to."""
    for queue in queues:
        if (first := queue.first()) is not None:
            insort(candidates, (first.key, first), place)


def _give_up(world: WorldState, action: Action, minute: int, candidates: list[Candidate], place: int) -> None:
    taken = [lock.name for lock in action.locks if lock.holder is not None or lock.first() is not action]
    leave(world, action)
    _look_at_next(action.locks, candidates, place)
    fault = Fault(Code.CANNOT_ACQUIRE_LOCK, "locks_taken", {"id": action.instance.id, "locks": [*taken]})
    turn_away(world, action.instance, fault, minute)


def leave(world: WorldState, action: Action) -> None:
    """Out of the world without an end: everything reserved goes back."""
    action.stage = OVER
    if action.lines:
        give_turn(world, action.lines)  # it had nothing reserved
    else:
        world.resources.give_back(action.plan.needs)
        supplied(world, action)
    del world.actions[action.instance.id]
    world.note_over(action.instance.id)
    if world.holding:
        release(world, action, world.clock.minute)


def supplied(world: WorldState, action: Action) -> None:
    """What an action gave back or made may be what others wait for."""
    for need in action.plan.needs if world.lines else ():
        if (line := world.lines.get(need.name)) is not None:
            give_turn(world, (line,))


def wake_candidates(world: WorldState) -> None:
    """See to it that whoever is first in a queue has its turn in this minute, though nothing else happens in it."""
    if world.candidates:
        world.queue.push(world.clock.minute, WAKING, None)


def wake_whoever_is_first(world: WorldState) -> None:
    """After a restore in the middle of a minute: who is first in the queue of a free lock has its turn."""
    give_turn(world, (*world.locks.by_name.values(), *world.lines.values()))
    for action in world.actions.values():
        if action.stage is WAITING and not action.locks and not action.lines:
            world.candidates.append((action.key, action))  # let go at the end of an epoch, it stands in no queue
    wake_candidates(world)
