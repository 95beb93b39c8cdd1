"""Failed trucks keep their cells and request nothing; a recovered truck continues from its position.

Nothing is released before the position is certain: its poses are steady and plausible, or an operator has stated it.
Then the truck first gets what it needs there, and only then the rest is released.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from msgspec import structs

from pendula.fleet.contracts import RobotStatus
from pendula.fleet.map.planner import Anchor, AtNode
from pendula.fleet.map.routes import RoutePlan, started
from pendula.fleet.tick.health import is_fresh, judge
from pendula.fleet.tick.observing import is_possible, plan_rejoin, position
from pendula.fleet.tick.orders import held_at
from pendula.fleet.tick.params import TrafficParams
from pendula.fleet.tick.records import Doubt, Record, Stop
from pendula.fleet.tick.track import Ground, track_of
from pendula.fleet.traffic.grants import Accepted, Effort, cut_off, freeze, thaw
from pendula.fleet.traffic.lock_state import LockState


@dataclass(frozen=True, slots=True)
class Recovery:
    """Context of recovery. `anchor` finds a truck on the map, `ways` the routes from there. `failed` is called for
    every failure with the trucks that it cuts off, and again when there are more of them; `accepted` for every new
    route."""

    locks: LockState
    ground: Ground
    params: TrafficParams
    now_ms: int
    effort: Effort
    anchor: Callable[[Record], Anchor | None]
    ways: Callable[[Record, Anchor], Iterator[RoutePlan]]
    failed: Callable[[Record, list[int]], None]
    accepted: Callable[[RoutePlan], None]


def recover_trucks(records: list[Record], recovery: Recovery) -> None:
    """Freeze trucks that failed since the last tick, and let recovered trucks continue."""
    for record in records:
        if record.doubt is not None:
            doubt = record.doubt = _note_on_map(record, record.doubt, recovery)
            if _is_back(record, doubt, recovery) and (doubt.rejoin is None or doubt.rejoin.target_um is None):
                _recover(record, doubt, recovery)
            if record.doubt is not None:
                settled = is_settled(record, record.doubt, recovery.now_ms, recovery.params)
                record.doubt = plan_rejoin(
                    record, record.doubt, records, recovery.ground, recovery.params, settled=settled
                )
        locked = recovery.locks.truck(record.number)
        extra = () if record.doubt is None else record.doubt.extra
        if record.failed and not (locked.frozen and locked.held.issuperset(extra)):
            known = cut_off(recovery.locks) if locked.frozen else None
            known_place = record.doubt is not None and record.doubt.code == Stop.OVERRUN
            whole, part = ([], [*extra]) if known_place else ([*extra], [])
            stranded = freeze(recovery.locks, record.number, whole, part, effort=recovery.effort)
            if known is None or not set(stranded) <= set(known):
                recovery.failed(record, stranded)
        elif locked.frozen and not record.failed:
            _request_again(record, recovery)


def awaits_person(record: Record, now_ms: int, params: TrafficParams) -> bool:
    """Whether a truck stands until a person acts: clears or resumes it, states its position, or looks for it.

    Causes that may end by themselves, such as unsteady poses, count after `wait_alert_ms`; a stop for another truck
    never counts, because a lost truck counts itself. A removed truck does not wait, unless it has reported since and
    its reported position is kept for it.
    """
    if record.is_out:
        return False
    if record.removed_ms is not None and record.absent:
        return record.doubt is not None and bool(record.doubt.extra)
    if record.paused or record.latched is not None or record.status is RobotStatus.FAULT:
        return True
    if not record.absent and (record.pose is None or record.stop_code == Stop.OFFLINE):
        return True
    doubt = record.doubt
    torn = doubt is not None and (doubt.torn or record.stop_code == Stop.OCCUPANCY_CONFLICT)
    lost = doubt is not None and torn and not doubt.confirmed and is_settled(record, doubt, now_ms, params)
    return (lost and not is_possible(record, params)) or _has_stopped_for_long(record, now_ms, params)


def _has_stopped_for_long(record: Record, now_ms: int, params: TrafficParams) -> bool:
    """Whether a truck has been stopped for a reason of its own for so long that an operator should look."""
    if record.absent or record.stopped_ms is None or record.stop_code in (Stop.FOREIGN_OCCUPANCY, Stop.SAFE_STATE):
        return False
    # Codes may alternate while the position is in doubt.
    since_ms = record.stopped_ms if record.doubt is None else min(record.stopped_ms, record.doubt.since_ms)
    return now_ms - since_ms >= params.wait_alert_ms


def is_settled(record: Record, doubt: Doubt, now_ms: int, params: TrafficParams) -> bool:
    """Whether a truck in doubt has been healthy and steady for long enough."""
    if record.latched is not None or record.status is not RobotStatus.OK or doubt.steady_ms is None:
        return False
    fresh = is_fresh(record, now_ms, params) and not record.absent
    return fresh and now_ms - doubt.steady_ms >= params.relocalize_stable_ms


def _note_on_map(record: Record, doubt: Doubt, recovery: Recovery) -> Doubt:
    """Note in the doubt since when the truck is within the tolerance of its route, or of any edge."""
    here = record.pose is not None and (is_possible(record, recovery.params) or recovery.anchor(record) is not None)
    if here is (doubt.on_map_ms is not None):
        return doubt
    return structs.replace(doubt, on_map_ms=record.report_ms if here else None)


def _is_back(record: Record, doubt: Doubt, recovery: Recovery) -> bool:
    """Whether a truck has been steady and on the map all that time (FLT-FAIL-7)."""
    long = doubt.on_map_ms is not None and recovery.now_ms - doubt.on_map_ms >= recovery.params.relocalize_stable_ms
    return long and is_settled(record, doubt, recovery.now_ms, recovery.params)


def _recover(record: Record, doubt: Doubt, recovery: Recovery) -> None:
    if is_possible(record, recovery.params) and not _is_beyond_stop_line(record, doubt, recovery.params):
        _resume_route(record, doubt, recovery)
    elif doubt.confirmed or not doubt.torn:
        _relocate(record, recovery)


def _is_beyond_stop_line(record: Record, doubt: Doubt, params: TrafficParams) -> bool:
    """Whether a truck is so far beyond its stop line that it must be granted the place where it stands: two reports of
    one place differ by both their errors, so it could exceed the line again."""
    if doubt.code != Stop.OVERRUN:
        return False
    s_um = position(record, params)
    return s_um is None or s_um + record.profile.localization_error.value_um > record.grant_um + params.stop_line_tol_um


def _resume_route(record: Record, doubt: Doubt, recovery: Recovery) -> None:
    """Resume the route of a truck with a plausible position, and release what it might have covered elsewhere."""
    recovery.locks.drop(
        record.number, [resource for resource in doubt.extra if resource not in frozenset(record.keeps)]
    )
    record.doubt = None
    if record.track is not None and record.track.segments:
        s_um = position(record, recovery.params)
        assert s_um is not None
        act = record.act
        on = s_um if act is None else min(s_um, act.s_um)
        record.progress = started(record.report_ms, on)
        record.at_um = max(record.at_um, min(on, record.grant_um))
    judge(record, recovery.now_ms, recovery.params)


def _request_again(record: Record, recovery: Recovery) -> None:
    """Request the old route again. The truck waits while that would leave other trucks worse off."""
    locked = recovery.locks.truck(record.number)
    if recovery.now_ms >= record.again_ms:
        answer = thaw(recovery.locks, record.number, locked.demand, locked.position, effort=recovery.effort)
        if isinstance(answer, Accepted):
            return
        record.again_ms = recovery.now_ms + recovery.params.cooldown_ms
    if record.stop_code is None:
        record.stop_code = Stop.SAFE_STATE


def _relocate(record: Record, recovery: Recovery) -> None:
    """Move the truck to a new route from its position; only then the old place is released. It stays in doubt while
    there is no route, another truck holds the place, or other trucks would be worse off."""
    if recovery.now_ms < record.again_ms:
        return
    record.again_ms = recovery.now_ms + recovery.params.cooldown_ms
    anchor = recovery.anchor(record)
    if anchor is not None and any(_move_onto(record, plan, recovery) for plan in recovery.ways(record, anchor)):
        judge(record, recovery.now_ms, recovery.params)


def _move_onto(record: Record, plan: RoutePlan, recovery: Recovery) -> bool:
    """Put the truck on a route from its position, if it can hold its place and all others can reach their rest."""
    held = held_at(record, recovery.ground, plan)
    if recovery.locks.in_the_way(record.number, np.array(sorted(held), dtype=np.int64)):
        return False
    begin = 0 if isinstance(plan.start, AtNode) else plan.start_um
    track = track_of(recovery.ground, plan, record.short_um, begin, held)
    recovery.locks.hold(record.number, sorted(held))
    answer = thaw(recovery.locks, record.number, track.demand, 0, effort=recovery.effort)
    if not isinstance(answer, Accepted):
        return False
    recovery.locks.drop(record.number, sorted(recovery.locks.truck(record.number).held - held.keys()))
    record.placed(track, held, begin)
    if isinstance(plan.start, AtNode):
        record.node = plan.start.node
    record.progress = started(record.report_ms, begin)
    recovery.accepted(plan)
    return True
