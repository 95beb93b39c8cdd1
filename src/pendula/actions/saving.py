"""A world as bytes and back: its state at any boundary of commands, and the carry from one run to the next.

Ends, holds and whose turn it is are not stored: they follow from the actions. A carry is the state at the end of an
epoch with all minutes counted from the start of the next, and a digest over it.
"""

from collections.abc import Iterator, Mapping
from decimal import Decimal
from typing import Any

import msgspec
from msgspec import Struct

from pendula.actions.configuration import InvalidCarryOver
from pendula.actions.minute.turns import wake_whoever_is_first
from pendula.actions.minute.waits import place_wait
from pendula.actions.model import MINUTES_MOST, ActionDef, Instance, KnowledgeItem
from pendula.actions.requests import Wish
from pendula.actions.rules.locks import Action, Stage, join, key_of
from pendula.actions.rules.resources import Stock
from pendula.actions.rules.validation import INSTANCES, Fault
from pendula.actions.rules.waiting import Minute, Wait, read_things
from pendula.actions.state.plans import Plan
from pendula.actions.state.ranks import EXPIRING, FOLLOWING, JOINING, LATE, REQUESTED, SUBMITTED, WAKING
from pendula.actions.state.world_state import WorldState
from pendula.kernel.canonical import Json, Reader, decode, digest, encode
from pendula.kernel.errors import InputRefused, NotCanonical

STAGES = tuple(Stage)
WAITING, RUNNING, HELD, OVER = Stage.WAITING, Stage.RUNNING, Stage.HELD, Stage.OVER
FORMAT = 1
WAITING_RANKS = (LATE, SUBMITTED, FOLLOWING)


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
    full_at: int
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
    # Actions that try again to preempt, each with its minute.
    trying: list[tuple[int, str]]
    # Ids of what is over, by epoch, where they are forgotten some day.
    over: list[tuple[int, list[str]]]
    places: dict[str, str]
    # Who waits for resources and has nothing reserved.
    short: list[str]
    # Processes that wait for the first of several things: name, number, things, and which of them came true.
    waits: list[tuple[str, int, list[dict[str, Any]], list[int]]]
    next_wait: int
    # Held actions, each with the action that interrupted it and the minutes it is held after the end of that one.
    held: list[tuple[str, str, int]]
    # Items whose expiry is still to come.
    expiring: list[str]


def save(world: WorldState) -> bytes:
    return encode(_saved(world))


def _saved(world: WorldState, shift: int = 0) -> SavedWorld:
    """The world with every minute counted from `shift`."""
    places: dict[int, int] = {}
    listed: dict[bytes, tuple[int, ActionDef]] = {}
    actions: list[SavedAction] = []
    for action in sorted(world.actions.values(), key=lambda one: one.admission):
        definition = action.definition
        place = places.get(id(definition))
        if place is None:
            # Equal definitions are one, whatever objects they are: else a restored world would save other bytes.
            place, _ = listed.setdefault(encode(definition), (len(listed), definition))
            places[id(definition)] = place
        actions.append(_saved_action(action, place, shift))
    submitted: list[tuple[int, int, Instance]] = []
    wishes: list[Wish] = []
    trying: list[tuple[int, str]] = []
    expiring: list[str] = []
    for minute, rank, _, item in world.queue:
        if type(item) is Instance:
            submitted.append((minute - shift, rank, item))
        elif type(item) is Wish:
            wishes.append(msgspec.structs.replace(item, minute=minute - shift))
        elif rank == EXPIRING:
            expiring.append(item)
        elif rank == JOINING and item.stage is WAITING:
            trying.append((minute - shift, item.instance.id))
    over = sorted((world.over or {}).items())
    epochs = world.clock.epoch + 1 if shift else 0
    return SavedWorld(
        minute=world.clock.minute - shift,
        epoch=world.clock.epoch if not shift else 0,
        next_admission=world.next_admission,
        next_event=world.writer.next_event,
        full_at=world.full_at if not shift else world.next_admission + world.setting.allowed(INSTANCES),
        used_ids=sorted(world.used_ids),
        reported=sorted(world.reported),
        extras=world.extras,
        locks=sorted(world.locks.by_name),
        resources=world.resources.stocks,
        knowledge=[
            msgspec.structs.replace(item, freshness=item.freshness - shift)
            for _, item in sorted(world.knowledge.items())
        ],
        definitions=[definition for _, definition in listed.values()],
        actions=actions,
        submitted=submitted,
        wishes=wishes,
        trying=trying,
        over=[(epoch - epochs, sorted(set(ids))) for epoch, ids in over],
        places=world.places,
        short=sorted(one.instance.id for one in world.actions.values() if one.lines),
        waits=[_saved_wait(wait, shift) for _, wait in sorted(world.waits.items())],
        next_wait=world.next_wait,
        held=_held(world),
        expiring=sorted(expiring),
    )


