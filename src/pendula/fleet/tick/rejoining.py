"""A truck slightly beside its line drives back by itself if that is safe for all other trucks (a guarded rejoin).

It drives at creep speed along a straight line to a point of its route within its grant. The rectangle that its envelope
covers on that line, at any yaw between those at both ends, must overlap nothing that another truck holds; the place is
reserved for the truck until it is back. Otherwise the answer names the trucks that must move.
"""

from collections.abc import Sequence
from math import hypot

import numpy as np
from msgspec import structs
from numpy.typing import NDArray

from pendula.fleet.contracts import RobotStatus
from pendula.fleet.map.geometry import Rects, angle_urad, corners, near, turn_urad
from pendula.fleet.map.routes import Limits, Pose, Projection
from pendula.fleet.model import MoveStyle
from pendula.fleet.tick.params import TrafficParams, off_route_um
from pendula.fleet.tick.places import can_be_at, is_possible
from pendula.fleet.tick.records import NOWHERE_UM, Doubt, Record, Rejoin, Stop
from pendula.fleet.tick.track import Ground
from pendula.fleet.units import MILLION, PI_URAD, ceil_div, wrapped_urad

Ints = NDArray[np.int64]
# Distances ahead at which a truck may rejoin its line, longest first: the farther, the less it turns.
_AHEAD_UM = (3_000_000, 2_000_000, 1_000_000)
# Steepest line: one metre sideways for four metres along.
_STEEPEST = 4
# Interval at which the yaw of the line is sampled.
_EVERY_UM = 250_000
_REJOINING = frozenset({Stop.OFF_ROUTE, Stop.POSE_JUMP})


def plan_rejoin(
    record: Record, doubt: Doubt, records: Sequence[Record], ground: Ground, params: TrafficParams, *, settled: bool
) -> Doubt:
    """Add to the doubt how the truck returns to its line; `settled`: its reports have been steady."""
    if not (settled and _may_try(record, doubt)):
        return structs.replace(doubt, rejoin=None)
    back = rejoin(record, doubt, records, ground, params)
    if back is None or back.target_um is None:
        return structs.replace(doubt, rejoin=back)
    # Reserved from now on, so that no other truck gets a grant there.
    assert record.pose is not None
    around = ground.discs.meeting(_area(record, record.pose, back.target_um))
    return structs.replace(doubt, rejoin=back, extra=tuple(sorted({*doubt.extra, *around})))


def rejoin(
    record: Record, doubt: Doubt, records: Sequence[Record], ground: Ground, params: TrafficParams
) -> Rejoin | None:
    """How a truck beside its line returns to it; None if it is on the line or too far from it."""
    place, pose = beside(record, doubt, params), record.pose
    if place is None or pose is None:
        return None
    before = None if doubt.rejoin is None else doubt.rejoin.target_um
    under_way = before is not None and place.s_on_route_um + params.arrive_tol_um < before
    if place.lateral_um <= off_route_um(record.profile, params) and not under_way:
        return None
    track = record.track
    assert track is not None
    back = Rejoin(_signed(record, place, pose), track.plan.segments[place.segment].edge, place.s_on_segment_um)
    at_um = max(place.s_on_route_um, record.at_um)
    limit = min(record.grant_um, record.hold_um)
    targets = [before] if under_way else [min(limit, place.s_on_route_um + ahead) for ahead in _AHEAD_UM]
    first: tuple[tuple[int, int], ...] | None = None
    for target_um in targets:
        assert target_um is not None
        left = target_um - place.s_on_route_um
        if target_um <= at_um or target_um > limit or (left < _STEEPEST * place.lateral_um and not under_way):
            continue
        blockers = _in_the_way(record, records, ground, params, _area(record, pose, target_um))
        if not blockers:
            return structs.replace(back, target_um=target_um)
        first = blockers if first is None else first
    return structs.replace(back, blockers=first or ())


