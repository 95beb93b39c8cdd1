"""The file of a compiled map: canonical JSON, the named part in metres, the bulk as columns of integers.

`compiledMapHash` is the sha256 of the same bytes without that member, so it is checked without encoding again. A file
with a wrong hash, version or form raises `MapDamaged`.
"""

from collections.abc import Iterable
from dataclasses import replace
from decimal import Decimal
from math import isqrt
from typing import Any, TypeVar

import msgspec
import numpy as np
from msgspec import UNSET, Struct, UnsetType
from numpy.typing import NDArray

from pendula.fleet.map.corridors import Corridor, Member, Mouth, Section, Standing
from pendula.fleet.map.exclusion import Cells, Conflict, Relation, Window, zones_of_windows
from pendula.fleet.map.geometry import Path, angle_urad, boxes
from pendula.fleet.map.network import Edge, Network, Node, Transitions, build_network
from pendula.fleet.map.reading import CriticalSection, Number, SectionMember
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
    Point,
    Severity,
)
from pendula.fleet.sentences import map_finding
from pendula.fleet.units import metres, micro, plain
from pendula.kernel.canonical import Json, digest_bytes, encode
from pendula.kernel.errors import LimitExceeded

T = TypeVar("T")

# The readable part of a compiled map: names and metres, as in the contract.


class Units(Struct, frozen=True):
    length: str
    angle: str
    time: str


class CompileParamsContract(Struct, frozen=True):
    polylineStepM: Number
    chordErrorM: Number
    conflictMarginM: Number
    cellLenM: Number
    geomEps: Number
    maxRectsPerCell: int | UnsetType = UNSET
    tangentEps: Number | UnsetType = UNSET
    conflictGranularity: Granularity | UnsetType = UNSET
    bendExtraM: Number | UnsetType = UNSET


class CompiledNode(Struct, frozen=True):
    nodeId: str
    x: Number
    y: Number
    kind: str
    station: bool | UnsetType = UNSET
    parking: bool | UnsetType = UNSET
    turning: bool | UnsetType = UNSET


class CompiledEdge(Struct, frozen=True, rename={"start": "from", "end": "to"}):
    edgeKey: str
    edgeGroupKey: str
    start: str
    end: str
    lengthM: Number
    movestyle: MoveStyle
    polyline: tuple[tuple[Number, Number], ...]
    criticalSectionId: str | None
    sourceId: str | UnsetType = UNSET
    className: CurveKind | UnsetType = UNSET
    arcUm: tuple[int, ...] | UnsetType = UNSET
    headingsUrad: tuple[int, ...] | UnsetType = UNSET
    widthM: Number | UnsetType = UNSET
    maxSpeedMps: Number | UnsetType = UNSET
    allowedProfiles: tuple[str, ...] | UnsetType = UNSET
    penaltyMs: int | UnsetType = UNSET


class EdgeGroup(Struct, frozen=True):
    edgeGroupKey: str
    axis: tuple[str, str]
    lengthM: Number
    edgeKeys: tuple[str, ...]
    directionPolicy: str


class EdgeSpan(Struct, frozen=True):
    edgeKey: str
    s0M: Number
    s1M: Number


class NamedConflict(Struct, frozen=True):
    conflictId: str
    members: tuple[str, str]
    cause: str
    minDistanceM: Number
    windows: tuple[EdgeSpan, ...] | UnsetType = UNSET


class NodeZone(Struct, frozen=True):
    nodeId: str
    radiusM: Number
    overlapsNodes: tuple[str, ...]
    windows: tuple[EdgeSpan, ...]


class FindingContract(Struct, frozen=True):
    code: Code
    severity: Severity
    details: dict[str, Json]
    # Compiled maps have neither: both are rendered from the code and the details.
    message: str | UnsetType = UNSET
    remedy: str | UnsetType = UNSET


class CompiledMapContract(Struct, frozen=True):
    """The named part of a compiled map; its columns of cells and relations are ignored."""

    contractVersion: str
    compilerVersion: str
    mapId: str
    mapHash: str
    robotProfileHash: str
    compiledMapHash: str
    units: Units
    params: CompileParamsContract
    nodes: tuple[CompiledNode, ...]
    edges: tuple[CompiledEdge, ...]
    edgeGroups: tuple[EdgeGroup, ...]
    conflicts: tuple[NamedConflict, ...]
    edgeConflictGroups: dict[str, tuple[str, ...]]
    nodeZones: tuple[NodeZone, ...]
    criticalSections: tuple[CriticalSection, ...]
    validation: tuple[FindingContract, ...]


