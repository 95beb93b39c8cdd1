"""The readable part of a compiled map: names and metres, as in the contract."""

from collections.abc import Iterable
from math import isqrt
from typing import Any

from pendula.fleet.geometry.angles import angle_urad
from pendula.fleet.geometry.quadrangles import boxes
from pendula.fleet.model import COMPILER_VERSION, CONTRACT_VERSION, CompileParams
from pendula.fleet.network.graph import Edge
from pendula.fleet.site.compiled_map import CompiledMap
from pendula.fleet.trucks.envelope import Envelope
from pendula.fleet.units import plain


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
