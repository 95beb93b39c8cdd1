"""The payments of a tick, in the order of the plan: tried, counted, told."""

from pendula.credit.events import AuditDrift, DriftRow, Failure, TxFailed, TxUpdated
from pendula.credit.ids import idempotency_key, tx_name
from pendula.credit.ledger.payment import Drifted, Refused
from pendula.credit.ledger.routing import Route
from pendula.credit.model import Code
from pendula.credit.money import CENT, cents_text, text
from pendula.credit.planning.planner import Planned
from pendula.credit.state.counters import too_many
from pendula.credit.state.network import EquivalentDesk
from pendula.credit.state.run_state import RunState
from pendula.credit.tick import event_parts
from pendula.credit.tick.draft import Draft, Failed
from pendula.credit.tick.metrics import Tally
from pendula.credit.tick.questions import Astray, Order, pay_outside

WARN_EVERY = 5  # ticks in a row in which everything was refused


def pay(run: RunState, draft: Draft) -> None:
    allowed = _allowed(run)
    timeouts = 0
    for number, one in enumerate(draft.plan):
        if allowed is not None and number >= allowed:
            draft.dropped = len(draft.plan) - number
            run.counters.dropped_total += draft.dropped
            break
        code = _fail(draft, one) if isinstance(one, Failed) else _attempt(run, draft, one)
        run.counters.count(code)
        timeouts += code is Code.PAYMENT_TIMEOUT
        end = too_many(run.counters, timeouts, run.settings) if code is not None else None
        if end is not None:
            draft.events.append(run.fail(end))
            draft.over = True
            return
    _note_all_rejected(run, draft)


def _allowed(run: RunState) -> int | None:
    """How many payments a tick of virtual time lets through."""
    rate = run.settings.max_payments_per_sec
    return None if rate <= 0 else max(1, rate * run.settings.tick_ms_base // 1000)


def _fail(draft: Draft, failed: Failed) -> Code:
    seq, wish, code = failed
    if wish.equivalent in draft.tallies:
        draft.tallies[wish.equivalent].rejected += 1
    failure = Failure(code.value, "A behaviour wants what cannot be")
    ends = wish.equivalent, wish.sender, wish.receiver, wish.amount
    draft.events.append(TxFailed(draft.tick, seq, *ends, failure))
    return code


def _attempt(run: RunState, draft: Draft, one: Planned) -> Code | None:
    desk, names = run.network.desks[one.book.code], run.network.people.names
    amount, tally = one.cents * CENT, draft.tallies[one.book.code]
    sender, receiver = names[one.sender], names[one.receiver]
    found = _paid(run, draft, desk, one, amount)
    if isinstance(found, Drifted):
        draft.events.append(_delta_check(draft.tick, desk, found))
        found = Refused(Code.INTERNAL_ERROR, "The payment moved other positions than it should; it was taken back", {})
    if isinstance(found, Refused):
        _count_refusal(tally, found)
        desk.hops.failed(_blamed(desk, found, one), found.code, found.closed)
        failure = Failure(found.code.value, found.message, found.details)
        wanted = one.book.code, sender, receiver, cents_text(one.cents)
        draft.events.append(TxFailed(draft.tick, one.seq, *wanted, failure))
        return found.code
    desk.expect(one.sender, one.receiver, amount)
    desk.hops.made(event_parts.hops_of(found))
    tally.committed += 1
    tally.volume += amount
    tally.served += min(one.wanted, one.cents) * CENT
    tally.routes += len(found)
    tally.hops += sum(len(route.hops) for route in found)
    tx_id = tx_name(run.seed, draft.tick, one.seq, (sender, receiver, one.book.code, cents_text(one.cents)))
    ends = one.sender, one.receiver
    draft.events.append(updated(run, desk, found, seq=one.seq, tx_id=tx_id, ends=ends, amount=amount))
    return None


def _paid(
    run: RunState, draft: Draft, desk: EquivalentDesk, one: Planned, amount: int
) -> tuple[Route, ...] | Refused | Drifted:
    if run.config.engine == "embedded":
        return desk.cashier.pay(one.sender, one.receiver, amount)
    names = run.network.people.names
    sender, receiver = names[one.sender], names[one.receiver]
    key = idempotency_key(
        run.config.run_id,
        draft.at_ms,
        sender,
        receiver,
        equivalent=desk.book.code,
        amount=amount,
        seq=one.seq,
    )
    found = pay_outside(run.outside, desk.book, Order(key, sender, receiver, amount), run.settings.payment_retries)
    if isinstance(found, Refused):
        return found
    # What the service says it did is done here too; if it cannot be, the two ledgers have drifted apart.
    mirrored = found if isinstance(found, Astray) else desk.cashier.carry_out(found, one.sender, one.receiver, amount)
    if isinstance(mirrored, Refused | Astray):
        return Drifted(one.sender, -amount, 0)
    return mirrored


def _blamed(desk: EquivalentDesk, refused: Refused, one: Planned) -> tuple[int, ...]:
    """The hops at which a payment failed; those of the shortest chain where only another system could know."""
    if refused.hops or refused.code is Code.ROUTING_NO_ROUTE:
        return refused.hops
    return desk.cashier.chain(one.sender, one.receiver) or ()


def _count_refusal(tally: Tally, refused: Refused) -> None:
    code, never = refused.code, "no_route_at_all" in refused.details
    if code in (Code.PAYMENT_TIMEOUT, Code.INTERNAL_ERROR):
        tally.errors += 1
        tally.timeouts += code is Code.PAYMENT_TIMEOUT
    else:
        tally.rejected += 1
        tally.no_route_at_all += never
        tally.no_capacity += code is Code.ROUTING_NO_CAPACITY and not never


def _delta_check(tick: int, desk: EquivalentDesk, drifted: Drifted) -> AuditDrift:
    name, off = desk.book.people.names[drifted.participant], drifted.actual - drifted.expected
    row = DriftRow(name, text(drifted.expected), text(drifted.actual), text(off))
    return AuditDrift(tick, desk.book.code, "critical", text(abs(off)), (row,), "delta_check")


def updated(
    run: RunState,
    desk: EquivalentDesk,
    routes: tuple[Route, ...],
    *,
    seq: int | None,
    tx_id: str,
    ends: tuple[int, int],
    amount: int,
) -> TxUpdated:
    """The event of a payment that was made."""
    book, names = desk.book, run.network.people.names
    hops = event_parts.hops_of(routes)
    event = (run.tick, seq, tx_id, book.code, names[ends[0]], names[ends[1]], text(amount))
    views = event_parts.route_views(book, routes), event_parts.edges(book, hops)
    if not run.config.patches:
        return TxUpdated(*event, *views)
    return TxUpdated(*event, *views, event_parts.node_patches(book, ends), event_parts.edge_patches(book, hops))


def _note_all_rejected(run: RunState, draft: Draft) -> None:
    tallies = draft.tallies.values()
    done = sum(tally.committed + tally.errors for tally in tallies)
    run.all_rejected = run.all_rejected + 1 if draft.plan and not done else 0
    if run.all_rejected and run.all_rejected % WARN_EVERY == 0:
        draft.note({"kind": "all_rejected", "ticks": run.all_rejected})
