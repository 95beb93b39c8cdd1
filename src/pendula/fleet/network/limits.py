"""Limits of the size of a map, checked before compilation, which bound the time of the compiler.

Every limit is many times the need of a real hall; a map of 1000 nodes has about 12 km of lanes and 4000 transitions.
"""

from itertools import pairwise
from math import sqrt

from pendula.fleet.geometry.circles import longest_um
from pendula.fleet.model import CurveKind, Point, SourceEdge
from pendula.kernel.limits import Limit

MAP_NODES = Limit("map_nodes", 20_000, "nodes", "map_too_large", "The map has too many nodes")
MAP_METRES = Limit("map_metres", 100_000, "m", "map_too_large", "The lanes of the map are too long together")
MAP_POSES = Limit("map_poses", 4_000_000, "poses", "map_too_large", "The curves of the map need too many poses")
MAP_TRANSITIONS = Limit(
    "map_transitions", 200_000, "transitions", "map_too_dense", "Too many edges meet in the same nodes"
)
MAP_OVERLAPS = Limit("map_overlaps", 100_000, "pairs", "map_too_dense", "Too many turning discs overlap")
MAP_PAIRS = Limit("map_pairs", 6_000_000, "pairs", "map_too_dense", "Too many cells overlap")

# Limits of one curve, measured along its control points, and of one polyline.
CURVE_M = 250
POLYLINE_POINTS = 1000


def drawn_um(edge: SourceEdge, start: Point, end: Point) -> int:
    """The length of the line through all points of an edge: an upper bound of the length of the edge."""
    points = [start, *edge.points, end]
    total = 0.0
    for a, b in pairwise(points):
        dx, dy = float(b.x_um - a.x_um), float(b.y_um - a.y_um)
        total += sqrt(dx * dx + dy * dy)
    return int(total)


def _long(edge: SourceEdge, start: Point, end: Point) -> bool:
    whole = longest_um(start, edge.points[0], end) if edge.kind is CurveKind.ARC else drawn_um(edge, start, end)
    return whole > CURVE_M * 1_000_000


def oversize(edge: SourceEdge, start: Point, end: Point) -> str | None:
    """The end of a sentence about a limit that an edge exceeds; None if it exceeds none."""
    if edge.kind in (CurveKind.POLYLINE, CurveKind.SPLINE) and len(edge.points) > POLYLINE_POINTS:
        return f"has {len(edge.points)} points; the limit is {POLYLINE_POINTS}"
    if edge.kind in (CurveKind.BEZIER, CurveKind.ARC, CurveKind.SPLINE) and _long(edge, start, end):
        return f"is longer than the {CURVE_M} m allowed for a curve"
    return None
