"""Straight lines, polylines and Béziers as paths, with the poses from which the compiler builds the swept areas."""

from dataclasses import dataclass
from itertools import pairwise
from math import sqrt

import numpy as np
from numpy.typing import NDArray

from pendula.fleet.geometry.angles import angle_urad
from pendula.fleet.geometry.bezier import FINER, SAME_UM, Poses, sample
from pendula.fleet.geometry.paths import Path
from pendula.fleet.model import CurveKind, Point

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

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
