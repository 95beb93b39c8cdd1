"""Sample maps with fixed geometry: small scenes and halls, their fleets, and `Sketch` to draw others."""

from collections.abc import Mapping
from itertools import pairwise

from pendula.fleet.map.trucks import ErrorValue, RobotProfile, Source
from pendula.fleet.model import (
    CurveKind,
    Direction,
    Fleet,
    MoveStyle,
    Point,
    SourceEdge,
    SourceMap,
    SourceNode,
    Stream,
    Truck,
)

# The reference truck of all examples.
FL_STD = RobotProfile(
    profile_id="FL-STD",
    head_um=1_300_000,
    tail_um=1_700_000,
    width_um=1_000_000,
    safety_front_um=600_000,
    safety_rear_um=400_000,
    safety_side_um=200_000,
    localization_error=ErrorValue(100_000, Source.MEASURED, "P95, hall test 2026-01"),
    tracking_error=ErrorValue(80_000, Source.ASSUMED, "vendor statement"),
    extra_margin_um=20_000,
    min_following_gap_um=500_000,
    v_max_um_s=1_200_000,
    accel_um_s2=600_000,
    brake_um_s2=800_000,
    latency_us=450_000,
    turn_rate_urad_s=500_000,
    min_turn_radius_um=1_500_000,
    capabilities=("stop", "pause", "resume", "turnInPlace", "speedLimit", "ackSeq", "pathSlice"),
)
# A quarter circle as a cubic: distance of the controls from the ends, in millionths of the radius.
_KAPPA = 552_285


class Sketch:
    """A map under construction; coordinates are in metres."""

    def __init__(self, map_id: str) -> None:
        self.map_id = map_id
        self.nodes: dict[str, SourceNode] = {}
        self.edges: list[SourceEdge] = []

    def node(self, name: str, x: float, y: float, kind: str = "LocationMark") -> str:
        self.nodes[name] = SourceNode(name, point(x, y), kind)
        return name

    def lane(self, start: str, end: str, *, back: bool = True, style: MoveStyle = MoveStyle.FORWARD) -> None:
        """A straight edge, and by default its way back."""
        self._add(start, end, style)
        if back:
            self._add(end, start, MoveStyle.FORWARD)

    def chain(self, *names: str, back: bool = True) -> None:
        for start, end in pairwise(names):
            self.lane(start, end, back=back)

    def bezier(
        self, start: str, end: str, first: tuple[float, float], second: tuple[float, float], *, back: bool = True
    ) -> None:
        controls = (point(*first), point(*second))
        direction = Direction.BOTH if back else Direction.START_TO_END
        self.edges.append(SourceEdge(self._next(), start, end, CurveKind.BEZIER, controls, direction=direction.value))

    def polyline(self, start: str, end: str, inner: list[tuple[float, float]], *, back: bool = True) -> None:
        direction = Direction.BOTH if back else Direction.START_TO_END
        points = tuple(point(*position) for position in inner)
        ends = self.nodes[start].at, self.nodes[end].at
        self.edges.append(
            SourceEdge(self._next(), start, end, CurveKind.POLYLINE, points, *ends, direction=direction.value)
        )

    def done(self) -> SourceMap:
        return SourceMap(self.map_id, tuple(self.nodes.values()), tuple(self.edges))

    def _add(self, start: str, end: str, style: MoveStyle) -> None:
        self.edges.append(SourceEdge(self._next(), start, end, style=style.value))

    def _next(self) -> str:
        return f"e{len(self.edges) + 1:05}"


def point(x: float, y: float) -> Point:
    return Point(round(x * 1_000_000), round(y * 1_000_000))


def quarter(sketch: Sketch, start: str, end: str, corner: tuple[float, float], *, back: bool = True) -> None:
    """A bend of 90 degrees between two nodes on the two lines through `corner`, at the same distance from it."""
    a, b = sketch.nodes[start].at, sketch.nodes[end].at
    c = point(*corner)

    def toward(end: Point) -> tuple[float, float]:
        return (
            (end.x_um + (c.x_um - end.x_um) * _KAPPA / 1_000_000) / 1_000_000,
            (end.y_um + (c.y_um - end.y_um) * _KAPPA / 1_000_000) / 1_000_000,
        )

    sketch.bezier(start, end, toward(a), toward(b), back=back)


