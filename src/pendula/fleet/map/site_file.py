"""The file of a compiled map: canonical JSON, the named part in metres, the bulk as columns of integers.

`compiledMapHash` is the sha256 of the same bytes without that member, so it is checked without encoding again. A file
with a wrong hash, version or form raises `MapDamaged`.
"""

from collections.abc import Iterable
from dataclasses import replace
from decimal import Decimal
from math import isqrt
from typing import Any

import msgspec
import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from pendula.fleet.map.corridors import Corridor, Member, Mouth, Section, Standing
from pendula.fleet.map.exclusion import Cells, Conflict, Relation, Window, zones_of_windows
from pendula.fleet.map.geometry import Path, angle_urad, boxes
from pendula.fleet.map.network import Edge, Network, Node, Transitions, build_network
from pendula.fleet.map.site import CompiledMap
from pendula.fleet.map.trucks import Envelope
from pendula.fleet.model import (
    COMPILER_VERSION,
    CONTRACT_VERSION,
    Code,
    CompileParams,
    CurveKind,
    Granularity,
    MapDamaged,
    MoveStyle,
    Origin,
    Point,
    Severity,
)
from pendula.fleet.sentences import map_finding
from pendula.fleet.units import micro, plain
from pendula.kernel.canonical import Json, digest_bytes, encode
from pendula.kernel.errors import LimitExceeded

# The readable part of a compiled map: names and metres, as in the contract.


def named_form(site: CompiledMap) -> dict[str, Any]:
    """Everything except the columns of cells and relations."""
    network = site.network
    edges, nodes, groups = network.edges, network.nodes, network.groups
    return {
        "contractVersion": CONTRACT_VERSION,
        "compilerVersion": COMPILER_VERSION,
        "mapId": site.map_id,
        "mapHash": site.map_hash,
        "robotProfileHash": site.profile_hash,
        "compiledMapHash": site.compiled_hash,
        "units": {"length": "m", "angle": "rad", "time": "ms"},
        "params": params_form(site.params),
        "envelope": envelope_form(site.envelope),
        "nodes": _nodes(site),
        "edges": [_edge(site, number, edge) for number, edge in enumerate(edges)],
        "edgeGroups": [
            {
                "edgeGroupKey": group.key,
                "axis": [nodes[group.a].id, nodes[group.b].id],
                "lengthM": plain(group.length_um),
                "edgeKeys": sorted(edges[edge].key for edge in group.edges),
                "directionPolicy": "ONE_DIRECTION_AT_A_TIME",
            }
            for group in groups
        ],
        "conflicts": _conflicts(site),
        "edgeConflictGroups": _conflict_groups(site),
        "nodeZones": [
            {
                "nodeId": node.id,
                "radiusM": plain(site.zones.radius_um),
                "overlapsNodes": [nodes[other].id for other in site.zones.overlaps[number]],
                "windows": _spans(site, ((w.edge, w.s0, w.s1) for w in site.zones.by_node[number])),
            }
            for number, node in enumerate(nodes)
        ],
        "criticalSections": _sections(site),
        "corridors": _corridors(site),
        "mouths": _mouths(site),
        "validation": [
            {"code": finding.code.value, "severity": finding.severity.value, "details": finding.details}
            for finding in site.findings
        ],
    }


def _nodes(site: CompiledMap) -> list[dict[str, Any]]:
    nodes = site.network.nodes
    return [
        {
            "nodeId": node.id,
            "x": plain(node.at.x_um),
            "y": plain(node.at.y_um),
            "kind": node.kind,
            "station": node.station,
            "parking": node.parking,
            **({} if node.turning else {"turning": False}),
        }
        for node in nodes
    ]


def _conflicts(site: CompiledMap) -> list[dict[str, Any]]:
    groups = site.network.groups
    return [
        {
            "conflictId": conflict.id,
            "members": sorted(f"EDGE_GROUP:{groups[side].key}" for side in (conflict.a, conflict.b)),
            "cause": "CLOSER_THAN_MARGIN" if conflict.gap_um else "SWEPT_OVERLAP",
            "minDistanceM": plain(conflict.gap_um),
            "windows": _spans(site, conflict.windows),
        }
        for conflict in site.named
    ]


def _sections(site: CompiledMap) -> list[dict[str, Any]]:
    groups = site.network.groups
    return [
        {
            "criticalSectionId": section.id,
            "capacity": section.capacity,
            "members": [
                {"edgeGroupKey": groups[part.group].key, "s0M": plain(part.s0), "s1M": plain(part.s1)}
                for part in section.members
            ],
            "origin": section.origin.value,
        }
        for section in site.sections
    ]


