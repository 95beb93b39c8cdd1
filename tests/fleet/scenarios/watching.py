"""Checks during a run, independent of the code under test: grants that disappear (I-9), the stored witness (I-12)
and its first move (I-13). Positions are those of the simulated trucks, not those of traffic."""

from collections.abc import Iterator
from math import cos, hypot, sin

from pendula.fleet.contracts import LockSnapshot
from pendula.fleet.map.site import CompiledMap
from pendula.fleet.scenarios import Run
from pendula.fleet.simulator.truck import SimulatedTruck
from pendula.fleet.tick import TickOutputs
from pendula.fleet.tick.records import Record
from pendula.fleet.traffic.lock_state import LockState


def watched(run: Run) -> Iterator[str]:
    """Drive a run to its end; a sentence for every fault, tick by tick."""
    grants, witness, first = Grants(run), Witness(), FirstMoves(run)
    while run.now_ms < run.scenario.duration_ms and not run.is_over:
        trucks = [Place.of(truck) for truck in run.world.trucks]
        outputs = run.step()
        yield from grants.lost(outputs, trucks)
        yield from witness.wrong(run.traffic._locks, outputs.now_ms)
        yield from first.passed_over(outputs)
        yield from false_blockers(outputs)


def orphaned_grants(run: Run) -> Iterator[str]:
    """Resources that the locks hold for a truck and its record does not: they would stay closed to others for good."""
    locks = run.traffic._locks
    for record in run.traffic.records:
        if not locks.truck(record.number).frozen:
            for resource in sorted(locks.truck(record.number).held - {*record.keeps}):
                name = run.site.resource_name(resource)
                yield f"{record.robot_id} does not keep {name}, the locks do, at {run.now_ms} ms"


def unknown_routes(run: Run) -> Iterator[str]:
    """Routes that dispatch waits for and traffic does not know: their trucks would wait for good."""
    for driver, record in zip(run.dispatch.drivers, run.traffic.records, strict=True):
        route, pending = driver.route, record.pending
        if driver.admitted or driver.rejected is not None or driver.gone or route is None:
            continue
        if pending is None or (pending.route_id, pending.revision) != (route.route_id, route.revision):
            yield f"{driver.robot_id} waits for {route.route_id}, unknown to traffic, at {run.now_ms} ms"


class Place:
    """Where a simulated truck is when a tick begins."""

    def __init__(self, edge: int, on_um: int, yaw_urad: int | None) -> None:
        self.edge, self.on_um, self.yaw_urad = edge, on_um, yaw_urad

    @classmethod
    def of(cls, truck: SimulatedTruck) -> "Place":
        return cls(truck.edge, truck.on_um, truck.yaw_urad)


class Grants:
    """I-9: no grant disappears unless it was passed, or returned and acknowledged."""

    def __init__(self, run: Run) -> None:
        self._site = run.site
        self._before = [record.copied() for record in run.traffic._records]

    def lost(self, outputs: TickOutputs, trucks: list[Place]) -> Iterator[str]:
        for old, new, truck in zip(self._before, outputs.scene.records, trucks, strict=True):
            for resource in sorted({*old.keeps} - {*new.keeps}):
                if not self._given_back(old, new, resource) and not self._passed(truck, resource):
                    name = self._site.resource_name(resource)
                    yield f"I-9 at {outputs.now_ms} ms: {new.robot_id} lost {name} without a cause"
        self._before = [record.copied() for record in outputs.scene.records]

    def _given_back(self, old: Record, new: Record, resource: int) -> bool:
        given = old.retraction
        return given is not None and resource in given.resources and new.ack_seq >= given.seq

    def _passed(self, truck: Place, resource: int) -> bool:
        site = self._site
        if resource < len(site.cells):
            return self._has_left_cell(truck, resource)
        if resource < site.token(0):
            return self._distance_um(truck, resource - len(site.cells)) >= site.envelope.turn_radius_um
        section = resource - site.token(0)
        return not any(section in site.sections_of_cell.get(cell, ()) for cell in self._under(truck))

    def _has_left_cell(self, truck: Place, cell: int) -> bool:
        """The pivot is certainly beyond it: on another edge, or past its end."""
        cells = self._site.cells
        return int(cells.edge[cell]) != truck.edge or truck.on_um >= int(cells.s1[cell])

    def _under(self, truck: Place) -> list[int]:
        """The cells of its edge that lie under the trailing half of a truck."""
        site = self._site
        trail = site.envelope.trail_um(site.network.edges[truck.edge].style)
        own = site.cells.of_edge(truck.edge)
        return [k for k in own if site.cells.s1[k] > truck.on_um - trail and site.cells.s0[k] <= truck.on_um]

    def _distance_um(self, truck: Place, node: int) -> float:
        """How far the envelope of a truck is from a node."""
        site = self._site
        return envelope_distance_um(site, truck.edge, truck.on_um, truck.yaw_urad, node)


