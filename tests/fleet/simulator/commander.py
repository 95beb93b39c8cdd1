"""Commands for a lone truck: along its route, with the turns it needs."""

from decimal import Decimal

from msgspec.structs import replace

from pendula.fleet import RoutePlan
from pendula.fleet.contracts import CommandMode, HoldReason, PoseContract, RollingTargetCommand
from pendula.fleet.map.geometry import turn_urad
from pendula.fleet.map.network import truck_yaw
from pendula.fleet.map.trucks import allowed_speed_um_s
from pendula.fleet.model import CONTRACT_VERSION, MoveStyle
from pendula.fleet.simulator.truck import SimulatedTruck
from pendula.fleet.simulator.world import World
from pendula.fleet.units import plain

AHEAD_UM = 3_000_000


def command(
    route: RoutePlan,
    seq: int,
    target_um: int,
    mode: CommandMode = CommandMode.GO,
    yaw_urad: int | None = None,
    limit_um_s: int = 1_200_000,
    valid_ms: int = 700,
) -> RollingTargetCommand:
    where = PoseContract(Decimal(0), Decimal(0), Decimal(0))
    command = RollingTargetCommand(
        contractVersion=CONTRACT_VERSION,
        robotId=route.robot_id,
        seq=seq,
        nowMs=0,
        mode=mode,
        holdReason=HoldReason.NONE,
        routeId=route.route_id,
        revision=route.revision,
        currentS=Decimal(0),
        targetS=Decimal(plain(target_um)),
        stopLineS=Decimal(plain(target_um)),
        target=where,
        pathSlice=(),
        movestyle=MoveStyle.FORWARD,
        speedLimitMps=Decimal(plain(limit_um_s)),
        validForMs=valid_ms,
    )
    return command if yaw_urad is None else replace(command, targetYaw=Decimal(plain(yaw_urad)))


def next_command(route: RoutePlan, truck: SimulatedTruck, seq: int) -> RollingTargetCommand:
    """To the next node in which the truck has to turn, or along the way."""
    if truck.route is not route:
        return command(route, seq, 0)
    s = truck.s_um
    if truck.yaw_urad is not None and s < route.length_um:
        edge = route.site.network.edges[truck.edge]
        ahead = truck_yaw(edge.path.heading(0), edge.style)
        if turn_urad(truck.yaw_urad, ahead):
            return command(route, seq, s, CommandMode.TURN, ahead)
    stops = (segment.route_s0_um + segment.length_um for segment in route.segments if segment.must_stop)
    end = min(stop for stop in stops if stop > s) if s < route.length_um else s
    target = min(s + AHEAD_UM, end)
    return command(route, seq, target, limit_um_s=allowed_speed_um_s(truck.profile, end - s))


def drive(world: World, route: RoutePlan, upto_ms: int, tick_ms: int = 100) -> list[tuple[int, int]]:
    """Send the first truck along a route; its positions and speeds, tick by tick."""
    truck = world.trucks[0]
    world.learn(0, route)
    seen = []
    for now in range(world.now_ms, upto_ms, tick_ms):
        world.send(0, next_command(route, truck, now // tick_ms + 1))
        world.advance(now + tick_ms)
        seen.append((truck.s_um, truck.v_um_s))
    return seen
