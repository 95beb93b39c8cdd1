"""Grants of units, truck by truck in rank order, or the reason why a unit is not granted."""

import numpy as np
from msgspec import Struct

from pendula.fleet.contracts import Phase
from pendula.fleet.map.routes import RoutePlan
from pendula.fleet.tick import reasons, turns
from pendula.fleet.tick.draft import Draft
from pendula.fleet.tick.new_routes import Adoption, Unfit, adoption, is_done
from pendula.fleet.tick.observing import STANDING_UM_S
from pendula.fleet.tick.orders import closed_to_routes
from pendula.fleet.tick.records import Record, Retraction, Waiting, hold_of
from pendula.fleet.tick.turns import pause_ms, ripe, waited_for
from pendula.fleet.traffic.grants import (
    Accepted,
    Blocked,
    Effort,
    Rule,
    Wait,
    accept_route,
    extend,
    in_the_way,
    still_in_the_way,
)
from pendula.fleet.traffic.lock_state import Ints, first_shut
from pendula.fleet.traffic.refuge import first_to_go
from pendula.kernel.canonical import Json

_WORKING = frozenset({Phase.LOADING, Phase.UNLOADING})


def grant(draft: Draft) -> None:
    """Grant units in rank order, to each truck along its route until one is refused or it has all it can use."""
    draft.queue.before = waited_for(draft.records)
    draft.effort.left += max(0, draft.admissions.left)
    if draft.missing is not None:
        _wait_for_all(draft, draft.missing)
        return
    for record in draft.order:
        track = record.track
        if track is None or record.stop_code is not None or record.phase in _WORKING or _is_undecided(draft, record):
            continue
        reach = min(record.at_um + record.asked_um, track.goal_um)
        blocked: Waiting | None = None
        while blocked is None and record.grant_um < reach and record.retraction is None:
            blocked = _unit(draft, record)
        _note(draft, record, blocked)


def _wait_for_all(draft: Draft, missing: Record) -> None:
    """No truck goes on before all have reported or were declared absent (FLT-FAIL-14)."""
    for record in draft.records:
        if record is not missing and record.track is not None and record.stop_code is None:
            _note(draft, record, Waiting(reasons.WAIT_SAFE_STATE, None, missing.number, None))


def _is_undecided(draft: Draft, record: Record) -> bool:
    """Whether a new route waits for its first check because this tick has used up its checks. The old route is granted
    no further meanwhile, or the new one would no longer begin at the truck. Other trucks may use up the checks again
    and again, so the first truck of the stored witness gives up its new route in time for I-13."""
    since = record.pending_since_ms
    if record.pending is None or since is None or record.refused_cycle or record.retry_ms > draft.now_ms:
        return False
    longest_ms = (draft.params.witness_grant_ticks - 1) * draft.params.tick_period_ms
    return draft.now_ms - since < longest_ms or not _goes_first(draft, record)


def _unit(draft: Draft, record: Record) -> Waiting | None:
    """Grant one more unit, or return why not."""
    locks, track = draft.locks, record.track
    assert track is not None
    if _still_blocked(draft, record):
        return record.waiting
    truck = locks.truck(record.number)
    unit = truck.demand.needs(truck.position, min(truck.position + 1, truck.demand.last))
    barred = _barred(draft, record, unit)
    if barred is not None:
        return barred
    # During its pause, grant what the stored witness allows, but search nothing.
    effort = draft.effort if _is_due(draft, record) else Effort(left=0)
    answer = extend(locks, record.number, rule=draft.rule, effort=effort)
    if isinstance(answer, Blocked):
        return _blocked(draft, record, answer)
    before = record.grant_um
    record.granted = answer.position - record.base
    for use in track.taken(before, record.grant_um):
        record.held[use.resource] = max(record.held.get(use.resource, use.free_um), use.free_um)
    record.changed()
    draft.touched.add(record.number)
    record.last_grant_ms = draft.now_ms
    record.waiting_since_ms = None
    return None


def _goes_first(draft: Draft, record: Record) -> bool:
    """Whether the stored witness begins with this truck. No queue bars it: a truck refused as unsafe waits for all that
    come before it in the witness, whatever cycle was found, so barring the first would close a cycle."""
    return first_to_go(draft.locks) == record.number


