"""The parameters of traffic, with defaults, ranges and rules.

Lengths are micrometres, times milliseconds. `faults` lists every broken rule; traffic does not start with any.
"""

from collections.abc import Mapping, Sequence
from enum import StrEnum

from msgspec import Struct, structs

from pendula.fleet.map.trucks import RobotProfile, stop_distance_um
from pendula.fleet.model import CompileParams
from pendula.fleet.units import MILLION, ceil_div, plain
from pendula.kernel.canonical import Json, digest


class NodeLockPolicy(StrEnum):
    """Which nodes of a route are locked: those where a truck turns, stops or changes its style, or every passed one."""

    TURNING = "turning"
    EVERY = "every"


class TrafficParams(Struct, frozen=True):
    tick_period_ms: int = 100
    node_lock_policy: NodeLockPolicy = NodeLockPolicy.TURNING
    refuge: bool = True
    starve_ms: int = 60_000
    max_admissions_per_tick: int = 2
    # Most branches of one search for a witness, and of all searches in a tick.
    search_nodes: int = 6
    search_nodes_per_tick: int = 48
    # Most ticks until the first truck of the stored witness gets its unit, once that is free (I-13).
    witness_grant_ticks: int = 5
    lookahead_um: int = 8_000_000
    lookback_um: int = 3_000_000
    rtp_lookahead_um: int = 3_000_000
    rtp_max_advance_um: int = 1_500_000
    safety_buffer_um: int = 100_000
    stop_line_tol_um: int = 100_000
    arrive_tol_um: int = 100_000
    rtp_timeout_ms: int = 700
    fairness_step_ms: int = 1_000
    fairness_cap_ms: int = 30_000
    aged_rank_cap: int = 30
    dir_switch_max_wait_ms: int = 20_000
    edge_dir_hold_ms: int = 1_000
    min_hold_ms: int = 2_000
    cooldown_ms: int = 500
    hold_hysteresis_um: int = 200_000
    deadlock_detect_ms: int = 5_000
    progress_window: int = 5
    progress_regress_um: int = 300_000
    node_snap_um: int = 150_000
    # None: the inflation of each truck.
    off_route_um: int | None = None
    heading_tol_urad: int = 500_000
    turn_tol_urad: int = 50_000
    max_status_age_ms: int = 500
    robot_offline_ms: int = 2_000
    ack_timeout_ms: int = 1_500
    pose_jump_threshold_um: int = 500_000
    pose_jump_margin_um: int = 200_000
    relocalize_stable_ms: int = 2_000
    stuck_timeout_ms: int = 5_000
    # In thousandths.
    min_confidence_milli: int = 500
    replan_cooldown_ms: int = 10_000
    reroute_gain_ms: int = 5_000
    wait_warn_ms: int = 15_000
    wait_reroute_ms: int = 30_000
    wait_alert_ms: int = 90_000

    def digest(self) -> str:
        """`paramsHash`."""
        forms: dict[str, Json] = {name: _form(value) for name, value in structs.asdict(self).items()}
        return "sha256:" + digest(forms)


def _form(value: object) -> Json:
    return value.value if isinstance(value, NodeLockPolicy) else value  # type: ignore[return-value]


# Names that do not follow from the field name.
_NAMES: Mapping[str, str] = {
    "progress_regress_um": "progressRegressTolM",
    "off_route_um": "offRouteThresholdM",
    "heading_tol_urad": "snapHeadingTolRad",
}
_UNITS = {"um": "M", "urad": "Rad", "ms": "Ms"}


def contract_name(field: str) -> str:
    """The name of a parameter in files."""
    if field in _NAMES:
        return _NAMES[field]
    first, *others = field.split("_")
    return first + "".join(_UNITS.get(word, word.capitalize()) for word in others)


def contract_value(field: str, value: Json) -> Json:
    """The value of a parameter in files: lengths in metres, angles in radians."""
    return plain(value) if isinstance(value, int) and field.endswith(("_um", "_urad")) else value


# In the units of the fields; others begin at 0.
RANGES = {
    "tick_period_ms": (100, 200),
    "max_admissions_per_tick": (1, 1_000),
    "search_nodes": (0, 200),
    "witness_grant_ticks": (2, 100),
    "rtp_lookahead_um": (2_000_000, 5_000_000),
    "safety_buffer_um": (0, 500_000),
    "stop_line_tol_um": (0, 500_000),
    "arrive_tol_um": (0, 500_000),
    "robot_offline_ms": (500, 5_000),
    "pose_jump_threshold_um": (300_000, 2_000_000),
    "relocalize_stable_ms": (1_000, 600_000),
    "stuck_timeout_ms": (2_000, 10_000),
    "min_confidence_milli": (0, 1_000),
    "fairness_step_ms": (1, 600_000),
    "progress_window": (1, 100),
    "heading_tol_urad": (1, 3_141_593),
    "rtp_max_advance_um": (1, 100_000_000),
}
# The rank of TASK: an aged rank below it would let classes outrank each other forever.
_LEAST_CAP = 20


def faults(params: TrafficParams, profiles: Sequence[RobotProfile], compiled: CompileParams) -> tuple[str, ...]:
    """Every broken rule, as `CODE: sentence`, in a fixed order."""
    problems = [
        f"PARAMETER_OUT_OF_RANGE: {contract_name(name)} is {value!r}, allowed are whole numbers from 0"
        for name, value in structs.asdict(params).items()
        if not isinstance(value, NodeLockPolicy | bool)
        and not (name == "off_route_um" and value is None)
        and (type(value) is not int or value < 0)
    ]
    if problems:
        # Values that are not numbers cannot be compared.
        return tuple(problems)
    for name, (low, high) in RANGES.items():
        if not low <= getattr(params, name) <= high:
            value, least, most = (contract_value(name, bound) for bound in (getattr(params, name), low, high))
            problems.append(f"PARAMETER_OUT_OF_RANGE: {contract_name(name)} is {value}, allowed are {least} to {most}")
    problems += _between(params)
    for profile in profiles:
        problems += _for_profile(params, profile, compiled)
    return tuple(problems)


