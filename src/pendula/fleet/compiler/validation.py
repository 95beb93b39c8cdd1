"""Validator: findings about a readable map, such as tight bends, narrow lanes, missing ways back and bad parking.

Findings name ids, explain the consequence and what to do. They do not depend on the order of the source.
"""

from collections.abc import Mapping, Sequence

from pendula.fleet.compiler.curves import Curve
from pendula.fleet.compiler.normal_form import BACK
from pendula.fleet.map.corridors import dead_end, other_end, spurs, without_exit_room
from pendula.fleet.map.network import Edge, Network, components, main_component
from pendula.fleet.map.site import CompiledMap
from pendula.fleet.map.trucks import RobotProfile
from pendula.fleet.model import Code, Finding, Origin, Stand, finding
from pendula.fleet.sentences import map_finding
from pendula.fleet.units import MILLION, plain
from pendula.kernel.canonical import Json


def curve_findings(network: Network, curves: tuple[Curve, ...], profiles: Sequence[RobotProfile]) -> list[Finding]:
    """Findings about single edges for the given trucks."""
    radius = max(profile.min_turn_radius_um for profile in profiles)
    width = max(profile.width_um + 2 * profile.safety_side_um for profile in profiles)
    findings = []
    tight: dict[str, tuple[Edge, Curve]] = {}
    for edge, curve in zip(network.edges, curves, strict=True):
        # The tolerance lets an arc of exactly the least radius pass despite rounding.
        if curve.curvature * radius > MILLION * (1.0 + 1e-6):
            tight[edge.source_id] = edge, curve
        if edge.width_um is not None and edge.width_um < width:
            facts: dict[str, Json] = {"edgeKey": edge.key, "widthUm": edge.width_um, "neededUm": width}
            findings.append(map_finding(Code.LANE_TOO_NARROW, **facts))
    return [
        *findings,
        *(_tight(edge, curve, radius) for edge, curve in tight.values() if not _is_way_back(edge, tight)),
    ]


def _is_way_back(edge: Edge, reported: Mapping[str, tuple[Edge, Curve]]) -> bool:
    """Whether the edge is the second direction of a reported edge: the bend is drawn once in the graph."""
    forth = reported.get(edge.source_id.removesuffix(BACK))
    return forth is not None and forth[0] is not edge and forth[0].group_key == edge.group_key


def _tight(edge: Edge, curve: Curve, least_um: int) -> Finding:
    own = round(MILLION / curve.curvature * 0.001) * 1000
    x, y = edge.path.point(curve.tightest_um)
    message = (
        f"edge {edge.key} (edge {edge.source_id!r} of the graph) bends with a radius of {plain(own)} m at "
        f"({plain(x)}, {plain(y)}), {plain(curve.tightest_um)} m from its start; a truck can follow {plain(least_um)} m"
    )
    return finding(
        Code.TURN_TOO_TIGHT,
        message,
        "draw a wider bend",
        edgeKey=edge.key,
        edge=edge.source_id,
        radiusM=plain(own),
        sM=plain(curve.tightest_um),
        x=plain(x),
        y=plain(y),
    )


def map_findings(site: CompiledMap) -> list[Finding]:
    """Findings about the map as a whole."""
    return [
        *_one_way(site),
        *_close(site),
        *_zones(site),
        *_components(site),
        *_unreachable(site),
        *_parking(site),
        *_mouths(site),
        *_rooms(site),
        *without_exit_room(site.network, site.cells, site.sections, site.envelope),
    ]


def _one_way(site: CompiledMap) -> list[Finding]:
    findings = []
    for group in site.network.groups:
        ways = {site.network.edges[edge].forward_on_axis for edge in group.edges}
        if len(ways) == 1:
            findings.append(map_finding(Code.MISSING_RETURN_EDGE, edgeGroupKey=group.key))
    return findings


def _close(site: CompiledMap) -> list[Finding]:
    groups = site.network.groups
    return [
        map_finding(Code.EDGES_CLOSE, a=groups[conflict.a].key, b=groups[conflict.b].key, conflictId=conflict.id)
        for conflict in site.named
    ]


def _zones(site: CompiledMap) -> list[Finding]:
    nodes = site.network.nodes
    apart_um = 2 * site.zones.radius_um
    return [
        map_finding(Code.NODE_ZONES_OVERLAP, a=nodes[number].id, b=nodes[other].id, apartUm=apart_um)
        for number, others in enumerate(site.zones.overlaps)
        for other in others
        if number < other
    ]


