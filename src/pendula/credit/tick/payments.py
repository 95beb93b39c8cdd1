"""Try the payments of a tick in the order of the plan, count them, emit their events; the rate limit delays some."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from msgspec import UNSET, UnsetType

from pendula.credit.events import AuditDrift, DriftRow, Failure, TxFailed, TxUpdated
from pendula.credit.ledger.payment import Drifted, Refused
from pendula.credit.ledger.routing import Route
from pendula.credit.model import Code, idempotency_key, tx_name
from pendula.credit.money import CENT, text
from pendula.credit.planning.planner import Planned
from pendula.credit.settings import OnLimit
from pendula.credit.state.clearing_policy import Why
from pendula.credit.state.counters import too_many
from pendula.credit.state.network import EquivalentLedger
from pendula.credit.state.run_state import RunState
from pendula.credit.tick import event_parts
from pendula.credit.tick.clearing import call
from pendula.credit.tick.draft import Attempt, Draft, DueClearing, Tally, resolve_payment
from pendula.credit.tick.questions import InvalidRoutes, Order, pay_outside
from pendula.kernel.canonical import Json

WARN_EVERY = 5  # consecutive ticks in which every payment was refused


class UnfollowedPayment(NamedTuple):
    """A payment that the service made and the ledger of the run cannot mirror."""

    drifted: Drifted
    why: InvalidRoutes


PaymentResult = tuple[Route, ...] | Refused | Drifted | UnfollowedPayment


def pay(run: RunState, draft: Draft) -> None:
    """Try scheduled actions, then waiting payments, then the plan. With a budget of 0 waiting payments keep waiting."""
    late = [resolve_payment(run, waiting) for waiting in run.queue] if draft.budget else []
    allowed = _allowed(run)
    ready: list[Attempt | DueClearing] = [*draft.first, *late, *draft.plan]
    if allowed is not None:
        ready = _hold_back(run, draft, ready, allowed)
    elif draft.budget:
        run.queue = ()
    for window in _windows(ready, _at_once(run)):
        match window:
            case DueClearing(code):
                _clear_dated(run, draft, code)
            case _:
                _pay_together(run, draft, window)
        if draft.over:
            return
    _note_all_rejected(run, draft)


def _allowed(run: RunState) -> int | None:
    """The number of payments that the rate limit allows in a tick of virtual time."""
    rate = run.settings.max_payments_per_sec
    return None if rate <= 0 else max(1, rate * run.settings.tick_ms_base // 1000)


def _at_once(run: RunState) -> int:
    """The number of payments sent together; the embedded engine makes one at a time."""
    return run.settings.max_in_flight if run.config.engine == "external" else 1


def _hold_back(
    run: RunState, draft: Draft, ready: Sequence[Attempt | DueClearing], allowed: int
) -> list[Attempt | DueClearing]:
    """Actions to try now. The rest is queued, oldest first; the newest beyond `queue_max` are dropped."""
    now: list[Attempt | DueClearing] = []
    delayed: list[Attempt] = []
    for action in ready:
        if isinstance(action, DueClearing) or allowed > 0:
            allowed -= isinstance(action, Attempt)
            now.append(action)
        else:
            delayed.append(action)
    delayed.sort(key=lambda attempt: (attempt.tick, attempt.seq))
    older = () if draft.budget else run.queue
    settings = run.settings
    capacity = max(0, settings.queue_max - len(older)) if settings.on_limit is OnLimit.WAIT else 0
    run.queue = (*older, *(one.waiting() for one in delayed[:capacity]))
    draft.dropped = len(delayed) - min(len(delayed), capacity)
    run.counters.dropped_total += draft.dropped
    return now


def _windows(ready: Sequence[Attempt | DueClearing], most: int) -> "Iterator[DueClearing | list[Attempt]]":
    """Groups of up to `most` payments in order; a scheduled clearing is a group of its own."""
    window: list[Attempt] = []
    for action in ready:
        if isinstance(action, DueClearing):
            if window:
                yield window
            window = []
            yield action
        else:
            window.append(action)
            if len(window) == most:
                yield window
                window = []
    if window:
        yield window


def _clear_dated(run: RunState, draft: Draft, code: str) -> None:
    settings = run.settings
    if code not in run.network.ledgers or not settings.clearing_enabled:
        return
    ledger = run.network.ledgers[code]
    result = call(run, ledger, Why.SCENARIO, settings.clearing_max_depth, settings.clearing_time_budget_ms)
    draft.events.extend(result.events)
    draft.tallies[code].cleared += result.amount
    draft.tallies[code].cost_ms += result.cost_ms


def _pay_together(run: RunState, draft: Draft, window: Sequence[Attempt]) -> None:
    """Finish all payments of a group before a guardrail ends the run: the service has made them."""
    results = _outcomes(run, draft, [attempt for attempt in window if attempt.planned is not None])
    end = None
    for attempt in window:
        code = _finish(run, draft, attempt, next(results)) if attempt.planned is not None else _fail(draft, attempt)
        run.counters.count(code)
        draft.tried += 1
        draft.timeouts += code is Code.PAYMENT_TIMEOUT
        if code is not None:
            end = end or too_many(run.counters, draft.timeouts, run.settings)
    if end is not None:
        draft.events.append(run.fail(end))
        draft.over = True


def _fail(draft: Draft, attempt: Attempt) -> Code:
    assert attempt.code is not None
    if attempt.equivalent in draft.tallies:
        draft.tallies[attempt.equivalent].rejected += 1
    draft.rejected += 1
    draft.events.append(_failed(draft, attempt, Failure(attempt.code.value)))
    return attempt.code


def _failed(draft: Draft, attempt: Attempt, failure: Failure) -> TxFailed:
    ends = attempt.equivalent, attempt.sender, attempt.receiver, attempt.amount
    return TxFailed(draft.tick, attempt.seq, *ends, failure, attempt.planned_tick(draft.tick))


def _finish(run: RunState, draft: Draft, attempt: Attempt, result: PaymentResult) -> Code | None:
    planned = attempt.planned
    assert planned is not None
    ledger, tally, amount = (
        run.network.ledgers[attempt.equivalent],
        draft.tallies[attempt.equivalent],
        planned.cents * CENT,
    )
    if isinstance(result, UnfollowedPayment):
        draft.events.append(_delta_check(draft.tick, ledger, result.drifted))
        result = Refused(Code.INTERNAL_ERROR, result.why.details)
    if isinstance(result, Drifted):
        draft.events.append(_delta_check(draft.tick, ledger, result))
        result = Refused(Code.INTERNAL_ERROR, {"kind": "position_check"})
    if isinstance(result, Refused):
        _count_refusal(draft, tally, result)
        ledger.hops.failed(_blamed(ledger, result, planned), result.code, result.closed)
        draft.events.append(_failed(draft, attempt, Failure(result.code.value, result.details)))
        return result.code
    ledger.expect(planned.sender, planned.receiver, amount)
    ledger.hops.made(event_parts.hops_of(result))
    tally.committed += 1
    draft.committed += 1
    tally.volume += amount
    tally.served += min(planned.wanted, planned.cents) * CENT
    tally.routes += len(result)
    tally.hops += sum(len(route.hops) for route in result)
    tx_id = tx_name(
        run.seed, attempt.tick, attempt.seq, (attempt.sender, attempt.receiver, attempt.equivalent, attempt.amount)
    )
    ends = planned.sender, planned.receiver
    waited = attempt.planned_tick(draft.tick)
    draft.events.append(
        payment_event(run, ledger, result, seq=attempt.seq, tx_id=tx_id, ends=ends, amount=amount, planned_tick=waited)
    )
    return None


def _outcomes(run: RunState, draft: Draft, window: Sequence[Attempt]) -> Iterator[PaymentResult]:
    """Results of payments that are tried together, in order; each one is recorded before the next moves the ledger."""
    if not window:
        return
    if run.config.engine == "external":
        yield from _paid_outside(run, draft, window)
        return
    draft.in_flight = max(draft.in_flight, 1)
    for attempt in window:
        assert attempt.planned is not None
        processor = run.network.ledgers[attempt.equivalent].processor
        yield processor.pay(attempt.planned.sender, attempt.planned.receiver, attempt.planned.cents * CENT)


def _paid_outside(run: RunState, draft: Draft, window: Sequence[Attempt]) -> Iterator[PaymentResult]:
    """Mirror the payments of the service in the order of the plan.

    The service may have decided in another order: if a payment does not fit yet, later ones go first. One that never
    fits shows that the two ledgers have drifted apart.
    """
    orders = [_order(run, attempt) for attempt in window]
    answers = pay_outside(run.outside, orders, run.settings.payment_retries)
    late = sum(isinstance(one, Refused) and one.code is Code.PAYMENT_TIMEOUT for one in answers)
    draft.in_flight = max(draft.in_flight, len(window), draft.timeouts + late)
    ahead: dict[int, PaymentResult] = {}
    for at, answer in enumerate(answers):
        result = ahead[at] if at in ahead else _mirror(run, orders[at], answer)
        later = at
        while isinstance(result, Refused) and not isinstance(answer, Refused) and (later := later + 1) < len(answers):
            if later not in ahead:
                made = _mirror(run, orders[later], answers[later])
                if not isinstance(made, Refused):
                    ahead[later] = made
                    result = _mirror(run, orders[at], answer)
        if isinstance(result, Refused) and result is not answer:
            yield _unfollowed(run, orders[at], _too_narrow(orders[at], answer, result))
        else:
            yield result


def _mirror(run: RunState, order: Order, answer: tuple[Route, ...] | Refused | InvalidRoutes) -> PaymentResult:
    if isinstance(answer, Refused):
        return answer
    if isinstance(answer, InvalidRoutes):
        return _unfollowed(run, order, answer)
    index, ledger = run.network.people.index, run.network.ledgers[order.book.code]
    return ledger.processor.carry_out(answer, index[order.sender], index[order.receiver], order.amount)


def _unfollowed(run: RunState, order: Order, why: InvalidRoutes) -> UnfollowedPayment:
    return UnfollowedPayment(Drifted(run.network.people.index[order.sender], -order.amount, 0), why)


def _too_narrow(order: Order, answer: tuple[Route, ...] | Refused | InvalidRoutes, refused: Refused) -> InvalidRoutes:
    """The line whose capacity in the run is below what the routes of the service take."""
    (h,), book = refused.hops, order.book
    routes = answer if not isinstance(answer, Refused | InvalidRoutes) else ()
    taken = text(sum(route.amount * route.hops.count(h) for route in routes))
    debtor, creditor = book.people.names[book.debtor[h]], book.people.names[book.creditor[h]]
    left = text(max(0, book.capacity[h]))
    line: Json = {"from": debtor, "to": creditor}
    return InvalidRoutes({"kind": "line_too_narrow", "line": line, "expected": taken, "found": left})


def _order(run: RunState, attempt: Attempt) -> Order:
    assert attempt.planned is not None
    amount, book = attempt.planned.cents * CENT, attempt.planned.book
    at_ms = attempt.tick * run.settings.tick_ms_base
    key = idempotency_key(
        run.config.run_id,
        at_ms,
        attempt.sender,
        attempt.receiver,
        equivalent=attempt.equivalent,
        amount=amount,
        seq=attempt.seq,
    )
    return Order(key, attempt.sender, attempt.receiver, amount, book)


def _blamed(ledger: EquivalentLedger, refused: Refused, planned: Planned) -> tuple[int, ...]:
    """The hops at which a payment failed; the shortest chain if only the service could know."""
    if refused.hops or refused.code is Code.ROUTING_NO_ROUTE:
        return refused.hops
    return ledger.processor.chain(planned.sender, planned.receiver) or ()


def _count_refusal(draft: Draft, tally: Tally, refused: Refused) -> None:
    code, never = refused.code, "no_route_at_all" in refused.details
    if code in (Code.PAYMENT_TIMEOUT, Code.INTERNAL_ERROR):
        tally.errors += 1
        draft.errors += 1
        tally.timeouts += code is Code.PAYMENT_TIMEOUT
    else:
        tally.rejected += 1
        draft.rejected += 1
        tally.no_route_at_all += never
        tally.no_capacity += code is Code.ROUTING_NO_CAPACITY and not never


def _delta_check(tick: int, ledger: EquivalentLedger, drifted: Drifted) -> AuditDrift:
    name, off = ledger.book.people.names[drifted.participant], drifted.actual - drifted.expected
    row = DriftRow(name, text(drifted.expected), text(drifted.actual), text(off))
    return AuditDrift(tick, ledger.book.code, "critical", text(abs(off)), (row,), "delta_check")


def payment_event(
    run: RunState,
    ledger: EquivalentLedger,
    routes: tuple[Route, ...],
    *,
    seq: int | None,
    tx_id: str,
    ends: tuple[int, int],
    amount: int,
    planned_tick: int | UnsetType = UNSET,
) -> TxUpdated:
    """The event of a committed payment."""
    book, names = ledger.book, run.network.people.names
    hops = event_parts.hops_of(routes)
    event = (run.tick, seq, tx_id, book.code, names[ends[0]], names[ends[1]], text(amount))
    views = event_parts.route_views(book, routes), event_parts.edges(book, hops)
    if not run.config.patches:
        return TxUpdated(*event, *views, planned_tick=planned_tick)
    patches = event_parts.node_patches(book, ends), event_parts.edge_patches(book, hops)
    return TxUpdated(*event, *views, *patches, planned_tick=planned_tick)


def _note_all_rejected(run: RunState, draft: Draft) -> None:
    run.all_rejected = run.all_rejected + 1 if draft.tried and not draft.committed + draft.errors else 0
    if run.all_rejected and run.all_rejected % WARN_EVERY == 0:
        draft.note({"kind": "all_rejected", "ticks": run.all_rejected})
