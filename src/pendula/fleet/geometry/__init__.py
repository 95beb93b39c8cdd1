"""Angles, curves and quadrangles in whole micrometres and microradians, the same on every machine.

angles         the angle of a direction with `+ - * /` and `sqrt` alone
bezier         cubic Bézier curves, sampled evenly along their length
curves         paths and poses of straight lines, polylines and Béziers
circles        circles through three points
chains         circular arcs, and splines through points, as chains of cubics
paths          the path of a directed edge: a polyline with arc lengths
quadrangles    convex quadrangles: intersection, distance, nearness to a point
"""
