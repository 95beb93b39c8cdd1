"""The steps of a tick, in the order in which they happen. Each works on a draft: nothing is true before all are."""

from pendula.fleet.contracts.traffic import Phase
from pendula.fleet.driving.adoption import Adoption, Unfit, adoption, goes_on, is_done
from pendula.fleet.driving.params import asked_um
from pendula.fleet.driving.records import Record, Retraction, Waiting
from pendula.fleet.driving.screening import screened_routes
from pendula.fleet.health.judging import judge
from pendula.fleet.health.orders import obeyed
from pendula.fleet.health.protection import protect
from pendula.fleet.health.recovery import Care, care_for
from pendula.fleet.routing.replanning import may_replan
from pendula.fleet.routing.route_plan import RoutePlan
from pendula.fleet.targets.sequence import acknowledged
from pendula.fleet.tick import alarms, directions
from pendula.fleet.tick.aiming import aim
from pendula.fleet.tick.draft import Draft, RefusedRoute
from pendula.fleet.tick.invariants import InvariantBroken, broken, can_stop
from pendula.fleet.tick.observing import DroppedReport, release_bound_um, screened, take_in
from pendula.fleet.tick.queueing import ripe, waited_for
from pendula.fleet.tick.ranks import bars, class_of, order_of, rank_of, starved
from pendula.fleet.traffic.grants import (
    Accepted,
    Blocked,
    Effort,
    Rule,
    Wait,
    accept_route,
    extend,
    release,
)
from pendula.fleet.views import reasons
from pendula.kernel.canonical import Json

_WORKING = frozenset({Phase.LOADING, Phase.UNLOADING})
# A route that was refused counts as waiting so long after its last try.
_STILL_ASKED_MS = 2_000
# A route that is barred for the sake of a truck that starves is looked at again after this.
_BARRED_MS = 1_000


def observe(draft: Draft) -> None:
    """Reports and routes come in; the order they came in does not matter."""
    readable, draft.dropped = screened(draft.reports, draft.numbers, draft.now_ms)
    for report in readable:
        record = draft.records[draft.numbers[report.robot_id]]
        if record.pose is None or report.at_ms > record.report_ms:
            take_in(record, report, draft.params)
        elif report.at_ms < record.report_ms:
            draft.dropped.append(DroppedReport(report.robot_id, "REPORT_OUTDATED"))
    for bad in draft.dropped:
        if bad.robot_id in draft.numbers:
            draft.records[draft.numbers[bad.robot_id]].bad_reports += 1
    for stopped, stranger in protect(draft.records, draft.ground, draft.params):
        draft.foreign(stopped, stranger)
    for record in draft.records:
        judge(record, draft.now_ms, draft.params)
        record.priority = class_of(record)
    _take_routes(draft)


def _take_routes(draft: Draft) -> None:
    """New routes wait for their judgement."""
    known = {record.robot_id: record for record in draft.records}
    taken, refused = screened_routes(draft.routes, known, draft.closed)
    for plan, code in refused:
        _refuse(draft, plan, code)
    for plan in taken:
        record = known[plan.robot_id]
        record.pending = plan
        record.retry_ms = draft.now_ms
        if record.pending_since_ms is None:
            record.pending_since_ms = draft.now_ms


def obey(draft: Draft) -> None:
    """What people ordered, before anything else."""
    draft.applied = obeyed(draft.orders, draft.records, draft.locks, draft.params, draft.now_ms)


def freeze_the_lost(draft: Draft) -> None:
    """A failed truck keeps its cells and needs nothing; one that is back takes up its way where it stands."""
    care = Care(
        locks=draft.locks,
        ground=draft.ground,
        params=draft.params,
        now_ms=draft.now_ms,
        effort=draft.effort,
        anchor=draft.anchor,
        plan=draft.afresh,
        failed=draft.failed,
        accepted=draft.accepted.append,
    )
    care_for(draft.records, care)


def release_the_passed(draft: Draft) -> None:
    """What lies behind the release bound, and what was given back and acknowledged."""
    for record in draft.records:
        if record.doubt is not None:
            continue
        bound = min(release_bound_um(record, draft.now_ms), record.passed_um)
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


def rank(draft: Draft) -> None:
    """The one total order of this tick."""
    for record in draft.records:
        record.rank = rank_of(record, draft.now_ms, draft.params)
    draft.starving = starved(draft.records, draft.now_ms, draft.params)
    directions.drain(draft.directions, draft.records, draft.now_ms, draft.params)
    against = directions.against(draft.directions, draft.records, draft.two_way)
    draft.order = order_of(draft.records, draft.starving, against, draft.now_ms)