def _corridors(site: CompiledMap) -> list[dict[str, Any]]:
    nodes, groups = site.network.nodes, site.network.groups
    return [
        {
            "corridorId": corridor.id,
            "nodeIds": [nodes[node].id for node in corridor.nodes],
            "edgeGroupKeys": [groups[group].key for group in corridor.groups],
            "offsetsUm": list(corridor.offsets),
            "along": list(corridor.along),
        }
        for corridor in site.corridors
    ]


def _mouths(site: CompiledMap) -> list[dict[str, Any]]:
    nodes = site.network.nodes
    return [
        {
            "corridorId": site.corridors[mouth.corridor].id,
            "nodeId": nodes[mouth.node].id,
            "waiting": list(mouth.waiting),
        }
        for mouth in site.standing.mouths
    ]


def _conflict_groups(site: CompiledMap) -> dict[str, list[str]]:
    result: dict[str, list[str]] = {group.key: [] for group in site.network.groups}
    for conflict in site.named:
        for side in (conflict.a, conflict.b):
            result[site.network.groups[side].key].append(f"CONFLICT:{conflict.id}")
    return result


def params_form(params: CompileParams) -> dict[str, Any]:
    return {
        "polylineStepM": plain(params.polyline_step_um),
        "chordErrorM": plain(params.chord_error_um),
        "conflictMarginM": plain(params.conflict_margin_um),
        "cellLenM": plain(params.cell_len_um),
        "geomEps": plain(params.geom_eps_um),
        "maxRectsPerCell": params.max_rects_per_cell,
        "tangentEps": plain(params.tangent_eps_urad),
        "conflictGranularity": params.granularity.value,
        "bendExtraM": plain(params.bend_extra_um),
    }


def envelope_form(envelope: Envelope) -> dict[str, Any]:
    return {
        "frontExtM": plain(envelope.front_um),
        "rearExtM": plain(envelope.rear_um),
        "sideExtM": plain(envelope.side_um),
        "minFollowingGapM": plain(envelope.gap_um),
        "minTurnRadiusM": plain(envelope.min_turn_radius_um),
    }


def _edge(site: CompiledMap, number: int, edge: Edge) -> dict[str, Any]:
    path = edge.path
    sections = site.sections_of_cell
    inside = [sections[cell][0] for cell in site.cells.of_edge(number) if cell in sections]
    form: dict[str, Any] = {
        "edgeKey": edge.key,
        "edgeGroupKey": edge.group_key,
        "from": site.network.nodes[edge.start].id,
        "to": site.network.nodes[edge.end].id,
        "lengthM": plain(path.length_um),
        "movestyle": edge.style.value,
        "polyline": [[plain(x), plain(y)] for x, y in zip(path.x, path.y, strict=True)],
        "criticalSectionId": site.sections[inside[0]].id if inside else None,
        "sourceId": edge.source_id,
        "className": path.kind.value,
        "arcUm": list(path.s),
        "headingsUrad": [yaw for leg in path.yaws for yaw in leg],
    }
    if edge.width_um is not None:
        form["widthM"] = plain(edge.width_um)
    if edge.max_speed_um_s is not None:
        form["maxSpeedMps"] = plain(edge.max_speed_um_s)
    if edge.allowed_profiles:
        form["allowedProfiles"] = list(edge.allowed_profiles)
    if edge.penalty_ms:
        form["penaltyMs"] = edge.penalty_ms
    return form


def _spans(site: CompiledMap, spans: Iterable[tuple[int, int, int]]) -> list[dict[str, Any]]:
    return [
        {"edgeKey": site.network.edges[edge].key, "s0M": plain(low), "s1M": plain(high)} for edge, low, high in spans
    ]


