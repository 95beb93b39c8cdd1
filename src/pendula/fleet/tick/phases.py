"""The phases of a tick, in order. Each changes the draft; nothing takes effect before all are done."""

from collections.abc import Iterable, Iterator
from functools import partial

from pendula.fleet.contracts import RobotStatus
from pendula.fleet.map.routes import RoutePlan
from pendula.fleet.tick import reasons, turns
from pendula.fleet.tick.aiming import acknowledged
from pendula.fleet.tick.draft import Draft, RefusedRoute
from pendula.fleet.tick.granting import adopt, escalate, grant, may_replan, reroute, take_detour
from pendula.fleet.tick.health import drives_on, is_silent, judge, protect
from pendula.fleet.tick.invariants import InvariantBroken, broken, can_stop
from pendula.fleet.tick.new_routes import Adoption, Unfit, adoption, goes_on, screened_routes
from pendula.fleet.tick.observing import STANDING_UM_S, DroppedReport, release_bound_um, screened, take_in
from pendula.fleet.tick.orders import (
    AppliedOrder,
    Order,
    OrderKind,
    Recovery,
    apply_orders,
    check_closable,
    closed_by_operators,
    closed_to_routes,
    recover_trucks,
    shut_of,
)
from pendula.fleet.tick.params import TrafficParams, node_reach_um
from pendula.fleet.tick.records import Record, Stop
from pendula.fleet.tick.track import Ground, left_um, track_of
from pendula.fleet.tick.turns import bars, class_of, order_of, pause_ms, rank_of, reserve, starved
from pendula.fleet.traffic.grants import (
    Accepted,
    Rule,
    accept_route,
    close,
    cut_off,
    goals,
    release,
    reopen,
    take_beside,
)
from pendula.fleet.traffic.lock_state import Closing, LockState, Refusal, Shut, first_shut
from pendula.kernel.canonical import Json

# Places that operators close and open: trucks that this cuts off, and their detours (FLT-PLAN-8).
# A closing that would leave a truck without any route to rest is refused unless it is forced. Then the truck waits
# before the closed place, where it blocks as few others as possible, until that is opened. The witness is for the
# present map; a schedule for the whole map is kept beside it.


def change_map(draft: Draft, order: Order) -> AppliedOrder:
    """Close or open what an order names. Places that are already closed or open stay as they are."""
    wrong = next(
        (refusal for place in order.resources if (refusal := check_closable(draft.ground.site, place)) is not None),
        None,
    )
    if wrong is not None:
        return AppliedOrder(order.order_id, wrong.code, wrong.facts)
    if order.kind is OrderKind.OPEN:
        return _open(draft, order)
    return _close(draft, order)


def closed_places(draft: Draft) -> tuple[Shut, ...]:
    """All closed places, by name."""
    return tuple(shut_of(draft.ground.site, name) for name in sorted(draft.closings))


def reopen_ways(draft: Draft) -> None:
    """Once nothing is closed and no truck has failed, make every route lead to rest again as soon as possible."""
    if cut_off(draft.locks) and not draft.locks.is_limited:
        reopen(draft.locks, (), effort=draft.effort)


def _open(draft: Draft, order: Order) -> AppliedOrder:
    draft.closings = {name: closing for name, closing in draft.closings.items() if name not in order.resources}
    shut = closed_places(draft)
    if shut != draft.locks.shut:
        reopen(draft.locks, shut, effort=draft.effort)
        draft.ways.shut = closed_by_operators(shut)
        draft.touched.update(draft.locks.moving())
    return AppliedOrder(order.order_id)


def _close(draft: Draft, order: Order) -> AppliedOrder:
    locks, before = draft.locks, draft.closings
    fresh = sorted(set(order.resources) - before.keys())
    if not fresh:
        return AppliedOrder(order.order_id)
    kept = list(locks.witness), list(locks.home), goals(locks), locks.shut
    named = {name: Closing(name, draft.now_ms, order.order_id, order.operator, order.reason) for name in fresh}
    draft.closings = {**before, **named}
    cut = close(locks, closed_places(draft), effort=draft.effort)
    lost = [] if order.force else [number for number in cut if not _gets_home(draft, draft.records[number])]
    if lost:
        draft.closings = before
        locks.witness, locks.home, reached, locks.shut = kept
        for i in locks.moving():
            if locks.truck(i).goal != reached[i]:
                locks.set_goal(i, reached[i])
        return AppliedOrder(order.order_id, "CUTS_OFF", {"robotIds": draft.names(lost)})
    draft.ways.shut = closed_by_operators(locks.shut)
    draft.touched.update(locks.moving())
    for number in cut:
        # The map has changed: look for a detour at once.
        draft.records[number].rerouted_ms = None
    return AppliedOrder(order.order_id)


