"""Maps that are LIVE by construction, each with its fleet: random maps, and grids with spurs.

Every park is its own dead end, long enough that a truck at rest touches neither the lanes nor the turning disc at its
mouth; parks are more than two turning discs apart; and two-way lanes connect all nodes.
"""

from dataclasses import dataclass
from itertools import product

from pendula.fleet.model import Fleet, MoveStyle, SourceMap, Stream, Truck
from pendula.fleet.samples.scenes import Sketch
from pendula.kernel.rng import Pcg32

_HALF = 0.7071067811865476
_GRID_M = 12.0
# From a corner to within half a metre of the middle of a face of the grid.
_GRID_SPUR_M = 7.8
_SPUR_M = 9.0
_OUTSIDE_M = 8.0
_CORNERS = ((1, 1), (-1, 1), (-1, -1), (1, -1))


@dataclass(frozen=True, slots=True)
class Sample:
    """A map with its fleet."""

    source: SourceMap
    fleet: Fleet


def fleet_of(parks: list[str], streams: tuple[Stream, ...], percent: int = 100) -> Fleet:
    """Trucks for `percent` of the parks, at least one, spread evenly."""
    count = max(1, len(parks) * percent // 100)
    chosen = [parks[number * len(parks) // count] for number in range(count)]
    trucks = tuple(Truck(f"R{number:03}", "FL-STD", park) for number, park in enumerate(chosen, 1))
    return Fleet(trucks, streams)


def live_map(seed: int = 0, parks: int = 5, percent: int = 100) -> Sample:
    """A map for every seed: a jittered grid of junctions, joined by a tree of two-way lanes and by more lanes, some
    of them one-way; `parks` parking spurs and a few stations in the corners between the lanes."""
    draw = Pcg32.seeded(seed, 14)
    stations = 2 + _below(draw, 3)
    columns, rows = _shape(draw, parks + stations)
    sketch = Sketch(f"live-{seed}-{parks}")
    pitch = 21 + _below(draw, 6)
    places = sorted(product(range(columns), range(rows)))
    for column, row in places:
        aside, along = (_below(draw, 2001) - 1000) / 1000, (_below(draw, 2001) - 1000) / 1000
        sketch.node(_junction(column, row), column * pitch + aside, row * pitch + along)
    _lanes(sketch, draw, places)
    corners = [(place, corner) for place in places for corner in range(4)]
    _shuffle(draw, corners)
    for number in range(stations):
        _spur(sketch, f"T{number:03}", "ActionPoint", corners[number], backward=_below(draw, 4) == 0)
    for number in range(parks):
        _spur(sketch, f"P{number:03}", "ParkPoint", corners[stations + number])
    streams = tuple(
        Stream(f"S{number}", (f"T{number:03}",), (f"T{(number + 1) % stations:03}",)) for number in range(stations)
    )
    return Sample(sketch.done(), fleet_of([f"P{number:03}" for number in range(parks)], streams, percent))


def spur_grid(columns: int = 6, rows: int = 5, percent: int = 100) -> Sample:
    """Two-way lanes 12 m apart, a parking spur in every face, and a station outside every junction of the top and
    bottom rows: with the defaults 20 parks and 12 stations."""
    sketch = Sketch(f"spur-grid-{columns}x{rows}")
    for column, row in product(range(columns), range(rows)):
        sketch.node(_junction(column, row), column * _GRID_M, row * _GRID_M)
    for column in range(columns):
        sketch.chain(*(_junction(column, row) for row in range(rows)))
        _outside(sketch, column, 0, -_OUTSIDE_M)
        _outside(sketch, column, rows - 1, _OUTSIDE_M)
    for row in range(rows):
        sketch.chain(*(_junction(column, row) for column in range(columns)))
    parks = []
    for column, row in product(range(columns - 1), range(rows - 1)):
        name = f"P{column:03}-{row:03}"
        _diagonal(sketch, name, "ParkPoint", _junction(column, row), (1, 1), _GRID_SPUR_M)
        parks.append(name)
    streams = tuple(
        stream
        for column in range(columns)
        for stream in (
            Stream(f"UP{column:03}", (f"T{column:03}-000",), (f"T{columns - 1 - column:03}-{rows - 1:03}",)),
            Stream(f"DOWN{column:03}", (f"T{column:03}-{rows - 1:03}",), (f"T{columns - 1 - column:03}-000",)),
        )
    )
    return Sample(sketch.done(), fleet_of(parks, streams, percent))


def _below(draw: Pcg32, bound: int) -> int:
    return draw.next() % bound


def _shuffle(draw: Pcg32, items: list[tuple[tuple[int, int], int]]) -> None:
    for last in range(len(items) - 1, 0, -1):
        other = _below(draw, last + 1)
        items[last], items[other] = items[other], items[last]


def _shape(draw: Pcg32, spurs: int) -> tuple[int, int]:
    """The size of a grid with at least two corners for every spur."""
    columns = 2 + _below(draw, 3)
    while 2 * columns * columns < spurs:
        columns += 1
    return columns, max(2, -(-spurs // (2 * columns)))


def _junction(column: int, row: int) -> str:
    return f"J{column:03}-{row:03}"


def _lanes(sketch: Sketch, draw: Pcg32, places: list[tuple[int, int]]) -> None:
    """Connect every junction to one on its left or below by a two-way lane, and to the other one at random."""
    for column, row in places:
        here = _junction(column, row)
        others = [_junction(column - 1, row)] if column else []
        others += [_junction(column, row - 1)] if row else []
        if len(others) == 2 and _below(draw, 2):
            others.reverse()
        for number, other in enumerate(others):
            kind = _below(draw, 4)
            if number == 0 or kind == 0:
                _two_way(sketch, draw, other, here)
            elif kind < 3:
                sketch.lane(*((other, here) if kind == 1 else (here, other)), back=False)


def _two_way(sketch: Sketch, draw: Pcg32, a: str, b: str) -> None:
    """A two-way lane: straight, or a curve within a metre of the straight line."""
    aside = (_below(draw, 2001) - 1000) / 1000
    if _below(draw, 3):
        sketch.lane(a, b)
        return
    start, end = sketch.nodes[a].at, sketch.nodes[b].at
    x, y = start.x_um / 1_000_000, start.y_um / 1_000_000
    dx, dy = (end.x_um - start.x_um) / 1_000_000, (end.y_um - start.y_um) / 1_000_000
    size = (dx * dx + dy * dy) ** 0.5
    ox, oy = -dy / size * aside, dx / size * aside
    sketch.bezier(a, b, (x + dx / 3 + ox, y + dy / 3 + oy), (x + dx * 2 / 3 + ox, y + dy * 2 / 3 + oy))


def _spur(sketch: Sketch, name: str, kind: str, corner: tuple[tuple[int, int], int], *, backward: bool = False) -> None:
    (column, row), quarter = corner
    _diagonal(sketch, name, kind, _junction(column, row), _CORNERS[quarter], _SPUR_M, backward=backward)


def _diagonal(
    sketch: Sketch,
    name: str,
    kind: str,
    mouth: str,
    corner: tuple[int, int],
    length: float,
    *,
    backward: bool = False,
) -> None:
    """A dead end midway between two lanes; trucks may enter stations backward."""
    at = sketch.nodes[mouth].at
    x, y = at.x_um / 1_000_000, at.y_um / 1_000_000
    sketch.node(name, x + corner[0] * length * _HALF, y + corner[1] * length * _HALF, kind)
    sketch.lane(mouth, name, style=MoveStyle.BACKWARD if backward else MoveStyle.FORWARD)


def _outside(sketch: Sketch, column: int, row: int, offset: float) -> None:
    name = f"T{column:03}-{row:03}"
    sketch.node(name, column * _GRID_M, row * _GRID_M + offset, "ActionPoint")
    sketch.lane(_junction(column, row), name)
