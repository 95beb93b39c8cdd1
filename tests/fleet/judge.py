"""A geometry checker that shares no code with the compiler: envelopes as shapely polygons, curves by their formulas.

Lengths are metres. A pose is (x, y, yaw) of the truck.
"""

from math import atan2, cos, hypot, pi, sin

import numpy as np
import shapely
from numpy.typing import NDArray
from shapely.geometry import Polygon
from shapely.geometry.base import BaseGeometry

from pendula.fleet.compiler.samples import FL_STD
from pendula.fleet.model import SourceEdge, SourceMap

PoseM = tuple[float, float, float]

FRONT, REAR, SIDE = 2.10, 2.30, 0.90
RADIUS = hypot(2.30, 0.90)
assert FL_STD.head_um == 1_300_000


def envelope(pose: PoseM) -> Polygon:
    x, y, yaw = pose
    c, s = cos(yaw), sin(yaw)
    local = ((FRONT, SIDE), (-REAR, SIDE), (-REAR, -SIDE), (FRONT, -SIDE))
    return Polygon([(x + a * c - b * s, y + a * s + b * c) for a, b in local])


def area(quads: NDArray[np.int64]) -> BaseGeometry:
    """The union of compiled quadrangles."""
    whole: BaseGeometry = shapely.union_all([Polygon(quad / 1e6) for quad in quads])
    return whole


def bezier_pose(points: list[tuple[float, float]], t: float, backward: bool = False) -> PoseM:
    (ax, ay), (bx, by), (cx, cy), (dx, dy) = points
    r = 1 - t
    x = r**3 * ax + 3 * r * r * t * bx + 3 * r * t * t * cx + t**3 * dx
    y = r**3 * ay + 3 * r * r * t * by + 3 * r * t * t * cy + t**3 * dy
    ux = r * r * (bx - ax) + 2 * r * t * (cx - bx) + t * t * (dx - cx)
    uy = r * r * (by - ay) + 2 * r * t * (cy - by) + t * t * (dy - cy)
    return x, y, atan2(uy, ux) + (pi if backward else 0.0)


def points_of(source: SourceMap, edge: SourceEdge) -> list[tuple[float, float]]:
    places = {node.id: node.at for node in source.nodes}
    every = (places[edge.start], *edge.points, places[edge.end])
    return [(point.x_um / 1e6, point.y_um / 1e6) for point in every]