def named_form(site: CompiledMap) -> dict[str, Any]:
    """Everything except the columns of cells and relations."""
    form: dict[str, Any] = msgspec.to_builtins(_named(site), builtin_types=(Decimal,))
    return form | {"envelope": envelope_form(site.envelope), "corridors": _corridors(site), "mouths": _mouths(site)}


def _named(site: CompiledMap) -> CompiledMapContract:
    network = site.network
    edges, nodes, groups = network.edges, network.nodes, network.groups
    return CompiledMapContract(
        contractVersion=CONTRACT_VERSION,
        compilerVersion=COMPILER_VERSION,
        mapId=site.map_id,
        mapHash=site.map_hash,
        robotProfileHash=site.profile_hash,
        compiledMapHash=site.compiled_hash,
        units=Units(length="m", angle="rad", time="ms"),
        params=_params_of(site.params),
        nodes=tuple(
            CompiledNode(
                *(node.id, metres(node.at.x_um), metres(node.at.y_um), node.kind, node.station, node.parking),
                turning=UNSET if node.turning else False,
            )
            for node in nodes
        ),
        edges=tuple(_edge(site, number, edge) for number, edge in enumerate(edges)),
        edgeGroups=tuple(
            EdgeGroup(
                edgeGroupKey=group.key,
                axis=(nodes[group.a].id, nodes[group.b].id),
                lengthM=metres(group.length_um),
                edgeKeys=tuple(sorted(edges[edge].key for edge in group.edges)),
                directionPolicy="ONE_DIRECTION_AT_A_TIME",
            )
            for group in groups
        ),
        conflicts=tuple(_conflict_form(site, conflict) for conflict in site.named),
        edgeConflictGroups=_conflict_groups(site),
        nodeZones=tuple(
            NodeZone(
                nodeId=node.id,
                radiusM=metres(site.zones.radius_um),
                overlapsNodes=tuple(nodes[other].id for other in site.zones.overlaps[number]),
                windows=_spans(site, ((w.edge, w.s0, w.s1) for w in site.zones.by_node[number])),
            )
            for number, node in enumerate(nodes)
        ),
        criticalSections=tuple(
            CriticalSection(
                section.id,
                tuple(SectionMember(groups[p.group].key, metres(p.s0), metres(p.s1)) for p in section.members),
                section.capacity,
                section.origin,
            )
            for section in site.sections
        ),
        validation=tuple(FindingContract(finding.code, finding.severity, finding.details) for finding in site.findings),
    )


def _conflict_groups(site: CompiledMap) -> dict[str, tuple[str, ...]]:
    result: dict[str, list[str]] = {group.key: [] for group in site.network.groups}
    for conflict in site.named:
        for side in (conflict.a, conflict.b):
            result[site.network.groups[side].key].append(f"CONFLICT:{conflict.id}")
    return {key: tuple(names) for key, names in result.items()}


def _conflict_form(site: CompiledMap, conflict: Conflict) -> NamedConflict:
    first, second = sorted(f"EDGE_GROUP:{site.network.groups[side].key}" for side in (conflict.a, conflict.b))
    cause = "CLOSER_THAN_MARGIN" if conflict.gap_um else "SWEPT_OVERLAP"
    windows = _spans(site, conflict.windows)
    return NamedConflict(conflict.id, (first, second), cause, metres(conflict.gap_um), windows)


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


def params_form(params: CompileParams) -> dict[str, Any]:
    form: dict[str, Any] = msgspec.to_builtins(_params_of(params), builtin_types=(Decimal,))
    return form


def _params_of(params: CompileParams) -> CompileParamsContract:
    return CompileParamsContract(
        polylineStepM=metres(params.polyline_step_um),
        chordErrorM=metres(params.chord_error_um),
        conflictMarginM=metres(params.conflict_margin_um),
        cellLenM=metres(params.cell_len_um),
        geomEps=metres(params.geom_eps_um),
        maxRectsPerCell=params.max_rects_per_cell,
        tangentEps=metres(params.tangent_eps_urad),
        conflictGranularity=params.granularity,
        bendExtraM=metres(params.bend_extra_um),
    )


def envelope_form(envelope: Envelope) -> dict[str, Any]:
    return {
        "frontExtM": plain(envelope.front_um),
        "rearExtM": plain(envelope.rear_um),
        "sideExtM": plain(envelope.side_um),
        "minFollowingGapM": plain(envelope.gap_um),
        "minTurnRadiusM": plain(envelope.min_turn_radius_um),
    }