def _barred(draft: Draft, record: Record, unit: Ints) -> Waiting | None:
    """The queue, or the drained lane, that keeps a truck back."""
    first = _goes_first(draft, record)
    bar = None if first else draft.queue.barred_by(record.number, unit)
    if bar is not None:
        draft.queue.wait(record.number, (bar[0],))
        return Waiting(reasons.WAIT_QUEUE_ORDER, bar[1], bar[0], None)
    kept_out = _kept_out(draft, record, unit)
    if kept_out is not None and not (first and _waits_in_vain(draft, kept_out[0])):
        draft.queue.wait(record.number, (kept_out[0],))
        return Waiting(reasons.WAIT_QUEUE_ORDER, int(unit[0]), kept_out[0], None)
    return None


def _kept_out(draft: Draft, record: Record, unit: Ints) -> tuple[int, int] | None:
    lanes = draft.directions
    return turns.kept_out_by(lanes, record, draft.two_way, draft.queue, unit.tolist()) if lanes.drained else None


def _waits_in_vain(draft: Draft, waiter: int) -> bool:
    """Whether a truck in the way of a waiter is stopped, or was refused as unsafe and may wait for any other truck.
    Then a lane that is drained for the waiter may not become empty by itself."""
    blockers = (draft.records[other] for other in draft.queue.in_the_way_of(waiter))
    return any(
        blocker.stop_code is not None
        or (blocker.waiting is not None and blocker.waiting.code == reasons.WAIT_SAFE_STATE)
        for blocker in blockers
    )


def _still_blocked(draft: Draft, record: Record) -> bool:
    """Whether the blocker of the last tick still blocks the next unit; then no new check is needed."""
    waiting = record.waiting
    if waiting is None or waiting.by is None or waiting.theirs is None or record.ripe is None:
        return False
    if waiting.theirs not in draft.locks.truck(waiting.by).held:
        return False
    if waiting.theirs in draft.locks.sharers and not draft.locks.in_the_way(record.number, np.array([waiting.theirs])):
        # Another truck has left the section: it has capacity although the blocker is still inside.
        return False
    draft.queue.wait(record.number, (waiting.by,))
    if draft.records[waiting.by].stop_code is None:
        _ask(draft, record)
    return True


def _ask(draft: Draft, record: Record) -> None:
    """Bar others from what a truck needs next; after a long wait from the whole unit."""
    since = record.waiting_since_ms
    if since is not None and draft.now_ms - since > draft.params.dir_switch_max_wait_ms:
        if record.ripe_whole is None:
            record.ripe_whole = ripe(record, draft.locks, whole=True)
        draft.queue.ask(record.number, record.ripe_whole)
    elif record.ripe is not None:
        draft.queue.ask(record.number, record.ripe)


def _is_due(draft: Draft, record: Record) -> bool:
    """Whether a search for a unit is allowed: not during the pause after a refusal."""
    return not _was_refused(record) or draft.now_ms >= record.again_ms


def _was_refused(record: Record) -> bool:
    return record.waiting is not None and record.waiting.code == reasons.WAIT_SAFE_STATE


def _blocked(draft: Draft, record: Record, answer: Blocked) -> Waiting:
    queue, number = draft.queue, record.number
    if answer.code is Wait.HELD:
        waiting = reasons.in_the_way(draft.locks, draft.records, record, answer.holders)
        assert waiting is not None, "a unit is refused without a truck in the way"
        queue.wait(number, answer.trucks)
        record.ripe, record.ripe_whole = ripe(record, draft.locks), None
        if not any(draft.records[j].stop_code is not None for j in answer.trucks):
            _ask(draft, record)
        return waiting
    before = record.waiting if _was_refused(record) else None
    if answer.code is Wait.CUT_OFF:
        return _closed_still(draft, record) or _cut_off(draft, number, before)
    if answer.code is not Wait.SAFE_STATE:
        # Postponed, or still in its pause: it waits as before and is checked again. The pause is not renewed.
        return before or Waiting(reasons.WAIT_SAFE_STATE, None, None, None)
    others = answer.trucks
    queue.wait(number, others)
    same = record.waiting is not None and record.waiting.cycle == answer.cycle
    # Reserved before the truck had to wait: not counted as waiting.
    since = max(record.request_ms or 0, record.waiting_since_ms or 0) if same else None
    record.again_ms = draft.now_ms + pause_ms(draft.params, draft.now_ms, since)
    return Waiting(reasons.WAIT_SAFE_STATE, answer.resource, others[0] if others else None, None, answer.cycle)