def _held(world: WorldState) -> list[tuple[str, str, int]]:
    return sorted(
        (action.instance.id, action.cause.instance.id, action.hold_min)
        for action in world.actions.values()
        if action.stage is HELD and action.cause is not None
    )


def _saved_wait(wait: Wait, shift: int) -> tuple[str, int, list[dict[str, Any]], list[int]]:
    things = (
        msgspec.structs.replace(one, minute=one.minute - shift) if isinstance(one, Minute) else one
        for one in wait.things
    )
    return wait.process, wait.number, [msgspec.to_builtins(one) for one in things], sorted(set(wait.came))


def _saved_action(action: Action, definition: int, shift: int) -> SavedAction:
    return SavedAction(
        instance=action.instance,
        definition=definition,
        admission=action.admission,
        minutes=action.minutes,
        remaining=action.remaining,
        segment=action.segment,
        stage=int(action.stage),
        joined=action.joined - shift,
        t_end=action.t_end - shift,
        locks=tuple([lock.name for lock in action.locks]),
        meta=action.meta,
    )


_read_world: Reader[SavedWorld] = Reader(SavedWorld)


def restore(world: WorldState, state: bytes) -> None:
    """Put a fresh world where the saved one was; `InputRefused` for what is not such a state, before it is used."""
    try:
        saved = _read_world(state)
    except (msgspec.DecodeError, UnicodeDecodeError) as trouble:
        raise InputRefused(f"This is not a state of a world: {trouble}") from None
    _put(world, saved)


def _contradictions(world: WorldState, saved: SavedWorld) -> Iterator[str]:
    """What cannot be true of any world, however it came about."""
    horizon, latest = world.setting.horizon, world.setting.latest
    if not saved.epoch * horizon <= saved.minute <= min((saved.epoch + 1) * horizon, latest):
        yield "its minute lies outside of its epoch"
    held = {action_id: cause for action_id, cause, _ in saved.held}
    numbers = [one.admission for one in saved.actions]
    if len(set(numbers)) < len(numbers) or any(not 0 <= number < saved.next_admission for number in numbers):
        yield "admission numbers are given twice, or not yet"
    if len({one.instance.id for one in saved.actions}) < len(numbers):
        yield "an action is there twice"
    for one in saved.actions:
        if not 0 <= one.definition < len(saved.definitions) or not 0 <= one.stage < OVER:
            yield f"{one.instance.id} has no definition or no stage"
        elif one.stage == RUNNING and not saved.minute < one.t_end <= latest + MINUTES_MOST:
            yield f"{one.instance.id} runs and should have ended, or never ends"
        elif (
            one.stage == HELD
            and one.instance.id not in held
            and not saved.minute <= one.joined <= latest + MINUTES_MOST
        ):
            yield f"{one.instance.id} is held without an end"
    if any(rank not in WAITING_RANKS or minute < saved.minute for minute, rank, _ in saved.submitted):
        yield "something was submitted for the past, or as nobody submits"
    if any(wish.minute < saved.minute for wish in saved.wishes):
        yield "something is asked for in the past"
    there = {one.instance.id: one for one in saved.actions}
    for action_id, cause in held.items():
        if cause not in there or cause == action_id or action_id not in there or there[action_id].stage != HELD:
            yield f"{action_id} is held by {cause}, which cannot be"
    if not {item.id for item in saved.knowledge}.issuperset(saved.expiring):
        yield "an item is to expire that is not there"
    waiting = {one.instance.id for one in saved.actions if one.stage == WAITING}
    if not waiting.issuperset(saved.short):
        yield "somebody waits for resources who does not wait"
    if any(minute < saved.minute or name not in waiting for minute, name in saved.trying):
        yield "somebody tries again to preempt who does not wait"