def _gets_home(draft: Draft, record: Record) -> bool:
    """Whether a cut-off truck has another route to rest, or is cut off only by other trucks."""
    locks, truck = draft.locks, draft.locks.truck(record.number)
    if first_shut(locks.shut, truck.demand, truck.position) is None:
        return True
    plan = draft.ways.home(record, closed_to_routes(locks, draft.ground.site))
    fit = None if plan is None else adoption(record, plan, draft.ground, draft.params, draft.now_ms)
    if fit is None or isinstance(fit, Unfit):
        return False
    return first_shut(locks.shut, fit.track.demand, 0) is None


# A truck that stops in a node on its route locks the node (FLT-DCL-5).
# This applies under every `nodeLockPolicy`: while the truck stands there it holds the turning zone, unless another
# truck holds something that excludes it or some truck could not reach its rest. It is released like any other node.


def take_nodes(
    records: Iterable[Record], locks: LockState, ground: Ground, params: TrafficParams, rule: Rule
) -> set[int]:
    """Lock the nodes of trucks that stand in one. Returns the trucks that hold more than before."""
    taken = set()
    for record in records:
        for place in _nodes(record, params):
            if _take(record, place, locks, ground, rule):
                taken.add(record.number)
    return taken


def _nodes(record: Record, params: TrafficParams) -> Iterator[int]:
    """Indexes of the segments at whose end nodes a truck stands: near the node, or anywhere in its zone if stopped."""
    track = record.track
    if track is None or record.pose is None or record.v_um_s >= STANDING_UM_S or record.doubt is not None:
        return
    if record.retraction is not None:
        return
    reach = node_reach_um(record.profile, params)
    for place, segment in enumerate(track.segments[:-1]):
        end = segment.route_s0_um + segment.length_um
        if abs(record.at_um - end) <= reach or (record.stop_code is not None and _is_in_window(record, place)):
            yield place


def _is_in_window(record: Record, place: int) -> bool:
    """Whether the envelope of a truck overlaps the zone of the node at the end of a segment."""
    assert record.track is not None
    site, segments = record.site, record.track.segments
    node = site.network.edges[segments[place].edge].end
    return any(
        segment.route_s0_um + window.s0 <= record.at_um <= segment.route_s0_um + window.s1
        for segment in segments[place : place + 2]
        for window in site.zones.by_node[node]
        if window.edge == segment.edge
    )


def _take(record: Record, place: int, locks: LockState, ground: Ground, rule: Rule) -> bool:
    track, site = record.track, record.site
    assert track is not None
    node = site.network.edges[track.segments[place].edge].end
    zone = site.zone(node)
    if zone in record.held or locks.truck(record.number).frozen:
        return False
    held = {**record.held, zone: left_um(site, track.segments, place + 1, node, record.short_um)}
    fresh = track_of(ground, track.plan, record.short_um, record.grant_um, held)
    if not take_beside(locks, record.number, fresh.demand, zone, rule=rule):
        return False
    record.go_on_with(fresh, held)
    return True


# A refused route counts as waiting for this long after its last check.
_STILL_ASKED_MS = 2_000
# A route barred for a starving truck is checked again after this.
_BARRED_MS = 1_000