def _edge(site: CompiledMap, number: int, edge: Edge) -> CompiledEdge:
    path = edge.path
    sections = site.sections_of_cell
    inside = [sections[cell][0] for cell in site.cells.of_edge(number) if cell in sections]
    return CompiledEdge(
        edgeKey=edge.key,
        edgeGroupKey=edge.group_key,
        start=site.network.nodes[edge.start].id,
        end=site.network.nodes[edge.end].id,
        lengthM=metres(path.length_um),
        movestyle=edge.style,
        polyline=tuple((metres(x), metres(y)) for x, y in zip(path.x, path.y, strict=True)),
        criticalSectionId=site.sections[inside[0]].id if inside else None,
        sourceId=edge.source_id,
        className=path.kind,
        arcUm=tuple(path.s),
        headingsUrad=tuple(yaw for leg in path.yaws for yaw in leg),
        widthM=UNSET if edge.width_um is None else metres(edge.width_um),
        maxSpeedMps=UNSET if edge.max_speed_um_s is None else metres(edge.max_speed_um_s),
        allowedProfiles=tuple(edge.allowed_profiles) or UNSET,
        penaltyMs=edge.penalty_ms or UNSET,
    )


def _spans(site: CompiledMap, spans: Iterable[tuple[int, int, int]]) -> tuple[EdgeSpan, ...]:
    return tuple(EdgeSpan(site.network.edges[edge].key, metres(low), metres(high)) for edge, low, high in spans)


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


class _File(CompiledMapContract, frozen=True):
    """The named part with the columns."""

    envelope: _Envelope
    corridors: list[_Corridor]
    mouths: list[_Mouth]
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


def _have(value: T | UnsetType | None) -> T:
    """A member that is optional in the contract, and never absent in a file."""
    if value is UNSET or value is None:
        raise ValueError("a member is missing")
    return value


def _network(file: _File) -> Network:
    nodes = tuple(
        Node(
            form.nodeId,
            Point(micro(form.x), micro(form.y)),
            form.kind,
            _have(form.station),
            _have(form.parking),
            form.turning is not False,
        )
        for form in file.nodes
    )
    number = {node.id: i for i, node in enumerate(nodes)}
    return build_network(file.mapId, nodes, tuple(_edge_row(form, number) for form in file.edges))


def _edge_row(form: CompiledEdge, number: dict[str, int]) -> Edge:
    x = tuple(micro(point[0]) for point in form.polyline)
    y = tuple(micro(point[1]) for point in form.polyline)
    headings = _have(form.headingsUrad)
    yaws = tuple(zip(headings[::2], headings[1::2], strict=True))
    return Edge(
        key=form.edgeKey,
        group_key=form.edgeGroupKey,
        source_id=_have(form.sourceId),
        start=number[form.start],
        end=number[form.end],
        style=form.movestyle,
        width_um=None if form.widthM is UNSET else micro(form.widthM),
        path=Path(_have(form.className), x, y, _have(form.arcUm), yaws),
        forward_on_axis=form.start < form.end,
        max_speed_um_s=None if form.maxSpeedMps is UNSET else micro(form.maxSpeedMps),
        allowed_profiles=form.allowedProfiles or (),
        penalty_ms=form.penaltyMs or 0,
    )


def _params(form: CompileParamsContract) -> CompileParams:
    return CompileParams(
        polyline_step_um=micro(form.polylineStepM),
        chord_error_um=micro(form.chordErrorM),
        conflict_margin_um=micro(form.conflictMarginM),
        cell_len_um=micro(form.cellLenM),
        geom_eps_um=micro(form.geomEps),
        max_rects_per_cell=_have(form.maxRectsPerCell),
        tangent_eps_urad=micro(_have(form.tangentEps)),
        granularity=_have(form.conflictGranularity),
        bend_extra_um=micro(_have(form.bendExtraM)),
    )


def _conflict(form: NamedConflict, groups: dict[str, int], edges: dict[str, int]) -> Conflict:
    a, b = sorted(groups[member.removeprefix("EDGE_GROUP:")] for member in form.members)
    windows = tuple((edges[span.edgeKey], micro(span.s0M), micro(span.s1M)) for span in _have(form.windows))
    return Conflict(form.conflictId, a, b, windows, micro(form.minDistanceM))


def _section(form: CriticalSection, spans: list[tuple[int, int]], groups: dict[str, int]) -> Section:
    members = tuple(
        Member(groups[part.edgeGroupKey], micro(_have(part.s0M)), micro(_have(part.s1M))) for part in form.members
    )
    return Section(form.criticalSectionId, _have(form.capacity), members, _have(form.origin), tuple(spans))