def admit_routes(draft: Draft) -> None:
    """New and changed routes in rank order: as many checks as a tick may make; the others stay for the next one."""
    left = 0 if draft.missing is not None else draft.params.max_admissions_per_tick
    for record in draft.order:
        plan = record.pending
        if plan is None:
            _forget(record, draft.now_ms)
            continue
        if record.retry_ms > draft.now_ms or record.stop_code is not None:
            continue
        if left <= 0 and not goes_on(record, plan):
            continue
        fit = adoption(record, plan, draft.ground, draft.params, draft.now_ms)
        if isinstance(fit, Unfit):
            _refuse(draft, plan, fit.code)
            record.pending = None
        elif fit.continues:
            # What was admitted once needs no check.
            _adopt(draft, record, fit, record.base + record.granted)
            continue
        elif _is_held_back(draft, record, plan, fit):
            record.retry_ms = draft.now_ms + _BARRED_MS
        else:
            _try(draft, record, plan, fit)
        left -= 1


def _is_held_back(draft: Draft, record: Record, plan: RoutePlan, fit: Adoption) -> bool:
    """While a truck starves nobody else sets out for a new goal in its way; the way to rest is open to all."""
    first = draft.starving
    if first is None or record is first or plan.goal == record.rest:
        return False
    return bars(first, draft.locks, fit.track.demand, draft.now_ms, draft.params)


def _try(draft: Draft, record: Record, plan: RoutePlan, fit: Adoption) -> None:
    answer = accept_route(draft.locks, record.number, fit.track.demand, 0, rule=draft.rule, effort=draft.effort)
    if isinstance(answer, Accepted):
        _adopt(draft, record, fit, 0)
        return
    if not answer.cycle:
        # Postponed: this tick has searched enough.
        return
    if answer.cycle != record.refused_cycle or not record.refused_cycle:
        _refuse(draft, plan, reasons.WAIT_SAFE_STATE, answer.cycle)
    record.refused_cycle = answer.cycle
    record.retry_ms = draft.now_ms + draft.params.cooldown_ms


def _refuse(draft: Draft, plan: RoutePlan, code: str, cycle: tuple[int, ...] = ()) -> None:
    names = tuple(draft.records[number].robot_id for number in cycle)
    draft.refused.append(RefusedRoute(plan.robot_id, plan.route_id, plan.revision, code, names))
    details: dict[str, Json] = {"routeId": plan.route_id, "code": code, "cycle": [*names]}
    draft.alert(alarms.ROUTE_REFUSED, "INFO", draft.now_ms, plan.robot_id, **details)


def _forget(record: Record, now_ms: int) -> None:
    if record.pending_since_ms is not None and now_ms - record.retry_ms > _STILL_ASKED_MS:
        record.pending_since_ms = None


def _adopt(draft: Draft, record: Record, fit: Adoption, base: int) -> None:
    """The new route is in force: everything measured along the old one is measured along it."""
    shift = fit.shift_um
    done = None if record.track is None or not record.acted else record.track.acts[record.acted - 1]
    record.track, record.base, record.granted = fit.track, base, 0
    record.held = dict(fit.carried)
    record.changed()
    draft.touched.add(record.number)
    if fit.given_back:
        record.retraction = Retraction(record.seq + 1, fit.track.stands[0], fit.given_back)
    record.at_um -= shift
    record.bound_um -= shift
    record.hold_um = fit.track.stands[0]
    record.farthest_um = max(record.farthest_um - shift, record.hold_um)
    record.target_um = min(record.target_um - shift, record.hold_um)
    record.acted = 0 if done is None else sum(is_done(act, done, shift) for act in fit.track.acts)
    if record.progress is not None:
        record.progress = record.progress.shifted(shift)
    record.pending = record.pending_since_ms = None
    record.refused_cycle = ()
    record.waiting = record.waiting_since_ms = record.request_ms = None
    draft.accepted.append(fit.track.plan)


def grant(draft: Draft) -> None:
    """Units in rank order, for each truck in the order of its way, until one is refused or it has what it can use."""
    draft.queue.before = waited_for(draft.records)
    if draft.missing is not None:
        _wait_for_all(draft, draft.missing)
        return
    for record in draft.order:
        track = record.track
        if track is None or record.stop_code is not None or record.phase in _WORKING or _is_undecided(draft, record):
            continue
        reach = min(record.at_um + asked_um(record.profile, draft.params), track.goal_um)
        blocked: Waiting | None = None
        while blocked is None and record.grant_um < reach and record.retraction is None:
            blocked = _unit(draft, record)
        _note(draft, record, blocked)