def observe(draft: Draft) -> None:
    """Take in reports and routes; their order does not matter."""
    readable, draft.dropped = screened(draft.reports, draft.numbers, draft.now_ms)
    for report in readable:
        record = draft.records[draft.numbers[report.robot_id]]
        if record.pose is None or report.at_ms > record.report_ms:
            take_in(record, report, draft.params, draft.now_ms, draft.ports.progress.project)
        elif report.at_ms < record.report_ms:
            draft.dropped.append(DroppedReport(report.robot_id, "REPORT_OUTDATED"))
    for bad in draft.dropped:
        if bad.robot_id in draft.numbers:
            draft.records[draft.numbers[bad.robot_id]].bad_reports += 1
    for stopped, stranger in protect(draft.records, draft.ground, draft.params, draft.now_ms):
        draft.foreign(stopped, stranger)
    for record in draft.records:
        before = record.stop_code
        if before == Stop.INVARIANT:
            draft.too_fast.add(record.number)
        judge(record, draft.now_ms, draft.params)
        _alert_silence(draft, record)
        if record.stop_code == Stop.NO_COMMS != before:
            draft.alert(reasons.NO_COMMS, "WARN", draft.now_ms, record.robot_id, lastAckSeq=record.ack_seq)
        defiant = drives_on(record, draft.now_ms, draft.params)
        if defiant and not record.defiant:
            draft.alert(reasons.STOP_IGNORED, "ERROR", draft.now_ms, record.robot_id, lastAckSeq=record.ack_seq)
        record.defiant = defiant
        record.priority = class_of(record)
    _take_routes(draft)


def _alert_silence(draft: Draft, record: Record) -> None:
    """Alert once per doubt; trucks declared absent are skipped."""
    if record.pose is None and not record.absent:
        _alert_never_heard(draft, record)
        return
    doubt = record.doubt
    if doubt is None or doubt.silent or record.absent:
        return
    if record.status is RobotStatus.OFFLINE or is_silent(record, draft.now_ms, draft.params):
        draft.silent(record, doubt)


def _alert_never_heard(draft: Draft, record: Record) -> None:
    """Alert once for a truck that has not reported since traffic began (FLT-FAIL-9)."""
    if record.awaited_ms is None:
        record.awaited_ms = draft.now_ms
    if not record.missed and draft.now_ms - record.awaited_ms > draft.params.robot_offline_ms:
        record.missed = True
        draft.never_heard(record, record.awaited_ms)


def _take_routes(draft: Draft) -> None:
    """Queue new routes for their check."""
    known = {record.robot_id: record for record in draft.records}
    taken, refused = screened_routes(draft.routes, known, draft.closed)
    for plan, code in refused:
        _refuse(draft, plan, code)
    for plan in taken:
        record = known[plan.robot_id]
        record.pending = plan
        record.retry_ms = record.sleep_ms = draft.now_ms
        if record.pending_since_ms is None:
            record.pending_since_ms = draft.now_ms


def apply_operator_actions(draft: Draft) -> None:
    """Apply operator actions, before anything else."""
    draft.applied = apply_orders(
        draft.orders,
        draft.records,
        draft.locks,
        draft.params,
        draft.now_ms,
        effort=draft.effort,
        ground=draft.ground,
        anchor=draft.ways.anchor,
        ways=draft.ways.back,
        change_map=partial(change_map, draft),
    )


def freeze_lost_trucks(draft: Draft) -> None:
    """Freeze failed trucks: they keep their cells and need nothing. A recovered truck continues its route from its
    position."""
    recovery = Recovery(
        locks=draft.locks,
        ground=draft.ground,
        params=draft.params,
        now_ms=draft.now_ms,
        effort=draft.effort,
        anchor=draft.ways.anchor,
        ways=draft.ways.back,
        failed=draft.failed,
        accepted=draft.accepted.append,
    )
    recover_trucks(draft.records, recovery)
    reopen_ways(draft)


def release_passed_resources(draft: Draft) -> None:
    """Release what lies behind the release bound, and retractions that were acknowledged. A failed truck keeps all of
    it until it goes on; otherwise the locks would keep for good what the record has released."""
    for record in draft.records:
        if record.doubt is not None or draft.locks.truck(record.number).frozen:
            continue
        bound, passed_um = release_bound_um(record, draft.now_ms), record.passed_um
        bound = bound if bound < passed_um else passed_um
        passed = [resource for resource, free in record.held.items() if free <= bound]
        given = record.retraction
        if given is not None and acknowledged(given.seq, record.ack_seq):
            passed += given.resources
            record.retraction = None
        if passed:
            release(draft.locks, record.number, sorted(passed))
            for resource in passed:
                record.held.pop(resource, None)
            record.changed()