def _closed_still(draft: Draft, record: Record) -> Waiting | None:
    """The present wait for a closed place, if that is still closed."""
    waiting = record.waiting
    if waiting is None or waiting.code != reasons.WAIT_CLOSED:
        return None
    return waiting if any(waiting.resource in place.resources for place in draft.locks.shut) else None


def _cut_off(draft: Draft, number: int, before: Waiting | None) -> Waiting:
    """The wait of a truck that is cut off. Looked up once: its route may be long, and the wait too."""
    match before:
        case Waiting(resource=int(resource), by=int(by), cycle=()) if still_in_the_way(draft.locks, resource, by):
            return before
    obstacle = in_the_way(draft.locks, number)
    if draft.locks.shut and (obstacle is None or not draft.locks.truck(obstacle[1]).frozen):
        truck = draft.locks.truck(number)
        met = first_shut(draft.locks.shut, truck.demand, truck.position)
        if met is not None:
            return Waiting(reasons.WAIT_CLOSED, met.resource, None, None)
    return Waiting(reasons.WAIT_SAFE_STATE, obstacle and obstacle[0], obstacle and obstacle[1], None)


def _note(draft: Draft, record: Record, blocked: Waiting | None) -> None:
    """Note since when a truck waits, and since when for the present resource."""
    before = record.waiting
    record.waiting = blocked
    if blocked is None or blocked.theirs is None:
        record.ripe = record.ripe_whole = None
    if blocked is None:
        record.waiting_since_ms = record.request_ms = None
        return
    reserved = record.reserved_ms.get(record.granted + 1, draft.now_ms)
    if record.waiting_since_ms is None:
        record.waiting_since_ms = draft.now_ms
        record.request_ms = reserved
    elif before is None or before.resource != blocked.resource:
        record.request_ms = reserved


# Detours: at once round a failed truck, and once round a truck that was waited for too long. A truck that still waits
# then raises an alert and stays where it is (FLT-LIVE-9, FLT-OSC-6).
# A detour is taken only if all trucks can still get to rest, and if it pays.

# When a waiting truck may replan, and when a new route is worth taking.


class ReplanParams(Struct, frozen=True):
    cooldown_ms: int = 10_000
    gain_ms: int = 5_000


USUAL = ReplanParams()


def may_replan(now_ms: int, last_replan_ms: int | None, blocker_changed: bool, params: ReplanParams = USUAL) -> bool:
    """Whether a truck in `TRAFFIC_HOLD` may replan: after the cooldown, or when its blocker has changed."""
    return blocker_changed or last_replan_ms is None or now_ms - last_replan_ms >= params.cooldown_ms


def worth_taking(old_cost_us: int, new_cost_us: int, blocker_lost: bool, params: ReplanParams = USUAL) -> bool:
    """Whether a new route may replace the old one; `blocker_lost` means that a truck that is offline, faulty or in a
    safety stop blocks the old one. FLT-LIVE-4 is checked in any case."""
    return blocker_lost or old_cost_us - new_cost_us >= params.gain_ms * 1000


# Most trucks that look for a detour in one tick.
_MOST = 2
_NOTICED, _REROUTED, _TOLD = 1, 2, 3


def reroute(draft: Draft) -> None:
    """Find detours for trucks that are cut off by a failed truck or a closed place, once per cooldown."""
    left = _MOST
    closed = None
    for record in draft.order:
        truck = draft.locks.truck(record.number)
        if (
            truck.frozen
            or truck.goal >= truck.demand.last
            or record.stop_code is not None
            or not _is_detour_due(draft, record)
        ):
            continue
        if left <= 0:
            return
        left -= 1
        record.rerouted_ms = draft.now_ms
        closed = closed or closed_to_routes(draft.locks, draft.ground.site)
        take_detour(draft, record, draft.ways.around(record, closed))


def _is_detour_due(draft: Draft, record: Record) -> bool:
    last = record.rerouted_ms
    return last is None or draft.now_ms - last >= draft.params.replan_cooldown_ms


def escalate(draft: Draft) -> None:
    """Escalate for a truck that waits for the same truck, or for its route to be admitted: a notice, one attempt at a
    detour, an alert, then nothing."""
    for record in draft.records:
        by = _waits_for(draft, record)
        # The blocker of a route changes while the route waits; the blocker of a unit is what a truck waits for.
        same = record.blocked_by is not None if record.waiting is None else by == record.blocked_by
        if by is None or not same:
            record.blocked_ms, record.escalated = draft.now_ms, 0
        record.blocked_by = by
        if by is not None:
            _escalate(draft, record, draft.records[by])


