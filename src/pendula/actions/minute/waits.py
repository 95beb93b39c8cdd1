"""Processes that wait for the first of several things: they are noted, and found when something becomes true.

What became true in one minute is told together, when everything else of the minute has happened.
"""

from typing import Any

from pendula.actions.model import Code
from pendula.actions.rules.validation import Fault, field_of
from pendula.actions.rules.visibility import knows
from pendula.actions.rules.waiting import Ended, Known, Minute, Thing, Wait, read_things
from pendula.actions.state.ranks import WAKING
from pendula.actions.state.world_state import WorldState


def is_wait(raw: object) -> bool:
    return isinstance(raw, dict) and "wait" in raw


def wait_for(world: WorldState, raw: Any, minute: int) -> Fault | None:
    """Note what a process waits for; what is true already is told in this minute."""
    process = field_of(raw, "process")
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
    wait.came += [place for place, thing in enumerate(things) if _holds(world, thing, minute)]
    place_wait(world, wait)
    return None


def place_wait(world: WorldState, wait: Wait) -> None:
    """Have a wait found by what it waits for."""
    world.waits[wait.number] = wait
    for place, thing in enumerate(wait.things):
        if place in wait.came:
            continue
        if isinstance(thing, Minute):
            wait.handles.append(world.queue.push(thing.minute, WAKING, (wait, place)))
        else:
            world.awaited.setdefault(_name(thing), {})[wait.number] = wait
    if wait.came:
        world.satisfied[wait.number] = wait


def _holds(world: WorldState, thing: Thing, minute: int) -> bool:
    match thing:
        case Ended(ended):
            return ended in world.used_ids and ended not in world.actions and not world.is_coming(ended)
        case Minute(due):
            return due <= minute
        case Known(known, by):
            item = world.knowledge.get(known)
            return item is not None and knows(item, by, minute, world.setting.circle)


def came_to_light(world: WorldState, item: str, minute: int) -> None:
    """An item changed: whoever waits for somebody to know of it may have what it waits for."""
    for wait in list(world.awaited.get(("known", item), {}).values()):
        for place, thing in enumerate(wait.things):
            if isinstance(thing, Known) and thing.known == item and _holds(world, thing, minute):
                world.came_true(wait, place)


def take_waits(world: WorldState) -> list[Wait]:
    """Those who have something to be told, by the order in which they began to wait; they wait no more."""
    found = [world.satisfied[number] for number in sorted(world.satisfied)]
    world.satisfied.clear()
    for wait in found:
        del world.waits[wait.number]
        for handle in wait.handles:
            world.queue.cancel(handle)
        for thing in wait.things:
            if not isinstance(thing, Minute) and (waiting := world.awaited.get(_name(thing))) is not None:
                waiting.pop(wait.number, None)
                if not waiting:
                    del world.awaited[_name(thing)]
    return found


def _name(thing: Ended | Known) -> tuple[str, str]:
    return ("ended", thing.ended) if isinstance(thing, Ended) else ("known", thing.known)
