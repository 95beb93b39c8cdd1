"""The locks of a tick in the form of the contract: groups with directions and occupants, nodes, conflicts, sections,
queues. A view of the held cells and pseudo-cells (FLT-LIVE-5); no decision depends on it.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from msgspec import UNSET

from pendula.fleet import contracts
from pendula.fleet.contracts import (
    CorridorRequest,
    GrantUnit,
    PoseContract,
    ProgressContract,
    RobotHealth,
    RobotState,
    RobotStatus,
    TaskView,
)
from pendula.fleet.map.site import CompiledMap
from pendula.fleet.model import CONTRACT_VERSION
from pendula.fleet.tick.params import TrafficParams
from pendula.fleet.tick.reasons import queue_of, resource_id, shown_of
from pendula.fleet.tick.records import Record
from pendula.fleet.tick.track import NEVER_UM, Track
from pendula.fleet.traffic.lock_state import Closing
from pendula.fleet.units import metres, plain
from pendula.kernel.canonical import Json

# The request of a truck: the units ahead of its grant up to the lookahead, with their resources (FLT-COR-9).


def corridor_request(record: Record, now_ms: int, params: TrafficParams) -> CorridorRequest | None:
    """The request in the form of the contract; None for a truck without a route."""
    track = record.track
    if track is None:
        return None
    return CorridorRequest(
        contractVersion=CONTRACT_VERSION,
        robotId=record.robot_id,
        routeId=track.plan.route_id,
        revision=track.plan.revision,
        nowMs=now_ms,
        priorityClass=record.priority,
        currentS=metres(record.at_um),
        lookaheadM=metres(params.lookahead_um),
        lookbackM=metres(params.lookback_um),
        units=_units(record, track, params),
    )


def _units(record: Record, track: Track, params: TrafficParams) -> tuple[GrantUnit, ...]:
    reach = min(record.at_um + params.lookahead_um, track.goal_um)
    units: list[GrantUnit] = []
    for s0, s1 in zip(track.stands[record.granted :], track.stands[record.granted + 1 :], strict=False):
        if s0 >= reach:
            break
        units.append(GrantUnit(len(units), metres(s0), metres(s1), unit_resources(record.site, track, s0, s1)))
    return tuple(units)


def unit_resources(site: CompiledMap, track: Track, s0_um: int, s1_um: int) -> tuple[str, ...]:
    """The names of all resources between two positions: cells as their group and their conflicts."""
    names: set[str] = set()
    for use in track.taken(-NEVER_UM, s1_um):
        if use.free_um > s0_um:
            names.add(resource_id(site, use.resource))
            names |= set(conflicts_of(site, use.resource))
    return tuple(sorted(names))


def conflicts_of(site: CompiledMap, resource: int) -> tuple[str, ...]:
    """The named conflicts in whose windows a cell lies."""
    if resource >= len(site.cells):
        return ()
    edge, s0, s1 = (int(column[resource]) for column in (site.cells.edge, site.cells.s0, site.cells.s1))
    return tuple(
        f"CONFLICT:{conflict.id}"
        for conflict in site.named
        if any(on == edge and low < s1 and high > s0 for on, low, high in conflict.windows)
    )


# A truck in the form of the contract: its last report, its position on the route, and its health.


def robot_state(
    record: Record, now_ms: int, task_id: str | None, pending_task_id: str | None = None
) -> RobotState | None:
    """None for a truck that never reported. `pending_task_id`: the task it starts where it leaves its way to rest."""
    pose = record.pose
    if pose is None:
        return None
    return RobotState(
        contractVersion=CONTRACT_VERSION,
        robotId=record.robot_id,
        profileId=record.profile.profile_id,
        nowMs=now_ms,
        lastStatusMs=record.report_ms,
        pose=PoseContract(metres(pose.x_um), metres(pose.y_um), metres(pose.yaw_urad)),
        v=metres(record.v_um_s),
        status=status_of(record),
        task=TaskView(task_id, record.phase, pending_task_id),
        progress=_progress(record),
        loadOnBoard=record.load,
        parkNodeId=record.site.network.nodes[record.rest].id,
        lastAckSeq=record.ack_seq,
        health=record.health,
        obstructed=record.obstructed,
    )


def status_of(record: Record) -> RobotStatus:
    """The status (FLT-FAIL-9): `FAULT` for a truck in fault, `OFFLINE` for a silent one, whatever its last report
    says."""
    if record.status is RobotStatus.FAULT or record.health in (RobotHealth.FAULT, RobotHealth.STUCK):
        return RobotStatus.FAULT
    return RobotStatus.OFFLINE if record.health is RobotHealth.OFFLINE else record.status


def on_segment(record: Record) -> tuple[int, int] | None:
    """The segment of its route and the position on it; None without a route."""
    track = record.track
    if track is None or not track.plan.segments:
        return None
    number = track.plan.segment_at(max(record.at_um, 0))
    segment = track.plan.segments[number]
    return number, min(max(record.at_um - segment.route_s0_um, 0), segment.length_um)


def _progress(record: Record) -> ProgressContract | None:
    on = on_segment(record)
    if on is None or record.track is None:
        return None
    plan, (number, on_um) = record.track.plan, on
    return ProgressContract(
        routeId=plan.route_id,
        segmentIndex=number,
        sOnSegmentM=metres(on_um),
        sOnRouteM=metres(record.at_um),
        revision=plan.revision,
    )


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


def snapshot(scene: Scene) -> contracts.LockSnapshot:
    queues = _queues(scene)
    groups = _groups(scene, queues)
    return contracts.LockSnapshot(
        contractVersion=CONTRACT_VERSION,
        tick=scene.tick,
        nowMs=scene.now_ms,
        compiledMapHash=scene.site.compiled_hash,
        liveOverride=scene.override,
        edgeGroups=groups,
        nodeLocks=_node_locks(scene),
        conflictLocks=_conflict_locks(scene),
        csLocks=_section_locks(scene),
        queues=tuple(contracts.ResourceQueue(name, waiting) for name, waiting in sorted(queues.items())),
        directionState=_directions(scene, groups),
        retractions=tuple(_retraction(record) for record in scene.records if record.retraction is not None),
        robots=tuple(_robot(record) for record in scene.records),
        closings=closings_form(scene.closings) or UNSET,
    )


def closings_form(closings: Iterable[Closing]) -> tuple[contracts.ClosedPlace, ...]:
    """The closed places in the form of the contract."""
    return tuple(
        contracts.ClosedPlace(closing.resource, closing.since_ms, closing.order_id, closing.operator, closing.reason)
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


def _queues(scene: Scene) -> dict[str, tuple[contracts.Queued, ...]]:
    queues: dict[str, tuple[contracts.Queued, ...]] = {}
    for record in (scene.records[number] for number in scene.order):
        waited = _waited_for(record, scene.records)
        if waited is None or record.request_ms is None:
            continue
        name = resource_id(scene.site, waited)
        queued = contracts.Queued(record.robot_id, record.request_ms, record.priority, record.rank)
        queues[name] = (*queues.get(name, ()), queued)
    return queues


def _groups(scene: Scene, queues: dict[str, tuple[contracts.Queued, ...]]) -> tuple[contracts.GroupLocks, ...]:
    network = scene.site.network
    occupants_of: dict[int, list[tuple[int, contracts.Occupant]]] = {}
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
        result.append(contracts.GroupLocks(group.key, direction, occupants, queues.get(f"EDGE_GROUP:{group.key}", ())))
    return tuple(result)


def _once_a_truck(held: list[tuple[int, contracts.Occupant]]) -> tuple[contracts.Occupant, ...]:
    """Each truck once per group, by id: on the edge it goes on along, or else on the one it stands on."""
    shown: dict[str, contracts.Occupant] = {}
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


def _occupant(record: Record, edge: int) -> contracts.Occupant:
    """Where a truck is on an edge, and how much of it lies ahead and is held or reserved."""
    track, length = record.track, record.site.network.edges[edge].path.length_um
    for segment in () if track is None else track.segments:
        begin, end = segment.route_s0_um, segment.route_s0_um + segment.length_um
        if segment.edge == edge and end > record.bound_um and begin < record.reserved_um:
            at = min(max(record.at_um - begin, 0), length)
            ahead = max(0, min(record.reserved_um, end) - max(record.at_um, begin))
            state = "OCCUPIED" if begin < record.at_um else "GRANTED" if edge in record.edges else "RESERVED"
            return contracts.Occupant(record.robot_id, metres(at), metres(ahead), state)
    return contracts.Occupant(record.robot_id, metres(length), metres(0), "OCCUPIED")


def _node_locks(scene: Scene) -> tuple[contracts.NodeLock, ...]:
    site = scene.site
    first = len(site.cells)
    radius = metres(site.zones.radius_um)
    locks = []
    for record in scene.records:
        for resource in sorted(shown_of(record)):
            if first <= resource < site.token(0):
                state = "OCCUPIED" if _entered(record, resource) else "GRANTED"
                locks.append(
                    contracts.NodeLock(site.network.nodes[resource - first].id, record.robot_id, radius, state)
                )
    return tuple(sorted(locks, key=lambda lock: (lock.nodeId, lock.robotId)))


def _entered(record: Record, resource: int) -> bool:
    """Whether a truck may be in a resource; if its route does not name it, it was there from the start."""
    if record.track is None:
        return True
    needs = [use.need_um for use in record.track.uses if use.resource == resource and use.free_um > record.bound_um]
    return not needs or needs[0] < record.at_um


def _conflict_locks(scene: Scene) -> tuple[contracts.ConflictLock, ...]:
    held = {
        (name.removeprefix("CONFLICT:"), record.robot_id)
        for record in scene.records
        for cell in shown_of(record)
        for name in conflicts_of(scene.site, cell)
    }
    return tuple(contracts.ConflictLock(*entry) for entry in sorted(held))


def _section_locks(scene: Scene) -> tuple[contracts.SectionLock, ...]:
    site = scene.site
    holders: dict[int, list[str]] = {}
    for record in scene.records:
        for resource in sorted(shown_of(record)):
            if resource >= site.token(0):
                holders.setdefault(resource - site.token(0), []).append(record.robot_id)
    return tuple(
        contracts.SectionLock(site.sections[number].id, tuple(sorted(robots)), site.sections[number].capacity)
        for number, robots in sorted(holders.items())
    )


def _directions(scene: Scene, groups: tuple[contracts.GroupLocks, ...]) -> tuple[contracts.DirectionState, ...]:
    network = scene.site.network
    number_of = {group.key: number for number, group in enumerate(network.groups)}
    states = {
        group_locks.edgeGroupKey: contracts.DirectionState(
            group_locks.edgeGroupKey, group_locks.direction, number_of[group_locks.edgeGroupKey] in scene.drained, None
        )
        for group_locks in groups
        if any(occupant.state != "RESERVED" for occupant in group_locks.occupants)
    }
    for number, (forward, since) in scene.empty_since.items():
        group = network.groups[number]
        if group.key not in states:
            edge = next(edge for edge in group.edges if network.edges[edge].forward_on_axis == forward)
            states[group.key] = contracts.DirectionState(group.key, network.edges[edge].key, False, since)
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


def _robot(record: Record) -> contracts.SnapshotRobot:
    plan = None if record.track is None else record.track.plan
    return contracts.SnapshotRobot(
        robotId=record.robot_id,
        routeId=None if plan is None else plan.route_id,
        revision=0 if plan is None else plan.revision,
        grantEndS=metres(record.grant_um),
        farthestStopLineS=metres(record.farthest_um),
        health=record.health,
    )
