"""A segment is over, by its end or broken off: its locks are free, and what was learned comes to light."""

import msgspec
from msgspec import UNSET

from pendula.actions.minute.follow_ups import follow, submit_followups
from pendula.actions.minute.turns import give_turn, leave, release, supplied
from pendula.actions.minute.waits import came_to_light
from pendula.actions.model import KnowledgeItem, Resume, Reveal, Scope
from pendula.actions.rules.locks import Action, Stage
from pendula.actions.rules.visibility import is_known, item_of, knows, revealed
from pendula.actions.state.world_state import WorldState

# Looking a member up in its class costs as much as the comparison it is for.
WAITING, OVER = Stage.WAITING, Stage.OVER


def end(world: WorldState, action: Action, minute: int) -> None:
    """An action is done: what it needed is consumed or returned, and whoever is next has its turn."""
    plan, instance, writer = action.plan, action.instance, world.writer
    action.stage = OVER
    if world.running_by_verb is not None:
        world.note_stopped(action)
    for lock in action.locks:
        if lock.seats is None:
            lock.holder = None
        else:
            lock.release(action)
        line = lock.line
        if lock.ahead or (line and line[0][1].stage is not WAITING):
            give_turn(world, (lock,))
        elif line:
            world.candidates.append(line[0])
    if plan.needs:
        world.resources.finish(plan.needs)
        supplied(world, action)
    del world.actions[instance.id]
    if world.holding:
        release(world, action, minute)
    if world.over is not None or world.awaited:
        world.note_over(instance.id)
    if writer.recording:
        writer.write_end(action, minute)
    if plan.triggers:
        if instance.knowledge is not UNSET:
            for reveal in instance.knowledge:
                _bring_to_light(world, action, reveal if isinstance(reveal, Reveal) else Reveal(reveal), minute)
        elif world.makes_known and not plan.follows:
            _make_known(world, action, minute)
    if plan.follows:
        submit_followups(world, action, minute)
    if instance.process is not None or (plan.triggers and world.has_hook):
        follow(world, instance, {"ended": minute, "t": minute}, minute)


def break_off(world: WorldState, action: Action, minute: int, by: str, resume: Resume) -> None:
    """End a segment before its time; what becomes of the action is for the caller to say."""
    world.queue.cancel(action.ending)
    action.ending = -1
    action.remaining = action.t_end - minute
    world.writer.note_interrupt(action, by, resume)
    action.segment += 1
    action.stage = Stage.SUSPENDED
    _stop(world, action)
    if world.holding:
        release(world, action, minute)


def end_by_force(world: WorldState, action: Action, minute: int) -> None:
    """End an action that cannot be interrupted: nothing is consumed, nothing comes to light."""
    world.queue.cancel(action.ending)
    action.ending = -1
    action.remaining = action.t_end - minute
    if world.writer.recording:
        world.writer.write_forced_end(action, minute)
    _stop(world, action)
    leave(world, action)


def take_back(world: WorldState, action: Action) -> None:
    """Undo a start of this pass over the minute, before any event says so. The caller lets the action wait again."""
    world.queue.cancel(action.ending)
    action.ending = -1
    if action in world.started:
        world.started.remove(action)
    _stop(world, action)


def _stop(world: WorldState, action: Action) -> None:
    world.note_stopped(action)
    for lock in action.locks:
        lock.release(action)
    give_turn(world, action.locks)


def _bring_to_light(world: WorldState, action: Action, reveal: Reveal, minute: int) -> None:
    before = world.knowledge.get(reveal.id)
    after = revealed(before, reveal, action.instance.actor, minute)
    _tell(world, action, reveal, before, after, minute)


def _make_known(world: WorldState, action: Action, minute: int) -> None:
    """The action itself comes to the knowledge of the player, as the item `action:<id>`."""
    instance = action.instance
    before = item_of(instance, minute)
    if before.scope is Scope.REDACTED:
        return
    to_scope = Scope.PUBLIC if before.scope is Scope.PUBLIC else Scope.PC
    reveal = Reveal(before.id, to_scope)
    _tell(world, action, reveal, before, revealed(before, reveal, instance.actor, minute), minute)


def expire(world: WorldState, name: str, minute: int) -> None:
    """Redact an item whose time is over; an event says so where an actor could know of it until now."""
    item = world.knowledge[name]
    circle = world.setting.circle
    world.knowledge[name] = msgspec.structs.replace(item, scope=Scope.REDACTED)
    if is_known(item, circle):
        pc = circle.pc is not None and knows(item, circle.pc, minute - 1, circle)
        world.writer.note_expiry(item, pc)


def _tell(
    world: WorldState, action: Action, reveal: Reveal, before: KnowledgeItem | None, after: KnowledgeItem, minute: int
) -> None:
    world.knowledge[reveal.id] = after
    if world.awaited:
        came_to_light(world, reveal.id, minute)
    circle = world.setting.circle
    is_told = circle.pc is not None and (action.instance.actor == circle.pc or knows(after, circle.pc, minute, circle))
    world.writer.note_reveal(action, reveal, before, after, is_told)