def _components(site: CompiledMap) -> list[Finding]:
    parts = components(site.network)
    if not site.network.edges:
        names: list[Json] = [node.id for node in site.network.nodes]
        return [map_finding(Code.GRAPH_DISCONNECTED, component=names, components=0)]
    if len(parts) < 2:
        return []
    biggest = max(parts, key=lambda part: (len(part), [-node for node in part]))
    return [
        map_finding(
            Code.GRAPH_DISCONNECTED,
            component=[site.network.nodes[node].id for node in part],
            components=len(parts),
        )
        for part in parts
        if part is not biggest
    ]


def _unreachable(site: CompiledMap) -> list[Finding]:
    network = site.network
    stops = [number for number, node in enumerate(network.nodes) if node.station or node.parking]
    # Separate networks may share a floor: each has its own main component.
    inside: set[int] = set()
    for part in components(network):
        members = set(part)
        inside |= main_component(network, [node for node in stops if node in members])
    return [
        finding(
            Code.NODE_UNREACHABLE,
            f"no truck can go to {network.nodes[node].id!r} and come back",
            "add the edges that are missing",
            nodeId=network.nodes[node].id,
        )
        for node in stops
        if node not in inside
    ]


def _parking(site: CompiledMap) -> list[Finding]:
    """Parking nodes where a parked truck blocks edges outside its own dead end."""
    network, count = site.network, len(site.cells)
    findings = []
    for number, node in enumerate(network.nodes):
        if not node.parking or not network.meeting[number]:
            continue
        own = set(dead_end(network, number)) if network.degree(number) == 1 else set()
        standing = site.standing_set(number)
        touched = {
            network.group_of[int(site.cells.edge[cell])]
            for resource in standing
            for cell in site.conflicts.members(resource)
            if cell < count
        }
        foreign = sorted(network.groups[group].key for group in touched - own)
        if foreign:
            findings.append(map_finding(Code.PARKING_BLOCKS_TRAFFIC, nodeId=node.id, groups=foreign))
    return findings


def _rooms(site: CompiledMap) -> list[Finding]:
    """Dead ends with room for more trucks than the one their generated section admits."""
    network = site.network
    findings = []
    for leaf, groups in spurs(network):
        section = f"SPUR-{network.nodes[leaf].id}"
        if not any(each.id == section and each.origin is Origin.GENERATED for each in site.sections):
            continue
        apart = _standing_apart(site, leaf, groups)
        if len(apart) < 2:
            continue
        names = [network.nodes[node].id for node in apart]
        details: dict[str, Json] = {"criticalSectionId": section, "nodeIds": list(names), "capacity": len(apart)}
        findings.append(map_finding(Code.DEAD_END_HAS_ROOM, **details))
    return findings


def _standing_apart(site: CompiledMap, leaf: int, groups: tuple[int, ...]) -> list[int]:
    """Stations and parking nodes of a dead end, from its end on, where trucks can stand at the same time."""
    network, node = site.network, leaf
    nodes: list[int] = []
    taken: set[int] = set()
    for group in groups:
        held = {site.zone(node)}
        held |= {
            site.cells.of_edge(edge).stop - 1 for edge in network.incoming[node] if network.group_of[edge] == group
        }
        if (network.nodes[node].station or network.nodes[node].parking) and not held & taken:
            nodes.append(node)
            taken.update(other for resource in held for other in site.blocking(resource))
        node = other_end(network, group, node)
    return nodes


def _ways_in(site: CompiledMap, corridor: int, node: int) -> bool:
    """Whether trucks reach a mouth over cells outside of sections: inside a spur they wait where they load or park."""
    groups = set(site.corridors[corridor].groups)
    return any(
        site.stand(cell) is not Stand.FORBIDDEN
        for edge in site.network.incoming[node]
        if site.network.group_of[edge] not in groups
        for cell in site.cells.of_edge(edge)
    )


def _mouths(site: CompiledMap) -> list[Finding]:
    """Mouths without a waiting place that keeps the way out free, and dead ends that also have no section."""
    network = site.network
    waiting = {(mouth.corridor, mouth.node): mouth.waiting for mouth in site.standing.mouths}
    guarded = {member.group for section in site.sections for member in section.members}
    findings = []
    for (corridor, node), cells in waiting.items():
        chain = site.corridors[corridor]
        if cells or not _ways_in(site, corridor, node):
            continue
        far = chain.ends[0] if chain.ends[1] == node else chain.ends[1]
        dead = network.degree(far) == 1
        if dead and not set(chain.groups) & guarded:
            details = {"nodeId": network.nodes[far].id, "mouth": network.nodes[node].id}
            findings.append(map_finding(Code.DEAD_END_WITHOUT_TOKEN, **details))
        findings.append(map_finding(Code.NO_SAFE_WAIT_POSITION, nodeId=network.nodes[node].id, corridorId=chain.id))
    return findings
