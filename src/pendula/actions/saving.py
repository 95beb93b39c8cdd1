"""A world as bytes and back: its state at any boundary of commands, and the carry from one run to the next.

Ends, holds and whose turn it is are not stored: they follow from the actions. A carry is the state at the end of an
epoch with all minutes counted from the start of the next, and a digest over it.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import Struct

from pendula.actions.locks import Action, Stage
from pendula.actions.model import ActionDef, Instance, KnowledgeItem
from pendula.actions.requests import Wish
from pendula.actions.resources import Stock
from pendula.actions.setting import InvalidCarryOver
from pendula.kernel.canonical import Json, decode, digest, encode
from pendula.kernel.errors import InputRefused

if TYPE_CHECKING:
    from pendula.actions.engine import World

FORMAT = 1


class SavedAction(Struct, array_like=True):
    """An action; `definition` is its place in the list of definitions, a snapshot of what the verb meant."""

    instance: Instance
    definition: int
    admission: int
    minutes: int
    remaining: int
    segment: int
    stage: int
    joined: int
    t_end: int
    locks: tuple[str, ...]
    meta: dict[str, Any] | None


class SavedWorld(Struct):
    minute: int
    epoch: int
    next_admission: int
    next_event: int
    admitted_in_epoch: int
    follow_ups: tuple[int, int]
    used_ids: list[str]
    reported: list[str]
    extras: dict[str, Any]
    locks: list[str]
    resources: dict[str, Stock]
    knowledge: list[KnowledgeItem]
    definitions: list[ActionDef]
    actions: list[SavedAction]
    submitted: list[tuple[int, int, Instance]]
    wishes: list[Wish]


def save(world: "World") -> bytes:
    return encode(_saved(world))


def _saved(world: "World", shift: int = 0) -> SavedWorld:
    """The world with every minute counted from `shift`."""
    definitions: dict[int, int] = {}
    listed: list[ActionDef] = []
    actions: list[SavedAction] = []
    for action in sorted(world.actions.values(), key=lambda one: one.admission):
        place = definitions.setdefault(id(action.definition), len(listed))
        if place == len(listed):
            listed.append(action.definition)
        actions.append(_saved_action(action, place, shift))
    submitted: list[tuple[int, int, Instance]] = []
    wishes: list[Wish] = []
    for minute, rank, _, item in world.queue:
        if type(item) is Instance:
            submitted.append((minute - shift, rank, item))
        elif type(item) is Wish:
            wishes.append(msgspec.structs.replace(item, minute=minute - shift))
    return SavedWorld(
        world.minute - shift,
        world.epoch if not shift else 0,
        world.next_admission,
        world.next_event,
        world.admitted_in_epoch if not shift else 0,
        (world.follow_ups[0] - shift, world.follow_ups[1]),
        sorted(world.used_ids),
        sorted(world.reported),
        world.extras,
        sorted(world.locks.by_name),
        world.resources.stocks,
        [item for _, item in sorted(world.knowledge.items())],
        listed,
        actions,
        submitted,
        wishes,
    )


def _saved_action(action: Action, definition: int, shift: int) -> SavedAction:
    return SavedAction(
        action.instance,
        definition,
        action.admission,
        action.minutes,
        action.remaining,
        action.segment,
        int(action.stage),
        action.joined - shift,
        action.t_end - shift,
        tuple(lock.name for lock in action.locks),
        action.meta,
    )


def restore(world: "World", state: bytes) -> None:
    """Put a fresh world where the saved one was; `InputRefused` for what is no such state, before it is used."""
    try:
        saved = msgspec.json.decode(state, type=SavedWorld)
    except (msgspec.DecodeError, UnicodeDecodeError) as trouble:
        raise InputRefused(f"This is no state of a world: {trouble}") from None
    _put(world, saved)


def _put(world: "World", saved: SavedWorld) -> None:
    world.minute = saved.minute
    world.epoch = saved.epoch
    world.epoch_start = saved.epoch * world.setting.horizon
    world.boundary = world.epoch_start + world.setting.horizon
    world.next_admission = saved.next_admission
    world.next_event = saved.next_event
    world.admitted_in_epoch = saved.admitted_in_epoch
    world.follow_ups = saved.follow_ups
    world.used_ids = set(saved.used_ids)
    world.reported = set(saved.reported)
    world.extras = saved.extras
    world.resources.stocks = {**world.resources.stocks, **saved.resources}
    world.knowledge.update((item.id, item) for item in saved.knowledge)
    world.locks.of(saved.locks)
    for one in saved.actions:
        _put_action(world, one, saved)
    for minute, rank, instance in saved.submitted:
        world.queue.push(minute, rank, instance)
    for wish in saved.wishes:
        world.put_wish(wish)
    world.wake_whoever_is_first()
    if broken := list(world.broken()):
        raise InputRefused(f"This is no state of a world: {', '.join(broken)}", broken=broken)


def _put_action(world: "World", one: SavedAction, saved: SavedWorld) -> None:
    if not 0 <= one.definition < len(saved.definitions) or one.stage not in tuple(Stage)[:-1]:
        raise InputRefused("This is no state of a world: an action has no definition or no stage")
    locks = world.locks.of(one.locks)
    action = Action(one.instance, saved.definitions[one.definition], one.admission, one.minutes, locks)
    action.remaining, action.segment, action.stage = one.remaining, one.segment, Stage(one.stage)
    action.joined, action.t_end, action.meta = one.joined, one.t_end, one.meta
    world.put_action(action)


def carry_of(world: "World") -> dict[str, Json]:
    """Everything the next run needs, at the end of an epoch; `running` shows what crosses the boundary."""
    assert world.minute == world.boundary, "a carry is taken at the end of an epoch"
    shift = world.boundary
    body: dict[str, Any] = {
        "format": FORMAT,
        "epoch": world.setting.first_epoch + world.epoch + 1,
        "start_at": world.setting.display(shift),
        "running": [_record(action, shift) for _, action in sorted(world.running.items())],
        "state": decode(encode(_saved(world, shift))),
    }
    return {**body, "digest": digest(body)}


def _record(action: Action, shift: int) -> dict[str, Any]:
    return {
        "action_id": action.instance.id,
        "segment": action.segment,
        "seq": action.admission,
        "remaining": action.t_end - shift,
        "locks": [lock.name for lock in action.locks],
        "reservations": [
            {"name": need.name, "amount": need.amount} for need in action.definition.resources if not need.produce
        ],
        "definition": decode(encode(action.definition)),
        "d_eff": action.minutes,
    }


def take_up(world: "World", carry: Json) -> None:
    """Continue from a carry; raises `InvalidCarryOver` before anything is processed."""
    if not isinstance(carry, Mapping) or carry.get("format") != FORMAT:
        raise InvalidCarryOver(f"The carry is not of format {FORMAT}")
    body = {name: value for name, value in carry.items() if name != "digest"}
    if digest(body) != carry.get("digest"):
        raise InvalidCarryOver("The carry was changed: its digest does not hold")
    expected = (world.setting.first_epoch, world.setting.display(0))
    if (carry.get("epoch"), carry.get("start_at")) != expected:
        raise InvalidCarryOver(
            f"The carry continues with epoch {carry.get('epoch')} at {carry.get('start_at')}, "
            f"the run begins with epoch {expected[0]} at {expected[1]}"
        )
    try:
        restore(world, encode(carry.get("state")))
    except InputRefused as fault:
        raise InvalidCarryOver(fault.message) from None