def _wait_for_all(draft: Draft, missing: Record) -> None:
    """Nobody goes on before everybody was heard, or somebody said that a truck is not there (FLT-FAIL-14)."""
    for record in draft.records:
        if record is not missing and record.track is not None and record.stop_code is None:
            _note(draft, record, Waiting(reasons.WAIT_SAFE_STATE, None, missing.number, None))


def _is_undecided(draft: Draft, record: Record) -> bool:
    """Whether a new route waits for its first judgement, because this tick had made all its checks: the old one is not
    granted any further, or the new one would no longer begin where the truck is."""
    return record.pending is not None and not record.refused_cycle and record.retry_ms <= draft.now_ms


def _unit(draft: Draft, record: Record) -> Waiting | None:
    """One unit more, or why not."""
    locks, track = draft.locks, record.track
    assert track is not None
    if _still_blocked(draft, record):
        return record.waiting
    one = locks.truck(record.number)
    unit = one.demand.needs(one.position, min(one.position + 1, one.demand.last))
    bar = draft.queue.barred_by(record.number, unit)
    if bar is not None:
        draft.queue.wait(record.number, (bar[0],))
        return Waiting(reasons.WAIT_QUEUE_ORDER, bar[1], bar[0], None)
    kept_out = directions.kept_out_by(draft.directions, record, draft.two_way, draft.queue)
    if kept_out is not None:
        draft.queue.wait(record.number, (kept_out[0],))
        return Waiting(reasons.WAIT_QUEUE_ORDER, int(unit[0]), kept_out[0], None)
    due = _is_due(draft, record)
    # Not due: what the stored witness allows is granted all the same, but nothing is searched.
    effort = draft.effort if due else Effort(left=0)
    answer = extend(locks, record.number, rule=draft.rule, effort=effort, retry=due)
    if isinstance(answer, Blocked):
        return _blocked(draft, record, answer)
    before = record.grant_um
    record.granted = answer.position - record.base
    for use in track.taken(before, record.grant_um):
        record.held[use.resource] = max(record.held.get(use.resource, use.free_um), use.free_um)
    record.changed()
    draft.touched.add(record.number)
    record.last_grant_ms = draft.now_ms
    record.waiting_since_ms = None
    return None


def _still_blocked(draft: Draft, record: Record) -> bool:
    """Whether what stood against the next unit a tick ago still does: then nothing has to be asked again."""
    waiting = record.waiting
    if waiting is None or waiting.by is None or waiting.theirs is None or record.ripe is None:
        return False
    if waiting.theirs not in draft.locks.truck(waiting.by).held:
        return False
    draft.queue.wait(record.number, (waiting.by,))
    if draft.records[waiting.by].stop_code is None:
        _ask(draft, record)
    return True


def _ask(draft: Draft, record: Record) -> None:
    """Bars others from what a truck needs next: after a long wait from all of it."""
    since = record.waiting_since_ms
    if since is not None and draft.now_ms - since > draft.params.dir_switch_max_wait_ms:
        draft.queue.ask(record.number, ripe(record, draft.locks, whole=True))
    elif record.ripe is not None:
        draft.queue.ask(record.number, record.ripe)


def _is_due(draft: Draft, record: Record) -> bool:
    """Whether a search may be made for a unit: once in a cooldown for one that was refused."""
    refused = record.waiting is not None and record.waiting.code == reasons.WAIT_SAFE_STATE
    return not refused or draft.now_ms >= record.again_ms


def _blocked(draft: Draft, record: Record, answer: Blocked) -> Waiting:
    queue, number = draft.queue, record.number
    if answer.code is Wait.HELD:
        found = reasons.in_the_way(draft.ground.site, draft.locks, draft.records, record)
        assert found is not None, "a unit is refused though nobody is in its way"
        queue.wait(number, answer.trucks)
        record.ripe = ripe(record, draft.locks)
        if not any(draft.records[j].stop_code is not None for j in answer.trucks):
            _ask(draft, record)
        return found
    if answer.code is not Wait.SAFE_STATE:
        # Postponed or cut off: it waits as before, and is asked again.
        before = record.waiting
        refused = before is not None and before.code == reasons.WAIT_SAFE_STATE
        return before if before is not None and refused else Waiting(reasons.WAIT_SAFE_STATE, None, None, None)
    others = answer.trucks
    queue.wait(number, others)
    record.again_ms = draft.now_ms + draft.params.cooldown_ms
    return Waiting(reasons.WAIT_SAFE_STATE, answer.resource, others[0] if others else None, None, answer.cycle)


