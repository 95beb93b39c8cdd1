"""Studies over many runs: measure, distribute over processes, tabulate, compare, plot.

sweeps        every combination of settings with every seed: one run and one row each
variations    variations of a scenario: limits, rates, any value at a path
comparison    two settings over many seeds, paired by seed: medians, intervals, a verdict, curves
figures       figures of one run, counted exactly; many runs, distributed; as columns, and their medians
series        all metrics of one run, tick by tick
chart         a comparison, a sweep or a run as an SVG
"""

from pendula.credit.studies.comparison import compare
from pendula.credit.studies.series import Series
from pendula.credit.studies.sweeps import sweep

__all__ = [
    "Series",  # all metrics of one run
    "compare",  # two settings over many seeds
    "sweep",  # every combination of settings with every seed
]
