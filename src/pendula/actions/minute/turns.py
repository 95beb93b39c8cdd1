"""Turns: joining the queues of locks, starting when first in all of them, leaving without a start."""

from bisect import insort
from collections.abc import Iterable
from typing import TypeAlias

from pendula.actions.minute.follow_ups import reject_submission
from pendula.actions.minute.world_state import JOINING, WAKING, WorldState, by_admission
from pendula.actions.model import Code
from pendula.actions.rules import locks
from pendula.actions.rules.locks import Action, Lock, Stage, can_start
from pendula.actions.rules.validation import Fault

Candidate: TypeAlias = tuple[int, Action]

# Module constants: the enum lookup costs as much as the comparison.
WAITING, RUNNING, OVER = Stage.WAITING, Stage.RUNNING, Stage.OVER


def join(world: WorldState, action: Action, minute: int) -> None:
    """Join the queues; the action may start in this minute."""
    if locks.join(action, minute) or action.plan.fails:
        world.candidates.append((action.key, action))


def hold(world: WorldState, action: Action, until: int) -> None:
    action.stage = Stage.HELD
    action.joined = until
    world.queue.push(until, JOINING, action)


def hold_while(world: WorldState, action: Action, cause: Action, hold_min: int) -> None:
    """Hold an interrupted action until its cause ends, and `hold_min` minutes longer."""
    action.stage = Stage.HELD
    action.joined = world.clock.minute
    action.cause, action.hold_min = cause, hold_min
    world.holding.setdefault(cause.instance.id, []).append(action)


def release(world: WorldState, cause: Action, minute: int) -> None:
    """Release the actions held by a cause that ended or was interrupted, by admission."""
    for action in sorted(world.holding.pop(cause.instance.id, ()), key=by_admission):
        if action.stage is not Stage.HELD or action.cause is not cause:
            continue  # it was cancelled
        action.cause = None
        if action.hold_min:
            hold(world, action, minute + action.hold_min)
        else:
            join(world, action, minute)


def add_queue_heads(world: WorldState, free: Iterable[Lock]) -> None:
    """Make the first action in the queue of each free lock a candidate to start in this minute."""
    for lock in free:
        if lock.holder is None and (first := lock.first()) is not None:
            world.candidates.append((first.key, first))


def start_candidates(world: WorldState, minute: int) -> None:
    """Start the candidates that can start, in queue order."""
    candidates, world.candidates = world.candidates, []
    if len(candidates) > 1:
        candidates.sort()
    push, started, recording = world.queue.push, world.started, world.writer.recording
    listed = world.running_by_verb is not None
    for place, (_, action) in enumerate(candidates, 1):
        if action.stage is not WAITING:
            continue
        if can_start(action) and (not action.lines or _reserve_awaited(world, action, candidates, place)):
            for lock in action.locks:
                if lock.ahead:
                    lock.remove_first(action)
                else:
                    lock.line.popleft()
                if lock.seats is None:
                    lock.holder = action
                else:
                    lock.take(action)
                    if lock.holder is None:
                        _add_next_heads((lock,), candidates, place)
            action.stage = RUNNING
            action.t_end = t_end = minute + action.remaining
            action.ending = push(t_end, action.admission, action)
            if listed:
                world.index_running(action)
            if recording:
                started.append(action)
        elif action.plan.fails and action.segment == 0:
            _fail_to_acquire(world, action, minute, candidates, place)


def _reserve_awaited(world: WorldState, action: Action, candidates: list[Candidate], place: int) -> bool:
    """Reserve the resources it waited for, now that its locks are free; the next in their queues become candidates."""
    if world.resources.reserve(action.plan.needs):
        return False
    lines, action.lines = action.lines, ()
    for line in lines:
        line.remove_first(action)
    _add_next_heads(lines, candidates, place)
    return True


def _add_next_heads(queues: Iterable[Lock], candidates: list[Candidate], place: int) -> None:
    """Insert the first of these queues into the current pass, after the present candidate."""
    for queue in queues:
        if (first := queue.first()) is not None:
            insort(candidates, (first.key, first), place)


def _fail_to_acquire(world: WorldState, action: Action, minute: int, candidates: list[Candidate], place: int) -> None:
    taken = [lock.name for lock in action.locks if lock.holder is not None or lock.first() is not action]
    remove_action(world, action)
    _add_next_heads(action.locks, candidates, place)
    fault = Fault(Code.CANNOT_ACQUIRE_LOCK, "locks_taken", {"id": action.instance.id, "locks": [*taken]})
    reject_submission(world, action.instance, fault, minute)


def remove_action(world: WorldState, action: Action) -> None:
    """Remove an action without an end event; its reservations are returned."""
    action.stage = OVER
    if action.lines:
        add_queue_heads(world, action.lines)  # nothing was reserved
    else:
        world.resources.give_back(action.plan.needs)
        wake_resource_queues(world, action)
    del world.actions[action.instance.id]
    world.record_end(action.instance.id)
    if world.holding:
        release(world, action, world.clock.minute)


def wake_resource_queues(world: WorldState, action: Action) -> None:
    """Make candidates of actions that wait for resources this one returned or produced."""
    for need in action.plan.needs if world.lines else ():
        if (line := world.lines.get(need.name)) is not None:
            add_queue_heads(world, (line,))


def wake_candidates(world: WorldState) -> None:
    """Queue a pass over the candidates in this minute, in case nothing else happens in it."""
    if world.candidates:
        world.queue.push(world.clock.minute, WAKING, None)


def wake_queue_heads(world: WorldState) -> None:
    """After a restore within a minute, make the heads of the queues of free locks candidates again."""
    add_queue_heads(world, (*world.locks.by_name.values(), *world.lines.values()))
    for action in world.actions.values():
        if action.stage is WAITING and not action.locks and not action.lines:
            world.candidates.append((action.key, action))  # it is in no queue
    wake_candidates(world)