def envelope_distance_um(site: CompiledMap, edge: int, on_um: int, yaw_urad: int | None, node: int) -> float:
    """The distance of a node from the envelope of a truck on an edge: the node in the truck's frame, less the box."""
    path = site.network.edges[edge].path
    (x_um, y_um), point = path.point(on_um), site.network.nodes[node].at
    backward = site.network.edges[edge].style.value == "backward"
    yaw = (path.heading(on_um) + (3_141_593 if backward else 0) if yaw_urad is None else yaw_urad) / 1e6
    dx, dy = point.x_um - x_um, point.y_um - y_um
    along, aside = dx * cos(yaw) + dy * sin(yaw), -dx * sin(yaw) + dy * cos(yaw)
    own = site.envelope
    out = max(along - own.front_um, -own.rear_um - along, 0.0), max(abs(aside) - own.side_um, 0.0)
    return hypot(*out)


class Witness:
    """I-12: the stored schedule brings all trucks to rest, move by move; plain sets, without the lock core."""

    def __init__(self) -> None:
        self._excluded: dict[tuple[int, int], frozenset[int]] = {}
        self._kept: list[object] = []

    def wrong(self, locks: LockState, now_ms: int) -> Iterator[str]:
        known = [i for i, truck in enumerate(locks.trucks) if truck is not None]
        at = {i: locks.truck(i).position for i in known}
        for i, to in locks.witness:
            needed = locks.truck(i).demand.needs(at[i], to).tolist()
            others = [self._around(locks, j, at[j]) for j in known if j != i]
            if to < at[i] or any(self._is_full(locks, resource, others) for resource in needed):
                yield f"I-12 at {now_ms} ms: truck {i} does not get to position {to}"
                return
            at[i] = to
        for i in known:
            truck = locks.truck(i)
            if not truck.frozen and at[i] != truck.goal:
                yield f"I-12 at {now_ms} ms: truck {i} is left at position {at[i]}"

    def _is_full(self, locks: LockState, resource: int, others: list[frozenset[int]]) -> bool:
        return sum(resource in held for held in others) >= int(locks.exclusion.capacity[resource])

    def _around(self, locks: LockState, i: int, position: int) -> frozenset[int]:
        """The resources that a truck at a position excludes."""
        truck = locks.truck(i)
        if truck.frozen:
            return self._rows(locks, sorted(truck.held))
        key = (id(truck.demand), position)
        if key not in self._excluded:
            # Kept, so that no other demand gets the same identity.
            self._kept.append(truck.demand)
            self._excluded[key] = self._rows(locks, truck.demand.stands(position).tolist())
        return self._excluded[key]

    def _rows(self, locks: LockState, held: list[int]) -> frozenset[int]:
        at, to = locks.exclusion.at, locks.exclusion.to
        return frozenset(int(other) for resource in held for other in to[at[resource] : at[resource + 1]])


