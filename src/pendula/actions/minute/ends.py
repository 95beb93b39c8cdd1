"""The end of a segment, regular or not: locks are released, knowledge is revealed."""

import msgspec
from msgspec import UNSET

from pendula.actions.minute.follow_ups import check_knowledge_waits, follow, submit_followups
from pendula.actions.minute.turns import add_queue_heads, release, remove_action, wake_resource_queues
from pendula.actions.minute.world_state import WorldState
from pendula.actions.model import KnowledgeItem, Resume, Reveal, Scope
from pendula.actions.rules.locks import Action, Stage
from pendula.actions.rules.visibility import action_item, is_known, knows, revealed

# Module constants: the enum lookup costs as much as the comparison.
WAITING, OVER = Stage.WAITING, Stage.OVER


def end(world: WorldState, action: Action, minute: int) -> None:
    """End an action: consume or return its resources, release its locks, ask for follow-ups."""
    plan, instance, writer = action.plan, action.instance, world.writer
    action.stage = OVER
    if world.running_by_verb is not None:
        world.unindex_running(action)
    for lock in action.locks:
        if lock.seats is None:
            lock.holder = None
        else:
            lock.release(action)
        line = lock.line
        if lock.ahead or (line and line[0][1].stage is not WAITING):
            add_queue_heads(world, (lock,))
        elif line:
            world.candidates.append(line[0])
    if plan.needs:
        world.resources.finish(plan.needs)
        wake_resource_queues(world, action)
    del world.actions[instance.id]
    if world.holding:
        release(world, action, minute)
    if world.ended is not None or world.awaited:
        world.record_end(instance.id)
    if writer.recording:
        writer.write_end(action, minute)
    if plan.triggers:
        if instance.knowledge is not UNSET:
            for reveal in instance.knowledge:
                _reveal(world, action, reveal if isinstance(reveal, Reveal) else Reveal(reveal), minute)
        elif world.makes_known and not plan.follows:
            _reveal_action(world, action, minute)
    if plan.follows:
        submit_followups(world, action, minute)
    if instance.process is not None or (plan.triggers and world.has_hook):
        follow(world, instance, {"ended": minute, "t": minute}, minute)


def stop_segment(world: WorldState, action: Action, minute: int, by: str, resume: Resume) -> None:
    """End a segment early; the caller decides what happens to the action."""
    world.queue.cancel(action.ending)
    action.ending = -1
    action.remaining = action.t_end - minute
    world.writer.note_interrupt(action, by, resume)
    action.segment += 1
    action.stage = Stage.SUSPENDED
    _stop(world, action)
    if world.holding:
        release(world, action, minute)


def force_end(world: WorldState, action: Action, minute: int) -> None:
    """End an action that is not interruptible: nothing is consumed or revealed."""
    world.queue.cancel(action.ending)
    action.ending = -1
    action.remaining = action.t_end - minute
    if world.writer.recording:
        world.writer.write_forced_end(action, minute)
    _stop(world, action)
    remove_action(world, action)


def undo_start(world: WorldState, action: Action) -> None:
    """Undo a start of the current pass, before its event is written. The caller queues the action again."""
    world.queue.cancel(action.ending)
    action.ending = -1
    if action in world.started:
        world.started.remove(action)
    _stop(world, action)


def _stop(world: WorldState, action: Action) -> None:
    world.unindex_running(action)
    for lock in action.locks:
        lock.release(action)
    add_queue_heads(world, action.locks)


def _reveal(world: WorldState, action: Action, reveal: Reveal, minute: int) -> None:
    before = world.knowledge.get(reveal.id)
    after = revealed(before, reveal, action.instance.actor, minute)
    _record_reveal(world, action, reveal, before, after, minute)


def _reveal_action(world: WorldState, action: Action, minute: int) -> None:
    """Reveal the action itself to the player, as the item `action:<id>`."""
    instance = action.instance
    before = action_item(instance, minute)
    if before.scope is Scope.REDACTED:
        return
    to_scope = Scope.PUBLIC if before.scope is Scope.PUBLIC else Scope.PC
    reveal = Reveal(before.id, to_scope)
    _record_reveal(world, action, reveal, before, revealed(before, reveal, instance.actor, minute), minute)


def expire(world: WorldState, name: str, minute: int) -> None:
    """Redact an expired item, with an event if an actor could know of it until now."""
    item = world.knowledge[name]
    audience = world.setting.audience
    world.knowledge[name] = msgspec.structs.replace(item, scope=Scope.REDACTED)
    if is_known(item, audience):
        pc = audience.pc is not None and knows(item, audience.pc, minute - 1, audience)
        world.writer.note_expiry(item, pc)


def _record_reveal(
    world: WorldState, action: Action, reveal: Reveal, before: KnowledgeItem | None, after: KnowledgeItem, minute: int
) -> None:
    world.knowledge[reveal.id] = after
    if world.awaited:
        check_knowledge_waits(world, reveal.id, minute)
    audience = world.setting.audience
    is_seen = audience.pc is not None and (
        action.instance.actor == audience.pc or knows(after, audience.pc, minute, audience)
    )
    world.writer.note_reveal(action, reveal, before, after, is_seen)
