"""Stage and times of the actions that have not ended, as plain values."""

from msgspec import Struct

from pendula.actions.rules.locks import Action, Stage
from pendula.actions.state.world_state import WorldState
from pendula.kernel.canonical import Json


class ActionStatus(Struct, frozen=True):
    """An action that has not ended. `stage` is running, waiting, held or suspended; times are minutes of the run.

    Running: from `since` to `until`. Waiting: `since`. Held: `until`, None if the action that holds it has not started.
    `remaining` is the work left, in minutes.
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


def statuses(world: WorldState, actor: str | None) -> tuple[ActionStatus, ...]:
    """The actions of one actor, or of all, by admission."""
    actions = (action for action in world.actions.values() if actor is None or action.instance.actor == actor)
    return tuple(status_of(world, action) for action in sorted(actions, key=lambda action: action.admission))


def status_of(world: WorldState, action: Action) -> ActionStatus:
    """The status of one action."""
    instance, stage = action.instance, action.stage
    running = stage is Stage.RUNNING
    since = {Stage.RUNNING: action.t_end - action.remaining, Stage.WAITING: action.joined}.get(stage)
    until = {Stage.RUNNING: action.t_end, Stage.HELD: action.joined}.get(stage)
    if action.cause is not None:
        is_running = action.cause.stage is Stage.RUNNING
        until = action.cause.t_end + action.hold_min if is_running else None
    return ActionStatus(
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
