"""Circles through three points: their centres, and an upper bound of the length of an arc."""

from math import sqrt

from pendula.fleet.model import Point

Vector = tuple[float, float]


def longest_um(start: Point, via: Point, end: Point) -> int:
    """An upper bound of the length of the arc through three points."""
    chords = _distance(start, via) + _distance(via, end)
    centre = centre_of(start, via, end)
    if centre is None:
        return int(chords)
    dx, dy = start.x_um - centre[0], start.y_um - centre[1]
    # If both parts are at most half a circle, each is at most pi / 2 times as long as its chord.
    ax, ay = float(via.x_um - start.x_um), float(via.y_um - start.y_um)
    bx, by = float(end.x_um - via.x_um), float(end.y_um - via.y_um)
    sense = 1.0 if ax * by - ay * bx > 0.0 else -1.0
    if all(is_ahead(a, b, centre, sense) for a, b in ((start, via), (via, end))):
        return int(chords * 1.5708) + 1
    return int(6.2832 * sqrt(dx * dx + dy * dy)) + 1


def is_ahead(a: Point, b: Point, centre: Vector, sense: float) -> bool:
    px, py = a.x_um - centre[0], a.y_um - centre[1]
    qx, qy = b.x_um - centre[0], b.y_um - centre[1]
    return sense * (px * qy - py * qx) >= 0.0


def _distance(a: Point, b: Point) -> float:
    dx, dy = float(b.x_um - a.x_um), float(b.y_um - a.y_um)
    return sqrt(dx * dx + dy * dy)


def centre_of(a: Point, b: Point, c: Point) -> Vector | None:
    """The centre of the circle through three points; None where they lie on a line, or nearly."""
    bx, by = float(b.x_um - a.x_um), float(b.y_um - a.y_um)
    cx, cy = float(c.x_um - a.x_um), float(c.y_um - a.y_um)
    cross = 2.0 * (bx * cy - by * cx)
    size = sqrt(bx * bx + by * by) * sqrt(cx * cx + cy * cy)
    if abs(cross) <= size * 1e-7:
        return None
    bb, cc = bx * bx + by * by, cx * cx + cy * cy
    return a.x_um + (cy * bb - by * cc) / cross, a.y_um + (bx * cc - cx * bb) / cross
