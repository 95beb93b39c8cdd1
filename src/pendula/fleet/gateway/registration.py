"""Admission of truck types: only those that can be stopped."""

from collections.abc import Iterable

from pendula.fleet.trucks.capabilities import Capability, kept_out
from pendula.fleet.trucks.profiles import RobotProfile
from pendula.kernel.errors import InputRefused

__all__ = ["Capability", "RobotRefused", "register"]


class RobotRefused(InputRefused):
    """A truck type that is not admitted. Facts: `profileId`."""

    code = "robot_refused"


def register(profiles: Iterable[RobotProfile]) -> dict[str, frozenset[Capability]]:
    """The capabilities of each type. Raises `RobotRefused` for one that cannot be stopped (FLT-RTP-13)."""
    return {profile.profile_id: _capabilities(profile) for profile in profiles}


def _capabilities(profile: RobotProfile) -> frozenset[Capability]:
    for _, problem in kept_out(profile):
        raise RobotRefused(problem, profileId=profile.profile_id)
    return frozenset(Capability(name) for name in profile.capabilities)
