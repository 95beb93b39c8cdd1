"""The small scenes of the test specification as source maps, and the reference truck."""

from itertools import pairwise

from pendula.fleet.model import CurveKind, Direction, MoveStyle, Point, SourceEdge, SourceMap, SourceNode
from pendula.fleet.trucks.profiles import ErrorValue, RobotProfile, Source

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
