"""Angles, curves and quadrangles in whole micrometres and microradians, the same on every machine.

angles         the angle of a direction with `+ - * /` and `sqrt` alone
bezier         cubic Bézier curves, sampled evenly along their length
curves         straight lines, polylines and Béziers into paths
circles        circles through three points
chains         circular arcs, and splines through drawn points, as chains of cubics
paths          the path of a directed edge: a polyline, measured along
quadrangles    convex quadrangles: do two meet, does one come near a point
"""
