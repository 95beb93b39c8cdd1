"""Capabilities of a truck or its gateway, and why a truck is not admitted."""

from collections.abc import Iterable, Iterator
from enum import StrEnum

from pendula.fleet.model import Code, Finding, Severity
from pendula.fleet.trucks.profiles import RobotProfile
from pendula.kernel.wording import suggestion


class Capability(StrEnum):
    STOP = "stop"
    PAUSE = "pause"
    RESUME = "resume"
    TURN_IN_PLACE = "turnInPlace"
    SPEED_LIMIT = "speedLimit"
    ACK_SEQ = "ackSeq"
    PATH_SLICE = "pathSlice"


def kept_out(profile: RobotProfile) -> Iterator[tuple[Code, str]]:
    """A sentence for each reason why no truck of a type is admitted (FLT-RTP-13), with the finding code."""
    known = tuple(Capability)
    unknown = sorted(set(profile.capabilities) - set(known))
    if unknown:
        names = ", ".join(f"{name}{suggestion(name, known)}" for name in unknown)
        text = f"{profile.profile_id} names {names}, which no gateway knows; known are {', '.join(known)}"
        yield Code.MAP_PARSE_ERROR, text
    if not {*profile.capabilities} & {Capability.STOP, Capability.PAUSE}:
        text = f"{profile.profile_id} can neither be stopped nor paused: no truck without a way to stop is let in"
        yield Code.PROFILE_MISSING_FIELD, text


def capability_findings(profiles: Iterable[RobotProfile], severity: Severity) -> list[Finding]:
    """The same as findings: a map can be compiled for such trucks, but a fleet with them does not start."""
    remedy = "correct the capabilities of the profile"
    return [
        Finding(code, severity, text, {"profileId": profile.profile_id}, remedy)
        for profile in profiles
        for code, text in kept_out(profile)
    ]
