"""Save and restore a world: its state between two commands, and the carry from one run to the next.

Ends, holds and candidates are not stored: they follow from the actions. A carry is the state at the end of an epoch,
with minutes counted from the start of the next, and a digest over it.
"""

from collections.abc import Iterator, Mapping
from decimal import Decimal
from typing import Any

import msgspec
from msgspec import Struct

from pendula.actions.configuration import InvalidCarryOver
from pendula.actions.messages import ActionRequest
from pendula.actions.minute.follow_ups import register_wait
from pendula.actions.minute.turns import wake_queue_heads
from pendula.actions.minute.world_state import (
    EXPIRING,
    FOLLOWING,
    JOINING,
    LATE,
    REQUESTED,
    SUBMITTED,
    WAKING,
    Plan,
    WorldState,
)
from pendula.actions.model import MINUTES_MOST, ActionDef, Instance, KnowledgeItem
from pendula.actions.rules.conditions import Minute, ProcessWait, read_things
from pendula.actions.rules.locks import Action, Stage, join, key_of
from pendula.actions.rules.resources import Stock
from pendula.actions.rules.validation import INSTANCES, Fault
from pendula.kernel.canonical import Json, Reader, decode, digest, encode
from pendula.kernel.errors import InputRefused, NotCanonical

STAGES = tuple(Stage)
WAITING, RUNNING, HELD, OVER = Stage.WAITING, Stage.RUNNING, Stage.HELD, Stage.OVER
FORMAT = 1
WAITING_RANKS = (LATE, SUBMITTED, FOLLOWING)


class SavedAction(Struct, array_like=True):
    """An action; `definition` is an index into the saved definitions, which are those at its admission."""

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
    requests: list[ActionRequest]
    # Actions that try again to preempt, each with its minute.
    retries: list[tuple[int, str]]
    # Ids of ended instances by epoch, with `remember_epochs`.
    ended: list[tuple[int, list[str]]]
    places: dict[str, str]
    # Actions that wait for resources and have nothing reserved.
    waiting_for_resources: list[str]
    # Waits of processes: name, number, conditions, and the places of those that are true.
    waits: list[tuple[str, int, list[dict[str, Any]], list[int]]]
    next_wait: int
    # Held actions, each with the action that interrupted it and the minutes it is held after the end of that one.
    held: list[tuple[str, str, int]]
    # Items that will expire.
    expiring: list[str]


def save(world: WorldState) -> bytes:
    return encode(_saved(world))


def _saved(world: WorldState, shift: int = 0) -> SavedWorld:
    """The world with every minute counted from `shift`."""
    places: dict[int, int] = {}
    listed: dict[bytes, tuple[int, ActionDef]] = {}
    actions: list[SavedAction] = []
    for action in sorted(world.actions.values(), key=lambda action: action.admission):
        definition = action.definition
        place = places.get(id(definition))
        if place is None:
            # Equal definitions are saved once, or a restored world would save other bytes.
            place, _ = listed.setdefault(encode(definition), (len(listed), definition))
            places[id(definition)] = place
        actions.append(_saved_action(action, place, shift))
    submitted: list[tuple[int, int, Instance]] = []
    requests: list[ActionRequest] = []
    retries: list[tuple[int, str]] = []
    expiring: list[str] = []
    for minute, rank, _, item in world.queue:
        if type(item) is Instance:
            submitted.append((minute - shift, rank, item))
        elif type(item) is ActionRequest:
            requests.append(msgspec.structs.replace(item, minute=minute - shift))
        elif rank == EXPIRING:
            expiring.append(item)
        elif rank == JOINING and item.stage is WAITING:
            retries.append((minute - shift, item.instance.id))
    ended = sorted((world.ended or {}).items())
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
        requests=requests,
        retries=retries,
        ended=[(epoch - epochs, sorted(set(ids))) for epoch, ids in ended],
        places=world.places,
        waiting_for_resources=sorted(one.instance.id for one in world.actions.values() if one.lines),
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


