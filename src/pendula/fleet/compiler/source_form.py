"""The canonical form of a source map: the input of `mapHash`, and a valid source file."""

from collections.abc import Mapping
from typing import Any

from pendula.fleet.model import (
    CONTRACT_VERSION,
    PARKING_KINDS,
    STATION_KINDS,
    CurveKind,
    Point,
    SourceEdge,
    SourceMap,
    SourceMember,
    SourceNode,
)
from pendula.fleet.units import plain


def source_form(source: SourceMap) -> dict[str, Any]:
    """The graph with its lists sorted by id and without redundant members (an end at its node, a station of a station
    kind), so that equivalent maps have equal forms."""
    places = {node.id: node.at for node in source.nodes}
    kinds = {node.id: node.kind for node in source.nodes}
    return {
        "contractVersion": CONTRACT_VERSION,
        "mapId": source.map_id,
        "nodes": [_node(node) for node in sorted(source.nodes, key=lambda node: (node.id, repr(node)))],
        "edges": [_edge(edge, places) for edge in sorted(source.edges, key=lambda edge: (edge.id, repr(edge)))],
        "criticalSections": [
            {
                "criticalSectionId": section.id,
                "capacity": section.capacity,
                "members": [_member(member) for member in sorted(section.members, key=repr)],
            }
            for section in sorted(source.sections, key=lambda section: (section.id, repr(section)))
        ],
        "stations": sorted({name for name in source.stations if kinds.get(name) not in STATION_KINDS}),
        "parking": sorted({name for name in source.parking if kinds.get(name) not in PARKING_KINDS}),
    }


def _node(node: SourceNode) -> dict[str, Any]:
    form = {"id": node.id, "x": plain(node.at.x_um), "y": plain(node.at.y_um), "kind": node.kind}
    return form if node.turning else {**form, "turning": False}


def _edge(edge: SourceEdge, places: Mapping[str, Point]) -> dict[str, Any]:
    props: dict[str, Any] = {"movestyle": edge.style, "direction": edge.direction}
    if edge.width_um is not None:
        props["width"] = plain(edge.width_um)
    if edge.max_speed_um_s is not None:
        props["maxSpeedMps"] = plain(edge.max_speed_um_s)
    if edge.allowed_profiles:
        props["allowedProfiles"] = list(edge.allowed_profiles)
    if edge.penalty_ms:
        props["penaltyMs"] = edge.penalty_ms
    if edge.section is not None:
        props["criticalSectionId"] = edge.section
    form: dict[str, Any] = {
        "id": edge.id,
        "start": edge.start,
        "end": edge.end,
        "className": edge.kind.value,
        "props": props,
    }
    if edge.kind is CurveKind.BEZIER:
        form["controlPos1"], form["controlPos2"] = _point(edge.points[0]), _point(edge.points[1])
    if edge.kind is CurveKind.ARC:
        form["viaPos"] = _point(edge.points[0])
    start, end = places.get(edge.start), places.get(edge.end)
    if edge.kind in (CurveKind.POLYLINE, CurveKind.SPLINE):
        ends = edge.start_at or start, edge.end_at or end
        form["points"] = [_point(point) for point in (ends[0], *edge.points, ends[1]) if point is not None]
        return form
    if edge.start_at is not None and edge.start_at != start:
        form["startPos"] = _point(edge.start_at)
    if edge.end_at is not None and edge.end_at != end:
        form["endPos"] = _point(edge.end_at)
    return form


def _point(point: Point) -> dict[str, Any]:
    return {"x": plain(point.x_um), "y": plain(point.y_um)}


def _member(member: SourceMember) -> dict[str, Any]:
    form: dict[str, Any] = {"edgeGroupKey": member.group_key}
    if member.s0_um:
        form["s0M"] = plain(member.s0_um)
    if member.s1_um is not None:
        form["s1M"] = plain(member.s1_um)
    return form
