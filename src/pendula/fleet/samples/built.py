"""Realistic warehouses, LIVE by construction: one-way aisles with pick stations, main ways of two lanes below and above
them, docks above, and parking streets below.

Traffic keeps to the right. A truck drives along the lower main way, up an aisle, along the upper main way and down the
next aisle; docks are on the far side of the upper main way, parking streets on the far side of the lower one. Every
junction of lanes is a curve, so that trucks stop only to load, to dock and to park.
"""

from dataclasses import dataclass

from pendula.fleet.model import Stream
from pendula.fleet.samples.live_maps import Sample, fleet_of
from pendula.fleet.samples.scenes import Sketch, quarter

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
_SPUR_M = 6.0
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


def _junction(pair: int) -> float:
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
        sketch.node(f"L{pair:02}", _junction(pair), _LANES_M)
    _ring(sketch, "L", 0.0, plan.pairs, east, west)


def _upper(sketch: Sketch, plan: _Plan) -> None:
    """East on the lower lane, past the aisles; west on the upper lane, past the docks."""
    for pair in range(plan.pairs):
        x = _junction(pair)
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
        sketch.node(f"P{name}-{park:02}", x + (_SPUR_M if up else -_SPUR_M), y, "ParkPoint")
        sketch.lane(f"Q{name}-{park:02}", f"P{name}-{park:02}")
    quarter(sketch, f"IN{name}", f"V{name}-0", (down_x, 0.0), back=False)
    sketch.chain(f"V{name}-0", *mouths[0], f"V{name}-1", back=False)
    quarter(sketch, f"V{name}-1", f"V{name}-2", (down_x, bottom - _CURVE_M), back=False)
    sketch.lane(f"V{name}-2", f"V{name}-3", back=False)
    quarter(sketch, f"V{name}-3", f"V{name}-4", (up_x, bottom - _CURVE_M), back=False)
    sketch.chain(f"V{name}-4", *reversed(mouths[1]), f"V{name}-5", back=False)
    quarter(sketch, f"V{name}-5", f"OUT{name}", (up_x, 0.0), back=False)
