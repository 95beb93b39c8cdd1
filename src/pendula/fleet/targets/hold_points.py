"""The hold point of a truck: the largest pivot position it may reach, its place on the map, and its explanation."""

from decimal import Decimal

from msgspec import Struct

from pendula.fleet.contracts.traffic import HoldComponents, HoldPoint, PoseContract
from pendula.fleet.routing.route_plan import Pose, RoutePlan
from pendula.fleet.units import half_up, metres


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
