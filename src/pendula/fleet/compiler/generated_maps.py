"""Generated sample maps: random ones, LIVE ones with their fleets, realistic warehouses; all samples by name."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import product

from msgspec.structs import replace

from pendula.fleet.compiler import samples
from pendula.fleet.compiler.samples import Sketch, quarter
from pendula.fleet.model import Fleet, MoveStyle, SourceMap, SourceMember, SourceSection, Stream, Truck
from pendula.kernel.rng import Pcg32

# Random planar maps for property tests: the same seed gives the same map on every machine.

_PITCH_M = 14.0


def random_map(seed: int, least: int = 4, most: int = 25, *, odd: bool = False) -> SourceMap:
    """4 to 25 nodes on a jittered grid, joined without crossings: straight and curved edges, one-way and backward
    ones, spurs with stations and parking, and a few parallel lanes.

    An odd map also has rare features: nodes almost at the same place with tiny edges between them, kinks just below the
    tangent limit, lanes driven both forward and backward, and critical sections.
    """
    draw = Pcg32.seeded(seed, 7)
    count = least + _below(draw, most - least + 1)
    columns = 1
    while columns * columns < count:
        columns += 1
    sketch = Sketch(f"random-{seed}")
    places: list[tuple[int, int]] = []
    for number in range(count):
        column, row = number % columns, number // columns
        x = column * _PITCH_M + (_below(draw, 4001) - 2000) / 1000
        y = row * _PITCH_M + (_below(draw, 4001) - 2000) / 1000
        kind = ("LocationMark", "LocationMark", "LocationMark", "ActionPoint", "ParkPoint")[_below(draw, 5)]
        sketch.node(_name(number), x, y, kind)
        places.append((column, row))
    for number, (column, row) in enumerate(places):
        left = number - 1 if column else None
        below = number - columns if row else None
        # One of the two connects the node; the other is added with probability 1/2.
        ways = [other for other in (left, below) if other is not None]
        if len(ways) == 2 and _below(draw, 2):
            ways.pop(_below(draw, 2))
        for other in ways:
            if odd and _below(draw, 2):
                _odd_join(sketch, draw, _name(other), _name(number))
            else:
                _join(sketch, draw, _name(other), _name(number))
    source = sketch.done()
    return replace(source, sections=_sections(draw, source)) if odd else source


def _name(number: int) -> str:
    return f"N{number:02}"


def _join(sketch: Sketch, draw: Pcg32, a: str, b: str) -> None:
    kind = _below(draw, 10)
    if kind < 5:
        sketch.lane(a, b)
    elif kind < 6:
        sketch.lane(a, b, style=MoveStyle.BACKWARD)
    elif kind < 7:
        _bowed(sketch, draw, a, b)
        sketch.lane(b, a, back=False)
    elif kind < 9:
        _bowed(sketch, draw, a, b, back=True)
    else:
        start, end = sketch.nodes[a].at, sketch.nodes[b].at
        middle = (
            (start.x_um + end.x_um) / 2_000_000 + _below(draw, 200) / 1000,
            (start.y_um + end.y_um) / 2_000_000 + _below(draw, 200) / 1000,
        )
        sketch.polyline(a, b, [middle])


def _odd_join(sketch: Sketch, draw: Pcg32, a: str, b: str) -> None:
    start, end = sketch.nodes[a].at, sketch.nodes[b].at
    dx, dy = (end.x_um - start.x_um) / 1_000_000, (end.y_um - start.y_um) / 1_000_000
    x, y = start.x_um / 1_000_000, start.y_um / 1_000_000
    kind, between = _below(draw, 3), f"{a}{b}"
    if kind == 0:
        # Both ways may be driven forward or backward.
        for from_node, to_node in ((a, b), (b, a)):
            sketch.lane(from_node, to_node, back=False)
            sketch.lane(from_node, to_node, back=False, style=MoveStyle.BACKWARD)
    elif kind == 1:
        # A node in the middle, offset by up to 2 % of the length: a turn of at most 0.08 rad.
        aside = (_below(draw, 41) - 20) / 1000
        sketch.node(between, x + dx / 2 - dy * aside, y + dy / 2 + dx * aside)
        sketch.chain(a, between, b)
    else:
        # A node from 1.4 cm after the start: less than a sliver of a cell.
        part = (1 + _below(draw, 60)) / 1000
        sketch.node(between, x + dx * part, y + dy * part)
        sketch.chain(a, between, b)


def _sections(draw: Pcg32, source: SourceMap) -> tuple[SourceSection, ...]:
    """One section over a whole lane, and perhaps one over the first metre of another lane."""
    lanes = sorted({"<->".join(sorted((edge.start, edge.end))) for edge in source.edges})
    first, second = lanes[_below(draw, len(lanes))], lanes[_below(draw, len(lanes))]
    whole = SourceSection("WHOLE", 1 + _below(draw, 2), (SourceMember(first),))
    if first == second:
        return (whole,)
    return (whole, SourceSection("PART", 1, (SourceMember(second, 0, 1_000_000),)))


def _bowed(sketch: Sketch, draw: Pcg32, a: str, b: str, back: bool = False) -> None:
    """A curve that leaves the straight line by up to two metres."""
    start, end = sketch.nodes[a].at, sketch.nodes[b].at
    dx, dy = (end.x_um - start.x_um) / 1_000_000, (end.y_um - start.y_um) / 1_000_000
    x, y = start.x_um / 1_000_000, start.y_um / 1_000_000
    first, second = (_below(draw, 401) - 200) / 1000, (_below(draw, 401) - 200) / 1000
    first_control = (x + dx / 3 - dy * first, y + dy / 3 + dx * first)
    second_control = (x + dx * 2 / 3 - dy * second, y + dy * 2 / 3 + dx * second)
    sketch.bezier(a, b, first_control, second_control, back=back)


# Maps that are LIVE by construction, each with its fleet: random maps, and grids with spurs.
# Every park is its own dead end, long enough that a truck at rest touches neither the lanes nor the turning disc at
# its mouth; parks are more than two turning discs apart; and two-way lanes connect all nodes.

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


# Realistic warehouses, LIVE by construction: one-way aisles with pick stations, main ways of two lanes below and
# above them, docks above, and parking streets below.
# Traffic keeps to the right. A truck drives along the lower main way, up an aisle, along the upper main way and down
# the next aisle; docks are on the far side of the upper main way, parking streets on the far side of the lower one.
# Every junction of lanes is a curve, so that trucks stop only to load, to dock and to park.

# Distance of the two lanes of a main way: a turn at the mouth of a dock does not block the other lane.
_LANES_M = 3.6
_CURVE_M = 2.5
_AISLES_M = 2 * _CURVE_M
_STATIONS_M = 6.0
_DOCK_M = 7.0
# A parking street goes down on one lane and up on another; spurs are on its outer sides.
_STREET_M = 26.0
_STREET_LANES_M = 6.0
_PARKS_M = 5.5
_BUILT_SPUR_M = 6.0
_PARKS_A_STREET = 20
_PAIR_NODES = 6
_STREET_NODES = 8
_END_NODES = 12


@dataclass(frozen=True, slots=True)
class _Plan:
    """Numbers of pairs of aisles, stations in every aisle, and parks in every street."""

    pairs: int
    stations: tuple[int, ...]
    streets: tuple[int, ...]

    @property
    def upper_m(self) -> float:
        return _LANES_M + 2 * _CURVE_M + (max(self.stations) + 1) * _STATIONS_M


def built_warehouse(parks: int = 20, nodes: int = 300, percent: int = 100) -> Sample:
    """A warehouse with the given numbers of parks and nodes, and trucks for `percent` of the parks."""
    plan = _plan(parks, nodes)
    sketch = Sketch(f"built-{parks}-{nodes}")
    _lower(sketch, plan)
    _upper(sketch, plan)
    for aisle, count in enumerate(plan.stations):
        _aisle(sketch, aisle, count, plan)
    for street, count in enumerate(plan.streets):
        _street(sketch, street, count)
    names = [f"P{street:02}-{park:02}" for street, count in enumerate(plan.streets) for park in range(count)]
    return Sample(sketch.done(), fleet_of(names, _streams(plan), percent))


def _plan(parks: int, nodes: int) -> _Plan:
    full, rest = divmod(parks, _PARKS_A_STREET)
    streets = (_PARKS_A_STREET,) * full + ((rest,) if rest else ())
    pairs = max(nodes // 50, int(len(streets) * _STREET_M / (2 * _AISLES_M)) + 1)
    # Two nodes for the dock of every pair and for every park: the end and the mouth.
    other = _END_NODES + pairs * (_PAIR_NODES + 2) + 2 * parks + _STREET_NODES * len(streets)
    each, more = divmod(nodes - other, 2 * pairs)
    if each < 1:
        raise ValueError(f"{parks} parks with their aisles need at least {other + 2 * pairs} nodes")
    return _Plan(pairs, tuple(each + (aisle < more) for aisle in range(2 * pairs)), streets)


def _streams(plan: _Plan) -> tuple[Stream, ...]:
    """Goods from the aisles of every pair to a dock, and from the dock to the next pair of aisles."""
    result = []
    for pair in range(plan.pairs):
        after = (pair + 1) % plan.pairs
        picks = tuple(_some(plan, 2 * pair) + _some(plan, 2 * pair + 1))
        drops = tuple(_some(plan, 2 * after) + _some(plan, 2 * after + 1))
        result.append(Stream(f"OUT{pair:02}", picks, (f"D{pair:02}",)))
        result.append(Stream(f"IN{pair:02}", (f"D{pair:02}",), drops))
    return tuple(result)


def _some(plan: _Plan, aisle: int) -> list[str]:
    """The first station of an aisle and the one in its middle."""
    return [f"S{aisle:02}-{station:02}" for station in sorted({0, plan.stations[aisle] // 2})]


def _built_junction(pair: int) -> float:
    """The x position at which the curves of a pair of aisles meet the main ways."""
    return pair * 2 * _AISLES_M + _CURVE_M


def _lower(sketch: Sketch, plan: _Plan) -> None:
    """East on the lower lane, past the parking streets; west on the upper lane, past the aisles."""
    for street in range(len(plan.streets)):
        sketch.node(f"IN{street:02}", *_entry(street))
        sketch.node(f"OUT{street:02}", *_exit(street))
    east = [name for street in range(len(plan.streets)) for name in (f"IN{street:02}", f"OUT{street:02}")]
    west = [f"L{pair:02}" for pair in reversed(range(plan.pairs))]
    for pair in range(plan.pairs):
        sketch.node(f"L{pair:02}", _built_junction(pair), _LANES_M)
    _ring(sketch, "L", 0.0, plan.pairs, east, west)


def _upper(sketch: Sketch, plan: _Plan) -> None:
    """East on the lower lane, past the aisles; west on the upper lane, past the docks."""
    for pair in range(plan.pairs):
        x = _built_junction(pair)
        sketch.node(f"U{pair:02}", x, plan.upper_m)
        sketch.node(f"M{pair:02}", x, plan.upper_m + _LANES_M)
        sketch.node(f"D{pair:02}", x, plan.upper_m + _LANES_M + _DOCK_M, "ActionPoint")
        sketch.lane(f"M{pair:02}", f"D{pair:02}")
    east = [f"U{pair:02}" for pair in range(plan.pairs)]
    west = [f"M{pair:02}" for pair in reversed(range(plan.pairs))]
    _ring(sketch, "U", plan.upper_m, plan.pairs, east, west)


def _ring(sketch: Sketch, name: str, y: float, pairs: int, east: list[str], west: list[str]) -> None:
    """The two lanes of a main way, joined by curves at both ends."""
    left, right, half = -2 * _AISLES_M, pairs * 2 * _AISLES_M + _AISLES_M, _LANES_M / 2
    for suffix, x, height in (
        ("-W0", left, y),
        ("-W1", left - half, y + half),
        ("-W2", left, y + _LANES_M),
        ("-E0", right, y),
        ("-E1", right + half, y + half),
        ("-E2", right, y + _LANES_M),
    ):
        sketch.node(name + suffix, x, height)
    sketch.chain(f"{name}-W0", *east, f"{name}-E0", back=False)
    sketch.chain(f"{name}-E2", *west, f"{name}-W2", back=False)
    quarter(sketch, f"{name}-E0", f"{name}-E1", (right + half, y), back=False)
    quarter(sketch, f"{name}-E1", f"{name}-E2", (right + half, y + _LANES_M), back=False)
    quarter(sketch, f"{name}-W2", f"{name}-W1", (left - half, y + _LANES_M), back=False)
    quarter(sketch, f"{name}-W1", f"{name}-W0", (left - half, y), back=False)


def _aisle(sketch: Sketch, aisle: int, count: int, plan: _Plan) -> None:
    """An aisle, driven up if its number is even and down if odd; stations are numbered from below."""
    pair, down = divmod(aisle, 2)
    x, low, high = aisle * _AISLES_M, _LANES_M + _CURVE_M, plan.upper_m - _CURVE_M
    bottom, top = sketch.node(f"A{aisle:02}-L", x, low), sketch.node(f"A{aisle:02}-U", x, high)
    stations = [
        sketch.node(f"S{aisle:02}-{number:02}", x, low + (number + 1) * _STATIONS_M, "ActionPoint")
        for number in range(count)
    ]
    lower, upper = f"L{pair:02}", f"U{pair:02}"
    way = (bottom, *stations, top)
    sketch.chain(*(reversed(way) if down else way), back=False)
    if down:
        quarter(sketch, upper, top, (x, plan.upper_m), back=False)
        quarter(sketch, bottom, lower, (x, _LANES_M), back=False)
    else:
        quarter(sketch, lower, bottom, (x, _LANES_M), back=False)
        quarter(sketch, top, upper, (x, plan.upper_m), back=False)


def _entry(street: int) -> tuple[float, float]:
    return street * _STREET_M, 0.0


def _exit(street: int) -> tuple[float, float]:
    return street * _STREET_M + 2 * _CURVE_M + _STREET_LANES_M, 0.0


def _street(sketch: Sketch, street: int, count: int) -> None:
    """Down, across and up again: a spur at every mouth, to the west on the way down, to the east on the way up."""
    down_x, name = _entry(street)[0] + _CURVE_M, f"{street:02}"
    up_x = down_x + _STREET_LANES_M
    first = (count + 1) // 2
    bottom = -_CURVE_M - (first + 1) * _PARKS_M
    sketch.node(f"V{name}-0", down_x, -_CURVE_M)
    sketch.node(f"V{name}-1", down_x, bottom)
    sketch.node(f"V{name}-2", down_x + _CURVE_M, bottom - _CURVE_M)
    sketch.node(f"V{name}-3", up_x - _CURVE_M, bottom - _CURVE_M)
    sketch.node(f"V{name}-4", up_x, bottom)
    sketch.node(f"V{name}-5", up_x, -_CURVE_M)
    mouths: tuple[list[str], list[str]] = ([], [])
    for park in range(count):
        up, place = divmod(park, first)
        x, y = (up_x if up else down_x), -_CURVE_M - (place + 1) * _PARKS_M
        mouths[up].append(sketch.node(f"Q{name}-{park:02}", x, y))
        sketch.node(f"P{name}-{park:02}", x + (_BUILT_SPUR_M if up else -_BUILT_SPUR_M), y, "ParkPoint")
        sketch.lane(f"Q{name}-{park:02}", f"P{name}-{park:02}")
    quarter(sketch, f"IN{name}", f"V{name}-0", (down_x, 0.0), back=False)
    sketch.chain(f"V{name}-0", *mouths[0], f"V{name}-1", back=False)
    quarter(sketch, f"V{name}-1", f"V{name}-2", (down_x, bottom - _CURVE_M), back=False)
    sketch.lane(f"V{name}-2", f"V{name}-3", back=False)
    quarter(sketch, f"V{name}-3", f"V{name}-4", (up_x, bottom - _CURVE_M), back=False)
    sketch.chain(f"V{name}-4", *reversed(mouths[1]), f"V{name}-5", back=False)
    quarter(sketch, f"V{name}-5", f"OUT{name}", (up_x, 0.0), back=False)


# Bundled sample maps by name, with their fleets if they have any.

NO_FLEET = Fleet(())


def _hall(trucks: int = 4) -> Sample:
    return Sample(samples.reference_hall(), samples.reference_fleet(trucks))


def _plain(make: Callable[[], SourceMap]) -> Callable[..., Sample]:
    return lambda: Sample(make(), NO_FLEET)


def _near_lanes(gapCm: int = 170, apartCm: int = 400, endsCm: int = 0) -> Sample:
    return Sample(samples.near_lanes(gapCm / 100, apartCm / 100, endsCm / 100), NO_FLEET)


def _tail_swing(laneCm: int = 510) -> Sample:
    return Sample(samples.tail_swing_bend(laneCm / 100), NO_FLEET)


def _triangle(side: int = 12, stub: int = 8, park: int = 0) -> Sample:
    return Sample(samples.triangle(side, stub, park), NO_FLEET)


# For every sample its factory and its options.
SAMPLES: Mapping[str, tuple[Callable[..., Sample], tuple[str, ...]]] = {
    "reference-hall": (_hall, ("trucks",)),
    "built-warehouse": (built_warehouse, ("parks", "nodes", "percent")),
    "spur-grid": (spur_grid, ("columns", "rows", "percent")),
    "live-map": (live_map, ("seed", "parks", "percent")),
    "hall-demo": (_plain(samples.hall_demo), ()),
    "head-on-lane": (_plain(samples.head_on_lane), ()),
    "plus-crossing": (_plain(samples.plus_crossing), ()),
    "near-lanes": (_near_lanes, ("gapCm", "apartCm", "endsCm")),
    "tail-swing-bend": (_tail_swing, ("laneCm",)),
    "triangle": (_triangle, ("side", "stub", "park")),
    "spur": (_plain(samples.spur), ()),
}
# The least and greatest value of an option; `USUAL` for all others.
LIMITS: Mapping[str, tuple[int, int]] = {
    "seed": (0, 2**32),
    "trucks": (1, 4),
    "percent": (1, 100),
    "columns": (2, 100),
    "rows": (2, 100),
    "parks": (1, 1_000),
    "side": (3, 1_000),
    "park": (0, 1_000),
    "endsCm": (0, 10_000),
}
USUAL = (1, 10_000)


def sample_of(name: str, options: Mapping[str, int]) -> Sample:
    """Create a sample; raises `ValueError` if the options contradict each other."""
    make, _ = SAMPLES[name]
    return make(**options)
