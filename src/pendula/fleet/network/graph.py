"""The graph of a map: nodes, directed edges, groups of edges that are one physical lane, and their adjacency."""

from dataclasses import dataclass

from pendula.fleet.geometry.paths import Path
from pendula.fleet.model import MoveStyle, Point


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
