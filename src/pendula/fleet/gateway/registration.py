"""Which trucks are let in: those that can be stopped."""

from collections.abc import Iterable

from pendula.fleet.trucks.capabilities import Capability, kept_out
from pendula.fleet.trucks.profiles import RobotProfile
from pendula.kernel.errors import InputRefused

__all__ = ["Capability", "RobotRefused", "register"]


class RobotRefused(InputRefused):
    """A type of truck that cannot take part. Facts: `profileId`."""

    code = "robot_refused"


def register(profiles: Iterable[RobotProfile]) -> dict[str, frozenset[Capability]]:
    """What trucks of every type can do. Raises `RobotRefused` for one that nobody can stop (FLT-RTP-13)."""
    return {one.profile_id: _capabilities(one) for one in profiles}


def _capabilities(profile: RobotProfile) -> frozenset[Capability]:
    for _, wrong in kept_out(profile):
        raise RobotRefused(wrong, profileId=profile.profile_id)
    return frozenset(Capability(one) for one in profile.capabilities)