def hall_demo() -> SourceMap:
    """The map of the contract examples."""
    sketch = Sketch("hall-demo")
    for name, x, y, kind in (
        ("LM1", 0.0, 0.0, "LocationMark"),
        ("LM2", 10.0, 0.0, "LocationMark"),
        ("LM3", 10.0, -12.0, "LocationMark"),
        ("AP1", 16.0, 0.0, "ActionPoint"),
        ("LM7", -10.0, 1.7, "LocationMark"),
        ("LM8", 20.0, 1.7, "LocationMark"),
        ("PK1", 2.0, -12.0, "ParkPoint"),
        ("PK2", 10.0, -20.0, "ParkPoint"),
    ):
        sketch.node(name, x, y, kind)
    sketch.lane("LM1", "LM2")
    sketch.lane("LM2", "AP1", style=MoveStyle.BACKWARD)
    sketch.lane("LM7", "LM8", back=False)
    sketch.chain("LM2", "LM3", "PK1")
    sketch.lane("LM3", "PK2")
    return sketch.done()


def head_on_lane() -> SourceMap:
    """A single lane of 30 m with two branches at both ends."""
    sketch = Sketch("head-on-lane")
    sketch.node("A", 10, 0)
    sketch.node("B", 40, 0)
    for name, x, y in (("W1", 0, 6), ("W2", 0, -6), ("E1", 50, 6), ("E2", 50, -6)):
        sketch.node(name, x, y)
    for start, end in (("W1", "A"), ("W2", "A"), ("A", "B"), ("B", "E1"), ("B", "E2")):
        sketch.lane(start, end)
    return sketch.done()


def plus_crossing(arm: float = 12.0) -> SourceMap:
    """Four arms of 12 m around a node."""
    sketch = Sketch("plus-crossing")
    sketch.node("X", 0, 0)
    for name, x, y in (("E", arm, 0.0), ("N", 0.0, arm), ("S", 0.0, -arm), ("W", -arm, 0.0)):
        sketch.node(name, x, y)
        sketch.lane("X", name)
    return sketch.done()


def triangle(side: float = 12.0, stub: float = 8.0, park: float = 0.0) -> SourceMap:
    """Three corners with a stub each; with `park` also a parking spur of that length, 120 degrees from the stub."""
    sketch = Sketch("triangle")
    height = side * 0.8660254037844386
    centre = (side / 2, height / 3)
    corners = {"A": (0.0, 0.0), "B": (side, 0.0), "C": (side / 2, height)}
    far = ((side / 2) ** 2 + (height / 3) ** 2) ** 0.5
    for name, (x, y) in corners.items():
        sketch.node(name, x, y)
        out = ((x - centre[0]) / far, (y - centre[1]) / far)
        left, right = (_turned(out, 1), _turned(out, -1)) if park else (out, out)
        sketch.node(f"{name}S", x + left[0] * stub, y + left[1] * stub, "ActionPoint")
        sketch.lane(name, f"{name}S")
        if park:
            sketch.node(f"{name}P", x + right[0] * park, y + right[1] * park, "ParkPoint")
            sketch.lane(name, f"{name}P")
    sketch.chain("A", "B", "C", "A")
    return sketch.done()


def _turned(way: tuple[float, float], sign: int) -> tuple[float, float]:
    """A direction turned by 60 degrees."""
    cos, sin = 0.5, 0.8660254037844386 * sign
    return way[0] * cos - way[1] * sin, way[0] * sin + way[1] * cos


def ring_with_bypass() -> SourceMap:
    """A ring of four long sides and a way through its middle."""
    sketch = Sketch("ring-with-bypass")
    for name, x, y in (("A", 0, 0), ("B", 30, 0), ("C", 30, 20), ("D", 0, 20), ("M", 0, 10), ("N", 30, 10)):
        sketch.node(name, x, y)
    sketch.chain(*"ABNCDMA")
    sketch.lane("M", "N")
    return sketch.done()


def near_lanes(gap: float = 1.7, apart: float = 4.0, ends: float = 0.0) -> SourceMap:
    """Two separate lanes, `gap` apart for 10 m and `apart` elsewhere; with `ends` the second one continues to nodes far
    enough from the first that a truck can rest in each of them."""
    sketch = Sketch("near-lanes")
    sketch.node("A1", 0, 0)
    sketch.node("A2", 60, 0)
    sketch.lane("A1", "A2")
    west, east = ("B0", "B3") if ends else ("B1", "B2")
    sketch.node(west, 0, apart)
    sketch.node(east, 60, apart)
    sketch.node("BA", 25, gap)
    sketch.node("BB", 35, gap)
    sketch.bezier(west, "BA", (12, apart), (13, gap))
    sketch.lane("BA", "BB")
    sketch.bezier("BB", east, (47, gap), (48, apart))
    if ends:
        sketch.node("B1", -15, ends)
        sketch.node("B2", 75, ends)
        sketch.bezier("B1", west, (-8, ends), (-7, apart))
        sketch.bezier(east, "B2", (67, apart), (68, ends))
    return sketch.done()


