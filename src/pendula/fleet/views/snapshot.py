"""The locks of a tick as everybody sees them: groups with their directions and occupants, nodes, conflicts, sections,
queues. All of it is a view on the cells and pseudo-cells held (FLT-LIVE-5); nothing here is decided on."""

from collections.abc import Mapping
from dataclasses import dataclass

from pendula.fleet.contracts import traffic as contract
from pendula.fleet.driving.records import Record
from pendula.fleet.model import CONTRACT_VERSION
from pendula.fleet.site.compiled_map import CompiledMap
from pendula.fleet.units import metres, plain
from pendula.fleet.views.corridor_request import conflicts_of
from pendula.fleet.views.reasons import resource_id
from pendula.kernel.canonical import Json


@dataclass(frozen=True, slots=True)
class Scene:
    """A moment of traffic. `order`: numbers of trucks as they were asked; `empty_since`: direction and time of groups
    that nobody holds any more; `drained`: groups closed for new entries, with the direction that is closed."""

    site: CompiledMap
    tick: int
    now_ms: int
    override: bool
    records: list[Record]
    order: tuple[int, ...]
    empty_since: Mapping[int, tuple[bool, int]]
    drained: Mapping[int, bool]


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
    )


def queue_places(order: list[Record]) -> dict[int, int]:
    """For every waiting truck its place among those that wait for the same resource, from 1."""
    lengths: dict[str, int] = {}
    places = {}
    for record in order:
        if record.waiting is not None and record.waiting.resource is not None:
            name = resource_id(record.site, record.waiting.resource)
            places[record.number] = lengths[name] = lengths.get(name, 0) + 1
    return places


def _queues(scene: Scene) -> dict[str, tuple[contract.Queued, ...]]:
    queues: dict[str, tuple[contract.Queued, ...]] = {}
    for record in (scene.records[number] for number in scene.order):
        waiting = record.waiting
        if waiting is None or waiting.resource is None or record.request_ms is None:
            continue
        name = resource_id(scene.site, waiting.resource)
        one = contract.Queued(record.robot_id, record.request_ms, record.priority, record.rank)
        queues[name] = (*queues.get(name, ()), one)
    return queues


def _groups(scene: Scene, queues: dict[str, tuple[contract.Queued, ...]]) -> tuple[contract.GroupLocks, ...]:
    network = scene.site.network
    found: dict[int, list[tuple[int, contract.Occupant]]] = {}
    for record in scene.records:
        for edge in sorted(record.edges):
            found.setdefault(network.group_of[edge], []).append((edge, _occupant(record, edge)))
    waited = {number for number, one in enumerate(network.groups) if f"EDGE_GROUP:{one.key}" in queues}
    result = []
    for number in sorted({*found, *waited}):
        held = found.get(number, [])
        group = network.groups[number]
        # A truck alone in a dead end may hold both directions: the way it goes on is the one that counts.
        first = max(held, key=lambda one: (one[1].state == "GRANTED", -one[0])) if held else None
        direction = "" if first is None else network.edges[first[0]].key
        occupants = _once_a_truck(held)
        result.append(contract.GroupLocks(group.key, direction, occupants, queues.get(f"EDGE_GROUP:{group.key}", ())))
    return tuple(result)


def _once_a_truck(held: list[tuple[int, contract.Occupant]]) -> tuple[contract.Occupant, ...]:
    """Each truck once in a group, by its id: on the edge it goes on along, or else on the one it stands on."""
    shown: dict[str, contract.Occupant] = {}
    for _, occupant in sorted(held, key=lambda one: (_GOES_ON.get(str(one[1].state), 0), -one[0])):
        shown[occupant.robotId] = occupant
    return tuple([shown[name] for name in sorted(shown)])


# What says most about a truck that holds both directions of a group.
_GOES_ON = {"GRANTED": 2, "OCCUPIED": 1}


def _occupant(record: Record, edge: int) -> contract.Occupant:
    """Where a truck is on an edge of which it holds cells, and how much of it lies ahead."""
    track, length = record.track, record.site.network.edges[edge].path.length_um
    for segment in () if track is None else track.segments:
        begin, end = segment.route_s0_um, segment.route_s0_um + segment.length_um
        if segment.edge == edge and end > record.bound_um and begin < record.grant_um:
            at = min(max(record.at_um - begin, 0), length)
            ahead = max(0, min(record.grant_um, end) - max(record.at_um, begin))
            state = "OCCUPIED" if begin < record.at_um else "GRANTED"
            return contract.Occupant(record.robot_id, metres(at), metres(ahead), state)
    return contract.Occupant(record.robot_id, metres(length), metres(0), "OCCUPIED")


def _node_locks(scene: Scene) -> tuple[contract.NodeLock, ...]:
    site = scene.site
    first = len(site.cells)
    radius = metres(site.zones.radius_um)
    found = []
    for record in scene.records:
        for resource in record.keeps:
            if first <= resource < site.token(0):
                state = "OCCUPIED" if _entered(record, resource) else "GRANTED"
                found.append(contract.NodeLock(site.network.nodes[resource - first].id, record.robot_id, radius, state))
    return tuple(sorted(found, key=lambda one: (one.nodeId, one.robotId)))


def _entered(record: Record, resource: int) -> bool:
    """Whether a truck may be in a resource already: where its way does not name it, it was there from the start."""
    if record.track is None:
        return True
    needs = [one.need_um for one in record.track.uses if one.resource == resource and one.free_um > record.bound_um]
    return not needs or needs[0] < record.at_um


def _conflict_locks(scene: Scene) -> tuple[contract.ConflictLock, ...]:
    held = {
        (name.removeprefix("CONFLICT:"), record.robot_id)
        for record in scene.records
        for cell in record.keeps
        for name in conflicts_of(scene.site, cell)
    }
    return tuple(contract.ConflictLock(*one) for one in sorted(held))


def _section_locks(scene: Scene) -> tuple[contract.SectionLock, ...]:
    site = scene.site
    holders: dict[int, list[str]] = {}
    for record in scene.records:
        for resource in record.keeps:
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
        one.edgeGroupKey: contract.DirectionState(
            one.edgeGroupKey, one.direction, number_of[one.edgeGroupKey] in scene.drained, None
        )
        for one in groups
        if one.occupants
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
