"""Random planar maps for property tests: the same seed gives the same map on every machine."""

from msgspec.structs import replace

from pendula.fleet.model import MoveStyle, SourceMap, SourceMember, SourceSection
from pendula.fleet.samples.scenes import Sketch
from pendula.kernel.rng import Pcg32

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


def _below(draw: Pcg32, bound: int) -> int:
    return draw.next() % bound


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
