"""A source map in normal form: sorted nodes, directed edges with keys and curves, numbered lanes.

Invalid parts are left out and reported, so that one run finds every fault. Nothing here depends on the order of the
source.
"""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np
from msgspec.structs import replace
from numpy.typing import NDArray

from pendula.fleet.compiler.curves import Curve, arc, bezier, polyline, spline, straight
from pendula.fleet.map.geometry import Path
from pendula.fleet.map.network import (
    MAP_METRES,
    MAP_NODES,
    MAP_POSES,
    MAP_TRANSITIONS,
    Edge,
    Network,
    Node,
    build_network,
    oversize,
)
from pendula.fleet.model import (
    PARKING_KINDS,
    STATION_KINDS,
    Code,
    CompileParams,
    CurveKind,
    Direction,
    Finding,
    MoveStyle,
    Point,
    SourceEdge,
    SourceMap,
    SourceMember,
    SourceNode,
    SourceSection,
    finding,
)
from pendula.fleet.units import FARTHEST_M, MILLION, plain
from pendula.kernel.wording import suggestion

# Which edges between the same two nodes are one physical lane: those whose geometries coincide within 0.05 m.

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


# The end of a geometry snaps to its node within this distance.
SNAP_UM = 20_000
# A shorter edge counts as having no length.
SHORTEST_UM = 1_000
FARTHEST_UM = FARTHEST_M * MILLION
# Longer edges would need hundreds of megabytes of cells.
LONGEST_UM = 10_000 * 1_000_000
# Suffix of the source id of the second direction of a two-way edge.
BACK = "/back"


@dataclass(slots=True)
class _Draft:
    """A directed edge before it has a key."""

    source: SourceEdge
    source_id: str
    start: str
    end: str
    curve: Curve
    style: MoveStyle
    lane: int = field(default=0)


