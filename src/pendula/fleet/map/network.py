"""The network of a map: nodes, directed edges, groups of edges that are one physical lane, transitions, limits."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import sqrt

import numpy as np
from numpy.typing import NDArray

from pendula.fleet.map.geometry import Path, longest_um, turn_urad
from pendula.fleet.model import CurveKind, MoveStyle, Point, SourceEdge
from pendula.fleet.units import PI_URAD, wrapped_urad
from pendula.kernel.limits import Limit


@dataclass(frozen=True, slots=True)
class Node:
    id: str
    at: Point
    kind: str
    station: bool
    parking: bool
    # Whether trucks may turn there; otherwise no disc has to be free.
    turning: bool = True


@dataclass(frozen=True, slots=True)
class Edge:
    """A directed edge; `start` and `end` are numbers of nodes, `forward_on_axis` is its direction along its group."""

    key: str
    group_key: str
    source_id: str
    start: int
    end: int
    style: MoveStyle
    width_um: int | None
    path: Path
    forward_on_axis: bool
    # Restrictions by the author: speed limit, profiles (empty for all), and an extra cost.
    max_speed_um_s: int | None = None
    allowed_profiles: tuple[str, ...] = ()
    penalty_ms: int = 0


@dataclass(frozen=True, slots=True)
class Group:
    """The edges of one physical lane; its axis runs from the smaller node id to the larger."""

    key: str
    a: int
    b: int
    edges: tuple[int, ...]
    length_um: int


@dataclass(frozen=True, slots=True)
class Network:
    map_id: str
    nodes: tuple[Node, ...]
    edges: tuple[Edge, ...]
    groups: tuple[Group, ...]
    outgoing: tuple[tuple[int, ...], ...]
    incoming: tuple[tuple[int, ...], ...]
    # Groups that meet in a node, by node.
    meeting: tuple[tuple[int, ...], ...]
    group_of: tuple[int, ...]

    def degree(self, node: int) -> int:
        return len(self.meeting[node])


def build_network(map_id: str, nodes: tuple[Node, ...], edges: tuple[Edge, ...]) -> Network:
    """Build a network from sorted nodes and edges."""
    members: dict[str, list[int]] = {}
    for i, edge in enumerate(edges):
        members.setdefault(edge.group_key, []).append(i)
    groups = tuple(_group(key, members[key], edges) for key in sorted(members))
    meeting: list[list[int]] = [[] for _ in nodes]
    group_of = [0] * len(edges)
    for i, group in enumerate(groups):
        meeting[group.a].append(i)
        meeting[group.b].append(i)
        for edge_number in group.edges:
            group_of[edge_number] = i
    outgoing: list[list[int]] = [[] for _ in nodes]
    incoming: list[list[int]] = [[] for _ in nodes]
    for i, edge in enumerate(edges):
        outgoing[edge.start].append(i)
        incoming[edge.end].append(i)
    return Network(
        map_id=map_id,
        nodes=nodes,
        edges=edges,
        groups=groups,
        outgoing=_frozen(outgoing),
        incoming=_frozen(incoming),
        meeting=_frozen(meeting),
        group_of=tuple(group_of),
    )


def _frozen(lists: list[list[int]]) -> tuple[tuple[int, ...], ...]:
    return tuple(map(tuple, lists))


def _group(key: str, members: list[int], edges: tuple[Edge, ...]) -> Group:
    first = edges[members[0]]
    a, b = (first.start, first.end) if first.forward_on_axis else (first.end, first.start)
    return Group(key, a, b, tuple(members), max(edges[i].path.length_um for i in members))


# Connected parts of a network, and nodes that can reach each other.


def components(network: Network) -> list[tuple[int, ...]]:
    """The parts connected regardless of direction, each sorted, in the order of their smallest node."""
    seen: set[int] = set()
    parts = []
    for start in range(len(network.nodes)):
        if start in seen:
            continue
        part, queue = {start}, [start]
        while queue:
            node = queue.pop()
            for group in network.meeting[node]:
                for end in (network.groups[group].a, network.groups[group].b):
                    if end not in part:
                        part.add(end)
                        queue.append(end)
        seen |= part
        parts.append(tuple(sorted(part)))
    return parts


def network_numbers(network: Network) -> list[int]:
    """For every node the number of its connected part."""
    result = [0] * len(network.nodes)
    for number, part in enumerate(components(network)):
        for node in part:
            result[node] = number
    return result


def main_component(network: Network, stops: Sequence[int]) -> frozenset[int]:
    """The set of nodes that can all reach each other and contains most of `stops`."""
    best: frozenset[int] = frozenset()
    best_count = 0
    seen: set[int] = set()
    for node in stops:
        if node in seen:
            continue
        both = _reached(network, node, True) & _reached(network, node, False)
        seen |= both
        count = sum(other in both for other in stops)
        # A single isolated station does not count as a component.
        if count > best_count and (len(both) > 1 or len(network.nodes) == 1):
            best, best_count = frozenset(both), count
    return best


def _reached(network: Network, start: int, forward: bool) -> set[int]:
    seen, queue = {start}, [start]
    while queue:
        node = queue.pop()
        for edge in network.outgoing[node] if forward else network.incoming[node]:
            end = network.edges[edge].end if forward else network.edges[edge].start
            if end not in seen:
                seen.add(end)
                queue.append(end)
    return seen


# Transitions from one edge to the next: tangent, or with a turn on the spot.

Ints = NDArray[np.int64]


@dataclass(frozen=True, eq=False, slots=True)
class Transitions:
    """All pairs (edge in, edge out) of every node, sorted; pairs with a turn in a node without turning are excluded.
    `first[e]` is the first transition out of edge e."""

    first: Ints
    out: Ints
    tangent: NDArray[np.bool_]
    turn_urad: Ints

    def of(self, edge: int) -> range:
        return range(int(self.first[edge]), int(self.first[edge + 1]))


def truck_yaw(tangent_urad: int, style: MoveStyle) -> int:
    """The yaw of the truck: along the tangent, or against it when the edge is driven backward."""
    if style is MoveStyle.FORWARD:
        return tangent_urad
    # Twice `PI_URAD` is one microradian more than a whole turn.
    return 0 if tangent_urad == PI_URAD else wrapped_urad(tangent_urad + PI_URAD)


def transitions_of(network: Network, tangent_eps_urad: int) -> Transitions:
    first = [0]
    out: list[int] = []
    tangent: list[bool] = []
    turns: list[int] = []
    for edge in network.edges:
        arriving = edge.path.yaws[-1][1]
        for after in network.outgoing[edge.end]:
            onward = network.edges[after]
            leaving = onward.path.yaws[0][0]
            turn = turn_urad(truck_yaw(arriving, edge.style), truck_yaw(leaving, onward.style))
            if abs(turn) > tangent_eps_urad and not network.nodes[edge.end].turning:
                continue
            out.append(after)
            bend = abs(turn_urad(arriving, leaving))
            tangent.append(bend <= tangent_eps_urad and edge.style is onward.style)
            turns.append(turn)
        first.append(len(out))
    return Transitions(
        np.array(first, dtype=np.int64),
        np.array(out, dtype=np.int64),
        np.array(tangent, dtype=np.bool_),
        np.array(turns, dtype=np.int64),
    )


# Limits of the size of a map, checked before compilation, which bound the time of the compiler.
# Every limit is many times the need of a real hall; a map of 1000 nodes has about 12 km of lanes and 4000
# transitions.

MAP_NODES = Limit("map_nodes", 20_000, "nodes", "map_too_large", "The map has too many nodes")
MAP_METRES = Limit("map_metres", 100_000, "m", "map_too_large", "The lanes of the map are too long together")
MAP_POSES = Limit("map_poses", 4_000_000, "poses", "map_too_large", "The curves of the map need too many poses")
MAP_TRANSITIONS = Limit(
    "map_transitions", 200_000, "transitions", "map_too_dense", "Too many edges meet in the same nodes"
)
MAP_OVERLAPS = Limit("map_overlaps", 100_000, "pairs", "map_too_dense", "Too many turning discs overlap")
MAP_PAIRS = Limit("map_pairs", 6_000_000, "pairs", "map_too_dense", "Too many cells overlap")
# Limits of one curve, measured along its control points, and of one polyline.
CURVE_M = 250
POLYLINE_POINTS = 1000


def drawn_um(edge: SourceEdge, start: Point, end: Point) -> int:
    """The length of the line through all points of an edge: an upper bound of the length of the edge."""
    points = [start, *edge.points, end]
    total = 0.0
    for a, b in pairwise(points):
        dx, dy = float(b.x_um - a.x_um), float(b.y_um - a.y_um)
        total += sqrt(dx * dx + dy * dy)
    return int(total)


def _long(edge: SourceEdge, start: Point, end: Point) -> bool:
    whole = longest_um(start, edge.points[0], end) if edge.kind is CurveKind.ARC else drawn_um(edge, start, end)
    return whole > CURVE_M * 1_000_000


def oversize(edge: SourceEdge, start: Point, end: Point) -> str | None:
    """The end of a sentence about a limit that an edge exceeds; None if it exceeds none."""
    if edge.kind in (CurveKind.POLYLINE, CurveKind.SPLINE) and len(edge.points) > POLYLINE_POINTS:
        return f"has {len(edge.points)} points; the limit is {POLYLINE_POINTS}"
    if edge.kind in (CurveKind.BEZIER, CurveKind.ARC, CurveKind.SPLINE) and _long(edge, start, end):
        return f"is longer than the {CURVE_M} m allowed for a curve"
    return None
