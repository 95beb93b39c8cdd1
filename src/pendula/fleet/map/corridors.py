"""Corridors, critical sections, and where a truck may stand."""

from bisect import bisect_left
from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass
from hashlib import sha256

import numpy as np
from numpy.typing import NDArray

from pendula.fleet.map.exclusion import Cells, Conflict, Relation, Triples, Zones, expanded, merged, relation, runs
from pendula.fleet.map.network import Network, Transitions
from pendula.fleet.map.trucks import Envelope
from pendula.fleet.model import Code, Finding, MoveStyle, Origin, SourceSection, Stand, finding
from pendula.fleet.sentences import map_finding
from pendula.fleet.units import plain

# Corridors: maximal chains of groups over nodes without branches, and the following distance of trucks in them.
# The direction of a corridor is derived from the cells held; it is not a lock. The following relation contains what
# the operating gap adds to the swept areas; it is a separate relation.

Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Corridor:
    """A chain from node A to node B; `offsets` are the starts of the groups on its axis, `along` whether the axis of a
    group runs the same way."""

    id: str
    nodes: tuple[int, ...]
    groups: tuple[int, ...]
    offsets: tuple[int, ...]
    along: tuple[bool, ...]

    @property
    def ends(self) -> tuple[int, int]:
        return self.nodes[0], self.nodes[-1]


def corridors_of(network: Network) -> tuple[Corridor, ...]:
    """All corridors, sorted by id; every group is in exactly one."""
    seen: set[int] = set()
    chains: list[tuple[tuple[int, ...], tuple[int, ...]]] = []
    for group in range(len(network.groups)):
        if group not in seen:
            nodes, groups = _chain(network, group)
            seen.update(groups)
            chains.append((nodes, groups))
    return _with_ids(network, chains)