def _waits_for(draft: Draft, record: Record) -> int | None:
    """The truck that another one waits for: the next of those that block its route, or the starving truck that goes
    first."""
    if record.stop_code is not None:
        return None
    if record.waiting is not None:
        return record.waiting.by
    if record.pending is None or record.v_um_s >= STANDING_UM_S:
        return None
    against = next((number for number in record.refused_cycle if number != record.number), None)
    first = draft.starving
    return first.number if against is None and first is not None and first is not record else against


def _escalate(draft: Draft, record: Record, blocker: Record) -> None:
    params, waited = draft.params, draft.now_ms - record.blocked_ms
    details: dict[str, Json] = {"by": blocker.robot_id, "waitMs": waited}
    if record.escalated < _NOTICED and waited >= params.wait_warn_ms:
        record.escalated = _NOTICED
        draft.notice(reasons.WAIT_NOTICE, record.blocked_ms, record.robot_id, **details)
    elif record.escalated < _REROUTED and waited >= params.wait_reroute_ms:
        record.escalated = _REROUTED
        if _is_detour_due(draft, record):
            # A futile attempt starts no cooldown: in a deadlock this truck may need a detour soon.
            compared = draft.ways.compared(record, draft.records)
            if compared is not None and _is_worth_it(draft, blocker, *compared):
                take_detour(draft, record, compared[0])
    elif record.escalated < _TOLD and waited >= params.wait_alert_ms:
        record.escalated = _TOLD
        draft.alert(reasons.WAIT_TOO_LONG, "WARN", record.blocked_ms, record.robot_id, **details)


def _is_worth_it(draft: Draft, blocker: Record, plan: RoutePlan, old_cost_us: int) -> bool:
    """FLT-PLAN-9: fast enough, or the blocker does not move by itself."""
    lost = blocker.stop_code is not None and hold_of(blocker.stop_code) != "TRAFFIC_HOLD"
    params = ReplanParams(draft.params.replan_cooldown_ms, draft.params.reroute_gain_ms)
    return worth_taking(old_cost_us, plan.cost_us, lost, params)


def take_detour(draft: Draft, record: Record, plan: RoutePlan | None) -> bool:
    """Take another route if it fits the position and all trucks can still get to rest; returns whether."""
    fit = None if plan is None else adoption(record, plan, draft.ground, draft.params, draft.now_ms)
    if fit is None or isinstance(fit, Unfit):
        return False
    if draft.locks.shut and first_shut(draft.locks.shut, fit.track.demand, 0) is not None:
        return False
    # Without the refuge rule there is no witness.
    rule = Rule.ACYCLIC if draft.rule is Rule.OFF else draft.rule
    answer = accept_route(draft.locks, record.number, fit.track.demand, 0, rule=rule, effort=draft.admissions)
    if not isinstance(answer, Accepted):
        return False
    adopt(draft, record, fit, 0)
    record.rerouted_ms = draft.now_ms
    return True


def adopt(draft: Draft, record: Record, fit: Adoption, base: int) -> None:
    """Put the new route in force: positions along the old route become positions along the new one."""
    shift, granted = fit.shift_um, record.granted
    done = None if record.track is None or not record.acted else record.track.acts[record.acted - 1]
    record.track, record.base, record.granted = fit.track, base, 0
    record.held = dict(fit.carried)
    record.changed()
    draft.touched.add(record.number)
    if fit.given_back:
        record.retraction = Retraction(record.seq + 1, fit.track.stands[0], fit.given_back)
    record.at_um -= shift
    record.bound_um -= shift
    record.hold_um = fit.track.stands[0]
    record.farthest_um = max(record.farthest_um - shift, record.hold_um)
    record.target_um = min(record.target_um - shift, record.hold_um)
    record.acted = 0 if done is None else sum(is_done(act, done, shift) for act in fit.track.acts)
    if record.progress is not None:
        record.progress = record.progress.shifted(shift)
    if record.pending is None or record.pending.route_id == fit.track.plan.route_id:
        # Another pending route keeps waiting; its sender gets a result for it.
        record.pending = record.pending_since_ms = None
        record.refused_cycle = record.refused_versions = ()
    record.waiting = record.waiting_since_ms = record.request_ms = None
    if fit.continues:
        record.shift_reserved(granted)
    else:
        record.reserve_anew()
    draft.accepted.append(fit.track.plan)
