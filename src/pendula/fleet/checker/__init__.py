"""Independent collision checker: envelopes and turning discs, from poses alone. It shares no code with its subject."""

from pendula.fleet.checker.judge import Closest, Disc, Judge, Level, Violation
from pendula.fleet.checker.rectangles import Poses

__all__ = ["Closest", "Disc", "Judge", "Level", "Poses", "Violation"]
