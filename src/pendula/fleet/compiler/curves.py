"""Straight lines, polylines and Béziers as paths, with the poses from which the compiler builds the swept areas."""

from dataclasses import dataclass
from itertools import pairwise
from math import sqrt

import numpy as np
from numpy.typing import NDArray

from pendula.fleet.map.geometry import Path, Vector, angle_urad, centre_of, is_ahead
from pendula.fleet.model import CurveKind, Point

# Cubic Bézier curves, sampled evenly along their length, with bounds on what happens between two samples.
# Elementwise `+ - * /` and `sqrt` only: the samples are the same on every processor. The bounds are proven, not
# estimated (REACH and TURN below); they stay finite where the curvature does not, at a control point that coincides
# with an end.

Floats = NDArray[np.float64]
# Samples per step of the polyline. More samples mean less slack and more work.
FINER = 5
_DENSE_STEP_UM = 5_000.0
_DENSE_LEAST, _DENSE_MOST = 64, 200_000
# Two control points closer than this are one.
SAME_UM = 1.0


@dataclass(frozen=True, eq=False, slots=True)
class Poses:
    """Poses along a path: positions in micrometres, unit tangents, and bounds for each gap between neighbours.

    In gap i the pivot stays within `reach[i]` of the nearer of its two poses, and no tangent differs from either of
    the two by more than `turn[i]`, measured as the distance of the unit vectors.
    """

    s: Floats
    x: Floats
    y: Floats
    ux: Floats
    uy: Floats
    reach: Floats
    turn: Floats


def sample(controls: tuple[Point, Point, Point, Point], step_um: int) -> Poses:
    """Evenly spaced poses, `FINER` to every step of the polyline, both ends included."""
    px = tuple(float(point.x_um) for point in controls)
    py = tuple(float(point.y_um) for point in controls)
    at, length = _even_parameters(px, py, step_um)
    x, y = _cubic(px, at), _cubic(py, at)
    dx, dy = _slope(px, at), _slope(py, at)
    ux, uy = _tangents(px, py, dx, dy, x, y)
    reach, turn = _bounds(at=at, x=x, y=y, dx=dx, dy=dy, ux=ux, uy=uy)
    count = len(at) - 1
    even: Floats = np.arange(count + 1, dtype=np.float64) * (length / count)
    return Poses(s=even, x=x, y=y, ux=ux, uy=uy, reach=reach, turn=turn)


def _cubic(p: tuple[float, ...], t: Floats) -> Floats:
    r = 1.0 - t
    return r * r * r * p[0] + 3.0 * r * r * t * p[1] + 3.0 * r * t * t * p[2] + t * t * t * p[3]


def _slope(p: tuple[float, ...], t: Floats) -> Floats:
    r = 1.0 - t
    return 3.0 * (r * r * (p[1] - p[0]) + 2.0 * r * t * (p[2] - p[1]) + t * t * (p[3] - p[2]))


def _even_parameters(px: tuple[float, ...], py: tuple[float, ...], step_um: int) -> tuple[Floats, float]:
    """Parameters whose points lie evenly along the curve, and the length of the curve."""
    hull = 0.0
    for i in range(3):
        dx, dy = px[i + 1] - px[i], py[i + 1] - py[i]
        hull += float(np.sqrt(dx * dx + dy * dy))
    dense = int(min(max(hull / _DENSE_STEP_UM, _DENSE_LEAST), _DENSE_MOST))
    t = np.arange(dense + 1) / dense
    x, y = _cubic(px, t), _cubic(py, t)
    dx_, dy_ = x[1:] - x[:-1], y[1:] - y[:-1]
    along = np.concatenate([[0.0], np.cumsum(np.sqrt(dx_ * dx_ + dy_ * dy_))])
    length = float(along[-1])
    count = FINER * max(1, int(np.ceil(length / step_um)))
    targets = np.arange(1, count) * (length / count)
    cell = np.clip(np.searchsorted(along, targets, side="right") - 1, 0, dense - 1)
    width = along[cell + 1] - along[cell]
    part = np.where(width > 0.0, (targets - along[cell]) / np.where(width > 0.0, width, 1.0), 0.0)
    inner = (cell + part) / dense
    return np.concatenate([[0.0], inner, [1.0]]), length


