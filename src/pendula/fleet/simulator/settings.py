"""How good positioning, tracking and radio are in a simulated hall, and how much goes wrong in it.

Shares are thousandths of what the profile of a truck allows: 1000 uses up its errors to the last micrometre.
"""

from msgspec import Struct

from pendula.fleet.simulator.faults import Fault


class FaultRate(Struct, frozen=True):
    """How often a fault happens to every truck by chance."""

    fault: Fault
    per_hour: int


class WorldSettings(Struct, frozen=True):
    """Times in milliseconds; a latency is drawn anew for every message, a loss in millionths."""

    step_ms: int = 50
    telemetry_period_ms: int = 100
    telemetry_latency_ms: tuple[int, int] = (10, 40)
    telemetry_loss_ppm: int = 0
    command_latency_ms: tuple[int, int] = (10, 60)
    command_loss_ppm: int = 0
    localization_permille: int = 1000
    tracking_permille: int = 1000
    # Yaw that differs from the path by what the margin for everything else allows at the corners.
    heading_permille: int = 1000
    stamp_permille: int = 1000
    # How much longer or shorter than told a loading takes.
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