def _chain(network: Network, group: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The chain through a group, from its end with the smaller number."""
    lane = network.groups[group]
    ahead_nodes, ahead_groups = _walk(network, lane.b, group, lane.a)
    if ahead_nodes and ahead_nodes[-1] == lane.a and network.degree(lane.a) == 2 and ahead_groups[-1] != group:
        return _ring([lane.a, lane.b, *ahead_nodes[:-1]], [group, *ahead_groups])
    back_nodes, back_groups = _walk(network, lane.a, group, lane.b)
    nodes = [*reversed(back_nodes), lane.a, lane.b, *ahead_nodes]
    groups = [*reversed(back_groups), group, *ahead_groups]
    reversed_chain = (tuple(reversed(nodes)), tuple(reversed(groups)))
    # Node numbers are in the order of the ids.
    return min((tuple(nodes), tuple(groups)), reversed_chain)


def _walk(network: Network, node: int, came_by: int, stop: int) -> tuple[list[int], list[int]]:
    """Follow groups from a node until they branch or end, or until the node `stop`."""
    nodes: list[int] = []
    groups: list[int] = []
    while network.degree(node) == 2:
        first, second = network.meeting[node]
        came_by = second if first == came_by else first
        group = network.groups[came_by]
        node = group.b if group.a == node else group.a
        nodes.append(node)
        groups.append(came_by)
        if node == stop:
            break
    return nodes, groups


def _ring(nodes: list[int], groups: list[int]) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """A closed ring, cut at its smallest node, towards the smaller neighbour."""
    at = nodes.index(min(nodes))
    nodes, groups = nodes[at:] + nodes[:at], groups[at:] + groups[:at]
    closed = [*nodes, nodes[0]]
    return min((tuple(closed), tuple(groups)), (tuple(reversed(closed)), tuple(reversed(groups))))


def _with_ids(network: Network, chains: list[tuple[tuple[int, ...], tuple[int, ...]]]) -> tuple[Corridor, ...]:
    digests = [_digest(network, nodes, groups) for nodes, groups in chains]
    ends = [(nodes[0], nodes[-1]) for nodes, _ in chains]
    digits = 4
    while len({(end, digest[:digits]) for end, digest in zip(ends, digests, strict=True)}) < len(chains):
        digits += 4
    result = []
    for (nodes, groups), digest in zip(chains, digests, strict=True):
        first, last = network.nodes[nodes[0]].id, network.nodes[nodes[-1]].id
        lengths = [network.groups[group].length_um for group in groups]
        offsets = tuple(int(offset) for offset in np.cumsum([0, *lengths[:-1]]))
        along = tuple(network.groups[group].a == node for node, group in zip(nodes, groups, strict=False))
        result.append(Corridor(f"C:{first}->{last}:{digest[:digits]}", nodes, groups, offsets, along))
    return tuple(sorted(result, key=lambda corridor: corridor.id))


def _digest(network: Network, nodes: tuple[int, ...], groups: tuple[int, ...]) -> str:
    text = "|".join(network.nodes[node].id for node in nodes)
    # Parallel lanes have the same sequence of nodes, so their keys are added.
    doubled = [network.groups[group].key for group in groups if "#" in network.groups[group].key]
    return sha256("|".join([text, *doubled]).encode()).hexdigest()


def following_of(
    network: Network, cells: Cells, corridors: tuple[Corridor, ...], envelope: Envelope, conflicts: Relation
) -> Relation:
    """Pairs of cells of one corridor and direction whose pivots could come closer than the spacing, without
    conflicts."""
    parts: list[Triples] = []
    for corridor in corridors:
        for forward in (True, False):
            parts += _following(_edges_in_direction(network, corridor, forward), network, cells, envelope)
    if not parts:
        return relation(len(cells), [])
    rows = np.concatenate([part.row for part in parts])
    a, b = expanded(rows, np.concatenate([part.lo for part in parts]), np.concatenate([part.hi for part in parts]))
    new = ~conflicts.contains(a, b)
    a, b = a[new], b[new]
    return relation(len(cells), [runs(np.concatenate([a, b]), np.concatenate([b, a]))])


def _edges_in_direction(network: Network, corridor: Corridor, forward: bool) -> list[tuple[int, int]]:
    """The directed edges of a corridor in one direction, each with its start on the axis, in order."""
    total = corridor.offsets[-1] + network.groups[corridor.groups[-1]].length_um
    result = []
    for group, offset, along in zip(corridor.groups, corridor.offsets, corridor.along, strict=True):
        begin = offset if forward else total - offset - network.groups[group].length_um
        for edge in network.groups[group].edges:
            if (network.edges[edge].forward_on_axis == along) == forward:
                result.append((begin, edge))
    line = sorted(result)
    if corridor.nodes[0] == corridor.nodes[-1]:
        # A ring continues at its cut: trucks near its end follow trucks near its start.
        line += [(begin + total, edge) for begin, edge in line]
    return line


def _following(line: list[tuple[int, int]], network: Network, cells: Cells, envelope: Envelope) -> list[Triples]:
    parts = []
    begins = [begin for begin, _ in line]
    widest = max(envelope.spacing_um(leader, follower) for leader in MoveStyle for follower in MoveStyle)
    for begin, follower in line:
        own = np.arange(cells.first[follower], cells.first[follower + 1], dtype=np.int64)
        reach_from = begin + cells.s1[own]
        # Edges of one lane start at the same position: each may follow the other.
        for place in range(bisect_left(begins, begin), len(line)):
            ahead, leader = line[place]
            if ahead - int(reach_from[-1]) >= widest:
                break
            spacing = envelope.spacing_um(network.edges[leader].style, network.edges[follower].style)
            if ahead - int(reach_from[-1]) >= spacing:
                continue
            low, high = int(cells.first[leader]), int(cells.first[leader + 1])
            starts = ahead + cells.s0[low:high]
            # Leaders from the follower's own position up to the last one that is too close.
            first = low + np.searchsorted(starts, begin + cells.s0[own], side="left")
            last = low + np.searchsorted(starts, reach_from + spacing, side="left") - 1
            some = last >= first
            parts.append(Triples(own[some], first[some].astype(np.int64), last[some].astype(np.int64)))
    return parts


# Critical sections: authored ones, and a generated one for every dead end in which trucks load, unload or park.

EXIT_CLEARANCE_UM = 200_000


@dataclass(frozen=True, slots=True)
class Member:
    """A part of a group, along the group's axis."""

    group: int
    s0: int
    s1: int


@dataclass(frozen=True, slots=True)
class Section:
    """A part of the map that holds at most `capacity` trucks; `cells` are ranges of numbers, both ends included."""

    id: str
    capacity: int
    members: tuple[Member, ...]
    origin: Origin
    cells: tuple[tuple[int, int], ...]


def sections_of(
    network: Network, cells: Cells, authored: Iterable[SourceSection]
) -> tuple[tuple[Section, ...], tuple[Finding, ...]]:
    """All sections, sorted by id, and findings about the authored ones."""
    findings: list[Finding] = []
    drafts: dict[str, tuple[int, tuple[Member, ...], Origin]] = {}
    number = {group.key: i for i, group in enumerate(network.groups)}
    for source in sorted(authored, key=lambda section: (section.id, repr(section))):
        if source.id in drafts:
            findings.append(finding(Code.DUPLICATE_ID, f"the section {source.id!r} is defined twice", id=source.id))
            continue
        members = _members(network, number, source, findings)
        if members:
            drafts[source.id] = (source.capacity, members, Origin.AUTHORED)
    covered = {
        member.group
        for _, members, _ in drafts.values()
        for member in members
        if member.s0 == 0 and member.s1 == network.groups[member.group].length_um
    }
    for leaf, groups in spurs(network):
        if groups[0] in covered:
            continue
        # Group numbers are in the order of the keys.
        whole = tuple(Member(group, 0, network.groups[group].length_um) for group in sorted(groups))
        name = f"SPUR-{network.nodes[leaf].id}"
        if name in drafts:
            message = f"section {name!r} has the name of the section generated for the dead end to its node"
            findings.append(finding(Code.DUPLICATE_ID, message, "rename it, or let it cover the dead end", id=name))
            continue
        drafts[name] = (1, whole, Origin.GENERATED)
    return tuple(
        Section(name, capacity, members, origin, _cell_ranges(network, cells, members))
        for name, (capacity, members, origin) in sorted(drafts.items())
    ), tuple(findings)


def _members(
    network: Network, number: dict[str, int], source: SourceSection, findings: list[Finding]
) -> tuple[Member, ...]:
    members = []
    for source_member in source.members:
        if source_member.group_key not in number:
            message = f"section {source.id!r} names the group {source_member.group_key!r}, which does not exist"
            findings.append(
                finding(Code.MAP_PARSE_ERROR, message, "name a group as a<->b, a before b", section=source.id)
            )
            continue
        group = number[source_member.group_key]
        length = network.groups[group].length_um
        low = 0 if source_member.s0_um is None else source_member.s0_um
        high = length if source_member.s1_um is None else min(source_member.s1_um, length)
        if low >= high:
            message = f"section {source.id!r} has an empty interval on {source_member.group_key!r}"
            findings.append(
                finding(Code.MAP_PARSE_ERROR, message, f"0 <= s0M < s1M <= {plain(length)}", section=source.id)
            )
            continue
        members.append(Member(group, low, high))
    return tuple(sorted(members, key=lambda member: (network.groups[member.group].key, member.s0)))


def spurs(network: Network) -> list[tuple[int, tuple[int, ...]]]:
    """Dead ends with a station or parking node: the leaf and the groups up to the first branch. If the chain ends in
    another leaf, only the group at the leaf."""
    result = []
    for leaf, node in enumerate(network.nodes):
        if network.degree(leaf) == 1 and (node.station or node.parking):
            groups = dead_end(network, leaf)
            result.append((leaf, groups))
    return result


def dead_end(network: Network, leaf: int) -> tuple[int, ...]:
    groups = [network.meeting[leaf][0]]
    node = other_end(network, groups[0], leaf)
    while network.degree(node) == 2:
        first, second = network.meeting[node]
        groups.append(second if first == groups[-1] else first)
        node = other_end(network, groups[-1], node)
    return tuple(groups) if network.degree(node) > 2 else (groups[0],)


def other_end(network: Network, group: int, node: int) -> int:
    lane = network.groups[group]
    return lane.b if lane.a == node else lane.a


def _cell_ranges(network: Network, cells: Cells, members: tuple[Member, ...]) -> tuple[tuple[int, int], ...]:
    ranges = []
    for member in members:
        for edge in network.groups[member.group].edges:
            low, high = on_edge(network, edge, member.s0, member.s1)
            inside = [c for c in cells.of_edge(edge) if int(cells.s0[c]) < high and int(cells.s1[c]) > low]
            if inside:
                ranges.append((inside[0], inside[-1]))
    return tuple(_joined(merged(ranges)))


def _joined(ranges: list[tuple[int, int]]) -> list[tuple[int, int]]:
    result: list[tuple[int, int]] = []
    for low, high in ranges:
        if result and result[-1][1] + 1 == low:
            result[-1] = (result[-1][0], high)
        else:
            result.append((low, high))
    return result


def on_edge(network: Network, edge: int, s0: int, s1: int) -> tuple[int, int]:
    """An interval of a group's axis as positions on one of its edges."""
    directed = network.edges[edge]
    axis, own = network.groups[network.group_of[edge]].length_um, directed.path.length_um
    low, high = s0 * own // axis, -(-s1 * own // axis)
    return (low, high) if directed.forward_on_axis else (own - high, own - low)


def without_exit_room(
    network: Network, cells: Cells, sections: tuple[Section, ...], envelope: Envelope
) -> list[Finding]:
    """Sections with an exit that leads to no position where the whole truck is outside."""
    findings = []
    forbidden = {c for section in sections for low, high in section.cells for c in range(low, high + 1)}
    for section in sections:
        groups = {member.group for member in section.members}
        inside = {edge for group in groups for edge in network.groups[group].edges}
        for edge in sorted(inside):
            end = network.edges[edge].end
            if _room_on(network, cells, edge, section, forbidden, envelope):
                continue
            onward = [after for after in network.outgoing[end] if after not in inside]
            if onward and not _room(network, cells, onward, inside, forbidden, envelope):
                node = network.nodes[end].id
                findings.append(map_finding(Code.CS_WITHOUT_EXIT_ROOM, criticalSectionId=section.id, nodeId=node))
                break
    return findings


def _room_on(
    network: Network, cells: Cells, edge: int, section: Section, forbidden: set[int], envelope: Envelope
) -> bool:
    """Whether a truck clears a section that ends within the edge before the end of the edge."""
    own = [m for m in section.members if m.group == network.group_of[edge]]
    end = max(on_edge(network, edge, member.s0, member.s1)[1] for member in own)
    need = end + envelope.trail_um(network.edges[edge].style) + EXIT_CLEARANCE_UM
    return any(int(cells.s1[cell]) >= need and cell not in forbidden for cell in cells.of_edge(edge))


def _room(
    network: Network, cells: Cells, onward: list[int], inside: set[int], forbidden: set[int], envelope: Envelope
) -> bool:
    queue: deque[tuple[int, int]] = deque((edge, 0) for edge in onward)
    seen = set(onward)
    while queue:
        edge, driven = queue.popleft()
        current = network.edges[edge]
        need = envelope.trail_um(current.style) + EXIT_CLEARANCE_UM
        for cell in cells.of_edge(edge):
            if driven + int(cells.s1[cell]) >= need and cell not in forbidden:
                return True
        for after in network.outgoing[current.end]:
            # Turning round leads back into the section.
            back = network.group_of[after] == network.group_of[edge]
            if after not in seen and after not in inside and not back:
                seen.add(after)
                queue.append((after, driven + current.path.length_um))
    return False


# Where a truck may stand: free, unwanted or forbidden, with the reasons; and where to wait at a mouth.

Bools = NDArray[np.bool_]
# How many edges before a mouth waiting places are searched.
_EDGES_BACK = 4
STANDS = (Stand.FREE, Stand.UNWANTED, Stand.FORBIDDEN)


@dataclass(frozen=True, slots=True)
class Mouth:
    """The end of a corridor at a branching node. `waiting` has, for the other ways into the node, the last cells in
    which a waiting truck keeps the way out free."""

    corridor: int
    node: int
    waiting: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Standing:
    """`marks` has for every cell an index into `STANDS`."""

    marks: tuple[int, ...]
    mouths: tuple[Mouth, ...]


def plain_passage(network: Network, transitions: Transitions, node: int) -> bool:
    """Whether trucks only drive straight through a node: no branch, no station or parking, no turn on the spot."""
    passed_node = network.nodes[node]
    if network.degree(node) != 2 or passed_node.station or passed_node.parking:
        return False
    for edge in network.incoming[node]:
        for k in transitions.of(edge):
            back = network.group_of[int(transitions.out[k])] == network.group_of[edge]
            if not back and not bool(transitions.tangent[k]):
                return False
    return True


def standing_of(
    network: Network,
    cells: Cells,
    zones: Zones,
    sections: tuple[Section, ...],
    conflicts: tuple[Conflict, ...],
    transitions: Transitions,
    corridors: tuple[Corridor, ...],
    relation: Relation,
) -> Standing:
    marks = np.zeros(len(cells), dtype=np.int64)
    for node in range(len(network.nodes)):
        if not plain_passage(network, transitions, node):
            for window in zones.by_node[node]:
                marks[window.cell0 : window.cell1 + 1] = 1
    for conflict in conflicts:
        for edge, low, high in conflict.windows:
            marks[cells.at(edge, low) : cells.at(edge, high - 1) + 1] = 1
    for section in sections:
        for first, last in section.cells:
            marks[first : last + 1] = 2
    return Standing(tuple(marks.tolist()), _mouths(network, cells, corridors, relation, marks == 2))


def reasons(
    cell: int,
    cells: Cells,
    network: Network,
    zones: Zones,
    sections: tuple[Section, ...],
    conflicts: tuple[Conflict, ...],
    transitions: Transitions,
) -> tuple[str, ...]:
    """Why a cell is not free, as resource ids, sorted."""
    resources = {f"CS:{section.id}" for section in sections for low, high in section.cells if low <= cell <= high}
    edge, s0, s1 = int(cells.edge[cell]), int(cells.s0[cell]), int(cells.s1[cell])
    for conflict in conflicts:
        if any(on == edge and low < s1 and high > s0 for on, low, high in conflict.windows):
            resources.add(f"CONFLICT:{conflict.id}")
    for window in zones.windows:
        if window.cell0 <= cell <= window.cell1 and not plain_passage(network, transitions, window.node):
            resources.add(f"NODE:{network.nodes[window.node].id}")
    return tuple(sorted(resources))


def _mouths(
    network: Network, cells: Cells, corridors: tuple[Corridor, ...], relation: Relation, forbidden: Bools
) -> tuple[Mouth, ...]:
    mouths = []
    for number, corridor in enumerate(corridors):
        groups = set(corridor.groups)
        ways = {network.edges[edge].forward_on_axis for group in groups for edge in network.groups[group].edges}
        if len(ways) < 2:
            continue
        edges = sorted(edge for group in groups for edge in network.groups[group].edges)
        inner = [(int(cells.first[edge]), int(cells.first[edge + 1]) - 1) for edge in edges]
        for node in sorted(set(corridor.ends)):
            if network.degree(node) < 3:
                continue
            ways_in = [edge for edge in network.incoming[node] if network.group_of[edge] not in groups]
            zone = len(cells) + node
            # A waiting truck must not touch the turning disc of the mouth or a cell of the corridor, nor be in a
            # section.
            closed = forbidden | relation.related([*inner, (zone, zone)])[: len(cells)]
            mouths.append(Mouth(number, node, _waiting(network, cells, ways_in, groups, closed)))
    return tuple(mouths)


def _waiting(network: Network, cells: Cells, ways_in: list[int], groups: set[int], closed: Bools) -> tuple[int, ...]:
    """On every way in the last cell that is not closed; if an edge has none, on the edges before it."""
    waiting: list[int] = []
    seen, edges = set(ways_in), ways_in
    for _ in range(_EDGES_BACK):
        full = []
        for edge in edges:
            own = cells.of_edge(edge)
            free = np.flatnonzero(~closed[own.start : own.stop])
            if len(free):
                waiting.append(own.start + int(free[-1]))
            else:
                full.append(edge)
        before = {
            previous
            for edge in full
            for previous in network.incoming[network.edges[edge].start]
            # Exclude edges of the corridor and the way back.
            if network.group_of[previous] not in groups and network.group_of[previous] != network.group_of[edge]
        }
        edges = sorted(before - seen)
        seen |= before
    return tuple(waiting)
