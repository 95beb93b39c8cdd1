"""Progress of a truck: one value that only grows, to extend reservations, and a lower bound, to release them.

Noise neither moves the first back nor the second ahead. A change that the truck cannot have driven is a pose jump.
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
        """`sReleaseM`: the position that the truck has certainly passed."""
        return min(self.raw_um) - uncertainty_um

    def shifted(self, back_um: int) -> "Progress":
        """The same progress on a route that begins `back_um` later."""
        return Progress(self.at_ms, self.extend_um - back_um, tuple(raw - back_um for raw in self.raw_um))


class PoseJump(Struct, frozen=True):
    """A sample that moved farther than possible."""

    moved_um: int
    possible_um: int


def started(at_ms: int, s_um: int) -> Progress:
    return Progress(at_ms, s_um, (s_um,))


def advanced(
    before: Progress, at_ms: int, s_um: int, profile: RobotProfile, params: ProgressParams = USUAL
) -> Progress | PoseJump:
    """Progress after the next sample, or a `PoseJump` that leaves the state unchanged."""
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
    """The largest difference of two reports of a healthy truck beyond the distance driven between their stamps: twice
    the localization error, the tracking error, and the distance driven within the stamp jitter."""
    jitter = profile.v_max_um_s * profile.stamp_jitter_ms // 1000
    return jitter + 2 * profile.localization_error.value_um + profile.tracking_error.value_um


def uncertainty_um(profile: RobotProfile, v_um_s: int, age_ms: int) -> int:
    """`sUncertaintyM`: the localization error and the distance the truck may have driven since its report."""
    return profile.localization_error.value_um + v_um_s * max(0, age_ms) // 1000