def _tangents(
    px: tuple[float, ...], py: tuple[float, ...], dx: Floats, dy: Floats, x: Floats, y: Floats
) -> tuple[Floats, Floats]:
    """Unit tangents; where the derivative vanishes, the direction to the first point that differs."""
    dx, dy = dx.copy(), dy.copy()
    dx[0], dy[0] = _end_direction(px, py, (0, 1, 2, 3), 1.0)
    dx[-1], dy[-1] = _end_direction(px, py, (3, 2, 1, 0), -1.0)
    size = np.sqrt(dx * dx + dy * dy)
    for i in np.flatnonzero(size < SAME_UM):
        # A cusp inside the curve: the direction of travel is that between its neighbours.
        after, before = min(int(i) + 1, len(x) - 1), max(int(i) - 1, 0)
        dx[i], dy[i] = x[after] - x[before], y[after] - y[before]
    size = np.sqrt(dx * dx + dy * dy)
    size = np.where(size > 0.0, size, 1.0)
    return dx / size, dy / size


def _end_direction(
    px: tuple[float, ...], py: tuple[float, ...], order: tuple[int, ...], sign: float
) -> tuple[float, float]:
    first = order[0]
    for other in order[1:]:
        dx, dy = px[other] - px[first], py[other] - py[first]
        if dx * dx + dy * dy > SAME_UM * SAME_UM:
            return sign * dx, sign * dy
    return 1.0, 0.0


def _bounds(at: Floats, x: Floats, y: Floats, dx: Floats, dy: Floats, ux: Floats, uy: Floats) -> tuple[Floats, Floats]:
    """REACH and TURN of every gap, from the control points of the piece of curve in it."""
    third = (at[1:] - at[:-1]) / 3.0
    ax, ay = third * dx[:-1], third * dy[:-1]
    cx, cy = third * dx[1:], third * dy[1:]
    bx, by = x[1:] - x[:-1] - ax - cx, y[1:] - y[:-1] - ay - cy
    sizes = [np.sqrt(vx * vx + vy * vy) for vx, vy in ((ax, ay), (bx, by), (cx, cy))]
    # REACH: an arc is no longer than its control polygon, so its points are within half of that of one end.
    reach = (sizes[0] + sizes[1] + sizes[2]) / 2.0
    # TURN: tangents of the piece lie in the cone of the three control vectors.
    turn = np.zeros_like(reach)
    for (vx, vy), size in zip(((ax, ay), (bx, by), (cx, cy)), sizes, strict=True):
        real = size > 1e-3
        safe = np.where(real, size, 1.0)
        for ox, oy in ((ux[:-1], uy[:-1]), (ux[1:], uy[1:])):
            ex, ey = vx / safe - ox, vy / safe - oy
            turn = np.maximum(turn, np.where(real, np.sqrt(ex * ex + ey * ey), 0.0))
    ex, ey = ux[1:] - ux[:-1], uy[1:] - uy[:-1]
    return reach, np.maximum(turn, np.sqrt(ex * ex + ey * ey))


Ints = NDArray[np.int64]
# Step of the headings, as the distance of unit vectors, in which a turn at a vertex is swept.
_VERTEX_TURN = 0.004


@dataclass(frozen=True, eq=False, slots=True)
class Curve:
    """The path of a directed edge with the data that the compiler needs."""

    path: Path
    start_direction: tuple[float, float]
    # Greatest distance of the curve from its polyline, in micrometres.
    chord_error: float
    # Greatest curvature, as 1/m; for a polyline the tightest circle that follows its corners.
    curvature: float
    # The position of the greatest curvature along the path.
    tightest_um: int
    # None for a straight edge, whose sweep is exact.
    poses: Poses | None

    @property
    def kind(self) -> CurveKind:
        return self.path.kind

    @property
    def end_direction(self) -> tuple[float, float]:
        if self.poses is None:
            return self.start_direction
        return float(self.poses.ux[-1]), float(self.poses.uy[-1])


