"""The rolling target of a truck: a point on its route, never beyond the stop line, and the command that carries it."""

from decimal import Decimal
from functools import lru_cache

from msgspec import UNSET, Struct

from pendula.fleet.contracts.traffic import CommandMode, HoldReason, PoseContract, RollingTargetCommand
from pendula.fleet.model import CONTRACT_VERSION, MoveStyle
from pendula.fleet.network.graph import Edge
from pendula.fleet.routing.route_plan import Pose, RoutePlan
from pendula.fleet.targets.hold_points import pose_form
from pendula.fleet.targets.speed_limits import speed_limit_um_s
from pendula.fleet.trucks.profiles import RobotProfile
from pendula.fleet.units import metres


class Aim(Struct, frozen=True):
    """All that a command says, in whole numbers. `stop_um` is the stop line, `turn_urad` the yaw to turn to."""

    robot_id: str
    seq: int
    now_ms: int
    mode: CommandMode
    hold_reason: HoldReason
    at_um: int
    target_um: int
    stop_um: int
    valid_ms: int
    turn_urad: int | None = None


class Lookahead(Struct, frozen=True):
    ahead_um: int
    advance_um: int
    buffer_um: int


def target_um(at_um: int, stop_um: int, before_um: int, exact: bool, params: Lookahead) -> int:
    """Where the target lies: `ahead_um` before the truck, short of the stop line by the buffer unless the truck acts
    there (`exact`), not back behind the last target, not farther on than one advance, and never behind the truck."""
    buffer = 0 if exact else min(params.buffer_um, max(0, stop_um - at_um))
    last = max(at_um, stop_um - buffer)
    wanted = min(at_um + params.ahead_um, last)
    step = max(before_um, at_um) + params.advance_um
    return max(at_um, min(max(wanted, min(before_um, last)), step))


def command(aim: Aim, plan: RoutePlan, profile: RobotProfile) -> RollingTargetCommand:
    """The command of a truck that has a route with segments."""
    first, last = _segments(plan, aim.at_um, aim.target_um)
    edges = tuple(plan.site.network.edges[plan.segments[k].edge] for k in range(first, last + 1))
    speed = 0
    if aim.mode is CommandMode.GO:
        speed = speed_limit_um_s(profile, edges, aim.stop_um - aim.at_um)
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
        pathSlice=_slice(plan, edges, first, aim.at_um, aim.target_um),
        movestyle=edges[0].style,
        speedLimitMps=metres(speed),
        validForMs=aim.valid_ms,
        targetYaw=UNSET if aim.turn_urad is None else metres(aim.turn_urad),
    )


def standing_command(aim: Aim, pose: Pose, route_id: str = "", revision: int = 0) -> RollingTargetCommand:
    """The command of a truck without a way: it stays where it is."""
    return RollingTargetCommand(
        contractVersion=CONTRACT_VERSION,
        robotId=aim.robot_id,
        seq=aim.seq,
        nowMs=aim.now_ms,
        mode=aim.mode,
        holdReason=aim.hold_reason,
        routeId=route_id,
        revision=revision,
        currentS=metres(aim.at_um),
        targetS=metres(aim.target_um),
        stopLineS=metres(aim.stop_um),
        target=PoseContract(x=metres(pose.x_um), y=metres(pose.y_um), yaw=metres(pose.yaw_urad)),
        pathSlice=(),
        movestyle=MoveStyle.FORWARD,
        speedLimitMps=metres(0),
        validForMs=aim.valid_ms,
    )


def _segments(plan: RoutePlan, at_um: int, target_um: int) -> tuple[int, int]:
    """The segments from a position to the target. A truck in a node that it leaves is on the segment that begins."""
    last = plan.segment_at(target_um)
    first = min(plan.segment_at(at_um + 1) if target_um > at_um else plan.segment_at(at_um), last)
    return first, last


def _slice(
    plan: RoutePlan, edges: tuple[Edge, ...], first: int, at_um: int, target_um: int
) -> tuple[tuple[Decimal, Decimal], ...]:
    points: list[tuple[int, int]] = []
    for place, edge in enumerate(edges, first):
        begin = plan.segments[place].route_s0_um
        piece = edge.path.piece(max(0, at_um - begin), min(edge.path.length_um, target_um - begin))
        points += piece if not points or points[-1] != piece[0] else piece[1:]
    return tuple((_coordinate(x), _coordinate(y)) for x, y in points)


@lru_cache(1 << 16)
def _coordinate(micros: int) -> Decimal:
    """Metres; most points are vertices of edges and are told over and over."""
    return metres(micros)
