"""The state of traffic as bytes and back: everything the next tick depends on that does not follow from site and fleet.

Tracks are rebuilt from routes. The lock data of a route is stored, since it may be older than the route in force.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields
from itertools import pairwise
from typing import Any

import msgspec
import numpy as np
from msgspec import Struct

from pendula.fleet.contracts import Phase, PriorityClass, RobotHealth, RobotStatus
from pendula.fleet.map.planner import AtNode, OnEdge
from pendula.fleet.map.routes import Pose, Progress, RoutePlan, segments_of
from pendula.fleet.map.site import CompiledMap
from pendula.fleet.tick.records import Doubt, Record, Retraction, Waiting
from pendula.fleet.tick.track import Ground, track_of
from pendula.fleet.tick.turns import Directions, recall
from pendula.fleet.traffic.lock_state import Closing, Demand, Exclusion, LockState, Move, Shut
from pendula.fleet.traffic.lock_state import Truck as Locked
from pendula.kernel.canonical import Reader, digest
from pendula.kernel.canonical import encode as canonical_encode


class SavedRoute(Struct, frozen=True, array_like=True):
    route_id: str
    revision: int
    robot_id: str
    on_edge: bool
    place: int
    at: int | None
    goal: int
    edges: tuple[int, ...]
    cost_us: int
    reason: str
    rest: int | None
    onward: tuple[int, ...]
    onward_stops: tuple[int, ...]


class SavedTrack(Struct, frozen=True, array_like=True):
    route: SavedRoute
    granted_um: int
    carried: tuple[tuple[int, int], ...]


class SavedLock(Struct, frozen=True, array_like=True):
    need_at: bytes
    need: bytes
    stand_at: bytes
    stand: bytes
    unwanted: bytes
    position: int
    goal: int
    held: tuple[int, ...]
    reaches: tuple[int, ...]
    frozen: bool
    version: int


class SavedTruck(Struct, frozen=True, array_like=True):
    """The members of a record by name; track, pending route and pose have their own forms."""

    plain: dict[str, Any]
    held: tuple[tuple[int, int], ...]
    track: SavedTrack | None
    pending: SavedRoute | None
    pose: tuple[int, int, int] | None
    progress: tuple[int, int, tuple[int, ...]] | None
    waiting: tuple[str, int | None, int | None, int | None, tuple[int, ...]] | None
    retraction: tuple[int, int, tuple[int, ...]] | None
    lock: SavedLock | None
    doubt: Doubt | None
    reserved_ms: tuple[tuple[int, int], ...]


class SavedTraffic(Struct, frozen=True, array_like=True):
    form: int
    compiled_hash: str
    params_hash: str
    fleet_hash: str
    tick: int
    now_ms: int
    alerts: int
    order: tuple[int, ...]
    trucks: tuple[SavedTruck, ...]
    witness: tuple[Move, ...]
    home: tuple[Move, ...]
    active: dict[int, bool]
    empty_since: dict[int, tuple[bool, int]]
    drained: dict[int, tuple[bool, int]]
    cycles: tuple[tuple[tuple[int, ...], int], ...]
    closings: tuple[Closing, ...]


FORM = 1
# Members of a record with their own form, those that follow from fleet and site, and those that are computed again.
_OWN = frozenset({"track", "held", "progress", "pose", "doubt", "pending", "waiting", "retraction", "reserved_ms"})
_GIVEN = frozenset({"site", "number", "profile", "rest", "short_um", "asked_um"})
_COMPUTED = frozenset({"too_close", "ripe", "ripe_whole", "entering", "_edges", "_zones"})
_PLAIN = tuple(field.name for field in fields(Record) if field.name not in _OWN | _GIVEN | _COMPUTED)
_ENUMS: Mapping[str, Any] = {"status": RobotStatus, "phase": Phase, "health": RobotHealth, "priority": PriorityClass}


def fleet_hash(records: Iterable[Record]) -> str:
    """`sha256:…` over trucks, profiles and rest nodes."""
    trucks = [[record.robot_id, msgspec.to_builtins(record.profile), record.rest] for record in records]
    return "sha256:" + digest(trucks)


def saved_truck(record: Record, locks: LockState) -> SavedTruck:
    track, pose, progress, waiting, given = (
        record.track,
        record.pose,
        record.progress,
        record.waiting,
        record.retraction,
    )
    return SavedTruck(
        plain={name: getattr(record, name) for name in _PLAIN},
        held=tuple(record.held.items()),
        track=None if track is None else SavedTrack(route_form(track.plan), track.stands[0], track.carried),
        pending=None if record.pending is None else route_form(record.pending),
        pose=None if pose is None else (pose.x_um, pose.y_um, pose.yaw_urad),
        progress=None if progress is None else (progress.at_ms, progress.extend_um, progress.raw_um),
        waiting=None
        if waiting is None
        else (waiting.code, waiting.resource, waiting.by, waiting.theirs, waiting.cycle),
        retraction=None if given is None else (given.seq, given.stop_line_um, given.resources),
        lock=_lock(locks.trucks[record.number]),
        doubt=record.doubt,
        reserved_ms=tuple(sorted(record.reserved_ms.items())),
    )


def route_form(plan: RoutePlan) -> SavedRoute:
    """The stored form of a route: edges and nodes by their numbers on the map."""
    start: tuple[bool, int, int | None]
    match plan.start:
        case OnEdge(edge, s_um):
            start = (True, edge, s_um)
        case AtNode(node, yaw):
            start = (False, node, yaw)
    return SavedRoute(
        plan.route_id,
        plan.revision,
        plan.robot_id,
        *start,
        goal=plan.goal,
        edges=tuple(segment.edge for segment in plan.segments),
        cost_us=plan.cost_us,
        reason=plan.reason,
        rest=plan.rest,
        onward=plan.onward,
        onward_stops=plan.onward_stops,
    )


def _lock(truck: Locked | None) -> SavedLock | None:
    if truck is None:
        return None
    demand = truck.demand
    return SavedLock(
        need_at=demand.need_at.astype("<i8").tobytes(),
        need=demand.need.astype("<i8").tobytes(),
        stand_at=demand.stand_at.astype("<i8").tobytes(),
        stand=demand.stand.astype("<i8").tobytes(),
        unwanted=demand.unwanted.tobytes(),
        position=truck.position,
        goal=truck.goal,
        held=tuple(sorted(truck.held)),
        reaches=tuple(sorted(truck.reaches)),
        frozen=truck.frozen,
        version=truck.version,
    )


def restore_truck(saved: SavedTruck, record: Record, ground: Ground, locks: LockState) -> None:
    """Restore a fresh record of a truck; `locks` may be fresh too."""
    for name, value in saved.plain.items():
        kind = _ENUMS.get(name)
        setattr(record, name, value if kind is None else kind(value))
    record.refused_cycle, record.refused_versions = tuple(record.refused_cycle), tuple(record.refused_versions)
    record.held = dict(saved.held)
    if saved.track is not None:
        plan = plan_of(saved.track.route, ground.site)
        record.track = track_of(ground, plan, record.short_um, saved.track.granted_um, dict(saved.track.carried))
    record.pending = None if saved.pending is None else plan_of(saved.pending, ground.site)
    record.pose = None if saved.pose is None else Pose(*saved.pose)
    record.progress = None if saved.progress is None else Progress(*saved.progress)
    record.waiting = None if saved.waiting is None else Waiting(*saved.waiting)
    record.retraction = None if saved.retraction is None else Retraction(*saved.retraction)
    record.doubt = saved.doubt
    record.reserved_ms = dict(saved.reserved_ms)
    recall(record, locks)


def plan_of(saved: SavedRoute, site: CompiledMap) -> RoutePlan:
    """The route of a stored form. Raises `LookupError` with the code of the fault if it does not fit the map."""
    numbers = (*saved.edges, *saved.onward, *((saved.place,) if saved.on_edge else ()))
    nodes = (saved.goal, *(() if saved.rest is None else (saved.rest,)), *(() if saved.on_edge else (saved.place,)))
    if not _below(len(site.network.edges), numbers) or not _below(len(site.network.nodes), nodes):
        raise LookupError("NOT_ON_THE_MAP")
    if not _below(len(saved.onward), saved.onward_stops):
        raise LookupError("STOP_NOT_ON_THE_WAY")
    ways = (*saved.edges, *saved.onward)
    if any(site.network.edges[a].end != site.network.edges[b].start for a, b in pairwise(ways)):
        raise LookupError("EDGES_APART")
    start = OnEdge(saved.place, saved.at or 0) if saved.on_edge else AtNode(saved.place, saved.at)
    return RoutePlan(
        route_id=saved.route_id,
        revision=saved.revision,
        robot_id=saved.robot_id,
        site=site,
        start=start,
        goal=saved.goal,
        segments=segments_of(site, saved.edges),
        cost_us=saved.cost_us,
        reason=saved.reason,
        rest=saved.rest,
        onward=saved.onward,
        onward_stops=saved.onward_stops,
    )


def _below(count: int, numbers: Iterable[int]) -> bool:
    return all(0 <= number < count for number in numbers)


def restored_lock(saved: SavedLock, locks: LockState, number: int) -> Locked:
    """The lock data of a truck; `locks` provides its columns."""

    def ints(data: bytes) -> Any:
        return np.frombuffer(data, dtype="<i8").astype(np.int64)

    unwanted = np.frombuffer(saved.unwanted, dtype=np.bool_).copy()
    demand = Demand(ints(saved.need_at), ints(saved.need), ints(saved.stand_at), ints(saved.stand), unwanted)
    truck = locks.prepared(number, demand, saved.position)
    truck.goal, truck.frozen, truck.version = saved.goal, saved.frozen, saved.version
    truck.held, truck.reaches = set(saved.held), set(saved.reaches)
    return truck


def directions_of(saved: SavedTraffic) -> Directions:
    return Directions(dict(saved.active), dict(saved.empty_since), dict(saved.drained))


def encode(saved: SavedTraffic) -> bytes:
    """Canonical JSON, so that states can be compared member by member."""
    return canonical_encode(msgspec.to_builtins(saved, str_keys=True))


def decode(data: bytes) -> SavedTraffic:
    return _read(data)


def with_params(data: bytes, params_hash: str) -> bytes:
    """The state for traffic with other parameters."""
    return encode(msgspec.structs.replace(decode(data), params_hash=params_hash))


_read: Reader[SavedTraffic] = Reader(SavedTraffic)


def restored(
    exclusion: Exclusion,
    trucks: Sequence[Locked | None],
    witness: Sequence[Move],
    home: Sequence[Move],
    shut: tuple[Shut, ...] = (),
) -> LockState:
    """The lock state rebuilt from the data of each truck."""
    locks = LockState(exclusion, len(trucks))
    for number, truck in enumerate(trucks):
        if truck is not None:
            held, reaches = sorted(truck.held - truck.reaches), sorted(truck.reaches)
            truck.held, truck.reaches = set(), set()
            locks.trucks[number] = truck
            locks.hold(number, held)
            locks.reach_into(number, reaches)
            locks.install(number, truck)
    locks.witness, locks.home, locks.shut = list(witness), list(home), shut
    return locks
