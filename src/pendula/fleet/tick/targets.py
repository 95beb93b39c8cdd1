"""Where a truck is sent: the hold point it may reach, its speed, and its rolling target with the command."""

from collections.abc import Sequence
from decimal import Decimal
from functools import lru_cache
from typing import overload

from msgspec import UNSET, Struct

from pendula.fleet.contracts import (
    CommandMode,
    HoldComponents,
    HoldPoint,
    HoldReason,
    PoseContract,
    RollingTargetCommand,
)
from pendula.fleet.map.network import Edge
from pendula.fleet.map.routes import Pose, RoutePlan
from pendula.fleet.map.trucks import RobotProfile, allowed_speed_um_s
from pendula.fleet.model import CONTRACT_VERSION, MoveStyle
from pendula.fleet.units import half_up, metres

# Command numbers: strictly increasing for each truck; an older command never replaces a newer one.


def following(last: int) -> int:
    """The number of the next command."""
    return last + 1


def acknowledged(seq: int, last_ack: int) -> bool:
    """Whether a truck has acknowledged a command, or a later one that replaced it."""
    return last_ack >= seq


def newer(seq: int, last: int) -> bool:
    """Whether a gateway accepts a command; a repeated one changes nothing."""
    return seq > last


# How fast a truck may go and still stop in time, limited by its profile and its edges.

# Commands contain speeds in whole millimetres a second.
_STEP_UM_S = 1_000


def speed_limit_um_s(profile: RobotProfile, edges: Sequence[Edge], left_um: int) -> int:
    """The least of `vMax`, the limits of the edges up to the target, and the speed from which the truck stops within
    `left_um`; the last in whole millimetres a second, half up."""
    limits = [edge.max_speed_um_s for edge in edges if edge.max_speed_um_s is not None]
    return min([half_up(allowed_speed_um_s(profile, left_um), _STEP_UM_S) * _STEP_UM_S, *limits])


# The hold point of a truck: the largest pivot position it may reach, its place on the map, and its explanation.


class Components(Struct, frozen=True):
    """Limits before rounding to cells, None if nothing limits: the end of a grant never lies beyond them."""

    grants_um: int
    following_um: int | None = None
    node_um: int | None = None
    section_um: int | None = None

    def form(self) -> HoldComponents:
        return HoldComponents(
            grantsS=metres(self.grants_um),
            followingS=_metres(self.following_um),
            nodeS=_metres(self.node_um),
            criticalSectionS=_metres(self.section_um),
        )


def steady_um(before_um: int, grant_um: int, reached: bool, hysteresis_um: int) -> int:
    """The hold point to send: it follows the end of the grant forward in steps of the hysteresis at least, at once when
    a goal or node is reached, and back at once."""
    if grant_um <= before_um or reached or grant_um - before_um >= hysteresis_um:
        return grant_um
    return before_um


def pose_form(pose: Pose) -> PoseContract:
    return PoseContract(x=metres(pose.x_um), y=metres(pose.y_um), yaw=metres(pose.yaw_urad))


def hold_point(plan: RoutePlan, s_um: int, node_awaited: int | None = None) -> HoldPoint:
    """A position of a route in the form of the contract. It is a node entry if it lies in the node, or if the truck
    waits for the lock of the node ahead (`node_awaited`)."""
    place = plan.segment_at(s_um)
    segment = plan.segments[place]
    on = s_um - segment.route_s0_um
    edge = plan.site.network.edges[segment.edge]
    return HoldPoint(
        kind="AT_NODE_ENTRY" if on == segment.length_um or edge.end == node_awaited else "ON_EDGE",
        edgeKey=edge.key,
        sM=metres(on),
        world=pose_form(plan.pose_at(s_um)),
        sOnRouteM=metres(s_um),
    )


def _metres(value_um: int | None) -> Decimal | None:
    # Explanations are in whole millimetres.
    return None if value_um is None else metres(half_up(value_um, 1_000) * 1_000)


# The rolling target of a truck: a point on its route, never beyond the stop line, and its command.
# A tick uses integers. The command in the form of the contract, with decimals and a path slice, costs more than the
# decision, so it is built only when read.

# A point in metres.
PointM = tuple[Decimal, Decimal]


class Aim(Struct, frozen=True):
    """A command in integers, as decided, compared and checked. `stop_um`: the stop line; `turn_urad`: the yaw to turn
    to; a truck without a route stays at its `pose`."""

    robot_id: str
    seq: int
    now_ms: int
    mode: CommandMode
    hold_reason: HoldReason
    at_um: int
    target_um: int
    stop_um: int
    valid_ms: int
    plan: RoutePlan | None
    pose: Pose | None = None
    speed_um_s: int = 0
    turn_urad: int | None = None
    # Whether it drives straight to the target from its pose beside its route.
    straight: bool = False

    def command(self) -> RollingTargetCommand:
        """The command in the form of the contract, built on demand."""
        if self.plan is None or not self.plan.segments:
            return _standing_command(self)
        return _command(self, self.plan)


class CommandBatch(Sequence[RollingTargetCommand]):
    """The commands of a tick, each built when it is read."""

    def __init__(self, aims: tuple[Aim, ...]) -> None:
        self.aims = aims

    def __len__(self) -> int:
        return len(self.aims)

    @overload
    def __getitem__(self, at: int) -> RollingTargetCommand: ...

    @overload
    def __getitem__(self, at: slice) -> tuple[RollingTargetCommand, ...]: ...

    def __getitem__(self, at: int | slice) -> RollingTargetCommand | tuple[RollingTargetCommand, ...]:
        return tuple(map(self.form, self.aims[at])) if isinstance(at, slice) else self.form(self.aims[at])

    def form(self, aim: Aim) -> RollingTargetCommand:
        return aim.command()


