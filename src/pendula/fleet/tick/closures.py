"""Places closed to routes by failed trucks and by operators.

Operators close lanes, single edges and nodes by their lock names. Of an edge all cells are closed; of a node its
turning zone, and of each of its edges the part that conflicts with the zone, up to the middle of the edge.
"""

from collections.abc import Iterable

import numpy as np

from pendula.fleet.map.planner import OPEN, AtNode, Closed
from pendula.fleet.map.resting import Rest, kept_sections
from pendula.fleet.map.routes import RoutePlan
from pendula.fleet.map.site import CompiledMap
from pendula.fleet.tick.adoption import passed_um
from pendula.fleet.tick.records import Record
from pendula.fleet.tick.track import NEVER_UM, Ground, held_from_the_start
from pendula.fleet.traffic.demand import Shut
from pendula.fleet.traffic.lock_state import LockState
from pendula.kernel.engine import Refusal
from pendula.kernel.wording import nearest

LANE, EDGE, NODE = "EDGE_GROUP:", "EDGE:", "NODE:"


def closed_to_routes(locks: LockState, site: CompiledMap) -> Closed:
    """Places that no route may use until a truck recovers or is removed, or the place is opened."""
    return combine_closed(_closed_by_trucks(locks, site), closed_by_operators(locks.shut))


def closed_by_operators(shut: Iterable[Shut]) -> Closed:
    """Places closed by operators, for routes."""
    edges = frozenset[int]().union(*(place.edges for place in shut))
    return Closed(edges) if edges else OPEN


def _closed_by_trucks(locks: LockState, site: CompiledMap) -> Closed:
    failed = [i for i in locks.known() if locks.truck(i).frozen and locks.truck(i).held]
    if not failed:
        return OPEN
    around = np.unique(np.concatenate([locks.kept_from_others(i) for i in failed]))
    cells = around[around < len(site.cells)]
    zones = around[(around >= len(site.cells)) & (around < site.token(0))] - len(site.cells)
    return Closed(frozenset(np.unique(site.cells.edge[cells]).tolist()), frozenset(zones.tolist()))


def combine_closed(first: Closed, second: Closed) -> Closed:
    return Closed(first.edges | second.edges, first.turns | second.turns) if second else first


def check_closable(site: CompiledMap, name: str) -> Refusal | None:
    """The refusal of a name that cannot be closed or opened, with the nearest valid name."""
    if _edges_of(site, name) is not None:
        return None
    known = [f"{LANE}{lane.key}" for lane in site.network.groups]
    known += [f"{EDGE}{edge.key}" for edge in site.network.edges]
    known += [f"{NODE}{node.id}" for node in site.network.nodes]
    folded = name.casefold()
    bare = next((key for key in known if folded in (key.casefold(), key.partition(":")[2].casefold())), None)
    return Refusal("UNKNOWN_PLACE", {"name": name, "near": nearest(name, known) if bare is None else bare})


def _edges_of(site: CompiledMap, name: str) -> tuple[int, ...] | None:
    """The edges of a lane, the edge itself, or the edges into a node; None for other names."""
    network = site.network
    if name.startswith(LANE):
        return next((lane.edges for lane in network.groups if lane.key == name[len(LANE) :]), None)
    if name.startswith(EDGE):
        number = site.edge_number.get(name[len(EDGE) :])
        return None if number is None else (number,)
    node = site.node_number.get(name[len(NODE) :]) if name.startswith(NODE) else None
    return None if node is None else network.incoming[node]


def shut_of(site: CompiledMap, name: str) -> Shut:
    """A closed place for the locks. Raises `LookupError` if it is not on the map."""
    edges = _edges_of(site, name)
    if edges is None:
        raise LookupError(name)
    if not name.startswith(NODE):
        return Shut(frozenset(cell for edge in edges for cell in site.cells.of_edge(edge)), frozenset(edges))
    node = site.node_number[name[len(NODE) :]]
    near = {cell for cell in site.blocking(site.zone(node)) if cell < len(site.cells)}
    cells = {cell for edge in edges for cell in _half(site, edge, near, at_end=True)}
    cells |= {cell for edge in site.network.outgoing[node] for cell in _half(site, edge, near, at_end=False)}
    return Shut(frozenset({*cells, site.zone(node)}), frozenset(edges), called=site.zone(node))


def _half(site: CompiledMap, edge: int, near: set[int], *, at_end: bool) -> list[int]:
    """The cells of an edge near its node, up to its middle; always the one that touches the node."""
    own = site.cells.of_edge(edge)
    middle = site.network.edges[edge].path.length_um // 2
    if at_end:
        return [cell for cell in own if cell == own.stop - 1 or (cell in near and int(site.cells.s0[cell]) >= middle)]
    return [cell for cell in own if cell == own.start or (cell in near and int(site.cells.s1[cell]) <= middle)]


# Resources that a truck holds at its position, in a node or on an edge, and where on its route it passes each.


def held_in_node(record: Record, node: int) -> dict[int, int]:
    """Resources of a truck in a node: its zone, the cells that lead into it and critical sections. A route from there
    passes only the cells."""
    site = record.site
    held = set(site.standing_set(node, record.short_um))
    held |= {site.token(number) for number in kept_sections(site, Rest(node, record.short_um))}
    return {resource: 0 if resource < len(site.cells) else NEVER_UM for resource in sorted(held)}


def held_at(record: Record, ground: Ground, plan: RoutePlan) -> dict[int, int]:
    """Resources of a truck at the start of a route, and where on that route it passes each."""
    if not isinstance(plan.start, AtNode):
        return held_from_the_start(ground, plan, record.short_um)
    return {
        resource: free if free < NEVER_UM else passed_um(ground, plan.whole, resource, 0, record.short_um)
        for resource, free in held_in_node(record, plan.start.node).items()
    }
