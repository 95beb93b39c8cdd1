"""Angles, curves and quadrangles, the same on every machine.

angles         the angle of a direction with `+ - * /` and `sqrt` alone
bezier         cubic Bézier curves, sampled evenly along their length
curves         from straight lines, polylines and Béziers to paths
paths          the path of a directed edge: a polyline in whole micrometres, measured along
quadrangles    convex quadrangles in whole micrometres: do two meet, does one come near a point
"""
