"""What follows an end or a rejection: the process of an instance, or a hook, is asked for further instances.

Answers are bounded: so many in one answer, so many one upon another within a minute; the rest is rejected.
"""

from pendula.actions.minute.arrivals import read_new
from pendula.actions.minute.waits import is_wait, take_waits, wait_for
from pendula.actions.model import Code, Instance
from pendula.actions.rules.conditions import holds
from pendula.actions.rules.locks import Action
from pendula.actions.rules.validation import FOLLOW_UPS, Fault, field_of, id_of
from pendula.actions.state.ranks import FOLLOWING, WAKING
from pendula.actions.state.world_state import WorldState
from pendula.kernel.canonical import Json

VERB_SHOWN = 200  # characters of it in the id of a follow-up
NAMES = {"action_id": "id", "actor": "actor", "verb": "verb", "process": "process"}


def turn_away(world: WorldState, raw: object, fault: Fault, minute: int) -> None:
    """Reject an instance, which may be anything as yet; its process hears of it."""
    own = id_of(raw)
    if own is not None and fault.code is not Code.DUPLICATE_ACTION_ID:
        world.extras.pop(own, None)
    reject(world, own, fault)
    if field_of(raw, "process") is not None:
        follow(world, raw, {"rejected": fault.code, "t": minute}, minute)


def reject(world: WorldState, own: str | None, fault: Fault) -> None:
    """Tell of a rejection; an id that was taken for it is over."""
    world.writer.reject(own, fault)
    if own is not None and fault.code is not Code.DUPLICATE_ACTION_ID:
        world.note_over(own)


def tell_process(world: WorldState, action: Action, outcome: dict[str, Json], minute: int) -> None:
    """A process hears of every end of its action, also of an untimely one; a hook of those that may trigger."""
    if action.instance.process is not None:
        follow(world, action.instance, outcome, minute)


def follow(world: WorldState, raw: object, outcome: dict[str, Json], minute: int) -> None:
    """Ask what follows; of an answer that cannot be taken the process hears at once, and may answer again."""
    faults = _ask_what_follows(world, raw, outcome, minute)
    for _ in range(world.most_following):
        if not faults:
            return
        further, fault = faults.pop()
        if fault.code is Code.LIMIT_EXCEEDED:
            world.writer.reject(id_of(further), fault)  # its id was not looked at
        else:
            reject(world, id_of(further), fault)
        if field_of(further, "process") is not None:
            faults += _ask_what_follows(world, further, {"rejected": fault.code, "t": minute}, minute)
    for further, _ in faults:
        world.writer.reject(id_of(further), too_many(world, "one_upon_another"))


def _ask_what_follows(
    world: WorldState, asker: object, outcome: dict[str, Json], minute: int
) -> list[tuple[object, Fault]]:
    """Take what follows; returns what could not be taken."""
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
        question = {name: field_of(asker, field) for name, field in NAMES.items()}
        question["outcome"] = outcome
    answer = world.outside.ask("follow_up", question)
    faults: list[tuple[object, Fault]] = []
    if not isinstance(answer, list):  # anything else is taken as nothing
        return faults
    most, used = world.most_following, world.used_ids
    for number, raw in enumerate(answer):
        if (
            type(raw) is Instance
            and raw.params is None
            and raw.t is None
            and raw.submitted_at is None
            and number < most
            and raw.id not in used
        ):
            # Made by hand and as it should be; one that names no time is for now.
            used.add(raw.id)
            world.following.append(raw)
            continue
        if number < most and is_wait(raw):
            if (refused := wait_for(world, raw, minute)) is not None:
                faults.append((raw, refused))
            continue
        further = read_new(world, raw, False) if number < most else too_many(world, "in_one_answer")
        fault = further if isinstance(further, Fault) else _queue_follow_up(world, further, minute)
        if fault is not None:
            faults.append((raw, fault))
    return faults


def submit_followups(world: WorldState, action: Action, minute: int) -> None:
    """Submit what the definition of a verb says follows its end; the first start tells of what it follows."""
    instance, setting = action.instance, world.setting
    if action.plan.follows and minute != world.declared_minute:
        world.declared_minute, world.declared_left = minute, world.most_following
    for place, one in enumerate(action.plan.follows):
        if not holds(one.when, setting.facts, instance.params):
            continue
        # By the admission number of what it follows: a verb may follow itself for ever.
        own = f"{one.verb[:VERB_SHOWN]}/{action.admission}{f'.{place}' if place else ''}"
        further = Instance(
            id=own,
            actor=one.actor or instance.actor,
            verb=one.verb,
            params=instance.params if one.params is None else one.params,
            t=minute + one.after_min,
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
    facts: dict[str, Json] = {"limit": FOLLOW_UPS.name, "allowed": world.most_following, "how": how}
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
        world.expect(when[0], FOLLOWING, instance)
    return None


def queue_followers(world: WorldState, minute: int) -> None:
    """What follows a rejection outside of a minute that is lived through waits for the rest of that minute."""
    for instance in world.following:
        world.expect(minute, FOLLOWING, instance)
    world.following.clear()
    if world.satisfied:
        world.queue.push(minute, WAKING, None)


def tell_waits(world: WorldState, minute: int) -> None:
    """Processes hear of all that became true in this minute."""
    for wait in take_waits(world):
        follow(world, {"process": wait.process}, {"became": wait.told(), "t": minute}, minute)
