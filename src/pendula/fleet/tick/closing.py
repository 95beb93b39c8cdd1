"""Places that operators close and open: trucks that this cuts off, and their detours (FLT-PLAN-8).

A closing that would leave a truck without any route to rest is refused unless it is forced. Then the truck waits before
the closed place, where it blocks as few others as possible, until that is opened. The witness is for the present map; a
schedule for the whole map is kept beside it.
"""

from pendula.fleet.driving.adoption import Unfit, adoption
from pendula.fleet.driving.records import Record
from pendula.fleet.health.closures import check_closable, closed_by_operators, closed_to_routes, shut_of
from pendula.fleet.health.orders import AppliedOrder, Order, OrderKind
from pendula.fleet.tick.draft import Draft
from pendula.fleet.traffic.cut_off import cut_off, goals
from pendula.fleet.traffic.grants import close, reopen
from pendula.fleet.traffic.shut import Closing, Shut, first_shut


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
