"""Failed trucks keep their cells and request nothing; a recovered truck continues from its position.

Nothing is released before the position is certain: its poses are steady and plausible, or an operator has stated it.
Then the truck first gets what it needs there, and only then the rest is released.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from msgspec import structs

from pendula.fleet.contracts.traffic import RobotStatus
from pendula.fleet.driving.doubts import Doubt
from pendula.fleet.driving.params import TrafficParams
from pendula.fleet.driving.records import Record
from pendula.fleet.driving.stops import Stop
from pendula.fleet.driving.track import track_of
from pendula.fleet.driving.uses import Ground
from pendula.fleet.health.judging import is_fresh, judge
from pendula.fleet.health.places import is_possible, position
from pendula.fleet.health.rejoining import sent_back
from pendula.fleet.health.standing import held_at
from pendula.fleet.routing.planner import Anchor, AtNode
from pendula.fleet.routing.progress import started
from pendula.fleet.routing.route_plan import RoutePlan
from pendula.fleet.traffic.cut_off import cut_off
from pendula.fleet.traffic.grants import Accepted, Effort, freeze, thaw
from pendula.fleet.traffic.lock_state import LockState


@dataclass(frozen=True, slots=True)
class Care:
    """What recovery works with. `anchor` finds where on the map a truck is, `ways` lead on from there; `failed` hears
    of every failure with those who are cut off, and again where they are more, `accepted` of every new route."""

    locks: LockState
    ground: Ground
    params: TrafficParams
    now_ms: int
    effort: Effort
    anchor: Callable[[Record], Anchor | None]
    ways: Callable[[Record, Anchor], Iterator[RoutePlan]]
    failed: Callable[[Record, list[int]], None]
    accepted: Callable[[RoutePlan], None]


def care_for(records: list[Record], care: Care) -> None:
    """Freeze trucks that failed since the last tick, and let recovered trucks continue."""
    for record in records:
        if record.doubt is not None:
            doubt = record.doubt = _located(record, record.doubt, care)
            if _is_back(record, doubt, care) and (doubt.rejoin is None or doubt.rejoin.target_um is None):
                _come_back(record, doubt, care)
            if record.doubt is not None:
                settled = is_settled(record, record.doubt, care.now_ms, care.params)
                record.doubt = sent_back(record, record.doubt, records, care.ground, care.params, settled=settled)
        one = care.locks.truck(record.number)
        extra = () if record.doubt is None else record.doubt.extra
        if record.failed and not (one.frozen and one.held.issuperset(extra)):
            known = cut_off(care.locks) if one.frozen else None
            known_place = record.doubt is not None and record.doubt.code == Stop.OVERRUN
            whole, part = ([], [*extra]) if known_place else ([*extra], [])
            found = freeze(care.locks, record.number, whole, part, effort=care.effort)
            if known is None or not set(found) <= set(known):
                care.failed(record, found)
        elif one.frozen and not record.failed:
            _take_up(record, care)


def awaits_person(record: Record, now_ms: int, params: TrafficParams) -> bool:
    """Whether a truck stands until a person acts: clears or resumes it, says where it is, or looks for it.

    What passes by itself does not count before it has lasted for `wait_alert_ms`, such as poses that are not steady;
    standing for another truck never does: a lost one counts itself. A truck that is out of the hall does not wait,
    unless it has reported since, and where it said it was is kept for it.
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
    """Whether a truck has been stopped for its own sake for so long that an operator should look."""
    if record.absent or record.stopped_ms is None or record.stop_code in (Stop.FOREIGN_OCCUPANCY, Stop.SAFE_STATE):
        return False
    # One code may take turns with another while the place of the truck is in doubt.
    since_ms = record.stopped_ms if record.doubt is None else min(record.stopped_ms, record.doubt.since_ms)
    return now_ms - since_ms >= params.wait_alert_ms


def is_settled(record: Record, doubt: Doubt, now_ms: int, params: TrafficParams) -> bool:
    """Whether a truck that was in doubt has been well and steady for long enough."""
    if record.latched is not None or record.status is not RobotStatus.OK or doubt.steady_ms is None:
        return False
    fresh = is_fresh(record, now_ms, params) and not record.absent
    return fresh and now_ms - doubt.steady_ms >= params.relocalize_stable_ms