class FirstMoves:
    """I-13: the truck with which the witness begins gets its unit within `witnessGrantTicks` ticks of being able to."""

    def __init__(self, run: Run) -> None:
        self._run = run
        self._since: dict[tuple[int, int], int] = {}

    def passed_over(self, outputs: TickOutputs) -> Iterator[str]:
        found = self._first_free(outputs)
        self._since = {key: self._since.get(key, 0) + 1 for key in found}
        for (i, _), ticks in self._since.items():
            if ticks > self._run.scenario.traffic.witness_grant_ticks:
                name = outputs.scene.records[i].robot_id
                yield f"I-13 at {outputs.now_ms} ms: {name} begins the witness and was passed over for {ticks} ticks"

    def _first_free(self, outputs: TickOutputs) -> list[tuple[int, int]]:
        """The first move not made yet, if its truck drives and nothing blocks its next unit."""
        locks = self._run.traffic._locks
        for i, to in locks.witness:
            truck, record = locks.truck(i), outputs.scene.records[i]
            if to <= truck.position:
                continue
            waiting, drained = record.waiting, outputs.scene.drained
            # Draining a lane for a truck that has waited too long is a ranking rule, and ends by itself.
            if waiting is not None and waiting.code == "WAIT_QUEUE_ORDER" and drained:
                return []
            stays = record.stop_code is not None or record.retraction is not None
            works = record.phase.value in ("LOADING", "UNLOADING")
            track = record.track
            if track is None or stays or works:
                return []
            if record.grant_um >= min(record.at_um + record.asked_um, track.goal_um):
                # It holds all it can use on its present way.
                return []
            others = [sorted(locks.truck(j).held) for j in range(len(locks)) if j != i]
            need = truck.demand.needs(truck.position, truck.position + 1).tolist()
            return [] if any(self._is_taken(locks, resource, others) for resource in need) else [(i, truck.position)]
        return []

    def _is_taken(self, locks: LockState, resource: int, others: list[list[int]]) -> bool:
        at, to = locks.exclusion.at, locks.exclusion.to
        row = {int(other) for other in to[at[resource] : at[resource + 1]]}
        return sum(not row.isdisjoint(held) for held in others) >= int(locks.exclusion.capacity[resource])


def holdings(snapshot: LockSnapshot) -> set[tuple[str, str]]:
    """Every truck with every resource that it holds, as the snapshot shows them, without reservations."""
    groups = {
        (occupant.robotId, f"EDGE_GROUP:{group.edgeGroupKey}")
        for group in snapshot.edgeGroups
        for occupant in group.occupants
        if occupant.state != "RESERVED"
    }
    nodes = {(lock.robotId, f"NODE:{lock.nodeId}") for lock in snapshot.nodeLocks}
    sections = {(name, f"CS:{lock.criticalSectionId}") for lock in snapshot.csLocks or () for name in lock.robotIds}
    return groups | nodes | sections


def false_blockers(outputs: TickOutputs) -> Iterator[str]:
    """FLT-DCL-14 from the payloads of a tick alone: every blocker holds the resource it is named with, and every
    queue is for a resource that another truck holds."""
    snapshot = outputs.snapshot()
    held = holdings(snapshot)
    for result in outputs.results:
        blocker = result.blocker
        if blocker is not None and (blocker.blockerRobotId, blocker.blockerResourceId) not in held:
            yield f"{blocker.blockerRobotId} does not hold {blocker.blockerResourceId} at {outputs.now_ms} ms"
        if result.cycle and blocker is not None and blocker.blockerRobotId not in result.cycle:
            yield f"{blocker.blockerRobotId} is not in the cycle of {result.robotId} at {outputs.now_ms} ms"
    for queue in snapshot.queues or ():
        for queued in queue.queue:
            if not any(resource == queue.resourceId and robot != queued.robotId for robot, resource in held):
                yield f"{queued.robotId} waits for {queue.resourceId}, held by no other truck, at {outputs.now_ms} ms"
