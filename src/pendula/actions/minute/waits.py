"""Processes that wait for the first of several conditions: registered by condition, found when one becomes true.

A process receives all conditions that became true in a minute together, at the end of the minute.
"""

from typing import Any

from pendula.actions.model import Code
from pendula.actions.rules.validation import Fault, text_field
from pendula.actions.rules.visibility import knows
from pendula.actions.rules.waiting import Ended, Known, Minute, Thing, Wait, read_things
from pendula.actions.state.ranks import WAKING
from pendula.actions.state.world_state import WorldState


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
    wait = Wait(process, world.next_wait, things, [], [])
    world.next_wait += 1
    wait.satisfied += [place for place, thing in enumerate(things) if _is_true(world, thing, minute)]
    register_wait(world, wait)
    return None


def register_wait(world: WorldState, wait: Wait) -> None:
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


def take_satisfied_waits(world: WorldState) -> list[Wait]:
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