def _between(params: TrafficParams) -> list[str]:
    def named(field: str) -> str:
        return f"{contract_name(field)} ({contract_value(field, getattr(params, field))})"

    two_ticks = f"two ticks of {named('tick_period_ms')}"
    waits = ("wait_warn_ms", "wait_reroute_ms", "wait_alert_ms")
    rules = (
        (
            params.starve_ms > params.fairness_cap_ms,
            f"{named('starve_ms')} must be longer than {named('fairness_cap_ms')}",
        ),
        (
            params.aged_rank_cap >= _LEAST_CAP,
            f"{named('aged_rank_cap')} must be at least {_LEAST_CAP}, the rank of TASK",
        ),
        (
            params.max_status_age_ms < params.robot_offline_ms,
            f"{named('max_status_age_ms')} must be shorter than {named('robot_offline_ms')}",
        ),
        (
            params.rtp_timeout_ms >= 2 * params.tick_period_ms,
            f"{named('rtp_timeout_ms')} must last at least {two_ticks}",
        ),
        (
            params.ack_timeout_ms >= 2 * params.tick_period_ms,
            f"{named('ack_timeout_ms')} must last at least {two_ticks}",
        ),
        (
            params.wait_warn_ms < params.wait_reroute_ms < params.wait_alert_ms,
            f"{', '.join(map(named, waits))} must each be longer than the one before",
        ),
    )
    return [f"PARAMETERS_CONTRADICT: {text}" for holds, text in rules if not holds]


def _for_profile(params: TrafficParams, profile: RobotProfile, compiled: CompileParams) -> list[str]:
    problems = []
    tick = ceil_div(profile.v_max_um_s * params.tick_period_ms * 1000, MILLION)
    need = params.rtp_lookahead_um + stop_distance_um(profile, profile.v_max_um_s) + compiled.cell_len_um + tick
    if params.lookahead_um < need:
        problems.append(
            f"LOOKAHEAD_TOO_SHORT: lookaheadM is {plain(params.lookahead_um)}, {profile.profile_id} needs {plain(need)}"
        )
    least = profile.localization_error.value_um + 200_000
    least += profile.v_max_um_s * params.max_status_age_ms // 1000
    if params.lookback_um < least:
        problems.append(
            f"LOOKBACK_TOO_SHORT: lookbackM is {plain(params.lookback_um)}, {profile.profile_id} needs {plain(least)}"
        )
    if params.stop_line_tol_um < profile.localization_error.value_um:
        # Otherwise a truck that keeps its stop line would be seen beyond it and be stopped.
        problems.append(
            f"STOP_LINE_TOLERANCE: stopLineTolM is {plain(params.stop_line_tol_um)}, the place of {profile.profile_id} "
            f"is known to {plain(profile.localization_error.value_um)} only"
        )
    apart = 2 * profile.localization_error.value_um + profile.tracking_error.value_um
    if params.progress_regress_um < apart:
        # Two reports of a standing truck may differ by this much: it would be stopped for driving back.
        problems.append(
            f"PROGRESS_TOLERANCE: progressRegressTolM is {plain(params.progress_regress_um)}, two reports of "
            f"{profile.profile_id} may be {plain(apart)} apart"
        )
    low = profile.localization_error.value_um + profile.tracking_error.value_um
    given = off_route_um(profile, params)
    if not low <= given <= profile.inflation_um:
        # Below it a healthy truck would be stopped, above it one could leave its protected area unnoticed.
        problems.append(
            f"OFF_ROUTE_THRESHOLD: offRouteThresholdM is {plain(given)}, the errors of {profile.profile_id} allow "
            f"{plain(low)} to {plain(profile.inflation_um)}: give one of these in params, or none"
        )
    return problems


def off_route_um(profile: RobotProfile, params: TrafficParams) -> int:
    """Farther beside its route than this a truck is off route: it might leave the area that its cells protect."""
    return profile.inflation_um if params.off_route_um is None else params.off_route_um


def node_reach_um(profile: RobotProfile, params: TrafficParams) -> int:
    """A truck that reports a position farther from a node is not in it: it stops within the arrival tolerance, plus
    tracking and localization error."""
    errors = profile.localization_error.value_um + profile.tracking_error.value_um
    return max(2 * params.node_snap_um, params.arrive_tol_um + errors)


def spelled_out(params: TrafficParams, profiles: Sequence[RobotProfile]) -> TrafficParams:
    """The parameters, with the numbers that all trucks have in common filled in."""
    common = {off_route_um(profile, params) for profile in profiles}
    return structs.replace(params, off_route_um=common.pop()) if len(common) == 1 else params


def short_um(profile: RobotProfile, params: TrafficParams) -> int:
    """How far the release bound of an arrived truck may lie behind its position: the arrival tolerance, plus errors of
    its reports. A truck that only waits also stops short by the buffer."""
    return profile.localization_error.value_um + params.arrive_tol_um


def asked_um(profile: RobotProfile, params: TrafficParams) -> int:
    """How far ahead a truck requests units: what its target and speed can use in this tick, never beyond
    `lookahead_um`. What it reserves beyond that gives way to every truck that needs the place."""
    tick = ceil_div(profile.v_max_um_s * params.tick_period_ms * 1000, MILLION)
    used = max(params.rtp_lookahead_um, stop_distance_um(profile, profile.v_max_um_s))
    return min(params.lookahead_um, used + params.safety_buffer_um + params.hold_hysteresis_um + tick)