def straight(start: Point, end: Point) -> Curve:
    """One leg, without numpy: most edges are straight, and a numpy call costs more than the arithmetic."""
    dx, dy = float(end.x_um - start.x_um), float(end.y_um - start.y_um)
    size = sqrt(dx * dx + dy * dy)
    angle = angle_urad(dx, dy)
    path = Path(CurveKind.STRAIGHT, (start.x_um, end.x_um), (start.y_um, end.y_um), (0, round(size)), ((angle, angle),))
    direction = (dx / size, dy / size) if size > 0.0 else (dx, dy)
    return Curve(path, direction, 1.0, 0.0, 0, None)


def polyline(points: list[Point], chord_error_um: int) -> Curve:
    """Legs between the points; repeated points are dropped."""
    distinct = [points[0]]
    for point in points[1:]:
        if point != distinct[-1]:
            distinct.append(point)
    if len(distinct) == 1:
        distinct.append(points[-1])
    return _along_points(CurveKind.POLYLINE, distinct, chord_error_um)


def bezier(controls: tuple[Point, Point, Point, Point], step_um: int, chord_error_um: int) -> Curve:
    """A cubic of four control points; its polyline is made finer until it is within `chord_error_um` of the curve."""
    if _flat(controls):
        return straight(controls[0], controls[3])
    return chain([controls], step_um, chord_error_um)


def chain(pieces: list[tuple[Point, Point, Point, Point]], step_um: int, chord_error_um: int) -> Curve:
    """Consecutive cubics as one curve."""
    while True:
        poses = _joined([sample(controls, step_um) for controls in pieces])
        error = _chord_error(poses)
        if error <= chord_error_um or step_um <= 1000:
            break
        step_um //= 2
    x = np.rint(poses.x[::FINER]).astype(np.int64)
    y = np.rint(poses.y[::FINER]).astype(np.int64)
    s = _arc_lengths(x, y)
    angles = [angle_urad(float(ux), float(uy)) for ux, uy in zip(poses.ux[::FINER], poses.uy[::FINER], strict=True)]
    # Poses use the arc length of the polyline, along which cells are cut.
    stretched = _on_polyline(s, len(poses.s))
    curvature, tightest = _bezier_curvature(poses)
    return Curve(
        path_of(CurveKind.BEZIER, x, y, s, tuple(pairwise(angles))),
        (float(poses.ux[0]), float(poses.uy[0])),
        error + 1.0,
        curvature,
        int(s[tightest]),
        Poses(s=stretched, x=poses.x, y=poses.y, ux=poses.ux, uy=poses.uy, reach=poses.reach, turn=poses.turn),
    )


def _joined(pieces: list[Poses]) -> Poses:
    """Concatenate the poses of pieces. A joint has the tangent of the piece before it; the difference is added to the
    turn of the gap after it."""
    if len(pieces) == 1:
        return pieces[0]
    turns, offset, along = [pieces[0].turn], float(pieces[0].s[-1]), [pieces[0].s]
    for before, after in pairwise(pieces):
        kink = _gap((float(before.ux[-1]), float(before.uy[-1])), (float(after.ux[0]), float(after.uy[0])))
        turns.append(np.concatenate([after.turn[:1] + kink, after.turn[1:]]))
        along.append(after.s[1:] + offset)
        offset += float(after.s[-1])
    first, rest = pieces[0], pieces[1:]
    return Poses(
        s=np.concatenate(along),
        x=np.concatenate([first.x, *(piece.x[1:] for piece in rest)]),
        y=np.concatenate([first.y, *(piece.y[1:] for piece in rest)]),
        ux=np.concatenate([first.ux, *(piece.ux[1:] for piece in rest)]),
        uy=np.concatenate([first.uy, *(piece.uy[1:] for piece in rest)]),
        reach=np.concatenate([piece.reach for piece in pieces]),
        turn=np.concatenate(turns),
    )


def path_of(kind: CurveKind, x: Ints, y: Ints, s: Ints, yaws: tuple[tuple[int, int], ...]) -> Path:
    return Path(kind, tuple(x.tolist()), tuple(y.tolist()), tuple(s.tolist()), yaws)