def _note(draft: Draft, record: Record, blocked: Waiting | None) -> None:
    """Since when a truck waits, and since when for what it waits for now."""
    before = record.waiting
    record.waiting = blocked
    if blocked is None or blocked.theirs is None:
        record.ripe = None
    if blocked is None:
        record.waiting_since_ms = record.request_ms = None
        return
    if record.waiting_since_ms is None:
        record.waiting_since_ms = draft.now_ms
        record.request_ms = draft.now_ms
    elif before is None or before.resource != blocked.resource:
        record.request_ms = draft.now_ms


def look_around(draft: Draft) -> None:
    """Directions as they are held now, and whether trucks wait for each other in a circle."""
    hold_ms = draft.params.edge_dir_hold_ms
    directions.look(draft.directions, draft.records, draft.two_way, draft.now_ms, hold_ms)
    cycle = alarms.waiting_cycle(draft.records, draft.queue.waits)
    draft.cycles = alarms.watched(draft.cycles, cycle, draft.now_ms)
    for members, since in draft.cycles.items():
        waited, last = draft.now_ms - since, draft.now_ms - since - draft.params.tick_period_ms
        if waited >= draft.params.deadlock_detect_ms > last:
            _ring(draft, members, since)


def _ring(draft: Draft, members: tuple[int, ...], since_ms: int) -> None:
    """The alarm; one of the trucks is sent another way, or there is none and an operator has to help."""
    resources: list[Json] = [
        reasons.resource_id(draft.ground.site, waiting.resource)
        for waiting in (draft.records[number].waiting for number in members)
        if waiting is not None and waiting.resource is not None
    ]
    names = draft.names(members)
    draft.alert(alarms.DEADLOCK_SUSPECTED, "ERROR", since_ms, robotIds=names, resources=resources)
    # The lowest in rank goes round.
    if not any(_sent_round(draft, one) for one in reversed(draft.order) if one.number in members):
        draft.alert(alarms.DEADLOCK_CONFIRMED, "ERROR", since_ms, robotIds=names, resources=resources)


def _sent_round(draft: Draft, record: Record) -> bool:
    """Whether a truck has another way on, and everybody gets to rest when it takes it."""
    if record.stop_code is not None or not may_replan(draft.now_ms, record.rerouted_ms, blocker_changed=False):
        return False
    plan = draft.detour(record)
    fit = None if plan is None else adoption(record, plan, draft.ground, draft.params, draft.now_ms)
    if fit is None or isinstance(fit, Unfit):
        return False
    # Where the rule is off there is no witness to go by.
    rule = Rule.ACYCLIC if draft.rule is Rule.OFF else draft.rule
    answer = accept_route(draft.locks, record.number, fit.track.demand, 0, rule=rule, effort=draft.effort)
    if not isinstance(answer, Accepted):
        return False
    _adopt(draft, record, fit, 0)
    record.rerouted_ms = draft.now_ms
    return True


def tell(draft: Draft) -> None:
    """Hold point, target and command of every truck. One that cannot stop before its stop line stops at once."""
    for record in draft.records:
        draft.commands.append(aim(record, draft.now_ms, draft.params))
        if not can_stop(record, draft.params):
            record.stop_code = "STOP_INVARIANT"
            draft.alert(alarms.SAFETY_STOP, "ERROR", draft.now_ms, record.robot_id, requirement="FLT-TEST-47")
            record.seq -= 1
            draft.commands[-1] = aim(record, draft.now_ms, draft.params)


def assert_invariants(draft: Draft) -> None:
    """I-1 to I-8 and I-12. Raises `InvariantBroken`, and nothing of the tick becomes true."""
    touched = sorted(draft.touched)
    replay = bool(touched) and draft.params.refuge and draft.tick % _replay_every(len(draft.records)) == 0
    for name, text in broken(draft.records, draft.locks, draft.commands, draft.params, touched, replay):
        raise InvariantBroken(f"{name}: {text}", invariant=name)


def _replay_every(trucks: int) -> int:
    """In which ticks the whole witness is replayed: in each one of a small fleet; of a large one so seldom that it
    costs a tick of a small one on average. In between it was kept by each grant."""
    return 1 + trucks // 10


PHASES = (
    obey,
    observe,
    freeze_the_lost,
    release_the_passed,
    rank,
    admit_routes,
    grant,
    look_around,
    tell,
    assert_invariants,
)