class Lookahead(Struct, frozen=True):
    ahead_um: int
    advance_um: int
    buffer_um: int


def target_um(at_um: int, stop_um: int, before_um: int, exact: bool, params: Lookahead) -> int:
    """The target: `ahead_um` before the truck, short of the stop line by the buffer unless the truck acts there
    (`exact`), not behind the last target, at most one advance farther, and never behind the truck."""
    if stop_um <= at_um:
        return at_um
    # From here on `last` is at or beyond the truck.
    last = stop_um if exact else max(at_um, stop_um - params.buffer_um)
    if at_um + params.ahead_um >= last:
        wanted = last
    else:
        wanted = max(at_um + params.ahead_um, min(before_um, last))
    step = (before_um if before_um > at_um else at_um) + params.advance_um
    return wanted if wanted < step else step


def limit_um_s(plan: RoutePlan, profile: RobotProfile, at_um: int, target_um: int, stop_um: int) -> int:
    """How fast a truck may go from a position to its target and still stop before its stop line."""
    first, last = _segments(plan, at_um, target_um)
    edges = [plan.site.network.edges[one.edge] for one in plan.segments[first : last + 1]]
    return speed_limit_um_s(profile, edges, stop_um - at_um)


def _command(aim: Aim, plan: RoutePlan) -> RollingTargetCommand:
    first, last = _segments(plan, aim.at_um, aim.target_um)
    return RollingTargetCommand(
        contractVersion=CONTRACT_VERSION,
        robotId=aim.robot_id,
        seq=aim.seq,
        nowMs=aim.now_ms,
        mode=aim.mode,
        holdReason=aim.hold_reason,
        routeId=plan.route_id,
        revision=plan.revision,
        currentS=metres(aim.at_um),
        targetS=metres(aim.target_um),
        stopLineS=metres(aim.stop_um),
        target=pose_form(plan.pose_at(aim.target_um)),
        pathSlice=_straight(aim, plan) if aim.straight else _slice(plan, first, last, aim.at_um, aim.target_um),
        movestyle=_style(plan, first),
        speedLimitMps=metres(aim.speed_um_s),
        validForMs=aim.valid_ms,
        targetYaw=UNSET if aim.turn_urad is None else metres(aim.turn_urad),
    )


def _standing_command(aim: Aim) -> RollingTargetCommand:
    """The command of a truck without a route: it stays where it is."""
    assert aim.pose is not None, f"{aim.robot_id} has no route and no pose"
    return RollingTargetCommand(
        contractVersion=CONTRACT_VERSION,
        robotId=aim.robot_id,
        seq=aim.seq,
        nowMs=aim.now_ms,
        mode=aim.mode,
        holdReason=aim.hold_reason,
        routeId="" if aim.plan is None else aim.plan.route_id,
        revision=0 if aim.plan is None else aim.plan.revision,
        currentS=metres(aim.at_um),
        targetS=metres(aim.target_um),
        stopLineS=metres(aim.stop_um),
        target=pose_form(aim.pose),
        pathSlice=(),
        movestyle=MoveStyle.FORWARD,
        speedLimitMps=metres(0),
        validForMs=aim.valid_ms,
    )


def _segments(plan: RoutePlan, at_um: int, target_um: int) -> tuple[int, int]:
    """The segments from a position to the target. A truck that leaves a node is on the segment that begins; so is one
    reported shortly before a node where the driving style changes, since no target lies beyond before it has acted
    there (FLT-RTP-4)."""
    last = plan.segment_at(target_um)
    first = min(plan.segment_at(at_um + 1) if target_um > at_um else plan.segment_at(at_um), last)
    while first < last and _style(plan, first) is not _style(plan, last):
        first += 1
    return first, last


def _style(plan: RoutePlan, segment: int) -> MoveStyle:
    return plan.site.network.edges[plan.segments[segment].edge].style


def _straight(aim: Aim, plan: RoutePlan) -> tuple[PointM, ...]:
    assert aim.pose is not None
    end = plan.pose_at(aim.target_um)
    return _point_m((aim.pose.x_um, aim.pose.y_um)), _point_m((end.x_um, end.y_um))


def _slice(plan: RoutePlan, first: int, last: int, at_um: int, target_um: int) -> tuple[PointM, ...]:
    """The path from a position to the target, as a line in metres; a vertex shared by two edges appears once."""
    points: list[PointM] = []
    for segment in plan.segments[first : last + 1]:
        path = plan.site.network.edges[segment.edge].path
        low, high = max(0, at_um - segment.route_s0_um), min(segment.length_um, target_um - segment.route_s0_um)
        begin = _point_m(path.point(low))
        if not points or points[-1] != begin:
            points.append(begin)
        points += plan.site.vertices_m(segment.edge)[path.vertices_between(low, high)]
        points.append(_point_m(path.point(high)))
    return tuple(points)


def _point_m(point: tuple[int, int]) -> PointM:
    return _coordinate(point[0]), _coordinate(point[1])


@lru_cache(1 << 16)
def _coordinate(micros: int) -> Decimal:
    """Metres, cached: most points are vertices of edges and appear again and again."""
    return metres(micros)
