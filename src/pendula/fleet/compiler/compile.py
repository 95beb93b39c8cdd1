"""Compile a source map, truck profiles and parameters into a compiled map, or into a report of findings.

The same input in any order gives the same bytes. Given a previously compiled map, only pairs of cells with a changed
edge are compared again; the bytes equal those of a full compilation.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from msgspec.structs import replace
from numpy.typing import NDArray

from pendula.fleet.compiler.curves import Curve
from pendula.fleet.compiler.normal_form import normalised, sections_drawn
from pendula.fleet.compiler.overlaps import distances, overlapping, zones_of
from pendula.fleet.compiler.swept import cut
from pendula.fleet.compiler.validation import curve_findings, map_findings
from pendula.fleet.map.corridors import corridors_of, following_of, sections_of, standing_of
from pendula.fleet.map.exclusion import (
    Cells,
    geometric,
    named_conflicts,
    opposite_directions,
    relation,
    whole_groups,
    without_turnless_nodes,
    zone_triples,
)
from pendula.fleet.map.network import Network, transitions_of
from pendula.fleet.map.site import CompiledMap
from pendula.fleet.map.site_file import params_form, seal
from pendula.fleet.map.trucks import Envelope, RobotProfile, hash_of, largest_envelope
from pendula.fleet.model import (
    CONTRACT_VERSION,
    PARKING_KINDS,
    STATION_KINDS,
    Code,
    CompileParams,
    CurveKind,
    Finding,
    Granularity,
    MapRefused,
    Point,
    SourceEdge,
    SourceMap,
    SourceMember,
    SourceNode,
    errors_of,
    finding,
)
from pendula.fleet.units import plain
from pendula.kernel.canonical import digest, encode
from pendula.kernel.errors import LimitExceeded, WrongUsage

# The canonical form of a source map: the input of `mapHash`, and a valid source file.


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


Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
DEFAULT_PARAMS = CompileParams()


@dataclass(frozen=True, eq=False, slots=True)
class Report:
    """The findings; `compiled` and `data` are None if one of them is an ERROR."""

    findings: tuple[Finding, ...]
    compiled: CompiledMap | None
    data: bytes | None


def compile_map(
    source: SourceMap,
    profiles: Sequence[RobotProfile],
    params: CompileParams = DEFAULT_PARAMS,
    previous: CompiledMap | None = None,
) -> CompiledMap:
    """The compiled map; raises `MapRefused` with all findings when one of them is an ERROR."""
    report = examine(source, profiles, params, previous)
    if report.compiled is None:
        errors = errors_of(report.findings)
        more = f" and {len(errors) - 1} more" if len(errors) > 1 else ""
        raise MapRefused(
            f"The map {source.map_id!r} cannot be used: {errors[0].message}{more}", findings=report.findings
        )
    return report.compiled


def examine(
    source: SourceMap,
    profiles: Sequence[RobotProfile],
    params: CompileParams = DEFAULT_PARAMS,
    previous: CompiledMap | None = None,
) -> Report:
    """Compile as far as possible and report all findings; never raises for a bad map."""
    if not profiles:
        raise WrongUsage("Compiling a map needs at least one truck profile")
    findings: list[Finding] = []
    try:
        return _examined(source, profiles, params, previous, findings)
    except LimitExceeded as error:
        remedy = "remove overlapping lanes, or split the map"
        findings.append(finding(Code.CONFLICT_BUILD_FAILED, error.message, remedy, limit=str(error.details["limit"])))
        return Report(_sorted(findings), None, None)


def _examined(
    source: SourceMap,
    profiles: Sequence[RobotProfile],
    params: CompileParams,
    previous: CompiledMap | None,
    findings: list[Finding],
) -> Report:
    """The report; `findings` is filled in place, so that it survives a `LimitExceeded`."""
    envelope = largest_envelope(profiles)
    network, curves, source_findings = normalised(source, params)
    findings += [*source_findings, *curve_findings(network, curves, profiles)]
    cells = cut(network, curves, envelope, params)
    i, j = _pairs(network, cells, envelope, params, previous)
    around = zones_of(network, curves, cells, envelope, params)
    conflicts = named_conflicts(network, cells, around, i, j, _gaps(network, curves, envelope, params, i, j))
    zones = without_turnless_nodes(network, around)
    parts = [*geometric(i, j, len(cells)), *opposite_directions(network, cells), *zone_triples(zones, len(cells))]
    if params.granularity is Granularity.EDGE:
        parts += whole_groups(network, cells, conflicts)
    exclusive = relation(len(cells) + len(network.nodes), parts)
    corridors = corridors_of(network)
    following = following_of(network, cells, corridors, envelope, exclusive)
    sections, section_findings = sections_of(network, cells, sections_drawn(source, network))
    transitions = transitions_of(network, params.tangent_eps_urad)
    standing = standing_of(
        network=network,
        cells=cells,
        zones=zones,
        sections=sections,
        conflicts=conflicts,
        transitions=transitions,
        corridors=corridors,
        relation=exclusive,
    )
    draft = CompiledMap(
        network=network,
        params=params,
        envelope=envelope,
        cells=cells,
        zones=zones,
        conflicts=exclusive,
        following=following,
        named=conflicts,
        corridors=corridors,
        sections=sections,
        transitions=transitions,
        standing=standing,
        findings=(),
        map_hash="sha256:" + digest({"graph": source_form(source), "params": params_form(params)}),
        profile_hash=hash_of(profiles),
    )
    every = _sorted([*findings, *section_findings, *map_findings(draft)])
    if errors_of(every):
        return Report(every, None, None)
    compiled, data = seal(_with_findings(draft, every))
    return Report(every, compiled, data)


def _with_findings(draft: CompiledMap, findings: tuple[Finding, ...]) -> CompiledMap:
    return CompiledMap(
        **{name: getattr(draft, name) for name in draft.__dataclass_fields__ if name != "findings"}, findings=findings
    )


def _sorted(findings: list[Finding]) -> tuple[Finding, ...]:
    """Sorted by code and details, without duplicates. Only errors with equal details can differ in their messages."""
    unique = {(item.code.value, encode(item.details), item.message): item for item in findings}
    return tuple(item for _, item in sorted(unique.items(), key=lambda item: item[0]))


def _gaps(
    network: Network, curves: tuple[Curve, ...], envelope: Envelope, params: CompileParams, i: Ints, j: Ints
) -> Floats:
    """The distance of the areas of every pair: above 0 only where the margin made them meet."""
    if not params.conflict_margin_um:
        return np.zeros(len(i))
    return distances(cut(network, curves, envelope, replace(params, conflict_margin_um=0)), i, j)


def _pairs(
    network: Network, cells: Cells, envelope: Envelope, params: CompileParams, previous: CompiledMap | None
) -> tuple[Ints, Ints]:
    """Pairs of cells whose areas meet; pairs of unchanged edges come from `previous`."""
    if not len(cells):
        none = np.zeros(0, dtype=np.int64)
        return none, none
    if previous is None or previous.envelope != envelope or previous.params != params:
        return overlapping(cells)
    if params.granularity is Granularity.EDGE:
        # The relation holds whole groups here, so the pairs that meet by shape cannot be read from it.
        return overlapping(cells)
    same = _unchanged(network, cells, previous)
    renumbered = np.full(len(previous.cells), -1, dtype=np.int64)
    changed = np.ones(len(cells), dtype=np.bool_)
    for edge, before in same:
        own, old = cells.of_edge(edge), previous.cells.of_edge(before)
        renumbered[old.start : old.stop] = np.arange(own.start, own.stop)
        changed[own.start : own.stop] = False
    i, j = previous.conflicts.pairs()
    inside = (i < len(renumbered)) & (j < len(renumbered))
    i, j = renumbered[i[inside]], renumbered[j[inside]]
    keep = (i >= 0) & (j >= 0)
    i, j = i[keep], j[keep]
    new_i, new_j = overlapping(cells, np.flatnonzero(changed).astype(np.int64))
    # Edges keep their order when others are added or removed, so i < j still holds.
    i, j = np.concatenate([i, new_i]), np.concatenate([j, new_j])
    order = np.lexsort((j, i))
    return i[order], j[order]


def _unchanged(network: Network, cells: Cells, previous: CompiledMap) -> list[tuple[int, int]]:
    """Edges with the same key, group and shapes as before, with their old numbers.

    Paths are not compared: a moved control point can change a shape but not the path in whole micrometres.
    """
    old = previous.edge_number
    result = []
    for number, edge in enumerate(network.edges):
        before = old.get(edge.key)
        if before is None:
            continue
        was = previous.network.edges[before]
        if edge.group_key == was.group_key and _same_shapes(cells, number, previous.cells, before):
            result.append((number, before))
    return result


def _same_shapes(cells: Cells, edge: int, others: Cells, other: int) -> bool:
    first, rest = _quads(cells, edge)
    other_first, other_rest = _quads(others, other)
    return np.array_equal(first, other_first) and np.array_equal(rest, other_rest)


def _quads(cells: Cells, edge: int) -> tuple[Ints, Ints]:
    """The offsets of the quadrangles of each cell of an edge, from its first one, and the quadrangles."""
    at = cells.quad_first[int(cells.first[edge]) : int(cells.first[edge + 1]) + 1]
    return at - at[0], cells.quads[int(at[0]) : int(at[-1])]
