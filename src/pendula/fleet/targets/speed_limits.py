"""How fast a truck may go and still stop in time, limited by its profile and its edges."""

from collections.abc import Sequence

from pendula.fleet.network.graph import Edge
from pendula.fleet.trucks.envelope import allowed_speed_um_s
from pendula.fleet.trucks.profiles import RobotProfile
from pendula.fleet.units import half_up

# Commands contain speeds in whole millimetres a second.
_STEP_UM_S = 1_000


def speed_limit_um_s(profile: RobotProfile, edges: Sequence[Edge], left_um: int) -> int:
    """The least of `vMax`, the limits of the edges up to the target, and the speed from which the truck stops within
    `left_um`; the last in whole millimetres a second, half up."""
    limits = [edge.max_speed_um_s for edge in edges if edge.max_speed_um_s is not None]
    return min([half_up(allowed_speed_um_s(profile, left_um), _STEP_UM_S) * _STEP_UM_S, *limits])