def tail_swing_bend(lane_at: float = 5.10, radius: float = 3.0) -> SourceMap:
    """A bend of 3 m around the origin, and a straight lane beside it whose centre line is `lane_at` away."""
    sketch = Sketch("tail-swing-bend")
    sketch.node("A", radius, -20)
    sketch.node("B", radius, 0)
    sketch.node("C", 0, radius)
    sketch.node("D", -20, radius)
    sketch.lane("A", "B", back=False)
    quarter(sketch, "B", "C", (radius, radius), back=False)
    sketch.lane("C", "D", back=False)
    # The lane is closest to the bend at its middle.
    reach = 12.0
    half = 0.7071067811865476
    x, y = lane_at * half, lane_at * half
    sketch.node("L1", x + reach * half, y - reach * half)
    sketch.node("L2", x - reach * half, y + reach * half)
    sketch.lane("L1", "L2", back=False)
    return sketch.done()


def spur(length: float = 8.0) -> SourceMap:
    """A through lane with one dead end that contains a pick."""
    sketch = Sketch("spur")
    sketch.node("W", -20, 0)
    sketch.node("M", 0, 0)
    sketch.node("E", 20, 0)
    sketch.node("P", 0, length, "ActionPoint")
    sketch.chain("W", "M", "E")
    sketch.lane("M", "P")
    return sketch.done()


def straight_lane(length: float = 60.0, back: bool = True) -> SourceMap:
    sketch = Sketch("straight-lane")
    sketch.node("A", 0, 0)
    sketch.node("B", length, 0)
    sketch.lane("A", "B", back=back)
    return sketch.done()


# Halls for benchmarks: the reference hall of twelve nodes, warehouses of any size, and plain grids.

_AISLE_M = 6.0
_SLOT_M = 6.0
_SPUR_M = 8.0


def reference_hall() -> SourceMap:
    """Six junctions, two stations and four parking spurs: twelve nodes."""
    sketch = Sketch("reference-hall")
    for name, x, y in (("A1", 0, 0), ("A2", 14, 0), ("A3", 28, 0), ("B1", 0, 14), ("B2", 14, 14), ("B3", 28, 14)):
        sketch.node(name, x, y)
    sketch.node("WEST", -9, 0, "ActionPoint")
    sketch.node("EAST", 37, 14, "ActionPoint")
    for name, x, y in (("P1", 14, -8), ("P2", 28, -8), ("P3", 0, 22), ("P4", 14, 22)):
        sketch.node(name, x, y, "ParkPoint")
    sketch.chain("A1", "A2", "A3")
    sketch.chain("B1", "B2", "B3")
    for start, end in (("A1", "B1"), ("A2", "B2"), ("A3", "B3"), ("A1", "WEST"), ("B3", "EAST")):
        sketch.lane(start, end)
    for start, end in (("A2", "P1"), ("A3", "P2"), ("B1", "P3"), ("B2", "P4")):
        sketch.lane(start, end)
    return sketch.done()


def reference_fleet(trucks: int = 3) -> Fleet:
    """Up to four trucks of the reference hall, and its two streams."""
    return Fleet(
        tuple(Truck(f"R{i}", "FL-STD", f"P{i}") for i in range(1, trucks + 1)),
        (Stream("S-OUT", ("WEST",), ("EAST",)), Stream("S-BACK", ("EAST",), ("WEST",))),
    )