def _saved_wait(wait: ProcessWait, shift: int) -> tuple[str, int, list[dict[str, Any]], list[int]]:
    things = (
        msgspec.structs.replace(one, minute=one.minute - shift) if isinstance(one, Minute) else one
        for one in wait.things
    )
    return wait.process, wait.number, [msgspec.to_builtins(one) for one in things], sorted(set(wait.satisfied))


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
    """Load a saved state into a new world. Raises `InputRefused` for an invalid state."""
    try:
        saved = _read_world(state)
    except (msgspec.DecodeError, UnicodeDecodeError) as trouble:
        raise InputRefused(f"Not a state of a world: {trouble}") from None
    _put(world, saved)


def _contradictions(world: WorldState, saved: SavedWorld) -> Iterator[str]:
    """Contradictions that no world can have."""
    horizon, latest = world.setting.horizon, world.setting.latest
    if not saved.epoch * horizon <= saved.minute <= min((saved.epoch + 1) * horizon, latest):
        yield "its minute is outside its epoch"
    held = {action_id: cause for action_id, cause, _ in saved.held}
    numbers = [one.admission for one in saved.actions]
    if len(set(numbers)) < len(numbers) or any(not 0 <= number < saved.next_admission for number in numbers):
        yield "an admission number is used twice or out of range"
    if len({one.instance.id for one in saved.actions}) < len(numbers):
        yield "an action occurs twice"
    for one in saved.actions:
        if not 0 <= one.definition < len(saved.definitions) or not 0 <= one.stage < OVER:
            yield f"{one.instance.id} has no definition or no stage"
        elif one.stage == RUNNING and not saved.minute < one.t_end <= latest + MINUTES_MOST:
            yield f"the end of {one.instance.id} is out of range"
        elif (
            one.stage == HELD
            and one.instance.id not in held
            and not saved.minute <= one.joined <= latest + MINUTES_MOST
        ):
            yield f"the hold of {one.instance.id} has no end"
    if any(rank not in WAITING_RANKS or minute < saved.minute for minute, rank, _ in saved.submitted):
        yield "a submission is for the past or has an unknown rank"
    if any(request.minute < saved.minute for request in saved.requests):
        yield "a request is for the past"
    there = {one.instance.id: one for one in saved.actions}
    for action_id, cause in held.items():
        if cause not in there or cause == action_id or action_id not in there or there[action_id].stage != HELD:
            yield f"{action_id} is held by {cause}, which is not possible"
    if not {item.id for item in saved.knowledge}.issuperset(saved.expiring):
        yield "an unknown item is to expire"
    waiting = {one.instance.id for one in saved.actions if one.stage == WAITING}
    if not waiting.issuperset(saved.waiting_for_resources):
        yield "an action waits for resources but is not waiting"
    if any(minute < saved.minute or name not in waiting for minute, name in saved.retries):
        yield "an action retries to preempt but is not waiting"


def _put(world: WorldState, saved: SavedWorld) -> None:
    for contradiction in _contradictions(world, saved):
        raise InputRefused(f"Not a state of a world: {contradiction}")
    world.clock.set(saved.minute, saved.epoch)
    world.writer.next_event = saved.next_event
    world.next_admission = saved.next_admission
    world.full_at = saved.full_at
    world.used_ids = set(saved.used_ids)
    world.reported = set(saved.reported)
    world.extras = saved.extras
    world.places = {**world.places, **saved.places}
    if world.ended is not None:
        world.ended = {epoch: list(ids) for epoch, ids in saved.ended}
    world.resources.stocks = {**world.resources.stocks, **saved.resources}
    world.knowledge.update((item.id, item) for item in saved.knowledge)
    world.locks.of(saved.locks)
    made: dict[tuple[str, int, tuple[str, ...]], Plan] = {}
    waiting_for_resources = set(saved.waiting_for_resources)
    held = {action_id for action_id, _, _ in saved.held}
    for one in saved.actions:
        kind = (one.instance.verb, one.definition, one.locks)
        plan = made.get(kind)
        if plan is None:
            definition = saved.definitions[one.definition]
            plan = made[kind] = world.plans.of_definition(one.instance.verb, definition, world.locks.of(one.locks))
        action = _action(one, plan)
        if one.instance.id in waiting_for_resources:
            action.lines = world.lines_of(plan.needs)
        _place(world, action, is_held=one.instance.id in held)
    for action_id, cause, hold_min in saved.held:
        action = world.actions[action_id]
        action.cause, action.hold_min = world.actions[cause], hold_min
        world.holding.setdefault(cause, []).append(action)
    for minute, rank, instance in saved.submitted:
        world.queue.push(minute, rank, instance)
    for request in saved.requests:
        world.queue.push(request.minute, REQUESTED, request)
    for minute, name in saved.retries:
        world.queue.push(minute, JOINING, world.actions[name])
    _put_waits(world, saved)
    world.schedule_expiries(saved.expiring)
    if world.clock.minute == world.clock.boundary:
        wake_queue_heads(world)
    if broken := list(world.broken()):
        raise InputRefused(f"Not a state of a world: {', '.join(broken)}", broken=broken)


