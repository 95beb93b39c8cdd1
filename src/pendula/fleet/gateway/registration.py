"""Which trucks are let in: those that can be stopped."""

from collections.abc import Iterable
from enum import StrEnum

from pendula.fleet.trucks.profiles import RobotProfile
from pendula.kernel.errors import InputRefused


class Capability(StrEnum):
    STOP = "stop"
    PAUSE = "pause"
    RESUME = "resume"
    TURN_IN_PLACE = "turnInPlace"
    SPEED_LIMIT = "speedLimit"
    ACK_SEQ = "ackSeq"
    PATH_SLICE = "pathSlice"


class RobotRefused(InputRefused):
    """A type of truck that cannot take part. Facts: `profileId`."""

    code = "robot_refused"


def register(profiles: Iterable[RobotProfile]) -> dict[str, frozenset[Capability]]:
    """What trucks of every type can do. Raises `RobotRefused` for one that nobody can stop (FLT-RTP-13)."""
    return {one.profile_id: _capabilities(one) for one in profiles}


def _capabilities(profile: RobotProfile) -> frozenset[Capability]:
    unknown = sorted(set(profile.capabilities) - set(Capability))
    if unknown:
        message = f"{profile.profile_id} names {', '.join(unknown)}, which no gateway knows"
        raise RobotRefused(message, profileId=profile.profile_id)
    found = frozenset(Capability(one) for one in profile.capabilities)
    if not found & {Capability.STOP, Capability.PAUSE}:
        message = f"{profile.profile_id} can neither be stopped nor paused: no truck without a way to stop is let in"
        raise RobotRefused(message, profileId=profile.profile_id)
    return found
