"""Advancing time: from event to event, minute by minute, epoch by epoch.

In the last minute of an epoch only ends happen; everything else in that minute belongs to the next epoch.
"""

from typing import Any

from pendula.actions.messages import ActionRequest
from pendula.actions.minute.admission import admit
from pendula.actions.minute.ends import end, expire
from pendula.actions.minute.follow_ups import (
    queue_followers,
    reject,
    resume_waiting_processes,
    take_satisfied_waits,
    too_many,
)
from pendula.actions.minute.interrupting import apply_requests, retry_preemptions
from pendula.actions.minute.turns import join, start_candidates, wake_candidates
from pendula.actions.minute.world_state import EXPIRING, JOINING, LATE, REQUESTED, WAKING, WorldState
from pendula.actions.model import Code
from pendula.actions.rules.locks import Action, Stage
from pendula.actions.rules.validation import INSTANCES


def advance(world: WorldState, to: int) -> None:
    """Run every minute up to `to`."""
    queue, clock = world.queue, world.clock
    while (minute := queue.first_time()) is not None and minute <= to:
        while clock.boundary < minute:
            _begin_epoch(world)
        clock.minute = minute
        if minute < clock.boundary:
            _run_minute(world, minute, queue.pop_instant())
            continue
        _run_last_minute(world, minute)
        if minute == to:
            break
        _begin_epoch(world)
    while clock.boundary < to:
        _begin_epoch(world)
    clock.minute = to


def _begin_epoch(world: WorldState) -> None:
    world.clock.begin_epoch()
    world.forget_old_ids()
    if world.deferred:
        world.deferred.clear()
    world.full_at = world.next_admission + world.setting.allowed(INSTANCES)
    world.writer.write_epoch(world.running() if world.actions else [])


def _run_last_minute(world: WorldState, minute: int) -> None:
    """Run the last minute of an epoch: ends and their reveals only."""
    queue = world.queue
    while (entry := queue.peek()) is not None and entry[0] == minute and entry[1] < REQUESTED:
        end(world, queue.pop()[3], minute)
    world.writer.write_changes(minute)
    queue_followers(world, minute)
    wake_candidates(world)
    if world.listener is not None:
        world.writer.publish(world.listener)


def _run_minute(world: WorldState, minute: int, entries: list[Any]) -> None:
    """Run one minute in the order of ranks: ends, interrupts, returns to queues, admissions; then the starts."""
    world.pass_start, world.entries = world.queue.next_seq, entries
    world.declared_minute = None
    requests: list[ActionRequest] = []
    again: list[Action] = []
    for _, rank, _, item in entries:
        if rank < REQUESTED:
            end(world, item, minute)
            continue
        if rank == EXPIRING:
            expire(world, item, minute)
            continue
        if rank == REQUESTED:
            requests.append(item)
            continue
        if requests:
            apply_requests(world, requests, minute)
            requests = []
        if rank >= LATE:
            if again:
                retry_preemptions(world, again, minute)
                again = []
            if world.pending is not None:
                world.pending.pop(item.id, None)
                if item.id in world.withdrawn:
                    world.withdrawn.remove(item.id)
                    continue
            admit(world, item, minute, rank == LATE)
        elif rank == JOINING and item.stage is Stage.HELD:  # else it was cancelled
            join(world, item, minute)
        elif rank == JOINING:
            again.append(item)
        elif rank == WAKING and item is not None:
            world.mark_true(*item)
    if requests:
        apply_requests(world, requests, minute)
    if again:
        retry_preemptions(world, again, minute)
    if world.following or world.candidates or world.satisfied:
        _admit_and_start(world, minute)
    writer = world.writer
    if writer.interrupts or writer.reveals:
        writer.write_changes(minute)
    if world.started:
        writer.write_starts(world.started, minute)
        for action in world.started:
            if action.instance.params is not None or action.plan.place is not None:
                world.record_place(action)
        world.started.clear()
    if world.listener is not None:
        writer.publish(world.listener)


def _admit_and_start(world: WorldState, minute: int) -> None:
    """Admit follow-ups and start candidates until the minute has neither."""
    depth = 0
    while world.following or world.candidates or world.satisfied:
        # A rejection, here or in the pass, may cause another follow-up and so another round.
        following, world.following = world.following, []
        depth += 1
        for instance in following:
            if depth > world.follow_up_limit:
                world.extras.pop(instance.id, None)
                reject(world, instance.id, too_many(world, "one_upon_another"))
            else:
                admit(world, instance, minute, False)
        if world.candidates:
            start_candidates(world, minute)
        if world.satisfied and not world.following and not world.candidates:
            # Last in the minute, so that a process receives all conditions that became true together.
            if depth > world.follow_up_limit:
                _stop_repeated_waits(world)
            else:
                resume_waiting_processes(world, minute)


def _stop_repeated_waits(world: WorldState) -> None:
    """Stop notifying waits whose condition already holds."""
    for wait in take_satisfied_waits(world):
        facts = too_many(world, "one_upon_another").facts
        world.writer.diagnose(Code.LIMIT_EXCEEDED, None, "wait_repeated", facts, by=wait.process)
