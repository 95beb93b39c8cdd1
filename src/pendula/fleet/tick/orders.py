"""Operator orders to one truck or all trucks, and their results.

An order changes the record of a truck; its effect on driving is judged with all other reasons to stop. Space is freed
only for a truck that cannot move, which is then lost until an operator states its position. The place where it stands
is freed only when it is removed from the hall.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from math import isqrt

import numpy as np
from msgspec import Struct, structs

from pendula.fleet.contracts import RobotStatus
from pendula.fleet.map.planner import OPEN, Anchor, AtNode, Closed
from pendula.fleet.map.resting import Rest, kept_sections
from pendula.fleet.map.routes import RoutePlan, started
from pendula.fleet.map.site import CompiledMap
from pendula.fleet.map.trucks import braking_um
from pendula.fleet.sentences import sentence_of
from pendula.fleet.tick.health import is_fresh, judge
from pendula.fleet.tick.new_routes import passed_um
from pendula.fleet.tick.observing import STANDING_UM_S, is_possible, plan_rejoin, position, rejoin
from pendula.fleet.tick.params import TrafficParams, off_route_um
from pendula.fleet.tick.reasons import against, line_facts, resource_id
from pendula.fleet.tick.records import NOWHERE_UM, Doubt, Record, Retraction, Stop
from pendula.fleet.tick.track import NEVER_UM, Ground, held_from_the_start, track_of
from pendula.fleet.traffic.grants import Accepted, Effort, cut_off, freeze, thaw
from pendula.fleet.traffic.lock_state import LockState, Shut
from pendula.kernel.canonical import Json
from pendula.kernel.engine import Refusal
from pendula.kernel.wording import nearest

# Places closed to routes by failed trucks and by operators.
# Operators close lanes, single edges and nodes by their lock names. Of an edge all cells are closed; of a node its
# turning zone, and of each of its edges the part that conflicts with the zone, up to the middle of the edge.

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


# Largest distance between the stated and the reported position of a relocated truck.
_NEAR_UM = 500_000
_FAILED = frozenset({Stop.OFFLINE, Stop.ROBOT_FAULT, Stop.STUCK})


class OrderKind(StrEnum):
    PAUSE = "PAUSE"
    RESUME = "RESUME"
    CLEAR = "CLEAR"
    RELOCATE = "RELOCATE"
    ABSENT = "ABSENT"
    FORCE_RELEASE = "FORCE_RELEASE"
    REMOVE = "REMOVE"
    # Orders about the map, not a truck.
    CLOSE = "CLOSE"
    OPEN = "OPEN"
    # Traffic continues from a stored state: no truck moves before every truck has reported.
    RESTARTED = "RESTARTED"


OF_MAP = frozenset({OrderKind.CLOSE, OrderKind.OPEN})


class Order(Struct, frozen=True):
    """`robot_id` None: every truck. Orders of one tick take effect in the order of `at_ms`, then of `order_id`. `edge`
    and `s_um`: the stated position of a truck; `resources`: names of what it releases, or of what is closed or opened;
    `force`: close a place regardless of the consequences."""

    order_id: str
    kind: OrderKind
    robot_id: str | None = None
    at_ms: int = 0
    edge: int | None = None
    s_um: int = 0
    resources: tuple[str, ...] = ()
    operator: str = ""
    reason: str = ""
    force: bool = False


class AppliedOrder(Struct, frozen=True):
    """The result of an order; `code` and `facts` say why it was rejected, `freed` what it released."""

    order_id: str
    code: str | None = None
    facts: dict[str, Json] = {}
    freed: tuple[str, ...] = ()

    @property
    def message(self) -> str:
        return "" if self.code is None else sentence_of(self.code, self.facts)


def apply_orders(
    orders: Iterable[Order],
    records: list[Record],
    locks: LockState,
    params: TrafficParams,
    now_ms: int,
    *,
    effort: Effort,
    ground: Ground,
    anchor: Callable[[Record], Anchor | None],
    ways: Callable[[Record, Anchor], Iterator[RoutePlan]],
    change_map: Callable[[Order], AppliedOrder],
) -> list[AppliedOrder]:
    """Apply orders in sequence. `anchor` finds a truck on the map, `ways` the routes from there; `change_map` closes
    and opens places."""
    executor = _OrderExecutor(records, locks, params, now_ms, effort, ground=ground, anchor=anchor, ways=ways)
    ordered = sorted(orders, key=lambda order: (order.at_ms, order.order_id))
    return [change_map(order) if order.kind in OF_MAP else executor.execute(order) for order in ordered]


def check_release(record: Record, now_ms: int, params: TrafficParams) -> Refusal | None:
    """Refuse to release anything of a truck that may still move (FLT-FAIL-11)."""
    if record.stop_code in _FAILED or record.absent:
        return None
    standing = record.v_um_s < STANDING_UM_S and is_fresh(record, now_ms, params)
    if record.paused and standing:
        return None
    if record.paused:
        return Refusal("ROBOT_NOT_STOPPED", {"robotId": record.robot_id, "speedUmS": record.v_um_s})
    return Refusal("ROBOT_NOT_STOPPED", {"robotId": record.robot_id})


def releasable(record: Record, now_ms: int, params: TrafficParams) -> list[str]:
    """Resources that FORCE_RELEASE may take from a truck; none while it may move."""
    if check_release(record, now_ms, params) is not None:
        return []
    return sorted(_names(record, record.keeps) - _names(record, _occupied(record, params)))


def check_occupied(record: Record, names: Iterable[str], params: TrafficParams) -> Refusal | None:
    """Refuse to release a place where the truck stands, by its last report (FLT-FAIL-1)."""
    under = sorted(_names(record, _occupied(record, params)).intersection(names))
    if not under:
        return None
    return Refusal("ROBOT_STILL_THERE", {"robotId": record.robot_id, "resources": [*under]})


def _occupied(record: Record, params: TrafficParams) -> list[int]:
    """Resources that a truck holds and may occupy: not certainly passed, and not beyond where it would have stopped by
    itself after its last report."""
    if record.track is None:
        return record.keeps
    used, bound, profile = record.track.used, record.bound_um, record.profile
    errors = profile.localization_error.value_um + profile.tracking_error.value_um
    unheard = record.v_um_s * params.rtp_timeout_ms // 1000
    front = record.at_um + errors + unheard + braking_um(profile, record.v_um_s)
    begun = {*_elsewhere(record), *used.not_passed(-NEVER_UM, front, bound)}
    ahead = {use.resource for use in used.between(front, NEVER_UM)}
    # Resources ahead belong to a retracted grant: the truck is no longer sent there.
    return [
        resource
        for resource in record.keeps
        if resource in begun or (record.held.get(resource, bound) > bound and resource not in ahead)
    ]


def _elsewhere(record: Record) -> tuple[int, ...]:
    """What a lost truck may cover at its reported position."""
    return () if record.doubt is None else record.doubt.extra


def _names(record: Record, resources: Iterable[int]) -> set[str]:
    return {resource_id(record.site, resource) for resource in resources}


@dataclass(frozen=True, slots=True)
class _OrderExecutor:
    records: list[Record]
    locks: LockState
    params: TrafficParams
    now_ms: int
    effort: Effort
    ground: Ground
    anchor: Callable[[Record], Anchor | None]
    ways: Callable[[Record, Anchor], Iterator[RoutePlan]]

    def execute(self, order: Order) -> AppliedOrder:
        named = [record for record in self.records if order.robot_id in (None, record.robot_id)]
        if not named:
            return AppliedOrder(order.order_id, "UNKNOWN_ROBOT", {"robotId": order.robot_id})
        freed: tuple[str, ...] = ()
        for record in named:
            answer = self._change(record, order)
            if isinstance(answer, Refusal):
                return AppliedOrder(order.order_id, answer.code, answer.facts)
            freed += answer
        return AppliedOrder(order.order_id, freed=freed)

    def _change(self, record: Record, order: Order) -> tuple[str, ...] | Refusal:
        match order.kind:
            case OrderKind.PAUSE | OrderKind.RESUME:
                record.paused = order.kind is OrderKind.PAUSE
            case OrderKind.RESTARTED:
                record.unheard = True
            case OrderKind.CLEAR:
                return self._clear(record)
            case OrderKind.RELOCATE:
                return self._relocate(record, order)
            case OrderKind.ABSENT:
                return self._absent(record)
            case OrderKind.FORCE_RELEASE:
                return self._force_release(record, order.resources)
            case OrderKind.REMOVE:
                return self._remove(record)
        return ()

    def _clear(self, record: Record) -> tuple[str, ...] | Refusal:
        if record.latched is None:
            facts: dict[str, Json] = {"robotId": record.robot_id}
            back = None if record.doubt is None else record.doubt.rejoin
            if back is not None and back.target_um is None:
                facts = line_facts(record, back, [self.records[number] for number, _ in back.blockers])
            return Refusal("NOTHING_TO_CLEAR", facts)
        record.latched = None
        return ()

    def _relocate(self, record: Record, order: Order) -> tuple[str, ...] | Refusal:
        doubt, pose = record.doubt, record.pose
        if doubt is None or order.edge is None:
            return Refusal("ROBOT_NOT_LOST", {"robotId": record.robot_id})
        if pose is None or not is_fresh(record, self.now_ms, self.params):
            return Refusal("ROBOT_SILENT", {"robotId": record.robot_id})
        edge = record.site.network.edges[order.edge]
        if order.s_um > edge.path.length_um:
            return Refusal("POSE_DISAGREES", {"edgeKey": edge.key, "lengthUm": edge.path.length_um})
        x, y = edge.path.point(order.s_um)
        away = isqrt((pose.x_um - x) ** 2 + (pose.y_um - y) ** 2)
        if away > _NEAR_UM:
            return Refusal("POSE_DISAGREES", {"robotId": record.robot_id, "awayUm": away})
        record.doubt = structs.replace(doubt, confirmed=True, edge=order.edge)
        if self.anchor(record) is None and not is_possible(record, self.params):
            back = rejoin(record, record.doubt, self.records, self.ground, self.params)
            if back is None or back.edge != order.edge:
                record.doubt = doubt
                beside_um = off_route_um(record.profile, self.params)
                return Refusal(
                    "POSE_DISAGREES", {"robotId": record.robot_id, "besideUm": beside_um, "edgeKey": edge.key}
                )
            if back.target_um is None:
                record.doubt = doubt
                holders = [self.records[number] for number, _ in back.blockers]
                return Refusal("PLACE_HELD" if holders else "POSE_DISAGREES", line_facts(record, back, holders))
        elif not is_possible(record, self.params):
            refusal = self._held_by_others(record)
            if refusal is not None:
                record.doubt = doubt
                return refusal
        record.latched = None
        return ()

    def _held_by_others(self, record: Record) -> Refusal | None:
        """Refuse a relocation if there is no route from the position, or other trucks hold the place."""
        anchor = self.anchor(record)
        if anchor is None:
            return None
        holders: list[tuple[int, int]] = []
        plans = list(self.ways(record, anchor))
        for plan in plans:
            held = held_at(record, self.ground, plan)
            blockers = self.locks.in_the_way(record.number, np.array(sorted(held), dtype=np.int64))
            if not blockers:
                return None
            holders = holders or blockers
        if not plans:
            return Refusal("NO_ROUTE", {"robotId": record.robot_id})
        resource, by = holders[0]
        return Refusal(
            "PLACE_HELD",
            {
                "robotId": record.robot_id,
                "resource": resource_id(record.site, resource),
                "blocker": self.records[by].robot_id,
                "held": resource_id(record.site, against(self.locks, by, resource)),
            },
        )

    def _absent(self, record: Record) -> tuple[str, ...] | Refusal:
        if is_fresh(record, self.now_ms, self.params):
            return Refusal("ROBOT_REPORTS", {"robotId": record.robot_id})
        record.absent = True
        return ()

    def _force_release(self, record: Record, names: tuple[str, ...]) -> tuple[str, ...] | Refusal:
        refusal = check_release(record, self.now_ms, self.params) or check_occupied(record, names, self.params)
        if refusal is not None:
            return refusal
        known = {resource: resource_id(record.site, resource) for resource in record.keeps}
        chosen = sorted(resource for resource, name in known.items() if name in names)
        if not chosen:
            return Refusal("NOTHING_HELD", {"robotId": record.robot_id, "resources": [*names]})
        return self._release(record, chosen, _elsewhere(record))

    def _remove(self, record: Record) -> tuple[str, ...] | Refusal:
        refusal = check_release(record, self.now_ms, self.params)
        if refusal is not None:
            return refusal
        # Its reported position is released as well, unless it still reports from there.
        stays = _elsewhere(record) if is_fresh(record, self.now_ms, self.params) else ()
        freed = self._release(record, sorted({*record.keeps, *_elsewhere(record)}), stays)
        record.set_aside()
        return freed

    def _release(self, record: Record, resources: list[int], extra: tuple[int, ...]) -> tuple[str, ...]:
        """Release resources of a truck that is no longer there. What it may cover elsewhere, `extra`, stays reserved
        until an operator states its position."""
        gone, freed = frozenset(resources), [resource for resource in resources if resource not in extra]
        self.locks.drop(record.number, freed)
        record.held = {resource: free for resource, free in record.held.items() if resource not in gone}
        given = record.retraction
        if given is not None:
            left = tuple(resource for resource in given.resources if resource not in gone)
            record.retraction = Retraction(given.seq, given.stop_line_um, left) if left else None
        record.changed()
        record.doubt = Doubt(Stop.OPERATOR, self.now_ms, NOWHERE_UM, NOWHERE_UM, torn=True, extra=extra)
        # Trucks that were cut off may now continue.
        freeze(self.locks, record.number, [], effort=self.effort)
        return tuple(sorted(_names(record, freed)))


# Failed trucks keep their cells and request nothing; a recovered truck continues from its position.
# Nothing is released before the position is certain: its poses are steady and plausible, or an operator has stated
# it. Then the truck first gets what it needs there, and only then the rest is released.


@dataclass(frozen=True, slots=True)
class Recovery:
    """Context of recovery. `anchor` finds a truck on the map, `ways` the routes from there. `failed` is called for
    every failure with the trucks that it cuts off, and again when there are more of them; `accepted` for every new
    route."""

    locks: LockState
    ground: Ground
    params: TrafficParams
    now_ms: int
    effort: Effort
    anchor: Callable[[Record], Anchor | None]
    ways: Callable[[Record, Anchor], Iterator[RoutePlan]]
    failed: Callable[[Record, list[int]], None]
    accepted: Callable[[RoutePlan], None]


def recover_trucks(records: list[Record], recovery: Recovery) -> None:
    """Freeze trucks that failed since the last tick, and let recovered trucks continue."""
    for record in records:
        if record.doubt is not None:
            doubt = record.doubt = _note_on_map(record, record.doubt, recovery)
            if _is_back(record, doubt, recovery) and (doubt.rejoin is None or doubt.rejoin.target_um is None):
                _recover(record, doubt, recovery)
            if record.doubt is not None:
                settled = is_settled(record, record.doubt, recovery.now_ms, recovery.params)
                record.doubt = plan_rejoin(
                    record, record.doubt, records, recovery.ground, recovery.params, settled=settled
                )
        locked = recovery.locks.truck(record.number)
        extra = () if record.doubt is None else record.doubt.extra
        if record.failed and not (locked.frozen and locked.held.issuperset(extra)):
            known = cut_off(recovery.locks) if locked.frozen else None
            known_place = record.doubt is not None and record.doubt.code == Stop.OVERRUN
            whole, part = ([], [*extra]) if known_place else ([*extra], [])
            stranded = freeze(recovery.locks, record.number, whole, part, effort=recovery.effort)
            if known is None or not set(stranded) <= set(known):
                recovery.failed(record, stranded)
        elif locked.frozen and not record.failed:
            _request_again(record, recovery)


def awaits_person(record: Record, now_ms: int, params: TrafficParams) -> bool:
    """Whether a truck stands until a person acts: clears or resumes it, states its position, or looks for it.

    Causes that may end by themselves, such as unsteady poses, count after `wait_alert_ms`; a stop for another truck
    never counts, because a lost truck counts itself. A removed truck does not wait, unless it has reported since and
    its reported position is kept for it.
    """
    if record.is_out:
        return False
    if record.removed_ms is not None and record.absent:
        return record.doubt is not None and bool(record.doubt.extra)
    if record.paused or record.latched is not None or record.status is RobotStatus.FAULT:
        return True
    if not record.absent and (record.pose is None or record.stop_code == Stop.OFFLINE):
        return True
    doubt = record.doubt
    torn = doubt is not None and (doubt.torn or record.stop_code == Stop.OCCUPANCY_CONFLICT)
    lost = doubt is not None and torn and not doubt.confirmed and is_settled(record, doubt, now_ms, params)
    return (lost and not is_possible(record, params)) or _has_stopped_for_long(record, now_ms, params)


def _has_stopped_for_long(record: Record, now_ms: int, params: TrafficParams) -> bool:
    """Whether a truck has been stopped for a reason of its own for so long that an operator should look."""
    if record.absent or record.stopped_ms is None or record.stop_code in (Stop.FOREIGN_OCCUPANCY, Stop.SAFE_STATE):
        return False
    # Codes may alternate while the position is in doubt.
    since_ms = record.stopped_ms if record.doubt is None else min(record.stopped_ms, record.doubt.since_ms)
    return now_ms - since_ms >= params.wait_alert_ms


def is_settled(record: Record, doubt: Doubt, now_ms: int, params: TrafficParams) -> bool:
    """Whether a truck in doubt has been healthy and steady for long enough."""
    if record.latched is not None or record.status is not RobotStatus.OK or doubt.steady_ms is None:
        return False
    fresh = is_fresh(record, now_ms, params) and not record.absent
    return fresh and now_ms - doubt.steady_ms >= params.relocalize_stable_ms


def _note_on_map(record: Record, doubt: Doubt, recovery: Recovery) -> Doubt:
    """Note in the doubt since when the truck is within the tolerance of its route, or of any edge."""
    here = record.pose is not None and (is_possible(record, recovery.params) or recovery.anchor(record) is not None)
    if here is (doubt.on_map_ms is not None):
        return doubt
    return structs.replace(doubt, on_map_ms=record.report_ms if here else None)


def _is_back(record: Record, doubt: Doubt, recovery: Recovery) -> bool:
    """Whether a truck has been steady and on the map all that time (FLT-FAIL-7)."""
    long = doubt.on_map_ms is not None and recovery.now_ms - doubt.on_map_ms >= recovery.params.relocalize_stable_ms
    return long and is_settled(record, doubt, recovery.now_ms, recovery.params)


def _recover(record: Record, doubt: Doubt, recovery: Recovery) -> None:
    if is_possible(record, recovery.params) and not _is_beyond_stop_line(record, doubt, recovery.params):
        _resume_route(record, doubt, recovery)
    elif doubt.confirmed or not doubt.torn:
        _relocate(record, recovery)


def _is_beyond_stop_line(record: Record, doubt: Doubt, params: TrafficParams) -> bool:
    """Whether a truck is so far beyond its stop line that it must be granted the place where it stands: two reports of
    one place differ by both their errors, so it could exceed the line again."""
    if doubt.code != Stop.OVERRUN:
        return False
    s_um = position(record, params)
    return s_um is None or s_um + record.profile.localization_error.value_um > record.grant_um + params.stop_line_tol_um


def _resume_route(record: Record, doubt: Doubt, recovery: Recovery) -> None:
    """Resume the route of a truck with a plausible position, and release what it might have covered elsewhere."""
    recovery.locks.drop(
        record.number, [resource for resource in doubt.extra if resource not in frozenset(record.keeps)]
    )
    record.doubt = None
    if record.track is not None and record.track.segments:
        s_um = position(record, recovery.params)
        assert s_um is not None
        act = record.act
        on = s_um if act is None else min(s_um, act.s_um)
        record.progress = started(record.report_ms, on)
        record.at_um = max(record.at_um, min(on, record.grant_um))
    judge(record, recovery.now_ms, recovery.params)


def _request_again(record: Record, recovery: Recovery) -> None:
    """Request the old route again. The truck waits while that would leave other trucks worse off."""
    locked = recovery.locks.truck(record.number)
    if recovery.now_ms >= record.again_ms:
        answer = thaw(recovery.locks, record.number, locked.demand, locked.position, effort=recovery.effort)
        if isinstance(answer, Accepted):
            return
        record.again_ms = recovery.now_ms + recovery.params.cooldown_ms
    if record.stop_code is None:
        record.stop_code = Stop.SAFE_STATE


def _relocate(record: Record, recovery: Recovery) -> None:
    """Move the truck to a new route from its position; only then the old place is released. It stays in doubt while
    there is no route, another truck holds the place, or other trucks would be worse off."""
    if recovery.now_ms < record.again_ms:
        return
    record.again_ms = recovery.now_ms + recovery.params.cooldown_ms
    anchor = recovery.anchor(record)
    if anchor is not None and any(_move_onto(record, plan, recovery) for plan in recovery.ways(record, anchor)):
        judge(record, recovery.now_ms, recovery.params)


def _move_onto(record: Record, plan: RoutePlan, recovery: Recovery) -> bool:
    """Put the truck on a route from its position, if it can hold its place and all others can reach their rest."""
    held = held_at(record, recovery.ground, plan)
    if recovery.locks.in_the_way(record.number, np.array(sorted(held), dtype=np.int64)):
        return False
    begin = 0 if isinstance(plan.start, AtNode) else plan.start_um
    track = track_of(recovery.ground, plan, record.short_um, begin, held)
    recovery.locks.hold(record.number, sorted(held))
    answer = thaw(recovery.locks, record.number, track.demand, 0, effort=recovery.effort)
    if not isinstance(answer, Accepted):
        return False
    recovery.locks.drop(record.number, sorted(recovery.locks.truck(record.number).held - held.keys()))
    record.placed(track, held, begin)
    if isinstance(plan.start, AtNode):
        record.node = plan.start.node
    record.progress = started(record.report_ms, begin)
    recovery.accepted(plan)
    return True
