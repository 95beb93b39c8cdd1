"""A source map in its canonical form: what `mapHash` is computed from, and what can be written to a file again."""

from typing import Any

from pendula.fleet.model import CONTRACT_VERSION, CurveKind, Point, SourceEdge, SourceMap, SourceMember
from pendula.fleet.units import plain


def source_form(source: SourceMap) -> dict[str, Any]:
    """The graph with its lists sorted by id: equal maps have equal forms, whatever their order was."""
    return {
        "contractVersion": CONTRACT_VERSION,
        "mapId": source.map_id,
        "nodes": [
            {"id": node.id, "x": plain(node.at.x_um), "y": plain(node.at.y_um), "kind": node.kind}
            for node in sorted(source.nodes, key=lambda one: (one.id, repr(one)))
        ],
        "edges": [_edge(edge) for edge in sorted(source.edges, key=lambda one: (one.id, repr(one)))],
        "criticalSections": [
            {
                "criticalSectionId": section.id,
                "capacity": section.capacity,
                "members": [_member(one) for one in sorted(section.members, key=repr)],
            }
            for section in sorted(source.sections, key=lambda one: (one.id, repr(one)))
        ],
        "stations": sorted(set(source.stations)),
        "parking": sorted(set(source.parking)),
    }


def _edge(edge: SourceEdge) -> dict[str, Any]:
    props: dict[str, Any] = {"movestyle": edge.style, "direction": edge.direction}
    if edge.width_um is not None:
        props["width"] = plain(edge.width_um)
    form: dict[str, Any] = {
        "id": edge.id,
        "start": edge.start,
        "end": edge.end,
        "className": edge.kind.value,
        "props": props,
    }
    if edge.kind is CurveKind.BEZIER:
        form["controlPos1"], form["controlPos2"] = _point(edge.points[0]), _point(edge.points[1])
    if edge.kind is CurveKind.POLYLINE:
        ends = [point for point in (edge.start_at, edge.end_at) if point is not None]
        inner = [_point(point) for point in edge.points]
        form["points"] = [_point(ends[0]), *inner, _point(ends[1])] if len(ends) == 2 else inner
    else:
        if edge.start_at is not None:
            form["startPos"] = _point(edge.start_at)
        if edge.end_at is not None:
            form["endPos"] = _point(edge.end_at)
    return form


def _point(point: Point) -> dict[str, Any]:
    return {"x": plain(point.x_um), "y": plain(point.y_um)}


def _member(member: SourceMember) -> dict[str, Any]:
    form: dict[str, Any] = {"edgeGroupKey": member.group_key}
    if member.s0_um is not None:
        form["s0M"] = plain(member.s0_um)
    if member.s1_um is not None:
        form["s1M"] = plain(member.s1_um)
    return form
