"""What a truck can do, or its gateway for it, and what keeps one from being let in."""

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
    """A sentence for each reason why no truck of a type is let in (FLT-RTP-13), and what the validator calls it."""
    known = tuple(Capability)
    unknown = sorted(set(profile.capabilities) - set(known))
    if unknown:
        names = ", ".join(f"{one}{suggestion(one, known)}" for one in unknown)
        text = f"{profile.profile_id} names {names}, which no gateway knows; known are {', '.join(known)}"
        yield Code.MAP_PARSE_ERROR, text
    if not {*profile.capabilities} & {Capability.STOP, Capability.PAUSE}:
        text = f"{profile.profile_id} can neither be stopped nor paused: no truck without a way to stop is let in"
        yield Code.PROFILE_MISSING_FIELD, text


def capability_findings(profiles: Iterable[RobotProfile], severity: Severity) -> list[Finding]:
    """The same as findings: a map can be compiled for such trucks, but no fleet of them begins."""
    remedy = "correct the capabilities of the profile"
    return [
        Finding(code, severity, text, {"profileId": one.profile_id}, remedy)
        for one in profiles
        for code, text in kept_out(one)
    ]
