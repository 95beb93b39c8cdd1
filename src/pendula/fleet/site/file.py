"""The file of a compiled map: canonical JSON, the named part in metres, the bulk as columns of integers.

`compiledMapHash` is the sha256 of the same bytes without that member, so it is checked without encoding again. A file
with a wrong hash, version or form raises `MapDamaged`.
"""

from dataclasses import replace
from decimal import Decimal
from typing import Any

import msgspec
import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from pendula.fleet.exclusion.cells import Cells
from pendula.fleet.exclusion.conflicts import Conflict
from pendula.fleet.exclusion.corridors import Corridor
from pendula.fleet.exclusion.critical_sections import Member, Section
from pendula.fleet.exclusion.relation import Relation
from pendula.fleet.exclusion.standing import Mouth, Standing
from pendula.fleet.exclusion.turning_discs import Window, zones_of_windows
from pendula.fleet.geometry.paths import Path
from pendula.fleet.model import (
    COMPILER_VERSION,
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
from pendula.fleet.network.graph import Edge, Network, Node, build_network
from pendula.fleet.network.transitions import Transitions
from pendula.fleet.sentences import map_finding
from pendula.fleet.site.compiled_map import CompiledMap
from pendula.fleet.site.file_names import named_form
from pendula.fleet.trucks.envelope import Envelope
from pendula.fleet.units import micro
from pendula.kernel.canonical import Json, digest_bytes, encode
from pendula.kernel.errors import LimitExceeded

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
    return build_network(file.mapId, nodes, tuple(_edge(form, number) for form in file.edges))


def _edge(form: _Edge, number: dict[str, int]) -> Edge:
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