def warehouse(aisles: int = 13, slots: int = 20, side_spurs: int = 7) -> SourceMap:
    """Storage aisles between two cross aisles that are one-way except for their last piece; parking spurs below,
    stations above, and curved spurs at the sides. With the defaults 300 nodes and 600 edges."""
    sketch = Sketch(f"warehouse-{aisles}x{slots}")
    for aisle in range(aisles):
        for slot in range(slots):
            sketch.node(_slot(aisle, slot), aisle * _AISLE_M, slot * _SLOT_M)
        sketch.chain(*(_slot(aisle, slot) for slot in range(slots)))
    for aisle in range(aisles - 1):
        last = aisle == aisles - 2
        sketch.lane(_slot(aisle, 0), _slot(aisle + 1, 0), back=last)
        sketch.lane(_slot(aisle + 1, slots - 1), _slot(aisle, slots - 1), back=last)
    for aisle in range(aisles):
        x = aisle * _AISLE_M
        sketch.node(f"P{aisle:03}", x, -_SPUR_M, "ParkPoint")
        sketch.lane(_slot(aisle, 0), f"P{aisle:03}")
        sketch.node(f"T{aisle:03}", x, (slots - 1) * _SLOT_M + _SPUR_M, "ActionPoint")
        sketch.lane(_slot(aisle, slots - 1), f"T{aisle:03}")
    for spur in range(side_spurs):
        _side_spurs(sketch, spur, aisles)
    return sketch.done()


def large() -> SourceMap:
    """A warehouse of 1000 nodes."""
    return warehouse(25, 38, 0)


def _slot(aisle: int, slot: int) -> str:
    return f"S{aisle:03}-{slot:03}"


def _side_spurs(sketch: Sketch, spur: int, aisles: int) -> None:
    """A curved parking spur to the west and a curved station to the east."""
    slot = 2 * spur + 2
    y, east = slot * _SLOT_M, (aisles - 1) * _AISLE_M
    sketch.node(f"W{spur:03}", -10, y + 1.5, "ParkPoint")
    sketch.bezier(_slot(0, slot), f"W{spur:03}", (-5, y), (-5, y + 1.5))
    sketch.node(f"E{spur:03}", east + 10, y + 1.5, "ActionPoint")
    sketch.bezier(_slot(aisles - 1, slot), f"E{spur:03}", (east + 5, y), (east + 5, y + 1.5))


def grid(columns: int, rows: int, spacing: float = 8.0) -> SourceMap:
    """A plain grid of two-way lanes."""
    sketch = Sketch(f"grid-{columns}x{rows}")
    for column in range(columns):
        for row in range(rows):
            sketch.node(_slot(column, row), column * spacing, row * spacing)
    for column in range(columns):
        sketch.chain(*(_slot(column, row) for row in range(rows)))
    for row in range(rows):
        sketch.chain(*(_slot(column, row) for column in range(columns)))
    return sketch.done()


# Fleets for which scenes and halls are LIVE: trucks with rest nodes, and one stream of goods.
# The one-way bend has no stream, since trucks cannot come back: they start at the nodes in `SCENE_STARTS` and drive
# to their rest nodes.

_CARRIERS = 5


def _warehouse(aisles: int) -> Fleet:
    """Trucks in the first parking spurs, goods from the first station to the last."""
    parks = [f"P{aisle:03}" for aisle in range(_CARRIERS)]
    trucks = tuple(Truck(f"R{number}", "FL-STD", park) for number, park in enumerate(parks, 1))
    return Fleet(trucks, (Stream("S1", ("T000", "T001"), (f"T{aisles - 1:03}",)),))


def _fleet(rests: tuple[str, ...], pick: str, drop: str) -> Fleet:
    trucks = tuple(Truck(f"R{number}", "FL-STD", rest) for number, rest in enumerate(rests, 1))
    return Fleet(trucks, (Stream("S1", (pick,), (drop,)),))


SCENE_FLEETS: Mapping[str, Fleet] = {
    "hall-demo": _fleet(("PK1", "PK2"), "AP1", "LM1"),
    "head-on-lane": _fleet(("W1", "E2"), "E1", "W2"),
    "plus-crossing": _fleet(("W", "S"), "E", "N"),
    "triangle": _fleet(("AS", "BS"), "CS", "C"),
    "ring-with-bypass": _fleet(("A",), "C", "D"),
    "near-lanes": _fleet(("A1",), "A2", "A1"),
    "spur": _fleet(("W", "E"), "P", "M"),
    "straight-lane": _fleet(("A",), "B", "A"),
    "tail-swing-bend": Fleet((Truck("R1", "FL-STD", "D"), Truck("R2", "FL-STD", "L2"))),
    "hall": reference_fleet(),
    "warehouse": _warehouse(13),
    "large": _warehouse(25),
}
# Start nodes of trucks that do not start at rest.
SCENE_STARTS: Mapping[str, Mapping[str, str]] = {"tail-swing-bend": {"R1": "A", "R2": "L1"}}
