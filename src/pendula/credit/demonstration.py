"""The demonstration mode: events without a ledger, for user interfaces.

The first clearing is announced after 25 seconds of virtual time and done two seconds later; the next one follows 45
seconds after that. The higher the intensity, the more frequent the payments.
"""

from fractions import Fraction

from pendula.credit.events import ClearingDone, ClearingPlan, Edge, Event, PlanStep, RouteView, Ticked, TxUpdated
from pendula.credit.model import LineStatus, Trustline, tx_name
from pendula.credit.money import CENT, text
from pendula.credit.state.run_state import RunState
from pendula.kernel.rng import Mersenne, tick_generator

CLEARING_MS = 2_000
PAUSE_MS = 45_000
PAYMENT_MS = 2_000
JITTER_MS = 600


def tick(run: RunState) -> list[Event]:
    now, plan = run.sim_time_ms, run.demonstration
    draw = tick_generator(run.seed, run.tick)
    lines = [line for line in run.scenario.lines if line.status is LineStatus.ACTIVE and line.limit >= CENT]
    events: list[Event] = []
    if plan.done_at is not None and now >= plan.done_at:
        events.append(_done(run, _cycle(run, lines)))
        plan.done_at, plan.next_clearing, plan.shown = None, now + PAUSE_MS, plan.shown + 1
    elif plan.done_at is None and now >= plan.next_clearing and lines:
        steps = (PlanStep(0, _cycle(run, lines)),)
        events.append(ClearingPlan(run.tick, lines[0].equivalent, _name(run), steps))
        plan.done_at = now + CLEARING_MS
    shown = 0
    while run.intensity and lines and plan.next_payment <= now:
        if shown == run.settings.actions_per_tick_max:
            # A tick longer than all these pauses: payments that do not fit are dropped.
            plan.next_payment = now + _pause(run.intensity)
            break
        events.append(_payment(run, draw, lines))
        plan.next_payment += _pause(run.intensity) + int(draw.uniform(0, JITTER_MS))
        shown += 1
    # A tick that paid nothing.
    events.append(Ticked(run.tick, run.sim_time_ms, digests=run.digests()))
    run.tick += 1
    return events


def _pause(intensity: int) -> int:
    return int(PAYMENT_MS * max(Fraction(1, 4), 1 - Fraction(3 * intensity, 400)))


def _payment(run: RunState, draw: Mersenne, lines: list[Trustline]) -> TxUpdated:
    line = draw.choice(lines)
    cap = run.settings.amount_cap
    most = line.limit if cap is None else min(line.limit, max(cap, CENT))
    amount = text(draw.randint(1, most // CENT) * CENT)
    ends = line.debtor, line.creditor
    number = f"show{run.demonstration.next_payment}"
    tx_id = tx_name(run.seed, run.tick, number, (*ends, line.equivalent, amount))
    return TxUpdated(
        tick_index=run.tick,
        seq=None,
        tx_id=tx_id,
        equivalent=line.equivalent,
        sender=line.debtor,
        receiver=line.creditor,
        amount=amount,
        routes=(RouteView(ends, amount),),
        edges=(Edge(*ends),),
    )


def _cycle(run: RunState, lines: list[Trustline]) -> tuple[Edge, ...]:
    """Some lines to highlight; a demonstration has no debts that could form a circle."""
    start = run.demonstration.shown % len(lines)
    picked = (lines + lines)[start : start + 3]
    return tuple(Edge(line.creditor, line.debtor) for line in picked)


def _name(run: RunState) -> str:
    return f"plan_demonstration_{run.demonstration.shown}"


def _done(run: RunState, edges: tuple[Edge, ...]) -> ClearingDone:
    code = run.scenario.lines[0].equivalent
    return ClearingDone(
        tick_index=run.tick,
        equivalent=code,
        plan_id=_name(run),
        reason="DEMONSTRATION",
        cleared_cycles=1,
        cleared_amount="0.00",
        debt_reduction="0.00",
        cycle_edges=edges,
        stopped="done",
    )