def _put(world: WorldState, saved: SavedWorld) -> None:
    for contradiction in _contradictions(world, saved):
        raise InputRefused(f"This is not a state of a world: {contradiction}")
    world.clock.stand_at(saved.minute, saved.epoch)
    world.writer.next_event = saved.next_event
    world.next_admission = saved.next_admission
    world.full_at = saved.full_at
    world.used_ids = set(saved.used_ids)
    world.reported = set(saved.reported)
    world.extras = saved.extras
    world.places = {**world.places, **saved.places}
    if world.over is not None:
        world.over = {epoch: list(ids) for epoch, ids in saved.over}
    world.resources.stocks = {**world.resources.stocks, **saved.resources}
    world.knowledge.update((item.id, item) for item in saved.knowledge)
    world.locks.of(saved.locks)
    made: dict[tuple[str, int, tuple[str, ...]], Plan] = {}
    short = set(saved.short)
    held = {action_id for action_id, _, _ in saved.held}
    for one in saved.actions:
        kind = (one.instance.verb, one.definition, one.locks)
        plan = made.get(kind)
        if plan is None:
            definition = saved.definitions[one.definition]
            plan = made[kind] = world.plans.of_definition(one.instance.verb, definition, world.locks.of(one.locks))
        action = _action(one, plan)
        if one.instance.id in short:
            action.lines = world.lines_of(plan.needs)
        _place(world, action, is_held=one.instance.id in held)
    for action_id, cause, hold_min in saved.held:
        action = world.actions[action_id]
        action.cause, action.hold_min = world.actions[cause], hold_min
        world.holding.setdefault(cause, []).append(action)
    for minute, rank, instance in saved.submitted:
        world.queue.push(minute, rank, instance)
    for wish in saved.wishes:
        world.queue.push(wish.minute, REQUESTED, wish)
    for minute, name in saved.trying:
        world.queue.push(minute, JOINING, world.actions[name])
    _put_waits(world, saved)
    world.expect_expiries(saved.expiring)
    if world.clock.minute == world.clock.boundary:
        wake_whoever_is_first(world)
    if broken := list(world.broken()):
        raise InputRefused(f"This is not a state of a world: {', '.join(broken)}", broken=broken)


def _put_waits(world: WorldState, saved: SavedWorld) -> None:
    world.next_wait = saved.next_wait
    for process, number, raw, came in saved.waits:
        things = read_things(raw)
        if isinstance(things, Fault) or not all(0 <= place < len(things) for place in came):
            raise InputRefused("This is not a state of a world: a process waits for what cannot be")
        place_wait(world, Wait(process, number, things, list(came), []))
    if world.satisfied:
        world.queue.push(saved.minute, WAKING, None)


def _action(one: SavedAction, plan: Plan) -> Action:
    key = key_of(one.instance, plan.definition, one.admission)
    return Action(
        instance=one.instance,
        plan=plan,
        admission=one.admission,
        key=key,
        minutes=one.minutes,
        remaining=one.remaining,
        locks=plan.locks,
        joined=one.joined,
        stage=STAGES[one.stage],
        segment=one.segment,
        t_end=one.t_end,
        meta=one.meta,
    )