def cell_form(site: CompiledMap, cell: int) -> dict[str, Any]:
    """One cell with names instead of numbers."""
    edge = int(site.cells.edge[cell])
    own = site.network.edges[edge]
    corridor = site.corridor_of_group[site.network.group_of[edge]]
    place = site.corridors[corridor].groups.index(site.network.group_of[edge])
    ahead = own.forward_on_axis == site.corridors[corridor].along[place]
    section = site.sections_of_cell.get(cell)
    count = len(site.cells)
    return {
        "cellId": site.cell_name(cell),
        "edgeKey": own.key,
        "corridorId": site.corridors[corridor].id,
        "s0M": plain(int(site.cells.s0[cell])),
        "s1M": plain(int(site.cells.s1[cell])),
        "dir": "A_TO_B" if ahead else "B_TO_A",
        "stand": site.stand(cell).value,
        "standReasons": list(site.stand_reasons(cell)),
        "criticalSectionId": None if section is None else site.sections[section[0]].id,
        "sweptShape": shape_form(site, cell),
        "conflictSet": [site.cell_name(other) for other in site.conflicts.members(cell) if other < count],
        "followingSet": [site.cell_name(other) for other in site.following.members(cell)],
    }


def shape_form(site: CompiledMap, cell: int) -> dict[str, Any]:
    """The swept area as oriented rectangles; half extents are rounded up."""
    quads = site.cells.quads[int(site.cells.quad_first[cell]) : int(site.cells.quad_first[cell + 1])]
    frame = boxes(quads)
    low, high = frame[:, :2].min(axis=0), frame[:, 2:].max(axis=0)
    rects = []
    for quad in quads.tolist():
        (ax, ay), (bx, by), (cx, cy), (dx, dy) = quad
        along, across = (ax - bx, ay - by), (ax - dx, ay - dy)
        rects.append(
            {
                "cx": plain((ax + bx + cx + dx) // 4),
                "cy": plain((ay + by + cy + dy) // 4),
                "yaw": plain(angle_urad(*along)),
                "hx": plain(_half(*along)),
                "hy": plain(_half(*across)),
            }
        )
    box = [plain(int(value)) for value in (*low, *high)]
    return {"kind": "multiRect", "bbox": box, "rects": rects}


def _half(dx: int, dy: int) -> int:
    return isqrt(dx * dx + dy * dy) // 2 + 1


Ints = NDArray[np.int64]
_HASH = b'"compiledMapHash":"'


def seal(site: CompiledMap) -> tuple[CompiledMap, bytes]:
    """The map with its hash, and its bytes."""
    form = named_form(site)
    form.update(_columns(site))
    del form["compiledMapHash"]
    bare = encode(form)
    name = "sha256:" + digest_bytes(bare)
    # Members are sorted: the hash follows `cells`, whose value contains no strings.
    before = bare.index(b'"compilerVersion":')
    data = bare[:before] + _HASH + name.encode() + b'",' + bare[before:]
    return replace(site, compiled_hash=name), data


def to_bytes(site: CompiledMap) -> bytes:
    return seal(site)[1]


def from_bytes(data: bytes) -> CompiledMap:
    """The map of a file; raises `MapDamaged`."""
    try:
        file = _decode(data)
    except (msgspec.DecodeError, ValueError) as error:
        raise MapDamaged(f"The file is not a compiled map: {error}") from error
    start = data.find(_HASH)
    end = start + len(_HASH) + len(file.compiledMapHash) + 2
    if start < 0 or "sha256:" + digest_bytes(data[:start] + data[end:]) != file.compiledMapHash:
        raise MapDamaged("The compiled map does not match its hash", claimed=file.compiledMapHash)
    if file.compilerVersion.split(".")[0] != COMPILER_VERSION.split(".")[0]:
        raise MapDamaged(
            f"The map was compiled by the unsupported version {file.compilerVersion}; compile it again",
            allowed=COMPILER_VERSION,
        )
    try:
        return _map_of(file)
    except (LookupError, ValueError, ArithmeticError, LimitExceeded) as error:
        raise MapDamaged(f"The parts of the compiled map contradict each other: {error}") from error


class _Span(Struct):
    edgeKey: str
    s0M: Decimal
    s1M: Decimal


class _Node(Struct):
    nodeId: str
    x: Decimal
    y: Decimal
    kind: str
    station: bool
    parking: bool
    turning: bool = True


class _Edge(Struct, rename={"from_": "from"}):
    edgeKey: str
    edgeGroupKey: str
    from_: str
    to: str
    lengthM: Decimal
    movestyle: MoveStyle
    polyline: list[tuple[Decimal, Decimal]]
    sourceId: str
    className: CurveKind
    arcUm: list[int]
    headingsUrad: list[int]
    widthM: Decimal | None = None
    maxSpeedMps: Decimal | None = None
    allowedProfiles: tuple[str, ...] = ()
    penaltyMs: int = 0


class _Conflict(Struct):
    conflictId: str
    members: tuple[str, str]
    minDistanceM: Decimal
    windows: list[_Span]


class _Zone(Struct):
    nodeId: str
    windows: list[_Span]


class _Member(Struct):
    edgeGroupKey: str
    s0M: Decimal
    s1M: Decimal


class _Section(Struct):
    criticalSectionId: str
    capacity: int
    members: list[_Member]
    origin: Origin


class _Finding(Struct):
    code: Code
    severity: Severity
    details: dict[str, Any]


class _Params(Struct):
    polylineStepM: Decimal
    chordErrorM: Decimal
    conflictMarginM: Decimal
    cellLenM: Decimal
    geomEps: Decimal
    maxRectsPerCell: int
    tangentEps: Decimal
    conflictGranularity: Granularity
    bendExtraM: Decimal


class _Envelope(Struct):
    frontExtM: Decimal
    rearExtM: Decimal
    sideExtM: Decimal
    minFollowingGapM: Decimal
    minTurnRadiusM: Decimal


class _Cells(Struct):
    first: list[int]
    s0Um: list[int]
    s1Um: list[int]
    quadFirst: list[int]
    quadsUm: list[int]
    stand: list[int]
    windows: list[list[int]]
    sections: list[list[tuple[int, int]]]


class _Ranges(Struct):
    at: list[int]
    ranges: list[int]


class _Transitions(Struct):
    first: list[int]
    out: list[int]
    tangent: list[int]
    turnUrad: list[int]


class _Corridor(Struct):
    corridorId: str
    nodeIds: list[str]
    edgeGroupKeys: list[str]
    offsetsUm: list[int]
    along: list[bool]


class _Mouth(Struct):
    corridorId: str
    nodeId: str
    waiting: list[int]


class _File(Struct):
    compilerVersion: str
    compiledMapHash: str
    mapId: str
    mapHash: str
    robotProfileHash: str
    params: _Params
    envelope: _Envelope
    nodes: list[_Node]
    edges: list[_Edge]
    conflicts: list[_Conflict]
    nodeZones: list[_Zone]
    criticalSections: list[_Section]
    corridors: list[_Corridor]
    mouths: list[_Mouth]
    validation: list[_Finding]
    cells: _Cells
    relation: _Ranges
    following: _Ranges
    transitions: _Transitions


_decode = msgspec.json.Decoder(_File, float_hook=Decimal).decode


def _columns(site: CompiledMap) -> dict[str, Any]:
    cells = site.cells
    windows: list[Json] = [[w.edge, w.s0, w.s1, w.cell0, w.cell1, w.node] for w in site.zones.windows]
    return {
        "cells": {
            "first": cells.first.tolist(),
            "s0Um": cells.s0.tolist(),
            "s1Um": cells.s1.tolist(),
            "quadFirst": cells.quad_first.tolist(),
            "quadsUm": cells.quads.reshape(-1).tolist(),
            "stand": list(site.standing.marks),
            "windows": windows,
            "sections": [[list(span) for span in section.cells] for section in site.sections],
        },
        "relation": _ranges(site.conflicts),
        "following": _ranges(site.following),
        "transitions": {
            "first": site.transitions.first.tolist(),
            "out": site.transitions.out.tolist(),
            "tangent": site.transitions.tangent.astype(np.int64).tolist(),
            "turnUrad": site.transitions.turn_urad.tolist(),
        },
    }


def _ranges(table: Relation) -> dict[str, Any]:
    return {"at": table.at.tolist(), "ranges": np.stack([table.lo, table.hi], axis=1).reshape(-1).tolist()}


def _relation(form: _Ranges) -> Relation:
    table = _ints(form.ranges).reshape(-1, 2)
    return Relation(_ints(form.at), np.ascontiguousarray(table[:, 0]), np.ascontiguousarray(table[:, 1]))


def _ints(values: list[int]) -> Ints:
    return np.array(values, dtype=np.int64)


def _map_of(file: _File) -> CompiledMap:
    network = _network(file)
    edge_number = {edge.key: i for i, edge in enumerate(network.edges)}
    group_number = {group.key: i for i, group in enumerate(network.groups)}
    node_number = {node.id: i for i, node in enumerate(network.nodes)}
    first = _ints(file.cells.first)
    cells = Cells(
        np.repeat(np.arange(len(first) - 1, dtype=np.int64), first[1:] - first[:-1]),
        _ints(file.cells.s0Um),
        _ints(file.cells.s1Um),
        first,
        _ints(file.cells.quadsUm).reshape(-1, 4, 2),
        _ints(file.cells.quadFirst),
    )
    envelope = Envelope(*(micro(value) for value in msgspec.structs.astuple(file.envelope)))
    windows = tuple(Window(node, edge, s0, s1, c0, c1) for edge, s0, s1, c0, c1, node in file.cells.windows)
    corridors = tuple(
        Corridor(
            form.corridorId,
            tuple(node_number[name] for name in form.nodeIds),
            tuple(group_number[key] for key in form.edgeGroupKeys),
            tuple(form.offsetsUm),
            tuple(form.along),
        )
        for form in file.corridors
    )
    corridor_number = {corridor.id: i for i, corridor in enumerate(corridors)}
    mouths = tuple(
        Mouth(corridor_number[form.corridorId], node_number[form.nodeId], tuple(form.waiting)) for form in file.mouths
    )
    return CompiledMap(
        network=network,
        params=_params(file.params),
        envelope=envelope,
        cells=cells,
        zones=zones_of_windows(network, envelope.turn_radius_um, windows),
        conflicts=_relation(file.relation),
        following=_relation(file.following),
        named=tuple(_conflict(form, group_number, edge_number) for form in file.conflicts),
        corridors=corridors,
        sections=tuple(
            _section(form, spans, group_number)
            for form, spans in zip(file.criticalSections, file.cells.sections, strict=True)
        ),
        transitions=Transitions(
            _ints(file.transitions.first),
            _ints(file.transitions.out),
            _ints(file.transitions.tangent).astype(np.bool_),
            _ints(file.transitions.turnUrad),
        ),
        standing=Standing(tuple(file.cells.stand), mouths),
        findings=tuple(map_finding(form.code, **form.details) for form in file.validation),
        map_hash=file.mapHash,
        profile_hash=file.robotProfileHash,
        compiled_hash=file.compiledMapHash,
    )


def _network(file: _File) -> Network:
    nodes = tuple(
        Node(form.nodeId, Point(micro(form.x), micro(form.y)), form.kind, form.station, form.parking, form.turning)
        for form in file.nodes
    )
    number = {node.id: i for i, node in enumerate(nodes)}
    return build_network(file.mapId, nodes, tuple(_edge_row(form, number) for form in file.edges))


def _edge_row(form: _Edge, number: dict[str, int]) -> Edge:
    x = tuple(micro(point[0]) for point in form.polyline)
    y = tuple(micro(point[1]) for point in form.polyline)
    yaws = tuple(zip(form.headingsUrad[::2], form.headingsUrad[1::2], strict=True))
    return Edge(
        key=form.edgeKey,
        group_key=form.edgeGroupKey,
        source_id=form.sourceId,
        start=number[form.from_],
        end=number[form.to],
        style=form.movestyle,
        width_um=None if form.widthM is None else micro(form.widthM),
        path=Path(form.className, x, y, tuple(form.arcUm), yaws),
        forward_on_axis=form.from_ < form.to,
        max_speed_um_s=None if form.maxSpeedMps is None else micro(form.maxSpeedMps),
        allowed_profiles=form.allowedProfiles,
        penalty_ms=form.penaltyMs,
    )


def _params(form: _Params) -> CompileParams:
    return CompileParams(
        polyline_step_um=micro(form.polylineStepM),
        chord_error_um=micro(form.chordErrorM),
        conflict_margin_um=micro(form.conflictMarginM),
        cell_len_um=micro(form.cellLenM),
        geom_eps_um=micro(form.geomEps),
        max_rects_per_cell=form.maxRectsPerCell,
        tangent_eps_urad=micro(form.tangentEps),
        granularity=form.conflictGranularity,
        bend_extra_um=micro(form.bendExtraM),
    )


def _conflict(form: _Conflict, groups: dict[str, int], edges: dict[str, int]) -> Conflict:
    a, b = sorted(groups[member.removeprefix("EDGE_GROUP:")] for member in form.members)
    windows = tuple((edges[span.edgeKey], micro(span.s0M), micro(span.s1M)) for span in form.windows)
    return Conflict(form.conflictId, a, b, windows, micro(form.minDistanceM))


def _section(form: _Section, spans: list[tuple[int, int]], groups: dict[str, int]) -> Section:
    members = tuple(Member(groups[part.edgeGroupKey], micro(part.s0M), micro(part.s1M)) for part in form.members)
    return Section(form.criticalSectionId, form.capacity, members, form.origin, tuple(spans))