def beside(record: Record, doubt: Doubt, params: TrafficParams) -> Projection | None:
    """The projection of a truck beside its route, if it can have driven there and is no farther off than a jump."""
    track, pose = record.track, record.pose
    if pose is None or track is None or not track.plan.segments or doubt.low_um >= NOWHERE_UM:
        return None
    limits = Limits(params.pose_jump_threshold_um, params.heading_tol_urad)
    place = track.plan.project(pose, record.at_um, limits)
    if place is None or place.lateral_um > limits.off_route_um:
        return None
    fits = abs(place.heading_error_urad) <= limits.heading_urad
    return place if fits and can_be_at(record, doubt, place.s_on_route_um, params) else None


def _may_try(record: Record, doubt: Doubt) -> bool:
    """Whether the truck has no other problem, and has not jumped or an operator has confirmed its position."""
    trusted = not doubt.torn or doubt.confirmed
    well = record.status is RobotStatus.OK and record.latched is None and not record.paused
    return trusted and well and record.foreign is None and record.stop_code in _REJOINING


def _signed(record: Record, place: Projection, pose: Pose) -> int:
    """Distance of a truck from its line, positive to its left."""
    assert record.track is not None
    there = record.track.plan.pose_at(place.s_on_route_um)
    bearing = angle_urad(float(pose.x_um - there.x_um), float(pose.y_um - there.y_um))
    return place.lateral_um if turn_urad(pose.yaw_urad, bearing) >= 0 else -place.lateral_um


def _area(record: Record, pose: Pose, target_um: int) -> Ints:
    """The rectangle that the envelope covers on a straight line from the truck to a point of its route, at every yaw at
    both ends and of the route in between."""
    assert record.track is not None
    plan, site = record.track.plan, record.site
    end = plan.pose_at(target_um)
    style = site.network.edges[plan.segments[plan.segment_at(target_um)].edge].style
    dx, dy = float(end.x_um - pose.x_um), float(end.y_um - pose.y_um)
    length = hypot(dx, dy)
    along = angle_urad(dx, dy)
    yaw = along if style is MoveStyle.FORWARD else wrapped_urad(along + PI_URAD)
    ways = range(max(0, target_um - ceil_div(int(length), 1)), target_um, _EVERY_UM)
    yaws = [pose.yaw_urad, end.yaw_urad, *(plan.pose_at(s_um).yaw_urad for s_um in ways)]
    turned = max(abs(turn_urad(yaw, other)) for other in yaws)
    own = site.envelope
    far = max(own.front_um, own.rear_um)
    side = own.side_um + ceil_div(far * turned, MILLION)
    longer = ceil_div(own.side_um * turned, MILLION)
    lead, trail = own.lead_um(style) + longer, own.trail_um(style) + longer
    ux, uy = dx / length, dy / length
    middle = (length + lead - trail) / 2
    rect = Rects(
        cx=np.array([pose.x_um + ux * middle]),
        cy=np.array([pose.y_um + uy * middle]),
        ux=np.array([ux]),
        uy=np.array([uy]),
        hx=np.array([(length + lead + trail) / 2]),
        hy=np.array([float(side)]),
    )
    quad: Ints = corners(rect)[0]
    return quad


def _in_the_way(
    record: Record, records: Sequence[Record], ground: Ground, params: TrafficParams, area: Ints
) -> tuple[tuple[int, int], ...]:
    """Other trucks that hold something in an area, or may be in it, each with the first resource it holds there."""
    around = frozenset(ground.discs.meeting(area))
    blockers = []
    for other in records:
        if other is record:
            continue
        there = around.intersection(other.keeps) or _covered(other, ground, params, area)
        if there:
            blockers.append((other.number, min(there)))
    return tuple(blockers)


def _covered(other: Record, ground: Ground, params: TrafficParams, area: Ints) -> frozenset[int]:
    """Resources that a lost truck may cover, if it may be in an area."""
    doubt, pose = other.doubt, other.pose
    if doubt is None or pose is None or other.is_out or is_possible(other, params):
        return frozenset()
    radius = ground.site.envelope.turn_radius_um + params.pose_jump_margin_um
    close = near(area[None], pose.x_um, pose.y_um, float(radius))[0]
    return frozenset(doubt.extra or other.keeps) if close else frozenset()
