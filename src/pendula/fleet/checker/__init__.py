"""Independent collision checker: envelopes and turning discs, from poses alone. It shares no code with what it checks.

rectangles    a truck as a rectangle, with all margins or without the error margin, at many poses at a time
distances     distance of two rectangles, and of a rectangle from a point
movements     movement between two samples: interpolated poses, turns on the spot
judge         every pair of trucks, on both levels, at every instant
closest       the least distance of two envelopes, for fleets that report only their own poses
"""

from pendula.fleet.checker.closest import Closest
from pendula.fleet.checker.judge import Disc, Judge, Level, Violation
from pendula.fleet.checker.rectangles import Poses

__all__ = ["Closest", "Disc", "Judge", "Level", "Poses", "Violation"]