def lock_nodes(draft: Draft) -> None:
    """Lock nodes before any grant, so that a truck that had to stop in a node comes first."""
    draft.touched |= take_nodes(draft.records, draft.locks, draft.ground, draft.params, draft.rule)


def rank(draft: Draft) -> None:
    """Rank the trucks: the one total order of this tick."""
    for record in draft.records:
        record.rank = rank_of(record, draft.now_ms, draft.params)
    draft.starving = starved(draft.records, draft.now_ms, draft.params)
    turns.drain(draft.directions, draft.records, draft.two_way, draft.now_ms, draft.params)
    turns.keep_clear(draft.directions, draft.locks)
    against = turns.against(draft.directions, draft.records, draft.two_way)
    draft.order = order_of(draft.records, draft.starving, against, draft.now_ms)


def admit_routes(draft: Draft) -> None:
    """Check new and changed routes in rank order, as many as a tick may check; the others wait for the next tick."""
    left = 0 if draft.missing is not None else draft.params.max_admissions_per_tick
    for record in draft.order:
        plan = record.pending
        if plan is None:
            _forget(record, draft.now_ms)
            continue
        if record.stop_code is not None or _is_asleep(draft, record):
            continue
        if left <= 0 and not goes_on(record, plan):
            continue
        fit = adoption(record, plan, draft.ground, draft.params, draft.now_ms)
        if isinstance(fit, Unfit):
            _refuse(draft, plan, fit.code)
            # It waits for no truck, however often it is sent: no reason to hold others back for it.
            record.pending = record.pending_since_ms = None
        elif fit.continues:
            # It was admitted before and needs no check.
            adopt(draft, record, fit, record.base + record.granted)
            continue
        elif _is_held_back(draft, record, plan, fit):
            record.retry_ms = record.sleep_ms = draft.now_ms + _BARRED_MS
        else:
            _try(draft, record, plan, fit)
        left -= 1


def _is_held_back(draft: Draft, record: Record, plan: RoutePlan, fit: Adoption) -> bool:
    """While a truck starves, no other truck may start for a new goal in its way; routes to rest stay allowed."""
    first = draft.starving
    if first is None or record is first or plan.goal == record.rest:
        return False
    return bars(first, draft.locks, fit.track.demand, draft.now_ms, draft.params)


def _try(draft: Draft, record: Record, plan: RoutePlan, fit: Adoption) -> None:
    if draft.locks.shut and first_shut(draft.locks.shut, fit.track.demand, 0) is not None:
        _refuse(draft, plan, "ROUTE_OVER_CLOSED")
        record.pending = record.pending_since_ms = None
        return
    answer = accept_route(draft.locks, record.number, fit.track.demand, 0, rule=draft.rule, effort=draft.admissions)
    if isinstance(answer, Accepted):
        adopt(draft, record, fit, 0)
        return
    if not answer.cycle:
        # Postponed: the search budget of this tick is used up.
        return
    same = answer.cycle == record.refused_cycle
    if not same:
        _refuse(draft, plan, reasons.WAIT_SAFE_STATE, answer.cycle)
    refusal = Refusal.of(draft.locks, record.number, answer.cycle)
    record.refused_cycle, record.refused_versions = refusal.cycle, refusal.versions
    since = record.pending_since_ms if same else None
    record.retry_ms = draft.now_ms + draft.params.cooldown_ms
    record.sleep_ms = draft.now_ms + pause_ms(draft.params, draft.now_ms, since)


def _is_asleep(draft: Draft, record: Record) -> bool:
    """Whether a waiting route needs no check: it is too early, or the trucks that blocked it have not changed."""
    if draft.now_ms < record.retry_ms or draft.now_ms >= record.sleep_ms or not record.refused_versions:
        return draft.now_ms < record.retry_ms
    return Refusal(record.refused_cycle, record.refused_versions).still(draft.locks, record.number)


