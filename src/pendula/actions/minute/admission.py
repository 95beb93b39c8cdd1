"""Admission makes an action of an instance: checks, duration, resources, its place in the queues of its locks."""

from typing import Any

from pendula.actions.messages import ask_modifiers
from pendula.actions.minute.follow_ups import reject_submission
from pendula.actions.minute.interrupting import preempt
from pendula.actions.minute.turns import join
from pendula.actions.minute.world_state import Plan, WorldState
from pendula.actions.model import Code, Instance
from pendula.actions.rules.duration import Timing
from pendula.actions.rules.locks import Action, Stage, key_of
from pendula.actions.rules.resources import Shortage, plain
from pendula.actions.rules.validation import INSTANCES, Fault
from pendula.kernel.canonical import Json

# Module constants: the enum lookup costs as much as the comparison.
RUNNING = Stage.RUNNING


def admit(world: WorldState, instance: Instance, minute: int, late: bool) -> None:
    """Admit an instance in this minute, or reject it. It starts at once if it can."""
    plan = world.plan_of(instance.verb) or world.plans.make(instance.verb)
    timing: Timing | None = plan.ordinary
    if timing is None or instance.actor in world.skilled or world.next_admission >= world.full_at:
        timing = _checked_timing(world, plan, instance, minute)
        if timing is None:
            return
    elif plan.needs and (shortages := world.resources.reserve(plan.needs)):
        reject_submission(world, instance, _shortage(shortages), minute)
        return
    own_locks = plan.locks
    if world.is_exclusive:
        names = (*plan.verb.locks, f"actor:{instance.actor}")
        if (fault := world.plans.too_many_locks(names)) is not None:
            if not plan.waits:
                world.resources.give_back(plan.needs)
            reject_submission(world, instance, fault, minute)
            return
        own_locks = world.locks.of(names)
    admission = world.next_admission
    key = key_of(instance, plan.definition, admission) if plan.preempts else admission
    minutes = timing.minutes
    action = Action(instance, plan, admission, key, minutes, minutes, own_locks, minute)
    if plan.waits:
        _join_resource_queues(world, action)
    world.next_admission = admission + 1
    if timing.meta is not None or late or world.extras:
        action.meta = _first_meta(world, instance.id, timing, late)
    if world.has_pc:
        action.seen = world.setting.is_seen_by_pc(instance)
    world.actions[instance.id] = action
    if world.admits_in_queue_order:
        for lock in own_locks:
            if lock.holder is not None or ((lock.line or lock.ahead) and lock.first() is not None):
                break
        else:
            for lock in own_locks:
                lock.holder = action
            action.stage = RUNNING
            action.t_end = t_end = minute + minutes
            action.ending = world.queue.push(t_end, admission, action)
            if world.writer.recording:
                world.started.append(action)
            return
        if not plan.fails:
            # An earlier action waits for the same lock: this one cannot start before that one ends.
            entry = (admission, action)
            for lock in own_locks:
                lock.line.append(entry)
            return
    join(world, action, minute)
    if plan.preempts:
        preempt(world, action, minute)


def _join_resource_queues(world: WorldState, action: Action) -> None:
    """Reserve the resources, or join their queues when they are short or an earlier action waits for them."""
    lines = world.lines_of(action.plan.needs)
    is_next = all((first := line.first()) is None or action.key < first.key for line in lines)
    if not is_next or world.resources.reserve(action.plan.needs):
        action.lines = lines


def _checked_timing(world: WorldState, plan: Plan, instance: Instance, minute: int) -> Timing | None:
    """Check the instance and reserve its resources; None if it was rejected."""
    timing = plan.fault or _timing(world, plan, instance, minute)
    fault = _first_fault(world, plan, timing)
    if fault is not None or isinstance(timing, Fault):
        assert fault is not None
        reject_submission(world, instance, fault, minute)
        return None
    return timing


def _first_fault(world: WorldState, plan: Plan, timing: Timing | Fault) -> Fault | None:
    """The first fault in the order of the checks. Without a fault the resources are reserved."""
    if isinstance(timing, Fault):
        return timing
    if plan.unknown_lock is not None:
        return plan.unknown_lock
    if plan.needs and not plan.waits and (shortages := world.resources.reserve(plan.needs)):
        return _shortage(shortages)
    if plan.limit is None and world.next_admission < world.full_at:
        return None
    if not plan.waits:
        world.resources.give_back(plan.needs)
    facts: dict[str, Json] = {"limit": INSTANCES.name, "allowed": world.setting.allowed(INSTANCES)}
    return plan.limit or Fault(Code.LIMIT_EXCEEDED, "too_many", facts)


def _shortage(shortages: list[Shortage]) -> Fault:
    short: list[Json] = [
        {"name": shortage.name, "needed": plain(shortage.needed), "available": plain(shortage.available)}
        for shortage in shortages
    ]
    return Fault(Code.INSUFFICIENT_RESOURCES, "resources_short", {"short": short})


def _timing(world: WorldState, plan: Plan, instance: Instance, minute: int) -> Timing | Fault:
    setting = world.setting
    durations = setting.durations
    if durations.is_plain:
        actor = instance.actor if instance.actor in world.skilled else None
        timing = plan.minutes.get(actor)
        if timing is None:
            timing = plan.minutes[actor] = durations.plain(plan.verb, actor)
        return timing
    user_factors = ask_modifiers(world.outside, setting, instance, minute)
    return durations.timing(plan.verb, instance, minute, setting.first_epoch + world.clock.epoch, user_factors)


def _first_meta(world: WorldState, action_id: str, timing: Timing, late: bool) -> dict[str, Any] | None:
    meta = dict(timing.meta or {})
    if late:
        meta["late"] = True
    if action_id in world.extras:
        meta["extra"] = world.extras.pop(action_id)
    return meta or None
