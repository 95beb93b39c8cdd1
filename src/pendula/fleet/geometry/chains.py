"""Curves of several cubics: circular arcs, and splines through points.

An arc is cut into pieces of at most 45 degrees, each a cubic that leaves the circle by less than five millionths of its
radius. A spline has in every point the tangent of the circle through it and its neighbours. Elementwise `+ - * /` and
`sqrt` only, as for single cubics.
"""

from itertools import pairwise
from math import sqrt

from pendula.fleet.geometry.circles import Vector, centre_of, is_ahead
from pendula.fleet.geometry.curves import Curve, chain, polyline, straight
from pendula.fleet.model import Point

_Controls = tuple[Point, Point, Point, Point]
# The cosine of 45 degrees, a little less, so that eighths of a circle stay whole.
_PIECE = 0.7071
_SAME_UM = 2


def arc(start: Point, via: Point, end: Point, step_um: int, chord_error_um: int) -> Curve:
    """The circular arc from `start` over `via` to `end`; straight where the three lie on a line."""
    centre = centre_of(start, via, end)
    if centre is None:
        return straight(start, end)
    ax, ay = float(via.x_um - start.x_um), float(via.y_um - start.y_um)
    bx, by = float(end.x_um - via.x_um), float(end.y_um - via.y_um)
    sense = 1.0 if ax * by - ay * bx > 0.0 else -1.0
    places = [*_divided(start, via, centre, sense), *_divided(via, end, centre, sense)[1:]]
    pieces = [_arc_piece(a, b, centre, sense) for a, b in pairwise(places)]
    return chain(pieces, step_um, chord_error_um)


def spline(points: list[Point], step_um: int, chord_error_um: int) -> Curve:
    """A curve through points in order; two of them are a straight line."""
    distinct = [points[0]]
    for point in points[1:]:
        if abs(point.x_um - distinct[-1].x_um) + abs(point.y_um - distinct[-1].y_um) > _SAME_UM:
            distinct.append(point)
    if distinct[-1] != points[-1] and len(distinct) > 1:
        distinct[-1] = points[-1]
    if len(distinct) < 3:
        return polyline(points, chord_error_um) if len(distinct) == 1 else straight(distinct[0], distinct[1])
    tangents = _tangents(distinct)
    pieces = [
        _spline_piece(distinct[i], distinct[i + 1], tangents[i], tangents[i + 1]) for i in range(len(distinct) - 1)
    ]
    return chain(pieces, step_um, chord_error_um)


def _divided(a: Point, b: Point, centre: Vector, sense: float) -> list[Point]:
    """Points from `a` to `b` along the circle, no two more than 45 degrees apart."""
    px, py = a.x_um - centre[0], a.y_um - centre[1]
    qx, qy = b.x_um - centre[0], b.y_um - centre[1]
    square = sqrt(px * px + py * py) * sqrt(qx * qx + qy * qy)
    ahead = is_ahead(a, b, centre, sense)
    if ahead and px * qx + py * qy >= _PIECE * square:
        return [a, b]
    mx, my = px + qx, py + qy
    size = sqrt(mx * mx + my * my)
    radius = sqrt(px * px + py * py)
    if size <= radius * 1e-6:
        # Exactly opposite: continue a quarter turn from the first point.
        mx, my, size = -py * sense, px * sense, radius
    elif not ahead:
        mx, my = -mx, -my
    middle = Point(round(centre[0] + mx / size * radius), round(centre[1] + my / size * radius))
    return [*_divided(a, middle, centre, sense), *_divided(middle, b, centre, sense)[1:]]


def _arc_piece(a: Point, b: Point, centre: Vector, sense: float) -> _Controls:
    px, py = a.x_um - centre[0], a.y_um - centre[1]
    qx, qy = b.x_um - centre[0], b.y_um - centre[1]
    cosine = (px * qx + py * qy) / (sqrt(px * px + py * py) * sqrt(qx * qx + qy * qy))
    # Tangents of the half and of the quarter of the angle, without trigonometry.
    half = sqrt(max(0.0, 1.0 - cosine) / (1.0 + cosine))
    quarter = (sqrt(1.0 + half * half) - 1.0) / half if half > 1e-9 else half / 2.0
    reach = 4.0 / 3.0 * quarter * sense
    first = Point(round(a.x_um - py * reach), round(a.y_um + px * reach))
    return (a, first, Point(round(b.x_um + qy * reach), round(b.y_um - qx * reach)), b)


def _tangents(points: list[Point]) -> list[Vector]:
    """Unit tangents of the circles through each point and its neighbours; the end points use the nearest circle."""
    legs = []
    for start, end in pairwise(points):
        dx, dy = float(end.x_um - start.x_um), float(end.y_um - start.y_um)
        size = sqrt(dx * dx + dy * dy)
        legs.append((dx / size, dy / size, size))
    inner = []
    for (ax, ay, a), (bx, by, b) in pairwise(legs):
        tx, ty = ax * b + bx * a, ay * b + by * a
        size = sqrt(tx * tx + ty * ty)
        # Straight back there is no circle; the validator rejects the bend anyway.
        inner.append((tx / size, ty / size) if size > 1e-6 else (-ay, ax))
    return [_mirrored(inner[0], legs[0]), *inner, _mirrored(inner[-1], legs[-1])]


def _mirrored(tangent: Vector, leg: tuple[float, float, float]) -> Vector:
    along = tangent[0] * leg[0] + tangent[1] * leg[1]
    return 2.0 * along * leg[0] - tangent[0], 2.0 * along * leg[1] - tangent[1]


def _spline_piece(a: Point, b: Point, first: Vector, last: Vector) -> _Controls:
    dx, dy = float(b.x_um - a.x_um), float(b.y_um - a.y_um)
    third = sqrt(dx * dx + dy * dy) / 3.0
    return (
        a,
        Point(round(a.x_um + first[0] * third), round(a.y_um + first[1] * third)),
        Point(round(b.x_um - last[0] * third), round(b.y_um - last[1] * third)),
        b,
    )