def _place(world: WorldState, action: Action, *, is_held: bool) -> None:
    """In its queues, in its hold, or running towards its end."""
    world.actions[action.instance.id] = action
    world.in_order = world.in_order and not action.plan.preempts
    action.seen = world.setting.shows(action.instance)
    match action.stage:
        case Stage.RUNNING:
            for lock in action.locks:
                lock.take(action)
            action.ending = world.queue.push(action.t_end, action.admission, action)
            world.note_running(action)
        case Stage.WAITING:
            join(action, action.joined)
        case Stage.HELD if not is_held:
            world.queue.push(action.joined, JOINING, action)


def saved_at(world: WorldState, minute: int) -> SavedWorld:
    """Where everything stands, with minutes counted from `minute`."""
    return _saved(world, minute)


def saved_in(carry: Mapping[str, Json]) -> SavedWorld:
    """The state in a carry."""
    state = carry["state"]
    assert isinstance(state, str)
    return _read_world(state.encode())


def carry_of(world: WorldState) -> dict[str, Json]:
    """Everything the next run needs, at the end of an epoch; `running` shows what crosses the boundary."""
    shift = world.clock.boundary
    assert world.clock.minute == shift, "a carry is taken at the end of an epoch"
    body: dict[str, Any] = {
        "format": FORMAT,
        "epoch": world.setting.first_epoch + world.clock.epoch + 1,
        "start_at": world.setting.display(shift),
        "minutes": world.setting.horizon,
        "running": [_record(action, shift) for action in world.running()],
        # As text: its numbers may have fractions, of which the JSON of others makes floats.
        "state": encode(_saved(world, shift)).decode(),
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
            {"name": need.name, "amount": _plain(need.amount)}
            for need in action.definition.resources
            if not need.produce
        ],
        "definition": _plain(decode(encode(action.definition))),
        "d_eff": action.minutes,
    }


def _plain(value: Any) -> Any:
    """A value as everybody's JSON can hold it: numbers with a fraction as texts."""
    match value:
        case Decimal():
            return int(value) if value == value.to_integral_value() else str(value)
        case dict():
            return {name: _plain(one) for name, one in value.items()}
        case list():
            return [_plain(one) for one in value]
    return value


def take_up(world: WorldState, carry: Json) -> None:
    """Continue from a carry; raises `InvalidCarryOver` before anything is processed."""
    if not isinstance(carry, Mapping) or carry.get("format") != FORMAT:
        raise InvalidCarryOver(f"The carry is not of format {FORMAT}")
    body = {name: value for name, value in carry.items() if name != "digest"}
    try:
        found = digest(body)
    except NotCanonical as fault:
        raise InvalidCarryOver(f"The carry holds what no carry can hold: {fault.message}") from None
    if found != carry.get("digest"):
        raise InvalidCarryOver("The carry was changed: its digest does not hold")
    if carry.get("minutes") != world.setting.horizon:
        raise InvalidCarryOver(f"The carry is of epochs of {carry.get('minutes')} minutes, not {world.setting.horizon}")
    expected = (world.setting.first_epoch, world.setting.display(0))
    if (carry.get("epoch"), carry.get("start_at")) != expected:
        raise InvalidCarryOver(
            f"The carry continues with epoch {carry.get('epoch')} at {carry.get('start_at')}, "
            f"the run begins with epoch {expected[0]} at {expected[1]}"
        )
    state = carry.get("state")
    if not isinstance(state, str):
        raise InvalidCarryOver("The state of the carry is not a text")
    try:
        restore(world, state.encode())
    except InputRefused as fault:
        raise InvalidCarryOver(fault.message) from None
    if world.clock.minute != 0:
        raise InvalidCarryOver(f"The carry begins at minute {world.clock.minute} of its epoch, not at 0")
    world.forget()
    wake_whoever_is_first(world)
