"""How far a truck has come: one value that only grows, to extend what it holds, and a lower bound, to release it.

Noise neither pulls the first back nor lets the second run ahead. A change that the truck cannot have made is no
progress but a jump.
"""

from msgspec import Struct

from pendula.fleet.trucks.profiles import RobotProfile


class ProgressParams(Struct, frozen=True):
    window: int = 5
    regress_um: int = 300_000
    jump_um: int = 500_000


USUAL = ProgressParams()


class Progress(Struct, frozen=True, gc=False):
    """The state of the estimator: `extend_um` is monotone, `raw_um` are the last samples, newest last."""

    at_ms: int
    extend_um: int
    raw_um: tuple[int, ...]

    def release_um(self, uncertainty_um: int) -> int:
        """`sReleaseM`: what the truck has passed for certain."""
        return min(self.raw_um) - uncertainty_um

    def shifted(self, back_um: int) -> "Progress":
        """The same progress along a route that begins `back_um` further on."""
        return Progress(self.at_ms, self.extend_um - back_um, tuple(raw - back_um for raw in self.raw_um))


class PoseJump(Struct, frozen=True):
    """A sample that is no progress: by how much, and how much was possible."""

    moved_um: int
    possible_um: int


def started(at_ms: int, s_um: int) -> Progress:
    return Progress(at_ms, s_um, (s_um,))


def advanced(
    before: Progress, at_ms: int, s_um: int, profile: RobotProfile, params: ProgressParams = USUAL
) -> Progress | PoseJump:
    """The next sample. A jump leaves the state as it was."""
    passed_ms = max(0, at_ms - before.at_ms)
    driven = profile.v_max_um_s * passed_ms // 1000
    error = profile.localization_error.value_um
    moved = s_um - before.raw_um[-1]
    possible = max(params.jump_um, driven + apart_um(profile))
    extend = before.extend_um
    if s_um < extend - params.regress_um or abs(moved) > possible:
        return PoseJump(moved, possible)
    if s_um > extend:
        extend = min(s_um, extend + driven + error)
    return Progress(at_ms, extend, (*before.raw_um, s_um)[-params.window :])


def apart_um(profile: RobotProfile) -> int:
    """By how much two reports of a healthy truck may differ beside what it drives between their stamps: both places may
    be wrong, it may be off its line, and it drives on while the stamps jitter."""
    jitter = profile.v_max_um_s * profile.stamp_jitter_ms // 1000
    return jitter + 2 * profile.localization_error.value_um + profile.tracking_error.value_um


def uncertainty_um(profile: RobotProfile, v_um_s: int, age_ms: int) -> int:
    """`sUncertaintyM`: the localization error and what the truck may have driven since it spoke."""
    return profile.localization_error.value_um + v_um_s * max(0, age_ms) // 1000
