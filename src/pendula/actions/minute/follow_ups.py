"""Follow-ups of an end or a rejection: the process of the instance, or a hook, is asked for further instances.

The number in one answer and the depth within a minute are limited; the rest is rejected. A process may instead wait for
the first of several conditions, registered here and found when one becomes true; it receives all conditions that became
true in a minute together, at the end of the minute.
"""

from typing import Any

from pendula.actions.minute.world_state import FOLLOWING, WAKING, WorldState
from pendula.actions.model import Code, Instance
from pendula.actions.rules.conditions import Ended, Known, Minute, ProcessWait, Thing, is_met, read_things
from pendula.actions.rules.locks import Action
from pendula.actions.rules.validation import FOLLOW_UPS, Fault, id_of, read_instance, text_field
from pendula.actions.rules.visibility import knows
from pendula.kernel.canonical import Json


def read_new(world: WorldState, raw: object, needs_time: bool) -> Instance | Fault:
    """Read an instance, or its fault, and mark its id as used; a rejected instance uses its id, too."""
    extra = None
    if type(raw) is Instance and raw.params is None and (type(raw.t) is int or (raw.t is None and not needs_time)):
        instance = raw
    else:
        read = read_instance(raw, needs_time)
        if isinstance(read, Fault):
            world.used_ids.update(filter(None, (id_of(raw),)))
            return read
        instance, extra = read
    if instance.id in world.used_ids:
        return Fault(Code.DUPLICATE_ACTION_ID, "id_in_use", {"id": instance.id})
    world.used_ids.add(instance.id)
    if extra:
        _store_extra(world, instance, extra)
    return instance


def _store_extra(world: WorldState, instance: Instance, extra: dict[str, Json]) -> None:
    """Unknown fields go into the meta of the first start; each name is reported once."""
    world.extras[instance.id] = extra
    new = sorted(extra.keys() - world.reported)
    if new:
        world.reported.update(new)
        world.writer.diagnose(Code.UNKNOWN_FIELDS, instance.id, "unknown_fields", {"fields": [*new]})


def is_wait(raw: object) -> bool:
    return isinstance(raw, dict) and "wait" in raw


def start_wait(world: WorldState, raw: Any, minute: int) -> Fault | None:
    """Register the wait of a process; a condition that already holds satisfies it in this minute."""
    process = text_field(raw, "process")
    if process is None:
        return Fault(Code.INVALID_ACTION, "wait_without_process")
    things = read_things(raw["wait"])
    if isinstance(things, Fault):
        return things
    latest = world.setting.latest
    for thing in things:
        if isinstance(thing, Minute) and thing.minute > latest:
            return Fault(Code.INVALID_TIMESTAMP, "wait_too_far_away", {"minute": thing.minute, "latest": latest})
    wait = ProcessWait(process, world.next_wait, things, [], [])
    world.next_wait += 1
    wait.satisfied += [place for place, thing in enumerate(things) if _is_true(world, thing, minute)]
    register_wait(world, wait)
    return None


def register_wait(world: WorldState, wait: ProcessWait) -> None:
    """Index a wait by its conditions."""
    world.waits[wait.number] = wait
    for place, thing in enumerate(wait.things):
        if place in wait.satisfied:
            continue
        if isinstance(thing, Minute):
            wait.handles.append(world.queue.push(thing.minute, WAKING, (wait, place)))
        else:
            world.awaited.setdefault(_name(thing), {})[wait.number] = wait
    if wait.satisfied:
        world.satisfied[wait.number] = wait


def _is_true(world: WorldState, thing: Thing, minute: int) -> bool:
    match thing:
        case Ended(ended):
            return ended in world.used_ids and ended not in world.actions and not world.is_pending(ended)
        case Minute(due):
            return due <= minute
        case Known(known, by):
            item = world.knowledge.get(known)
            return item is not None and knows(item, by, minute, world.setting.audience)


def check_knowledge_waits(world: WorldState, item: str, minute: int) -> None:
    """Check the waits for knowledge of an item that changed."""
    for wait in list(world.awaited.get(("known", item), {}).values()):
        for place, thing in enumerate(wait.things):
            if isinstance(thing, Known) and thing.known == item and _is_true(world, thing, minute):
                world.mark_true(wait, place)


def take_satisfied_waits(world: WorldState) -> list[ProcessWait]:
    """Remove and return the satisfied waits, in the order in which they began."""
    waits = [world.satisfied[number] for number in sorted(world.satisfied)]
    world.satisfied.clear()
    for wait in waits:
        del world.waits[wait.number]
        for handle in wait.handles:
            world.queue.cancel(handle)
        for thing in wait.things:
            if not isinstance(thing, Minute) and (waiting := world.awaited.get(_name(thing))) is not None:
                waiting.pop(wait.number, None)
                if not waiting:
                    del world.awaited[_name(thing)]
    return waits


def _name(thing: Ended | Known) -> tuple[str, str]:
    return ("ended", thing.ended) if isinstance(thing, Ended) else ("known", thing.known)


VERB_SHOWN = 200  # characters of the verb in the id of a follow-up
NAMES = {"action_id": "id", "actor": "actor", "verb": "verb", "process": "process"}


def reject_submission(world: WorldState, raw: object, fault: Fault, minute: int) -> None:
    """Reject a submission, which may be any value, and notify its process."""
    own = id_of(raw)
    if own is not None and fault.code is not Code.DUPLICATE_ACTION_ID:
        world.extras.pop(own, None)
    reject(world, own, fault)
    if text_field(raw, "process") is not None:
        follow(world, raw, {"rejected": fault.code, "t": minute}, minute)