def _located(record: Record, doubt: Doubt, care: Care) -> Doubt:
    """The doubt with since when the truck is no farther beside its way, or any other, than it may be."""
    here = record.pose is not None and (is_possible(record, care.params) or care.anchor(record) is not None)
    if here is (doubt.on_map_ms is not None):
        return doubt
    return structs.replace(doubt, on_map_ms=record.report_ms if here else None)


def _is_back(record: Record, doubt: Doubt, care: Care) -> bool:
    """Whether a truck has been steady, and on the map all that time (FLT-FAIL-7)."""
    long = doubt.on_map_ms is not None and care.now_ms - doubt.on_map_ms >= care.params.relocalize_stable_ms
    return long and is_settled(record, doubt, care.now_ms, care.params)


def _come_back(record: Record, doubt: Doubt, care: Care) -> None:
    if is_possible(record, care.params) and not _is_beyond(record, doubt, care.params):
        _found_again(record, doubt, care)
    elif doubt.confirmed or not doubt.torn:
        _relocate(record, care)


def _is_beyond(record: Record, doubt: Doubt, params: TrafficParams) -> bool:
    """Whether a truck that has passed its stop line may say so again where it stands: two reports of one place differ
    by both their errors. It has to be given what it stands on."""
    if doubt.code != Stop.OVERRUN:
        return False
    s_um = position(record, params)
    return s_um is None or s_um + record.profile.localization_error.value_um > record.grant_um + params.stop_line_tol_um


def _found_again(record: Record, doubt: Doubt, care: Care) -> None:
    """The truck is where it can be on its way: what it might have covered elsewhere is free."""
    care.locks.drop(record.number, [one for one in doubt.extra if one not in frozenset(record.keeps)])
    record.doubt = None
    if record.track is not None and record.track.segments:
        s_um = position(record, care.params)
        assert s_um is not None
        act = record.act
        on = s_um if act is None else min(s_um, act.s_um)
        record.progress = started(record.report_ms, on)
        record.at_um = max(record.at_um, min(on, record.grant_um))
    judge(record, care.now_ms, care.params)


def _take_up(record: Record, care: Care) -> None:
    """The truck asks for its old way; while the others would be worse off it waits for them to move."""
    one = care.locks.truck(record.number)
    if care.now_ms >= record.again_ms:
        answer = thaw(care.locks, record.number, one.demand, one.position, effort=care.effort)
        if isinstance(answer, Accepted):
            return
        record.again_ms = care.now_ms + care.params.cooldown_ms
    if record.stop_code is None:
        record.stop_code = Stop.SAFE_STATE


def _relocate(record: Record, care: Care) -> None:
    """The truck is somewhere else: a new way from there, what it needs to stand there, and then the old place is
    freed. It stays in doubt while there is no route, another truck is in its place, or the others would be worse
    off."""
    if care.now_ms < record.again_ms:
        return
    record.again_ms = care.now_ms + care.params.cooldown_ms
    anchor = care.anchor(record)
    if anchor is not None and any(_goes(record, plan, care) for plan in care.ways(record, anchor)):
        judge(record, care.now_ms, care.params)


def _goes(record: Record, plan: RoutePlan, care: Care) -> bool:
    """Puts the truck onto a way from where it is, if it may have what it stands on there and the others get home."""
    held = held_at(record, care.ground, plan)
    if care.locks.in_the_way(record.number, np.array(sorted(held), dtype=np.int64)):
        return False
    begin = 0 if isinstance(plan.start, AtNode) else plan.start_um
    track = track_of(care.ground, plan, record.short_um, begin, held)
    care.locks.hold(record.number, sorted(held))
    answer = thaw(care.locks, record.number, track.demand, 0, effort=care.effort)
    if not isinstance(answer, Accepted):
        return False
    care.locks.drop(record.number, sorted(care.locks.truck(record.number).held - held.keys()))
    record.placed(track, held, begin)
    if isinstance(plan.start, AtNode):
        record.node = plan.start.node
    record.progress = started(record.report_ms, begin)
    care.accepted(plan)
    return True