def _put_waits(world: WorldState, saved: SavedWorld) -> None:
    world.next_wait = saved.next_wait
    for process, number, raw, satisfied in saved.waits:
        things = read_things(raw)
        if isinstance(things, Fault) or not all(0 <= place < len(things) for place in satisfied):
            raise InputRefused("Not a state of a world: the wait of a process is invalid")
        register_wait(world, ProcessWait(process, number, things, list(satisfied), []))
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
    """Put an action into its queues, its hold, or its locks."""
    world.actions[action.instance.id] = action
    world.admits_in_queue_order = world.admits_in_queue_order and not action.plan.preempts
    action.seen = world.setting.is_seen_by_pc(action.instance)
    match action.stage:
        case Stage.RUNNING:
            for lock in action.locks:
                lock.take(action)
            action.ending = world.queue.push(action.t_end, action.admission, action)
            world.index_running(action)
        case Stage.WAITING:
            join(action, action.joined)
        case Stage.HELD if not is_held:
            world.queue.push(action.joined, JOINING, action)


def saved_at(world: WorldState, minute: int) -> SavedWorld:
    """The state with minutes counted from `minute`."""
    return _saved(world, minute)


def saved_in(carry: Mapping[str, Json]) -> SavedWorld:
    """The state in a carry."""
    state = carry["state"]
    assert isinstance(state, str)
    return _read_world(state.encode())


def carry_of(world: WorldState) -> dict[str, Json]:
    """The carry at the end of an epoch; `running` lists the actions that cross the boundary."""
    shift = world.clock.boundary
    assert world.clock.minute == shift, "a carry is taken at the end of an epoch"
    body: dict[str, Any] = {
        "format": FORMAT,
        "epoch": world.setting.first_epoch + world.clock.epoch + 1,
        "start_at": world.setting.display(shift),
        "minutes": world.setting.horizon,
        "running": [_record(action, shift) for action in world.running()],
        # A text, because other JSON readers would turn exact fractions into floats.
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
    """A value that every JSON reader preserves: numbers with a fraction become texts."""
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
        raise InvalidCarryOver(f"The format of the carry must be {FORMAT}")
    body = {name: value for name, value in carry.items() if name != "digest"}
    try:
        actual = digest(body)
    except NotCanonical as fault:
        raise InvalidCarryOver(f"The carry is not canonical: {fault.message}") from None
    if actual != carry.get("digest"):
        raise InvalidCarryOver("The carry was changed: its digest does not match")
    if carry.get("minutes") != world.setting.horizon:
        raise InvalidCarryOver(
            f"The epochs of the carry have {carry.get('minutes')} minutes, those of the run {world.setting.horizon}"
        )
    expected = (world.setting.first_epoch, world.setting.display(0))
    if (carry.get("epoch"), carry.get("start_at")) != expected:
        raise InvalidCarryOver(
            f"The carry continues with epoch {carry.get('epoch')} at {carry.get('start_at')}, "
            f"the run begins with epoch {expected[0]} at {expected[1]}"
        )
    state = carry.get("state")
    if not isinstance(state, str):
        raise InvalidCarryOver("The state of the carry must be a text")
    try:
        restore(world, state.encode())
    except InputRefused as fault:
        raise InvalidCarryOver(fault.message) from None
    if world.clock.minute != 0:
        raise InvalidCarryOver(f"The carry begins at minute {world.clock.minute} of its epoch, not at 0")
    world.forget_old_ids()
    wake_queue_heads(world)