def reject(world: WorldState, own: str | None, fault: Fault) -> None:
    """Write a rejection; an id taken for it counts as ended."""
    world.writer.reject(own, fault)
    if own is not None and fault.code is not Code.DUPLICATE_ACTION_ID:
        world.record_end(own)


def notify_process(world: WorldState, action: Action, outcome: dict[str, Json], minute: int) -> None:
    """Notify the process of an action of its end, regular or not. Hooks are only asked after regular ends."""
    if action.instance.process is not None:
        follow(world, action.instance, outcome, minute)


def follow(world: WorldState, raw: object, outcome: dict[str, Json], minute: int) -> None:
    """Ask for follow-ups. The process of an invalid answer is notified at once and may answer again."""
    faults = _ask_what_follows(world, raw, outcome, minute)
    for _ in range(world.follow_up_limit):
        if not faults:
            return
        further, fault = faults.pop()
        if fault.code is Code.LIMIT_EXCEEDED:
            world.writer.reject(id_of(further), fault)  # its id was not taken
        else:
            reject(world, id_of(further), fault)
        if text_field(further, "process") is not None:
            faults += _ask_what_follows(world, further, {"rejected": fault.code, "t": minute}, minute)
    for further, _ in faults:
        world.writer.reject(id_of(further), too_many(world, "one_upon_another"))


def _ask_what_follows(
    world: WorldState, asker: object, outcome: dict[str, Json], minute: int
) -> list[tuple[object, Fault]]:
    """Take the follow-ups; returns the invalid ones with their faults."""
    question: dict[str, Json]
    if type(asker) is Instance:
        question = {
            "action_id": asker.id,
            "actor": asker.actor,
            "verb": asker.verb,
            "process": asker.process,
            "outcome": outcome,
            "params": asker.params,
        }
    else:
        question = {name: text_field(asker, field) for name, field in NAMES.items()}
        question["outcome"] = outcome
    answer = world.outside.ask("follow_up", question)
    faults: list[tuple[object, Fault]] = []
    if not isinstance(answer, list):  # anything else counts as no follow-ups
        return faults
    most, used = world.follow_up_limit, world.used_ids
    for number, raw in enumerate(answer):
        if (
            type(raw) is Instance
            and raw.params is None
            and raw.t is None
            and raw.submitted_at is None
            and number < most
            and raw.id not in used
        ):
            # An Instance of Python code, which needs no check; without a time it is for now.
            used.add(raw.id)
            world.following.append(raw)
            continue
        if number < most and is_wait(raw):
            if (refused := start_wait(world, raw, minute)) is not None:
                faults.append((raw, refused))
            continue
        further = read_new(world, raw, False) if number < most else too_many(world, "in_one_answer")
        fault = further if isinstance(further, Fault) else _queue_follow_up(world, further, minute)
        if fault is not None:
            faults.append((raw, fault))
    return faults


def submit_followups(world: WorldState, action: Action, minute: int) -> None:
    """Submit the declared follow-ups of an action; `meta.extra.follows` of their first start names it."""
    instance, setting = action.instance, world.setting
    if action.plan.follows and minute != world.declared_minute:
        world.declared_minute, world.declared_left = minute, world.follow_up_limit
    for place, follow_up in enumerate(action.plan.follows):
        if not is_met(follow_up.when, setting.facts, instance.params):
            continue
        # The admission number makes the id unique: a verb may follow itself.
        own = f"{follow_up.verb[:VERB_SHOWN]}/{action.admission}{f'.{place}' if place else ''}"
        further = Instance(
            id=own,
            actor=follow_up.actor or instance.actor,
            verb=follow_up.verb,
            params=instance.params if follow_up.params is None else follow_up.params,
            t=minute + follow_up.after_min,
            visibility=instance.visibility,
        )
        fault = None
        if own in world.used_ids:
            fault = Fault(Code.DUPLICATE_ACTION_ID, "id_in_use", {"id": own})
        elif world.declared_left <= 0:
            fault = too_many(world, "declared")
        else:
            world.declared_left -= 1
            world.used_ids.add(own)
            fault = _queue_follow_up(world, further, minute)
        if fault is None:
            world.extras[own] = {"follows": instance.id}
        else:
            reject(world, own, fault)


def too_many(world: WorldState, how: str) -> Fault:
    facts: dict[str, Json] = {"limit": FOLLOW_UPS.name, "allowed": world.follow_up_limit, "how": how}
    return Fault(Code.LIMIT_EXCEEDED, "too_many", facts)


def _queue_follow_up(world: WorldState, instance: Instance, minute: int) -> Fault | None:
    if instance.t is None and instance.submitted_at is None:
        world.following.append(instance)
        return None
    when = world.setting.submitted(instance)
    if isinstance(when, Fault):
        world.extras.pop(instance.id, None)
        return when
    if when[0] <= minute:
        world.following.append(instance)
    else:
        world.schedule(when[0], FOLLOWING, instance)
    return None


def queue_followers(world: WorldState, minute: int) -> None:
    """Queue follow-ups of rejections that happen between commands for the rest of the minute."""
    for instance in world.following:
        world.schedule(minute, FOLLOWING, instance)
    world.following.clear()
    if world.satisfied:
        world.queue.push(minute, WAKING, None)


def resume_waiting_processes(world: WorldState, minute: int) -> None:
    """Send each process the conditions that became true in this minute."""
    for wait in take_satisfied_waits(world):
        follow(world, {"process": wait.process}, {"became": wait.satisfied_conditions(), "t": minute}, minute)
