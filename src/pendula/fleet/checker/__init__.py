"""The independent judge of a run: envelopes and turning discs, from poses alone. It shares no code with what it judges.

rectangles    a truck as a rectangle, with its margins or without the one for errors, at many poses at a time
distances     how far two rectangles are apart, and a rectangle from a point
movements     what a truck did between two looks: close poses for far ones, turns on the spot
judge         every pair of trucks, on both levels, at every instant
closest       how close envelopes came to each other, where nobody but the trucks says where they are
"""

from pendula.fleet.checker.closest import Closest
from pendula.fleet.checker.judge import Disc, Judge, Level, Violation
from pendula.fleet.checker.rectangles import Poses

__all__ = ["Closest", "Disc", "Judge", "Level", "Poses", "Violation"]