def _refuse(draft: Draft, plan: RoutePlan, code: str, cycle: tuple[int, ...] = ()) -> None:
    names = tuple(draft.records[number].robot_id for number in cycle)
    draft.refused.append(RefusedRoute(plan.robot_id, plan.route_id, plan.revision, code, names))
    details: dict[str, Json] = {"routeId": plan.route_id, "code": code, "cycle": [*names]}
    draft.notice(reasons.ROUTE_REFUSED, draft.now_ms, plan.robot_id, **details)


def _forget(record: Record, now_ms: int) -> None:
    if record.pending_since_ms is not None and now_ms - record.retry_ms > _STILL_ASKED_MS:
        record.pending_since_ms = None


def reserve_ahead(draft: Draft) -> None:
    """Reserve what lies beyond the units, up to the lookahead."""
    reserve(draft.order, draft.locks, draft.params, draft.now_ms)


def update_health(draft: Draft) -> None:
    """Update the held directions of lanes, and detect deadlocks."""
    hold_ms = draft.params.edge_dir_hold_ms
    turns.look(draft.directions, draft.records, draft.two_way, draft.now_ms, hold_ms)
    cycle = reasons.waiting_cycle(draft.records, draft.queue.waits)
    draft.cycles = reasons.watched(draft.cycles, cycle, draft.now_ms)
    for members, since in draft.cycles.items():
        waited, last = draft.now_ms - since, draft.now_ms - since - draft.params.tick_period_ms
        if waited >= draft.params.deadlock_detect_ms > last:
            _raise_deadlock(draft, members, since)


def _raise_deadlock(draft: Draft, members: tuple[int, ...], since_ms: int) -> None:
    """Raise a deadlock alert and reroute one of the trucks; if none can be rerouted, an operator has to help."""
    resources: list[Json] = [
        reasons.resource_id(draft.ground.site, waiting.resource)
        for waiting in (draft.records[number].waiting for number in members)
        if waiting is not None and waiting.resource is not None
    ]
    names = draft.names(members)
    draft.alert(reasons.DEADLOCK_SUSPECTED, "ERROR", since_ms, robotIds=names, resources=resources)
    # The lowest in rank takes the detour.
    if not any(_takes_detour(draft, record) for record in reversed(draft.order) if record.number in members):
        draft.alert(reasons.DEADLOCK_CONFIRMED, "ERROR", since_ms, robotIds=names, resources=resources)


def _takes_detour(draft: Draft, record: Record) -> bool:
    """Whether a truck of a deadlock took another route."""
    if record.stop_code is not None or not may_replan(draft.now_ms, record.rerouted_ms, blocker_changed=False):
        return False
    return take_detour(draft, record, draft.ways.detour(record))


def emit_events(draft: Draft) -> None:
    """Compute hold point, target and command of every truck. One that cannot stop before its stop line stops at
    once."""
    for record in draft.records:
        draft.aims.append(draft.ports.rtp.compute(record, draft.now_ms, draft.params))
        if not can_stop(record, draft.params):
            record.stop_code = Stop.INVARIANT
            if record.number not in draft.too_fast:
                draft.alert(reasons.SAFETY_STOP, "ERROR", draft.now_ms, record.robot_id, requirement="FLT-TEST-47")
            record.seq -= 1
            draft.aims[-1] = draft.ports.rtp.compute(record, draft.now_ms, draft.params)


def assert_invariants(draft: Draft) -> None:
    """Check I-1 to I-8 and I-12. Raises `InvariantBroken`; the tick then has no effect."""
    touched = sorted(draft.touched)
    replay = bool(touched) and draft.params.refuge and draft.tick % _replay_every(len(draft.records)) == 0
    for name, text in broken(draft.records, draft.locks, draft.aims, draft.params, touched, replay):
        raise InvariantBroken(f"{name}: {text}", invariant=name)


def _replay_every(trucks: int) -> int:
    """Every how many ticks the whole witness is replayed: in each tick of a small fleet, less often in a large one, so
    that the average cost stays that of a small one. In between each grant keeps it."""
    return 1 + trucks // 10


PHASES = (
    apply_operator_actions,
    observe,
    freeze_lost_trucks,
    release_passed_resources,
    lock_nodes,
    rank,
    reroute,
    admit_routes,
    grant,
    escalate,
    reserve_ahead,
    update_health,
    emit_events,
    assert_invariants,
)
