"""The part of a compiled map that people read: names and metres, as the contract shows it."""

from collections.abc import Iterable
from math import isqrt
from typing import Any

from pendula.fleet.geometry.angles import angle_urad
from pendula.fleet.geometry.quadrangles import boxes
from pendula.fleet.model import COMPILER_VERSION, CONTRACT_VERSION, CompileParams, as_json
from pendula.fleet.network.graph import Edge
from pendula.fleet.site.compiled_map import CompiledMap
from pendula.fleet.trucks.envelope import Envelope
from pendula.fleet.units import plain


def named_form(one: CompiledMap) -> dict[str, Any]:
    """Everything but the bulk of cells and relations."""
    network = one.network
    edges, nodes, groups = network.edges, network.nodes, network.groups
    return {
        "contractVersion": CONTRACT_VERSION,
        "compilerVersion": COMPILER_VERSION,
        "mapId": one.map_id,
        "mapHash": one.map_hash,
        "robotProfileHash": one.profile_hash,
        "compiledMapHash": one.compiled_hash,
        "units": {"length": "m", "angle": "rad", "time": "ms"},
        "params": params_form(one.params),
        "envelope": envelope_form(one.envelope),
        "nodes": _nodes(one),
        "edges": [_edge(one, number, edge) for number, edge in enumerate(edges)],
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
        "conflicts": _conflicts(one),
        "edgeConflictGroups": _conflict_groups(one),
        "nodeZones": [
            {
                "nodeId": node.id,
                "radiusM": plain(one.zones.radius_um),
                "overlapsNodes": [nodes[other].id for other in one.zones.overlaps[number]],
                "windows": _spans(one, ((w.edge, w.s0, w.s1) for w in one.zones.by_node[number])),
            }
            for number, node in enumerate(nodes)
        ],
        "criticalSections": _sections(one),
        "corridors": _corridors(one),
        "mouths": _mouths(one),
        "validation": [as_json(finding) for finding in one.findings],
    }


def _nodes(one: CompiledMap) -> list[dict[str, Any]]:
    nodes = one.network.nodes
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


def _conflicts(one: CompiledMap) -> list[dict[str, Any]]:
    groups = one.network.groups
    return [
        {
            "conflictId": conflict.id,
            "members": sorted(f"EDGE_GROUP:{groups[side].key}" for side in (conflict.a, conflict.b)),
            "cause": "CLOSER_THAN_MARGIN" if conflict.gap_um else "SWEPT_OVERLAP",
            "minDistanceM": plain(conflict.gap_um),
            "windows": _spans(one, conflict.windows),
        }
        for conflict in one.named
    ]


def _sections(one: CompiledMap) -> list[dict[str, Any]]:
    groups = one.network.groups
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
        for section in one.sections
    ]


def _corridors(one: CompiledMap) -> list[dict[str, Any]]:
    nodes, groups = one.network.nodes, one.network.groups
    return [
        {
            "corridorId": corridor.id,
            "nodeIds": [nodes[node].id for node in corridor.nodes],
            "edgeGroupKeys": [groups[group].key for group in corridor.groups],
            "offsetsUm": list(corridor.offsets),
            "along": list(corridor.along),
        }
        for corridor in one.corridors
    ]


def _mouths(one: CompiledMap) -> list[dict[str, Any]]:
    nodes = one.network.nodes
    return [
        {
            "corridorId": one.corridors[mouth.corridor].id,
            "nodeId": nodes[mouth.node].id,
            "waiting": list(mouth.waiting),
        }
        for mouth in one.standing.mouths
    ]


def _conflict_groups(one: CompiledMap) -> dict[str, list[str]]:
    result: dict[str, list[str]] = {group.key: [] for group in one.network.groups}
    for conflict in one.named:
        for side in (conflict.a, conflict.b):
            result[one.network.groups[side].key].append(f"CONFLICT:{conflict.id}")
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


def _edge(one: CompiledMap, number: int, edge: Edge) -> dict[str, Any]:
    path = edge.path
    sections = one.sections_of_cell
    inside = [sections[cell][0] for cell in one.cells.of_edge(number) if cell in sections]
    form: dict[str, Any] = {
        "edgeKey": edge.key,
        "edgeGroupKey": edge.group_key,
        "from": one.network.nodes[edge.start].id,
        "to": one.network.nodes[edge.end].id,
        "lengthM": plain(path.length_um),
        "movestyle": edge.style.value,
        "polyline": [[plain(x), plain(y)] for x, y in zip(path.x, path.y, strict=True)],
        "criticalSectionId": one.sections[inside[0]].id if inside else None,
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


def _spans(one: CompiledMap, spans: Iterable[tuple[int, int, int]]) -> list[dict[str, Any]]:
    return [
        {"edgeKey": one.network.edges[edge].key, "s0M": plain(low), "s1M": plain(high)} for edge, low, high in spans
    ]


def cell_form(one: CompiledMap, cell: int) -> dict[str, Any]:
    """One cell with names instead of numbers, for people and other programs."""
    edge = int(one.cells.edge[cell])
    own = one.network.edges[edge]
    corridor = one.corridor_of_group[one.network.group_of[edge]]
    place = one.corridors[corridor].groups.index(one.network.group_of[edge])
    ahead = own.forward_on_axis == one.corridors[corridor].along[place]
    section = one.sections_of_cell.get(cell)
    count = len(one.cells)
    return {
        "cellId": one.cell_name(cell),
        "edgeKey": own.key,
        "corridorId": one.corridors[corridor].id,
        "s0M": plain(int(one.cells.s0[cell])),
        "s1M": plain(int(one.cells.s1[cell])),
        "dir": "A_TO_B" if ahead else "B_TO_A",
        "stand": one.stand(cell).value,
        "standReasons": list(one.stand_reasons(cell)),
        "criticalSectionId": None if section is None else one.sections[section[0]].id,
        "sweptShape": shape_form(one, cell),
        "conflictSet": [one.cell_name(other) for other in one.conflicts.members(cell) if other < count],
        "followingSet": [one.cell_name(other) for other in one.following.members(cell)],
    }


def shape_form(one: CompiledMap, cell: int) -> dict[str, Any]:
    """The swept area as oriented rectangles; half extents are rounded up."""
    quads = one.cells.quads[int(one.cells.quad_first[cell]) : int(one.cells.quad_first[cell + 1])]
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
