"""The locks of a tick in the form of the contract: groups with directions and occupants, nodes, conflicts, sections,
queues. A view of the held cells and pseudo-cells (FLT-LIVE-5); no decision depends on it."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from msgspec import UNSET

from pendula.fleet.contracts import traffic as contract
from pendula.fleet.driving.records import Record
from pendula.fleet.model import CONTRACT_VERSION
from pendula.fleet.site.compiled_map import CompiledMap
from pendula.fleet.traffic.shut import Closing
from pendula.fleet.units import metres, plain
from pendula.fleet.views.blockers import queue_of, shown_of
from pendula.fleet.views.corridor_request import conflicts_of
from pendula.fleet.views.reasons import resource_id
from pendula.kernel.canonical import Json


@dataclass(frozen=True, slots=True)
class Scene:
    """The state of traffic after a tick. `order`: numbers of trucks in rank order; `empty_since`: direction and time of
    groups that became empty; `drained`: groups closed for new entries, with the closed direction."""

    site: CompiledMap
    tick: int
    now_ms: int
    override: bool
    records: list[Record]
    order: tuple[int, ...]
    empty_since: Mapping[int, tuple[bool, int]]
    drained: Mapping[int, bool]
    closings: Sequence[Closing] = ()


def snapshot(scene: Scene) -> contract.LockSnapshot:
    queues = _queues(scene)
    groups = _groups(scene, queues)
    return contract.LockSnapshot(
        contractVersion=CONTRACT_VERSION,
        tick=scene.tick,
        nowMs=scene.now_ms,
        compiledMapHash=scene.site.compiled_hash,
        liveOverride=scene.override,
        edgeGroups=groups,
        nodeLocks=_node_locks(scene),
        conflictLocks=_conflict_locks(scene),
        csLocks=_section_locks(scene),
        queues=tuple(contract.ResourceQueue(name, waiting) for name, waiting in sorted(queues.items())),
        directionState=_directions(scene, groups),
        retractions=tuple(_retraction(record) for record in scene.records if record.retraction is not None),
        robots=tuple(_robot(record) for record in scene.records),
        closings=closings_form(scene.closings) or UNSET,
    )


def closings_form(closings: Iterable[Closing]) -> tuple[contract.ClosedPlace, ...]:
    """The closed places in the form of the contract."""
    return tuple(
        contract.ClosedPlace(closing.resource, closing.since_ms, closing.order_id, closing.operator, closing.reason)
        for closing in closings
    )


def _waited_for(record: Record, records: Sequence[Record]) -> int | None:
    """The resource in whose queue a truck waits (FLT-OSC-1); None for a stopped truck."""
    waits = record.waiting is not None and record.request_ms is not None and record.stop_code is None
    return queue_of(record, records) if waits else None


def queue_places(order: list[Record], records: Sequence[Record]) -> dict[int, int]:
    """The place of every waiting truck in its queue, from 1."""
    lengths: dict[str, int] = {}
    places = {}
    for record in order:
        waited = _waited_for(record, records)
        if waited is not None:
            name = resource_id(record.site, waited)
            places[record.number] = lengths[name] = lengths.get(name, 0) + 1
    return places


def _queues(scene: Scene) -> dict[str, tuple[contract.Queued, ...]]:
    queues: dict[str, tuple[contract.Queued, ...]] = {}
    for record in (scene.records[number] for number in scene.order):
        waited = _waited_for(record, scene.records)
        if waited is None or record.request_ms is None:
            continue
        name = resource_id(scene.site, waited)
        queued = contract.Queued(record.robot_id, record.request_ms, record.priority, record.rank)
        queues[name] = (*queues.get(name, ()), queued)
    return queues


def _groups(scene: Scene, queues: dict[str, tuple[contract.Queued, ...]]) -> tuple[contract.GroupLocks, ...]:
    network = scene.site.network
    occupants_of: dict[int, list[tuple[int, contract.Occupant]]] = {}
    for record in scene.records:
        for edge in sorted(_held_edges(record) | _reserved_edges(record)):
            occupants_of.setdefault(network.group_of[edge], []).append((edge, _occupant(record, edge)))
    waited = {number for number, group in enumerate(network.groups) if f"EDGE_GROUP:{group.key}" in queues}
    result = []
    for number in sorted({*occupants_of, *waited}):
        held = occupants_of.get(number, [])
        group = network.groups[number]
        # A truck alone in a dead end may hold both directions: the one in which it goes on counts.
        first = max(held, key=lambda entry: (_WEIGHT[str(entry[1].state)], -entry[0])) if held else None
        direction = "" if first is None else network.edges[first[0]].key
        occupants = _once_a_truck(held)
        result.append(contract.GroupLocks(group.key, direction, occupants, queues.get(f"EDGE_GROUP:{group.key}", ())))
    return tuple(result)


def _once_a_truck(held: list[tuple[int, contract.Occupant]]) -> tuple[contract.Occupant, ...]:
    """Each truck once per group, by id: on the edge it goes on along, or else on the one it stands on."""
    shown: dict[str, contract.Occupant] = {}
    for _, occupant in sorted(held, key=lambda entry: (_WEIGHT[str(entry[1].state)], -entry[0])):
        shown[occupant.robotId] = occupant
    return tuple([shown[name] for name in sorted(shown)])


# Which occupant gives a group its direction: holding comes before reserving.
_WEIGHT = {"GRANTED": 2, "OCCUPIED": 1, "RESERVED": 0}


def _held_edges(record: Record) -> frozenset[int]:
    """The edges of which a truck keeps cells, also where it only may be."""
    if record.doubt is None or not record.doubt.extra:
        return record.edges
    cells = record.site.cells
    return record.edges | {int(cells.edge[cell]) for cell in record.doubt.extra if cell < len(cells)}


def _reserved_edges(record: Record) -> frozenset[int]:
    """The edges between the end of the grant and the end of the reservation."""
    if record.track is None or record.reserved_um <= record.grant_um:
        return frozenset()
    return frozenset(
        segment.edge
        for segment in record.track.segments
        if segment.route_s0_um < record.reserved_um and segment.route_s0_um + segment.length_um > record.grant_um
    )


def _occupant(record: Record, edge: int) -> contract.Occupant:
    """Where a truck is on an edge, and how much of it lies ahead and is held or reserved."""
    track, length = record.track, record.site.network.edges[edge].path.length_um
    for segment in () if track is None else track.segments:
        begin, end = segment.route_s0_um, segment.route_s0_um + segment.length_um
        if segment.edge == edge and end > record.bound_um and begin < record.reserved_um:
            at = min(max(record.at_um - begin, 0), length)
            ahead = max(0, min(record.reserved_um, end) - max(record.at_um, begin))
            state = "OCCUPIED" if begin < record.at_um else "GRANTED" if edge in record.edges else "RESERVED"
            return contract.Occupant(record.robot_id, metres(at), metres(ahead), state)
    return contract.Occupant(record.robot_id, metres(length), metres(0), "OCCUPIED")


def _node_locks(scene: Scene) -> tuple[contract.NodeLock, ...]:
    site = scene.site
    first = len(site.cells)
    radius = metres(site.zones.radius_um)
    locks = []
    for record in scene.records:
        for resource in sorted(shown_of(record)):
            if first <= resource < site.token(0):
                state = "OCCUPIED" if _entered(record, resource) else "GRANTED"
                locks.append(contract.NodeLock(site.network.nodes[resource - first].id, record.robot_id, radius, state))
    return tuple(sorted(locks, key=lambda lock: (lock.nodeId, lock.robotId)))


def _entered(record: Record, resource: int) -> bool:
    """Whether a truck may be in a resource; if its route does not name it, it was there from the start."""
    if record.track is None:
        return True
    needs = [use.need_um for use in record.track.uses if use.resource == resource and use.free_um > record.bound_um]
    return not needs or needs[0] < record.at_um


def _conflict_locks(scene: Scene) -> tuple[contract.ConflictLock, ...]:
    held = {
        (name.removeprefix("CONFLICT:"), record.robot_id)
        for record in scene.records
        for cell in shown_of(record)
        for name in conflicts_of(scene.site, cell)
    }
    return tuple(contract.ConflictLock(*entry) for entry in sorted(held))


def _section_locks(scene: Scene) -> tuple[contract.SectionLock, ...]:
    site = scene.site
    holders: dict[int, list[str]] = {}
    for record in scene.records:
        for resource in sorted(shown_of(record)):
            if resource >= site.token(0):
                holders.setdefault(resource - site.token(0), []).append(record.robot_id)
    return tuple(
        contract.SectionLock(site.sections[number].id, tuple(sorted(robots)), site.sections[number].capacity)
        for number, robots in sorted(holders.items())
    )


def _directions(scene: Scene, groups: tuple[contract.GroupLocks, ...]) -> tuple[contract.DirectionState, ...]:
    network = scene.site.network
    number_of = {group.key: number for number, group in enumerate(network.groups)}
    states = {
        group_locks.edgeGroupKey: contract.DirectionState(
            group_locks.edgeGroupKey, group_locks.direction, number_of[group_locks.edgeGroupKey] in scene.drained, None
        )
        for group_locks in groups
        if any(occupant.state != "RESERVED" for occupant in group_locks.occupants)
    }
    for number, (forward, since) in scene.empty_since.items():
        group = network.groups[number]
        if group.key not in states:
            edge = next(edge for edge in group.edges if network.edges[edge].forward_on_axis == forward)
            states[group.key] = contract.DirectionState(group.key, network.edges[edge].key, False, since)
    return tuple(state for _, state in sorted(states.items()))


def _retraction(record: Record) -> Json:
    given = record.retraction
    assert given is not None
    names = sorted({resource_id(record.site, resource) for resource in given.resources})
    return {
        "robotId": record.robot_id,
        "seq": given.seq,
        "stopLineS": plain(given.stop_line_um),
        "resources": [*names],
    }


def _robot(record: Record) -> contract.SnapshotRobot:
    plan = None if record.track is None else record.track.plan
    return contract.SnapshotRobot(
        robotId=record.robot_id,
        routeId=None if plan is None else plan.route_id,
        revision=0 if plan is None else plan.revision,
        grantEndS=metres(record.grant_um),
        farthestStopLineS=metres(record.farthest_um),
        health=record.health,
    )
