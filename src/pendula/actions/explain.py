"""Why an action has not started: its stage, the holders of its locks, the actions ahead of it."""

from decimal import Decimal

from pendula.actions.minute.world_state import WorldState
from pendula.actions.rules.locks import Action, Lock, Stage, queued_before
from pendula.actions.rules.resources import plain
from pendula.kernel.canonical import Json
from pendula.kernel.engine import Reason

MAX_NAMES = 20  # actions in one list; more would hide the answer


def why(world: WorldState, question: Json) -> Reason:
    match question:
        case {"action": str(action_id)}:
            return _of_action(world, action_id)
        case {"lock": str(name)} if name in world.locks.by_name:
            return _of_lock(world, world.locks.by_name[name])
    return Reason("unknown_question", 'A world answers {"action": id} and {"lock": known name}.', {"asked": question})


def _of_action(world: WorldState, action_id: str) -> Reason:
    action = world.actions.get(action_id)
    if action is None:
        return _missing(world, action_id)
    facts: dict[str, Json] = {"action": action_id, "segment": action.segment, "admission": action.admission}
    match action.stage:
        case Stage.RUNNING:
            end = world.setting.display(action.t_end)
            return Reason("running", f"{action_id} runs until {_clock(end)}.", {**facts, "until": end})
        case Stage.HELD if action.cause is not None:
            return _held_by(world, action, action.cause, facts)
        case Stage.HELD:
            until = world.setting.display(action.joined)
            sentence = f"{action_id} was interrupted and is held until {_clock(until)}."
            return Reason("held", sentence, {**facts, "until": until, "remaining": action.remaining})
        case Stage.SUSPENDED:
            sentence = f"{action_id} was interrupted and waits to be resumed."
            return Reason("suspended", sentence, {**facts, "remaining": action.remaining})
        case _:
            return _waiting(world, action, facts)


def _held_by(world: WorldState, action: Action, cause: Action, facts: dict[str, Json]) -> Reason:
    """Held until the action that interrupted it ends."""
    name = cause.instance.id
    facts |= {"by": name, "remaining": action.remaining, "hold_min": action.hold_min}
    after = f", and {action.hold_min} min longer" if action.hold_min else ""
    if cause.stage is not Stage.RUNNING:
        sentence = f"{action.instance.id} was interrupted by {name} and is held until {name} ends{after}."
        return Reason("held", sentence, facts, (_of_action(world, name),))
    until = world.setting.display(cause.t_end + action.hold_min)
    sentence = f"{action.instance.id} was interrupted by {name} and is held until {name} ends{after}: {_clock(until)}."
    return Reason("held", sentence, {**facts, "until": until}, (_of_action(world, name),))


def _missing(world: WorldState, action_id: str) -> Reason:
    for minute, _, _, item in world.queue:
        if getattr(item, "id", None) == action_id:
            at = world.setting.display(minute)
            return Reason("not_yet", f"{action_id} is submitted for {_clock(at)}.", {"action": action_id, "at": at})
    if action_id in world.used_ids:
        return Reason(
            "over", f"{action_id} is not in the world: it ended, was dropped or was rejected.", {"action": action_id}
        )
    remembered = world.setting.options.remember_epochs
    sentence = f"No action {action_id} was submitted."
    if remembered is not None:
        sentence = f"{action_id} is unknown: never submitted, or forgotten {remembered} epochs after its end."
    return Reason("unknown", sentence, {"action": action_id})


def _waiting(world: WorldState, action: Action, facts: dict[str, Json]) -> Reason:
    because = tuple(_of_lock(world, lock, action) for lock in action.locks if lock.holder or lock.first() is not action)
    supplies = tuple(_of_line(world, line, action) for line in action.lines)
    if supplies:
        parts = "; ".join(reason.sentence.rstrip(".") for reason in (*supplies, *because))
        sentence = f"{action.instance.id} waits for {parts}."
        return Reason("waits_for_resources", sentence, facts, (*supplies, *because))
    if not because:
        return Reason("starts", f"{action.instance.id} starts when time advances.", facts)
    parts = "; ".join(reason.sentence.rstrip(".") for reason in because)
    return Reason("waits_for_locks", f"{action.instance.id} waits for {parts}.", facts, because)


def _of_lock(world: WorldState, lock: Lock, action: Action | None = None) -> Reason:
    """The holders of the lock and the actions before this one in its queue."""
    ahead = list(queued_before(action, lock)) if action else lock.waiting()
    facts: dict[str, Json] = {"lock": lock.name, "ahead": [other.instance.id for other in ahead[:MAX_NAMES]]}
    if lock.holder is None:
        free = f"{lock.name}: it is free{_next_in_line(ahead, ',')}" if ahead else f"{lock.name} is free"
        return Reason("lock", f"{free}.", facts)
    # Of several holders, the first to end: that frees a place. Ties go by admission.
    soonest = min(lock.holders(), key=lambda holder: (holder.t_end, holder.admission))
    until = world.setting.display(soonest.t_end)
    facts |= {"held_by": soonest.instance.id, "until": until}
    sentence = f"{lock.name}, held by {soonest.instance.id} until {_clock(until)}"
    if lock.seats is not None:
        holders = lock.holders()
        facts |= {"holders": [holder.instance.id for holder in holders[:MAX_NAMES]], "capacity": lock.capacity}
        sentence = (
            f"{lock.name}: {len(holders)} of {lock.capacity} places are taken, "
            f"the first is free at {_clock(until)} when {soonest.instance.id} ends"
        )
    return Reason("lock", f"{sentence}{_next_in_line(ahead)}.", facts)


def _next_in_line(ahead: list[Action], separator: str = ";") -> str:
    if not ahead:
        return ""
    names = ", ".join(other.instance.id for other in ahead[:MAX_NAMES])
    return f"{separator} {names} {'is' if len(ahead) == 1 else 'are'} next in line"


def _of_line(world: WorldState, line: Lock, action: Action) -> Reason:
    """How much of a resource is available, and the actions before this one in its queue."""
    need = sum((need.amount for need in action.plan.needs if need.name == line.name and not need.produce), Decimal(0))
    stock = world.resources.stocks.get(line.name)
    available = stock.available if stock else Decimal(0)
    ahead = list(queued_before(action, line))
    names: list[Json] = [other.instance.id for other in ahead[:MAX_NAMES]]
    facts: dict[str, Json] = {"resource": line.name, "needed": need, "available": available, "ahead": names}
    amounts = f"{plain(need)} needed and {plain(available)} available"
    return Reason("resource", f"{line.name}, {amounts}{_next_in_line(ahead)}.", facts)


def _clock(at: str) -> str:
    """Day and time of day of an ISO time."""
    return f"{at[:10]} {at[11:16]}"
