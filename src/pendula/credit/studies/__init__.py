"""Many runs: counted, spread over processes, put in tables, compared, drawn.

sweeps        every combination of some settings with every seed: one run each, one row each
variations    other scenarios out of one: limits, rates, anything at a path
comparison    two settings over many seeds, paired by seed: medians, intervals, a verdict, curves
figures       what one run comes to: counted tick by tick, exact, the same on every machine
workers       one after the other, on processes of this machine, or on a Dask cluster
series        everything measured in one run, tick by tick
columns       results as columns with flat names, ready for CSV
statistics    medians, quartiles and an interval for the median, in exact fractions
chart         a comparison, or one run, as one SVG
"""

from pendula.credit.studies.comparison import compare
from pendula.credit.studies.series import Series
from pendula.credit.studies.sweeps import sweep

__all__ = [
    "Series",  # everything measured in one run
    "compare",  # two settings over many seeds
    "sweep",  # every combination of settings with every seed
]
