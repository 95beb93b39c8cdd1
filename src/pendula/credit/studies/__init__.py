"""Many runs: counted, spread over processes, put in tables, compared, drawn.

chart         A comparison as one SVG: the medians of both sides over ticks
columns       results as columns: flat names, one kind a column, a list of values each, ready for CSV
compare       two settings over many seeds, paired by seed: medians, differences with intervals, a verdict, curves
figures       what one run comes to, in figures: counted tick by tick, exact, the same on every machine
statistics    medians, quartiles and an interval for the median, in exact fractions
sweep         every combination of some settings with every seed: one run each, one row each
workers       many runs of one scenario: one after the other, on processes of this machine, or on a Dask cluster
"""
