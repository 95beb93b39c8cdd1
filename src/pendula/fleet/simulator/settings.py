"""Settings of a simulated hall: quality of positioning, tracking and radio, and rates of faults.

Errors are in thousandths of the bounds in the profile of a truck: 1000 uses the whole bound.
"""

from msgspec import Struct

from pendula.fleet.simulator.faults import Fault


class FaultRate(Struct, frozen=True):
    """The rate of a random fault, for every truck."""

    fault: Fault
    per_hour: int


class WorldSettings(Struct, frozen=True):
    """Times in milliseconds; a latency is the range to draw from for every message, a loss is in millionths."""

    step_ms: int = 50
    telemetry_period_ms: int = 100
    telemetry_latency_ms: tuple[int, int] = (10, 40)
    telemetry_loss_ppm: int = 0
    command_latency_ms: tuple[int, int] = (10, 60)
    command_loss_ppm: int = 0
    localization_permille: int = 1000
    tracking_permille: int = 1000
    # Error of the yaw; its bound moves no corner by more than `extraMarginM`, plus `headingErrorRad`.
    heading_permille: int = 1000
    stamp_permille: int = 1000
    # Deviation of the duration of loading and unloading.
    operation_permille: int = 0
    faults: tuple[FaultRate, ...] = ()


STILL = WorldSettings(
    telemetry_latency_ms=(0, 0),
    command_latency_ms=(0, 0),
    localization_permille=0,
    tracking_permille=0,
    heading_permille=0,
    stamp_permille=0,
)
