"""Edges and nodes that trucks at rest close to other trucks.

No other truck may use an edge that conflicts with a standing set, nor stop or turn in a node whose zone does. The
standing set of a truck at rest is its turning zone, the last cells of each way in, and the token of every section that
its envelope has not left.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from pendula.fleet.map.corridors import EXIT_CLEARANCE_UM, dead_end, other_end
from pendula.fleet.map.planner import Closed
from pendula.fleet.map.site import CompiledMap
from pendula.fleet.map.trucks import RobotProfile
from pendula.fleet.model import Fleet, Truck


@dataclass(frozen=True, slots=True)
class Rest:
    """A truck at rest: its node, and how far before the node its release bound may be."""

    node: int
    short_um: int


@dataclass(frozen=True, slots=True)
class _Closure:
    """The edges and nodes that one truck at rest closes, and the sections whose tokens it holds."""

    edges: frozenset[int]
    turns: frozenset[int]
    sections: tuple[int, ...]


def short_um(profile: RobotProfile, arrive_tol_um: int) -> int:
    """How far before its rest node the release bound of a truck at rest may be: the arrival tolerance and the
    localization error add up."""
    return profile.localization_error.value_um + arrive_tol_um


def rests_of(site: CompiledMap, fleet: Fleet, profiles: Mapping[str, RobotProfile]) -> dict[str, Rest]:
    """The rest of every truck by its id, in the order of the ids."""
    return {
        truck.robot_id: Rest(
            site.node_number[truck.park_node_id], short_um(profiles[truck.profile_id], fleet.arrive_tol_um)
        )
        for truck in sorted(fleet.trucks, key=lambda truck: truck.robot_id)
    }


def closed_for_all(site: CompiledMap, rests: Mapping[str, Rest]) -> dict[str, Closed]:
    """What is closed to each truck so that all others can rest."""
    closures = {robot: _closure(site, rest) for robot, rest in rests.items()}
    edges = Counter(edge for closure in closures.values() for edge in closure.edges)
    turns = Counter(node for closure in closures.values() for node in closure.turns)
    inside = Counter(section for closure in closures.values() for section in closure.sections)
    edges_of = {section: _edges_of(site, section) for section in inside}
    all_closed = Closed(frozenset(edges) | _full(site, inside, edges_of), frozenset(turns))
    result = {}
    for robot, own in closures.items():
        left = inside - Counter(own.sections)
        open_edges = {edge for edge in own.edges if edges[edge] == 1}
        closed_edges = (frozenset(edges) - open_edges) | _full(site, left, edges_of)
        closed_turns = frozenset(turns) - {node for node in own.turns if turns[node] == 1}
        result[robot] = _with_home(site, Closed(closed_edges, closed_turns), all_closed, rests[robot].node)
    return result


def closed_for(site: CompiledMap, truck: Truck, fleet: Fleet, profiles: Mapping[str, RobotProfile]) -> Closed:
    """What is closed to one truck so that all others can rest."""
    return closed_for_all(site, rests_of(site, fleet, profiles))[truck.robot_id]


def closed_by(site: CompiledMap, rests: Iterable[Rest]) -> Closed:
    """What trucks at rest close to all others. A section is closed when the trucks resting in it fill its capacity."""
    closures = [_closure(site, rest) for rest in rests]
    inside = Counter(section for closure in closures for section in closure.sections)
    edges = frozenset(edge for closure in closures for edge in closure.edges)
    full = _full(site, inside, {section: _edges_of(site, section) for section in inside})
    return Closed(edges | full, frozenset(node for closure in closures for node in closure.turns))


def kept_sections(site: CompiledMap, rest: Rest) -> tuple[int, ...]:
    """The sections whose tokens a truck at rest holds: it stands in them, or its envelope has not left them."""
    sections: set[int] = set()
    for edge in site.network.incoming[rest.node]:
        trail = site.envelope.trail_um(site.network.edges[edge].style)
        sections |= _sections_behind(site, edge, trail + EXIT_CLEARANCE_UM + rest.short_um)
    return tuple(sorted(sections))


def home_of(site: CompiledMap, node: int) -> tuple[frozenset[int], frozenset[int], int] | None:
    """The dead end that leads to a node: its edges, its nodes without the mouth, and the mouth; None if there is
    none."""
    network = site.network
    if network.degree(node) != 1:
        return None
    at, inner = node, []
    groups = dead_end(network, node)
    for group in groups:
        inner.append(at)
        at = other_end(network, group, at)
    if network.degree(at) < 3:
        return None
    return frozenset(edge for group in groups for edge in network.groups[group].edges), frozenset(inner), at


def _with_home(site: CompiledMap, own: Closed, common: Closed, rest: int) -> Closed:
    """The closure of a truck; if it differs from the common closure only in its own dead end, it shares the trees of
    the common one."""
    home = home_of(site, rest)
    if home is None:
        return own
    edges, inner, _ = home
    differs_at_home = common.edges - own.edges <= edges and common.turns - own.turns <= inner
    return Closed(own.edges, own.turns, common, edges) if differs_at_home and not edges & own.edges else own


def _closure(site: CompiledMap, rest: Rest) -> _Closure:
    count = len(site.cells)
    related: set[int] = set()
    for resource in site.standing_set(rest.node, rest.short_um):
        related.update(site.blocking(resource))
    edges = frozenset(int(site.cells.edge[resource]) for resource in related if resource < count)
    return _Closure(
        edges, frozenset(resource - count for resource in related if resource >= count), kept_sections(site, rest)
    )


def _full(site: CompiledMap, inside: Counter[int], edges_of: Mapping[int, frozenset[int]]) -> frozenset[int]:
    """The edges of sections whose capacity is filled by trucks at rest."""
    full = [section for section, taken in inside.items() if taken >= site.sections[section].capacity]
    return frozenset().union(*(edges_of[section] for section in full))


def _edges_of(site: CompiledMap, section: int) -> frozenset[int]:
    """The edges that are in a section, wholly or in part."""
    stretches = site.sections[section].cells
    return frozenset(edge for low, high in stretches for edge in site.cells.edge[low : high + 1].tolist())


def _sections_behind(site: CompiledMap, edge: int, reach_um: int) -> set[int]:
    """The sections that end within `reach_um` before the end of an edge, on this edge or on those before it, and the
    sections of its last cell."""
    sections = set(site.sections_of_cell.get(site.cells.of_edge(edge).stop - 1, ()))
    # The least distance from the end of an edge to the node.
    seen: dict[int, int] = {edge: 0}
    queue = [edge]
    while queue:
        current = queue.pop(0)
        behind, length = seen[current], site.network.edges[current].path.length_um
        sections |= {
            section for section, _, end in site.sections_of_edge.get(current, ()) if behind + length - end < reach_um
        }
        if behind + length >= reach_um:
            continue
        for before in site.network.incoming[site.network.edges[current].start]:
            back = site.network.group_of[before] == site.network.group_of[current]
            if not back and seen.get(before, reach_um) > behind + length:
                seen[before] = behind + length
                queue.append(before)
    return sections
