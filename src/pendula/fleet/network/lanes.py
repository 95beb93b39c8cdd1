"""Which edges between the same two nodes are one physical lane: those whose geometries coincide within 0.05 m."""

import numpy as np
from numpy.typing import NDArray

from pendula.fleet.geometry.paths import Path

Floats = NDArray[np.float64]

COINCIDE_UM = 50_000.0
_TABLE = 500_000


def lanes_of(paths: list[Path]) -> list[int]:
    """The lane number of every path, in the order of first occurrence; the direction of a path does not matter."""
    shapes: list[tuple[Floats, Floats]] = []
    frames: list[tuple[float, float, float, float]] = []
    lanes: list[int] = []
    for path in paths:
        x, y = np.array(path.x, dtype=np.float64), np.array(path.y, dtype=np.float64)
        frame = (float(x.min()), float(y.min()), float(x.max()), float(y.max()))
        lane = _lane(x, y, frame, shapes, frames)
        if lane == len(shapes):
            shapes.append((x, y))
            frames.append(frame)
        lanes.append(lane)
    return lanes


def _lane(
    x: Floats,
    y: Floats,
    frame: tuple[float, float, float, float],
    shapes: list[tuple[Floats, Floats]],
    frames: list[tuple[float, float, float, float]],
) -> int:
    if not frames:
        return 0
    # Curves that coincide have bounding boxes that coincide: few candidates need the exact test.
    alike = np.abs(np.array(frames) - np.array(frame)).max(axis=1) <= COINCIDE_UM
    for other in np.flatnonzero(alike):
        ox, oy = shapes[int(other)]
        if _step_by_step(x, y, ox, oy) or _step_by_step(x, y, ox[::-1], oy[::-1]):
            return int(other)
        if _farthest(x, y, ox, oy) <= COINCIDE_UM and _farthest(ox, oy, x, y) <= COINCIDE_UM:
            return int(other)
    return len(shapes)


def _step_by_step(x: Floats, y: Floats, ox: Floats, oy: Floats) -> bool:
    """Whether two lines coincide vertex by vertex, as an edge and its reverse do."""
    if len(x) != len(ox):
        return False
    dx, dy = x - ox, y - oy
    return float((dx * dx + dy * dy).max()) <= COINCIDE_UM * COINCIDE_UM


def _farthest(x: Floats, y: Floats, ox: Floats, oy: Floats) -> float:
    """The greatest distance of a vertex of the first line from the second line. Stops early above `COINCIDE_UM`; works
    in batches, so that long curves need no table of all pairs."""
    ax, ay = ox[None, :-1], oy[None, :-1]
    dx, dy = ox[None, 1:] - ax, oy[None, 1:] - ay
    square = dx * dx + dy * dy
    safe = np.where(square > 0.0, square, 1.0)
    rows = max(1, _TABLE // dx.shape[1])
    worst = 0.0
    for low in range(0, len(x), rows):
        px, py = x[low : low + rows, None] - ax, y[low : low + rows, None] - ay
        part = np.clip((px * dx + py * dy) / safe, 0.0, 1.0)
        ex, ey = px - part * dx, py - part * dy
        worst = max(worst, float(np.sqrt((ex * ex + ey * ey).min(axis=1).max())))
        if worst > COINCIDE_UM:
            break
    return worst
