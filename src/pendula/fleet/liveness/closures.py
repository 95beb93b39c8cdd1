"""What trucks at rest close to all others.

No other truck may use an edge that conflicts with a standing set, nor stop or turn in a node whose zone does.
The standing set of a truck at rest is its turning zone, the last cells of each way in, and the token of every section
that its envelope has not left.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from pendula.fleet.exclusion.critical_sections import EXIT_CLEARANCE_UM, dead_end, other_end
from pendula.fleet.model import Fleet, Truck
from pendula.fleet.routing.planner import Closed
from pendula.fleet.site.compiled_map import CompiledMap
from pendula.fleet.trucks.profiles import RobotProfile


@dataclass(frozen=True, slots=True)
class Rest:
    """A truck at rest: its node, and how far before it the release bound may lie."""

    node: int
    short_um: int


@dataclass(frozen=True, slots=True)
class _Closure:
    """What one truck at rest closes, and the sections whose tokens it keeps."""

    edges: frozenset[int]
    turns: frozenset[int]
    sections: tuple[int, ...]


def short_um(profile: RobotProfile, arrive_tol_um: int) -> int:
    """How far before its rest node the release bound of a truck at rest may lie: where it arrived it says that it is
    within the tolerance, and what it says may be wrong."""
    return profile.localization_error.value_um + arrive_tol_um


def rests_of(site: CompiledMap, fleet: Fleet, profiles: Mapping[str, RobotProfile]) -> dict[str, Rest]:
    """The rest of every truck, by its id, in the order of the ids."""
    return {
        truck.robot_id: Rest(
            site.node_number[truck.park_node_id], short_um(profiles[truck.profile_id], fleet.arrive_tol_um)
        )
        for truck in sorted(fleet.trucks, key=lambda one: one.robot_id)
    }


def closed_for_all(site: CompiledMap, rests: Mapping[str, Rest]) -> dict[str, Closed]:
    """What each truck keeps off so that all others can rest."""
    closures = {robot: _closure(site, rest) for robot, rest in rests.items()}
    edges = Counter(edge for one in closures.values() for edge in one.edges)
    turns = Counter(node for one in closures.values() for node in one.turns)
    inside = Counter(section for one in closures.values() for section in one.sections)
    edges_of = {section: _edges_of(site, section) for section in inside}
    everybody = Closed(frozenset(edges) | _full(site, inside, edges_of), frozenset(turns))
    result = {}
    for robot, own in closures.items():
        left = inside - Counter(own.sections)
        open_edges = {edge for edge in own.edges if edges[edge] == 1}
        closed_edges = (frozenset(edges) - open_edges) | _full(site, left, edges_of)
        closed_turns = frozenset(turns) - {node for node in own.turns if turns[node] == 1}
        result[robot] = _with_home(site, Closed(closed_edges, closed_turns), everybody, rests[robot].node)
    return result


def closed_for(site: CompiledMap, truck: Truck, fleet: Fleet, profiles: Mapping[str, RobotProfile]) -> Closed:
    """What one truck keeps off so that all others can rest."""
    return closed_for_all(site, rests_of(site, fleet, profiles))[truck.robot_id]


def closed_by(site: CompiledMap, rests: Iterable[Rest]) -> Closed:
    """What trucks at rest close to all others. A section is closed when as many rest in it as it holds."""
    closures = [_closure(site, rest) for rest in rests]
    inside = Counter(section for one in closures for section in one.sections)
    edges = frozenset(edge for one in closures for edge in one.edges)
    full = _full(site, inside, {section: _edges_of(site, section) for section in inside})
    return Closed(edges | full, frozenset(node for one in closures for node in one.turns))


def kept_sections(site: CompiledMap, rest: Rest) -> tuple[int, ...]:
    """The sections whose tokens a truck at rest keeps: it stands in them, or its envelope has not left them."""
    found: set[int] = set()
    for edge in site.network.incoming[rest.node]:
        trail = site.envelope.trail_um(site.network.edges[edge].style)
        found |= _sections_behind(site, edge, trail + EXIT_CLEARANCE_UM + rest.short_um)
    return tuple(sorted(found))


def home_of(site: CompiledMap, node: int) -> tuple[frozenset[int], frozenset[int], int] | None:
    """The dead end to a node: its edges, its nodes but for the mouth, and the mouth; None where it is none."""
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


def _with_home(site: CompiledMap, own: Closed, everybody: Closed, rest: int) -> Closed:
    """A closure that shares the trees of everybody, where only the dead end of the rest sets the truck apart."""
    home = home_of(site, rest)
    if home is None:
        return own
    edges, inner, _ = home
    apart = everybody.edges - own.edges <= edges and everybody.turns - own.turns <= inner
    return Closed(own.edges, own.turns, everybody, edges) if apart and not edges & own.edges else own


def _closure(site: CompiledMap, rest: Rest) -> _Closure:
    count = len(site.cells)
    related: set[int] = set()
    for resource in site.standing_set(rest.node, rest.short_um):
        related.update(site.blocking(resource))
    edges = frozenset(int(site.cells.edge[one]) for one in related if one < count)
    return _Closure(edges, frozenset(one - count for one in related if one >= count), kept_sections(site, rest))


def _full(site: CompiledMap, inside: Counter[int], edges_of: Mapping[int, frozenset[int]]) -> frozenset[int]:
    """The edges of sections in which as many rest as they hold."""
    full = [section for section, taken in inside.items() if taken >= site.sections[section].capacity]
    return frozenset().union(*(edges_of[section] for section in full))


def _edges_of(site: CompiledMap, section: int) -> frozenset[int]:
    """The edges that lie in a section, wholly or in part."""
    stretches = site.sections[section].cells
    return frozenset(edge for low, high in stretches for edge in site.cells.edge[low : high + 1].tolist())


def _sections_behind(site: CompiledMap, edge: int, reach_um: int) -> set[int]:
    """The sections that end within a distance before the end of an edge, on the edges before it too, and those of its
    last cell."""
    found = set(site.sections_of_cell.get(site.cells.of_edge(edge).stop - 1, ()))
    # The least distance at which the end of an edge lies behind the node.
    seen: dict[int, int] = {edge: 0}
    queue = [edge]
    while queue:
        one = queue.pop(0)
        behind, length = seen[one], site.network.edges[one].path.length_um
        found |= {section for section, _, end in site.sections_of_edge.get(one, ()) if behind + length - end < reach_um}
        if behind + length >= reach_um:
            continue
        for before in site.network.incoming[site.network.edges[one].start]:
            back = site.network.group_of[before] == site.network.group_of[one]
            if not back and seen.get(before, reach_um) > behind + length:
                seen[before] = behind + length
                queue.append(before)
    return found
