"""Who does what at this moment: the actions of a world that are not over, as plain values to look at."""

from msgspec import Struct

from pendula.actions.rules.locks import Action, Stage
from pendula.actions.state.world_state import WorldState
from pendula.kernel.canonical import Json


class Doing(Struct, frozen=True):
    """One action that is not over. `stage` is running, waiting, held or suspended; times are minutes of the run.

    Running: from `since` to `until`. Waiting: since when. Held: until when it does not even wait, None where what
    interrupted it has not started. `remaining` are the minutes of work that are left.
    """

    action_id: str
    actor: str
    verb: str
    stage: str
    since: int | None
    until: int | None
    remaining: int
    locks: tuple[str, ...]
    params: Json


def doing(world: WorldState, actor: str | None) -> tuple[Doing, ...]:
    """The actions of everybody, or of one actor, in the order of their admission."""
    found = (action for action in world.actions.values() if actor is None or action.instance.actor == actor)
    return tuple(standing(world, action) for action in sorted(found, key=lambda action: action.admission))


def standing(world: WorldState, action: Action) -> Doing:
    """Where an action stands that is not over."""
    instance, stage = action.instance, action.stage
    running = stage is Stage.RUNNING
    since = {Stage.RUNNING: action.t_end - action.remaining, Stage.WAITING: action.joined}.get(stage)
    until = {Stage.RUNNING: action.t_end, Stage.HELD: action.joined}.get(stage)
    if action.cause is not None:
        lasting = action.cause.stage is Stage.RUNNING
        until = action.cause.t_end + action.hold_min if lasting else None
    return Doing(
        instance.id,
        instance.actor,
        instance.verb,
        stage.name.lower(),
        since,
        until,
        remaining=action.t_end - world.clock.minute if running else action.remaining,
        locks=tuple(lock.name for lock in action.locks),
        params=instance.params,
    )