def _flat(controls: tuple[Point, ...]) -> bool:
    """Whether all control points are on the line from the first to the last, in order, so that the curve is
    straight."""
    first, last = controls[0], controls[-1]
    dx, dy = last.x_um - first.x_um, last.y_um - first.y_um
    square = dx * dx + dy * dy
    if square == 0:
        return False
    before = 0
    for point in controls[1:-1]:
        ex, ey = point.x_um - first.x_um, point.y_um - first.y_um
        along, across = ex * dx + ey * dy, ex * dy - ey * dx
        if across != 0 or along < before or along > square:
            return False
        before = along
    return True


def _along_points(kind: CurveKind, points: list[Point], chord_error_um: int) -> Curve:
    x = np.array([point.x_um for point in points], dtype=np.int64)
    y = np.array([point.y_um for point in points], dtype=np.int64)
    dx, dy = (x[1:] - x[:-1]).astype(np.float64), (y[1:] - y[:-1]).astype(np.float64)
    size = np.sqrt(dx * dx + dy * dy)
    safe = np.where(size > 0.0, size, 1.0)
    ux, uy = dx / safe, dy / safe
    angles = [angle_urad(float(a), float(b)) for a, b in zip(dx, dy, strict=True)]
    s = _arc_lengths(x, y)
    straight_on = len(angles) == 1
    curvature, tightest = _corner_curvature(ux, uy, size, float(chord_error_um))
    return Curve(
        path_of(CurveKind.STRAIGHT if straight_on else kind, x, y, s, tuple((angle, angle) for angle in angles)),
        (float(ux[0]), float(uy[0])),
        1.0,
        curvature,
        int(s[tightest]),
        None if straight_on else _leg_poses(x, y, s, ux, uy),
    )


def _arc_lengths(x: Ints, y: Ints) -> Ints:
    dx, dy = (x[1:] - x[:-1]).astype(np.float64), (y[1:] - y[:-1]).astype(np.float64)
    along = np.cumsum(np.sqrt(dx * dx + dy * dy))
    return np.concatenate([np.zeros(1, dtype=np.int64), np.rint(along).astype(np.int64)])


