"""How time goes on: from event to event, minute by minute, epoch by epoch.

At the last minute of an epoch only ends happen; everything else of that minute is the first minute of the next.
"""

from typing import Any

from pendula.actions.minute.admission import admit
from pendula.actions.minute.ends import end, expire
from pendula.actions.minute.follow_ups import queue_followers, reject, tell_waits, too_many
from pendula.actions.minute.interrupting import grant, try_again
from pendula.actions.minute.turns import give_turns, join, wake_candidates
from pendula.actions.minute.waits import take_waits
from pendula.actions.model import Code
from pendula.actions.requests import Wish
from pendula.actions.rules.locks import Action, Stage
from pendula.actions.rules.validation import INSTANCES
from pendula.actions.state.ranks import EXPIRING, JOINING, LATE, REQUESTED, WAKING
from pendula.actions.state.world_state import WorldState


def advance(world: WorldState, to: int) -> None:
    """Live through everything up to minute `to`."""
    queue, clock = world.queue, world.clock
    while (minute := queue.first_time()) is not None and minute <= to:
        while clock.boundary < minute:
            _begin_epoch(world)
        clock.minute = minute
        if minute < clock.boundary:
            _live_through(world, minute, queue.pop_instant())
            continue
        _end_all_of(world, minute)
        if minute == to:
            break
        _begin_epoch(world)
    while clock.boundary < to:
        _begin_epoch(world)
    clock.minute = to


def _begin_epoch(world: WorldState) -> None:
    world.clock.begin_epoch()
    world.forget()
    if world.deferred:
        world.deferred.clear()
    world.full_at = world.next_admission + world.setting.allowed(INSTANCES)
    world.writer.write_epoch(world.running() if world.actions else [])


def _end_all_of(world: WorldState, minute: int) -> None:
    """The last minute of an epoch: ends and what they bring to light, nothing else."""
    queue = world.queue
    while (entry := queue.peek()) is not None and entry[0] == minute and entry[1] < REQUESTED:
        end(world, queue.pop()[3], minute)
    world.writer.write_changes(minute)
    queue_followers(world, minute)
    wake_candidates(world)
    if world.listener is not None:
        world.writer.tell(world.listener)


def _live_through(world: WorldState, minute: int, entries: list[Any]) -> None:
    """One minute, in the order of ranks: ends, interrupts, joinings, admissions; then the starts."""
    world.pass_start, world.entries = world.queue.next_seq, entries
    world.declared_minute = None
    wishes: list[Wish] = []
    again: list[Action] = []
    for _, rank, _, item in entries:
        if rank < REQUESTED:
            end(world, item, minute)
            continue
        if rank == EXPIRING:  # the last rank of a minute
            expire(world, item, minute)
            continue
        if rank == REQUESTED:
            wishes.append(item)
            continue
        if wishes:
            grant(world, wishes, minute)
            wishes = []
        if rank >= LATE:
            if again:
                try_again(world, again, minute)
                again = []
            if world.coming is not None:
                world.coming.pop(item.id, None)
                if item.id in world.withdrawn:
                    world.withdrawn.remove(item.id)
                    continue
            admit(world, item, minute, rank == LATE)
        elif rank == JOINING and item.stage is Stage.HELD:  # it may have been cancelled meanwhile
            join(world, item, minute)
        elif rank == JOINING:
            again.append(item)
        elif rank == WAKING and item is not None:
            world.came_true(*item)
    if wishes:
        grant(world, wishes, minute)
    if again:
        try_again(world, again, minute)
    if world.following or world.candidates or world.satisfied:
        _settle(world, minute)
    writer = world.writer
    if writer.interrupts or writer.reveals:
        writer.write_changes(minute)
    if world.started:
        writer.write_starts(world.started, minute)
        for action in world.started:
            if action.instance.params is not None or action.plan.place is not None:
                world.note_place(action)
        world.started.clear()
    if world.listener is not None:
        writer.tell(world.listener)


def _settle(world: WorldState, minute: int) -> None:
    """Admit what follows and give everybody its turn, until nothing is left to do in this minute."""
    depth = 0
    while world.following or world.candidates or world.satisfied:
        # Who is turned away, here or in the pass, may be followed by another: then there is another round.
        following, world.following = world.following, []
        depth += 1
        for instance in following:
            if depth > world.most_following:
                world.extras.pop(instance.id, None)
                reject(world, instance.id, too_many(world, "one_upon_another"))
            else:
                admit(world, instance, minute, False)
        if world.candidates:
            give_turns(world, minute)
        if world.satisfied and not world.following and not world.candidates:
            # The last of a minute: what became true in it is told together.
            if depth > world.most_following:
                _end_waits(world)
            else:
                tell_waits(world, minute)


def _end_waits(world: WorldState) -> None:
    """Who waits again and again for what is true already is told of it no more."""
    for wait in take_waits(world):
        facts = too_many(world, "one_upon_another").facts
        world.writer.diagnose(Code.LIMIT_EXCEEDED, None, "wait_repeated", facts, by=wait.process)
