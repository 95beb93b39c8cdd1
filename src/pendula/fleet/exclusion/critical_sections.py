"""Critical sections: authored ones, and a generated one for every dead end in which trucks load, unload or park."""

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass

from pendula.fleet.exclusion.cells import Cells
from pendula.fleet.exclusion.relation import merged
from pendula.fleet.model import Code, Finding, Origin, SourceSection, finding
from pendula.fleet.network.graph import Network
from pendula.fleet.sentences import map_finding
from pendula.fleet.trucks.envelope import Envelope
from pendula.fleet.units import plain

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