def _on_polyline(s: Ints, count: int) -> Floats:
    """The arc length on the polyline for every fine pose: `FINER` even parts of each leg."""
    index = np.arange(count)
    leg = np.minimum(index // FINER, len(s) - 2)
    part = (index - leg * FINER) / FINER
    start = s[leg].astype(np.float64)
    along: Floats = start + (s[leg + 1].astype(np.float64) - start) * part
    return along


def _chord_error(poses: Poses) -> float:
    """The greatest distance of the curve from the polyline through every `FINER`th pose, including between poses."""
    count = len(poses.x) - 1
    leg = np.minimum(np.arange(count + 1) // FINER, count // FINER - 1) * FINER
    ax, ay = poses.x[leg], poses.y[leg]
    dx, dy = poses.x[leg + FINER] - ax, poses.y[leg + FINER] - ay
    square = dx * dx + dy * dy
    ox, oy = poses.x - ax, poses.y - ay
    part = np.clip((ox * dx + oy * dy) / np.where(square > 0.0, square, 1.0), 0.0, 1.0)
    ex, ey = ox - part * dx, oy - part * dy
    off = np.sqrt(ex * ex + ey * ey)
    # Between two fine poses no tangent leaves the chord's direction by more than twice the turn of the gap.
    return float(np.max(off)) + float(np.max(poses.reach * np.minimum(2.0 * poses.turn, 1.0)))


def _bezier_curvature(poses: Poses) -> tuple[float, int]:
    """The greatest turn per metre over one step of the polyline, as a truck that follows it drives, and the vertex at
    which this step begins."""
    ex = poses.ux[FINER::FINER] - poses.ux[:-FINER:FINER]
    ey = poses.uy[FINER::FINER] - poses.uy[:-FINER:FINER]
    turn = np.sqrt(ex * ex + ey * ey)
    dx = poses.x[FINER::FINER] - poses.x[:-FINER:FINER]
    dy = poses.y[FINER::FINER] - poses.y[:-FINER:FINER]
    step = np.sqrt(dx * dx + dy * dy)
    each = turn / np.maximum(step, SAME_UM)
    at = int(np.argmax(each))
    return float(each[at]) * 1e6, at


def _corner_curvature(ux: Floats, uy: Floats, size: Floats, chord_error: float) -> tuple[float, int]:
    """The curvature of the tightest corner, and its vertex. The circle of a corner is the largest one that touches both
    legs, fits into half of the shorter leg and stays within the chord error of the corner."""
    tightest, at = 0.0, 0
    for i in range(len(ux) - 1):
        cosine = float(ux[i] * ux[i + 1] + uy[i] * uy[i + 1])
        sine = abs(float(ux[i] * uy[i + 1] - uy[i] * ux[i + 1]))
        if sine == 0.0 and cosine > 0.0:
            continue
        if cosine <= -1.0 + 1e-12:
            return float("inf"), i + 1
        tangent = sine / (1.0 + cosine)
        fits = float(min(size[i], size[i + 1])) / 2.0 / tangent
        near = chord_error / (sqrt(1.0 + tangent * tangent) - 1.0) if tangent > 1e-9 else fits
        bend = 1e6 / max(min(fits, near), 1e-3)
        if bend > tightest:
            tightest, at = bend, i + 1
    return tightest, at


def _leg_poses(x: Ints, y: Ints, s: Ints, ux: Floats, uy: Floats) -> Poses:
    """The ends of every leg, and a fan of headings at every corner; a leg needs no poses in between."""
    rows: list[tuple[float, float, float, float, float]] = []
    turns: list[float] = []
    for leg in range(len(ux)):
        for end in (leg, leg + 1):
            rows.append((float(s[end]), float(x[end]), float(y[end]), float(ux[leg]), float(uy[leg])))
            turns.append(0.0)
        if leg + 1 < len(ux):
            fan = _fan((float(ux[leg]), float(uy[leg])), (float(ux[leg + 1]), float(uy[leg + 1])))
            at = (float(s[leg + 1]), float(x[leg + 1]), float(y[leg + 1]))
            for direction in fan[1:-1]:
                rows.append((*at, *direction))
                turns.append(0.0)
            for k in range(len(fan) - 1):
                turns[len(turns) - len(fan) + 1 + k] = _gap(fan[k], fan[k + 1])
    table = np.array(rows, dtype=np.float64).T
    count = len(rows) - 1
    return Poses(
        s=table[0],
        x=table[1],
        y=table[2],
        ux=table[3],
        uy=table[4],
        reach=np.zeros(count),
        turn=np.array(turns[:count]),
    )


def _gap(a: tuple[float, float], b: tuple[float, float]) -> float:
    return sqrt((b[0] - a[0]) * (b[0] - a[0]) + (b[1] - a[1]) * (b[1] - a[1]))


def fan_poses(x: float, y: float, a: tuple[float, float], b: tuple[float, float]) -> Poses:
    """The headings between two directions at one point, as a truck turns through a kink."""
    fan = _fan(a, b)
    count = len(fan)
    turns = np.array([_gap(fan[k], fan[k + 1]) for k in range(count - 1)])
    ux, uy = np.array([direction[0] for direction in fan]), np.array([direction[1] for direction in fan])
    return Poses(
        s=np.zeros(count), x=np.full(count, x), y=np.full(count, y), ux=ux, uy=uy, reach=np.zeros(count - 1), turn=turns
    )


def _fan(a: tuple[float, float], b: tuple[float, float]) -> list[tuple[float, float]]:
    """Unit vectors from `a` to `b`, each close to the next, by halving."""
    if _gap(a, b) <= _VERTEX_TURN:
        return [a, b]
    mx, my = a[0] + b[0], a[1] + b[1]
    size = sqrt(mx * mx + my * my)
    # Straight back there is no middle: either side will do, the validator rejects the bend anyway.
    middle = (mx / size, my / size) if size > 1e-9 else (-a[1], a[0])
    return _fan(a, middle)[:-1] + _fan(middle, b)


# Curves of several cubics: circular arcs, and splines through points.
# An arc is cut into pieces of at most 45 degrees, each a cubic that leaves the circle by less than five millionths of
# its radius. A spline has in every point the tangent of the circle through it and its neighbours. Elementwise `+ - *
# /` and `sqrt` only, as for single cubics.

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
    tangents = _chain_tangents(distinct)
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


def _chain_tangents(points: list[Point]) -> list[Vector]:
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