def normalised(source: SourceMap, params: CompileParams) -> tuple[Network, tuple[Curve, ...], tuple[Finding, ...]]:
    """The network of the valid parts, the curves of its edges, and findings about the rest.

    Raises `LimitExceeded` when the map is too large.
    """
    findings: list[Finding] = []
    MAP_NODES.check(len(source.nodes))
    nodes = _nodes(source, findings)
    places = {node.id: node.at for node in nodes}
    drafts: list[_Draft] = []
    length_um = poses = 0
    for edge in _unique(source.edges, "edge", findings):
        edge_drafts = _drafts(edge, places, params, findings)
        length_um += sum(draft.curve.path.length_um for draft in edge_drafts)
        poses += sum(len(draft.curve.poses.s) for draft in edge_drafts if draft.curve.poses is not None)
        MAP_METRES.check(length_um // MILLION)
        MAP_POSES.check(poses)
        drafts += edge_drafts
    _check_meetings(drafts)
    network, curves = _network(source.map_id, nodes, drafts)
    return network, curves, tuple(findings)


def sections_drawn(source: SourceMap, network: Network) -> tuple[SourceSection, ...]:
    """The sections of a source map with the lanes whose edges name them. One that only edges name has capacity 1."""
    # Both directions of an edge share one lane, so the first direction is enough.
    named = {edge.id: edge.section for edge in source.edges if edge.section is not None}
    lanes: dict[str, set[str]] = {}
    for edge in network.edges:
        section = named.get(edge.source_id)
        if section is not None:
            lanes.setdefault(section, set()).add(edge.group_key)
    declared = []
    for section_source in source.sections:
        whole = {member.group_key for member in section_source.members if member.s0_um is None and member.s1_um is None}
        more = tuple(SourceMember(key) for key in sorted(lanes.pop(section_source.id, set()) - whole))
        declared.append(replace(section_source, members=(*section_source.members, *more)))
    marked = (SourceSection(name, 1, tuple(map(SourceMember, sorted(keys)))) for name, keys in sorted(lanes.items()))
    return (*declared, *marked)


def _check_meetings(drafts: list[_Draft]) -> None:
    """Every incoming edge of a node continues into every outgoing one: the number grows with the square."""
    into = Counter(draft.end for draft in drafts)
    out = Counter(draft.start for draft in drafts)
    MAP_TRANSITIONS.check(sum(count * out[node] for node, count in into.items()))


def _unique(edges: Iterable[SourceEdge], what: str, findings: list[Finding]) -> list[SourceEdge]:
    by_id: dict[str, SourceEdge] = {}
    duplicates: set[str] = set()
    for edge in sorted(edges, key=_by_content):
        if edge.id in by_id:
            duplicates.add(edge.id)
        by_id.setdefault(edge.id, edge)
    for name in sorted(duplicates):
        findings.append(finding(Code.DUPLICATE_ID, f"the {what} id {name!r} is used twice", "rename one", id=name))
    return list(by_id.values())


def _by_content(edge: SourceEdge) -> tuple[str, str, str, str]:
    return (edge.id, edge.start, edge.end, repr(edge))


def _nodes(source: SourceMap, findings: list[Finding]) -> tuple[Node, ...]:
    by_id: dict[str, SourceNode] = {}
    duplicates: set[str] = set()
    for node in sorted(source.nodes, key=lambda node: (node.id, repr(node))):
        if node.id in by_id:
            duplicates.add(node.id)
        by_id.setdefault(node.id, node)
    for name in sorted(duplicates):
        findings.append(finding(Code.DUPLICATE_ID, f"the node id {name!r} is used twice", "rename one", id=name))
    for node in by_id.values():
        if not _within(node.at):
            findings.append(_too_far(f"node {node.id!r}", nodeId=node.id))
    for name, code in _references(source):
        if name not in by_id:
            findings.append(finding(code, f"{name!r} is not a node", "name an existing node", nodeId=name))
    stations, parking = set(source.stations), set(source.parking)
    return tuple(
        Node(
            node.id,
            node.at,
            node.kind,
            node.kind in STATION_KINDS or node.id in stations,
            node.kind in PARKING_KINDS or node.id in parking,
            node.turning,
        )
        for node in by_id.values()
    )


def _references(source: SourceMap) -> list[tuple[str, Code]]:
    stations = [(name, Code.MISSING_PICK_DROP_NODE) for name in sorted(set(source.stations))]
    return stations + [(name, Code.MISSING_PARKING_NODE) for name in sorted(set(source.parking))]


def _ends_within(edge: SourceEdge, places: dict[str, Point]) -> bool:
    return _within(places[edge.start]) and _within(places[edge.end])


def _span_um(edge: SourceEdge, places: dict[str, Point]) -> int:
    """An upper bound of the length of the edge: the sum of both axes along its points."""
    way = [places[edge.start], *edge.points, places[edge.end]]
    return sum(abs(b.x_um - a.x_um) + abs(b.y_um - a.y_um) for a, b in pairwise(way))


def _within(point: Point) -> bool:
    return abs(point.x_um) <= FARTHEST_UM and abs(point.y_um) <= FARTHEST_UM


def _too_far(what: str, **details: str) -> Finding:
    message = f"{what} is more than {FARTHEST_M} m from the origin"
    return finding(Code.MAP_INVALID_GEOMETRY, message, "move the origin of the map", **details)


def _suggest_direction(direction: str) -> str:
    """A suggestion for another spelling of a direction."""
    two_ways = direction.casefold().startswith(("bi", "two", "dual"))
    return f" (did you mean {Direction.BOTH}?)" if two_ways else suggestion(direction, tuple(Direction))


def _drafts(edge: SourceEdge, places: dict[str, Point], params: CompileParams, findings: list[Finding]) -> list[_Draft]:
    """The one or two directed edges of a source edge; none, with findings, where it cannot be used."""
    before = len(findings)
    for end in sorted(node for node in {edge.start, edge.end} if node not in places):
        message = f"edge {edge.id!r} names the node {end!r}, which does not exist{suggestion(end, sorted(places))}"
        findings.append(
            finding(Code.DANGLING_EDGE, message, "add the node or remove the edge", edge=edge.id, nodeId=end)
        )
    if edge.style not in list(MoveStyle):
        message = f"edge {edge.id!r} has the movestyle {edge.style!r}; it must be forward or backward"
        message += suggestion(edge.style, tuple(MoveStyle))
        findings.append(finding(Code.INVALID_DIRECTION, message, "correct the movestyle", edge=edge.id))
    if edge.direction not in list(Direction):
        hint = _suggest_direction(edge.direction)
        every = ", ".join(Direction)
        message = f"edge {edge.id!r} has the direction {edge.direction!r}; it must be one of {every}{hint}"
        findings.append(finding(Code.INVALID_DIRECTION, message, "correct the direction", edge=edge.id))
    if edge.start == edge.end:
        message = f"edge {edge.id!r} starts and ends at {edge.start!r}"
        findings.append(
            finding(Code.MAP_INVALID_GEOMETRY, message, "put a node on the way and make it two edges", edge=edge.id)
        )
    if not all(_within(point) for point in edge.points):
        findings.append(_too_far(f"a point of edge {edge.id!r}", edge=edge.id))
    elif len(findings) == before and _ends_within(edge, places) and _span_um(edge, places) > LONGEST_UM:
        message = (
            f"edge {edge.id!r} is longer than {LONGEST_UM // 1_000_000} m, or its control points are that far apart"
        )
        remedy = "put nodes on the way, or move the control points"
        findings.append(finding(Code.MAP_INVALID_GEOMETRY, message, remedy, edge=edge.id))
    if len(findings) > before or not _ends_within(edge, places):
        return []
    excess = oversize(edge, places[edge.start], places[edge.end])
    if excess is not None:
        message = f"edge {edge.id!r} {excess}"
        findings.append(finding(Code.MAP_INVALID_GEOMETRY, message, "make it several edges", edge=edge.id))
        return []
    if not _ends_fit(edge, places, findings):
        return []
    ways = {
        Direction.START_TO_END: ((edge.id, False),),
        Direction.END_TO_START: ((edge.id, True),),
        Direction.BOTH: ((edge.id, False), (edge.id + BACK, True)),
    }[Direction(edge.direction)]
    drafts = []
    for name, reverse in ways:
        curve = _curve(edge, places, reverse, params)
        if curve.path.length_um < SHORTEST_UM:
            message = f"edge {edge.id!r} has no length"
            findings.append(finding(Code.EDGE_ZERO_LENGTH, message, "remove it or move a node", edge=edge.id))
            return []
        start, end = (edge.end, edge.start) if reverse else (edge.start, edge.end)
        drafts.append(_Draft(edge, name, start, end, curve, MoveStyle(edge.style)))
    return drafts


def _ends_fit(edge: SourceEdge, places: dict[str, Point], findings: list[Finding]) -> bool:
    fits = True
    for end, given in ((edge.start, edge.start_at), (edge.end, edge.end_at)):
        if given is None:
            continue
        dx, dy = given.x_um - places[end].x_um, given.y_um - places[end].y_um
        if dx * dx + dy * dy > SNAP_UM * SNAP_UM:
            fits = False
            message = f"the geometry of edge {edge.id!r} ends more than {plain(SNAP_UM)} m away from node {end!r}"
            findings.append(
                finding(Code.NODE_GEOMETRY_GAP, message, "move the end onto the node", edge=edge.id, nodeId=end)
            )
    return fits


def _curve(edge: SourceEdge, places: dict[str, Point], reverse: bool, params: CompileParams) -> Curve:
    points = [places[edge.start], *edge.points, places[edge.end]]
    if reverse:
        points.reverse()
    match edge.kind:
        case CurveKind.STRAIGHT:
            return straight(points[0], points[-1])
        case CurveKind.POLYLINE:
            return polyline(points, params.chord_error_um)
        case CurveKind.BEZIER:
            controls = (points[0], points[1], points[2], points[3])
            return bezier(controls, params.polyline_step_um, params.chord_error_um)
        case CurveKind.ARC:
            return arc(points[0], points[1], points[2], params.polyline_step_um, params.chord_error_um)
        case CurveKind.SPLINE:
            return spline(points, params.polyline_step_um, params.chord_error_um)


def _network(map_id: str, nodes: tuple[Node, ...], drafts: list[_Draft]) -> tuple[Network, tuple[Curve, ...]]:
    number = {node.id: i for i, node in enumerate(nodes)}
    drafts = sorted(drafts, key=lambda draft: (draft.start, draft.end, draft.source_id))
    keyed: list[tuple[str, _Draft]] = []
    count: dict[tuple[str, str], int] = {}
    for draft in drafts:
        pair = (draft.start, draft.end)
        count[pair] = count.get(pair, 0) + 1
        keyed.append((_suffixed(f"{draft.start}->{draft.end}", count[pair]), draft))
    between: dict[tuple[str, str], list[_Draft]] = {}
    for _, draft in keyed:
        between.setdefault(_ends(draft), []).append(draft)
    for members in between.values():
        members.sort(key=lambda draft: draft.source_id)
        for draft, lane in zip(members, lanes_of([member.curve.path for member in members]), strict=True):
            draft.lane = lane
    keyed.sort(key=lambda item: item[0])
    edges = tuple(_edge(key, draft, number) for key, draft in keyed)
    return build_network(map_id, nodes, edges), tuple(draft.curve for _, draft in keyed)


def _suffixed(key: str, count: int) -> str:
    return key if count == 1 else f"{key}#{count}"


def _ends(draft: _Draft) -> tuple[str, str]:
    return (draft.start, draft.end) if draft.start < draft.end else (draft.end, draft.start)


def _edge(key: str, draft: _Draft, number: dict[str, int]) -> Edge:
    a, b = _ends(draft)
    return Edge(
        key=key,
        group_key=_suffixed(f"{a}<->{b}", draft.lane + 1),
        source_id=draft.source_id,
        start=number[draft.start],
        end=number[draft.end],
        style=draft.style,
        width_um=draft.source.width_um,
        path=draft.curve.path,
        forward_on_axis=draft.start == a,
        max_speed_um_s=draft.source.max_speed_um_s,
        allowed_profiles=draft.source.allowed_profiles,
        penalty_ms=draft.source.penalty_ms,
    )
