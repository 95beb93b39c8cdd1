"""Detours: at once round a failed truck, and once round a truck that was waited for too long. A truck that still waits
then raises an alert and stays where it is (FLT-LIVE-9, FLT-OSC-6).

A detour is taken only if all trucks can still get to rest, and if it pays.
"""

from msgspec import Struct

from pendula.fleet.map.routes import RoutePlan
from pendula.fleet.tick import reasons
from pendula.fleet.tick.draft import Draft
from pendula.fleet.tick.new_routes import Adoption, Unfit, adoption, is_done
from pendula.fleet.tick.observing import STANDING_UM_S
from pendula.fleet.tick.orders import closed_to_routes
from pendula.fleet.tick.records import Record, Retraction, hold_of
from pendula.fleet.traffic.grants import Accepted, Rule, accept_route
from pendula.fleet.traffic.lock_state import first_shut
from pendula.kernel.canonical import Json

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
            or not _is_due(draft, record)
        ):
            continue
        if left <= 0:
            return
        left -= 1
        record.rerouted_ms = draft.now_ms
        closed = closed or closed_to_routes(draft.locks, draft.ground.site)
        take_detour(draft, record, draft.ways.around(record, closed))


def _is_due(draft: Draft, record: Record) -> bool:
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
        if _is_due(draft, record):
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
