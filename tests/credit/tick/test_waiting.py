"""Payments above the rate limit: they wait for the next ticks, oldest first, or are dropped."""

import pytest
from msgspec import UNSET

from pendula.credit.commands import Freeze, Restart, SetIntensity
from pendula.credit.engine import Run
from pendula.credit.events import ClearingDecision, Event, Ticked, TxFailed, TxUpdated
from pendula.credit.model import Code
from pendula.credit.runs.headless import Headless
from pendula.kernel.canonical import decode, encode
from tests.credit.conftest import headless, network


def rate_limited_run(**settings: str) -> Headless:
    """A run that plans five payments a tick and attempts three."""
    values = {"max_payments_per_sec": "3", "actions_per_tick_max": "5", **settings}
    return headless(network(("a", "b", 1000), ("b", "a", 1000)), 1, 100, **values)


def events_of(run: Headless, ticks: int) -> list[Event]:
    events: list[Event] = []
    run.step(ticks, events.extend)
    return events


def planned_places(events: list[Event]) -> list[tuple[int, int | None]]:
    """When each payment was planned, and its place in that plan."""
    payments = [event for event in events if isinstance(event, TxUpdated | TxFailed)]
    return [(event.tick_index if event.planned_tick is UNSET else event.planned_tick, event.seq) for event in payments]


@pytest.mark.req("SIM-GUARD-2", "SIM-MET-1")
def test_payments_above_the_rate_wait_and_are_tried_oldest_first() -> None:
    run = rate_limited_run()

    events = events_of(run, 4)

    planned = [(tick, seq) for tick in range(3) for seq in range(5)]
    assert planned_places(events) == planned[:12]
    at = [event.tick_index for event in events if isinstance(event, TxUpdated | TxFailed)]
    assert at == [tick for tick in range(4) for _ in range(3)]
    assert [event.waiting for event in events if isinstance(event, Ticked)] == [2, 4, 6, 8]
    counters = run.run.counters
    assert (counters.attempts_total, counters.dropped_total) == (12, 0)
    assert run.run.status().queue_depth == run.run.queue_depth == 8


@pytest.mark.req("SIM-GUARD-2")
def test_a_payment_that_waited_keeps_the_id_of_its_plan() -> None:
    slow, fast = rate_limited_run(), rate_limited_run(max_payments_per_sec="0")

    waited = [event for event in events_of(slow, 2) if isinstance(event, TxUpdated)]
    at_once = [event for event in events_of(fast, 1) if isinstance(event, TxUpdated)]

    assert [event.tx_id for event in waited[:5]] == [event.tx_id for event in at_once[:5]]


@pytest.mark.req("SIM-GUARD-2")
def test_a_full_queue_drops_the_newest() -> None:
    run = rate_limited_run(queue_max="3")

    ticks = [event for event in events_of(run, 3) if isinstance(event, Ticked)]

    assert [(event.waiting, event.dropped) for event in ticks] == [(2, 0), (3, 1), (3, 2)]
    assert run.run.counters.dropped_total == 3


@pytest.mark.req("SIM-GUARD-2")
def test_dropping_leaves_no_payment_waiting() -> None:
    run = rate_limited_run(on_limit="drop")

    ticks = [event for event in events_of(run, 3) if isinstance(event, Ticked)]

    assert [(event.waiting, event.dropped) for event in ticks] == [(0, 2)] * 3
    assert (run.run.counters.attempts_total, run.run.counters.dropped_total) == (9, 6)


@pytest.mark.req("SIM-GUARD-2", "SIM-INT-3")
def test_payments_keep_waiting_while_the_budget_is_zero() -> None:
    run = rate_limited_run()
    run.step(2)
    run.do(SetIntensity(0))

    events = events_of(run, 3)

    assert {type(event) for event in events} == {Ticked}
    assert run.run.queue_depth == 4
    run.do(SetIntensity(100))
    assert planned_places(events_of(run, 1)) == [(1, 1), (1, 2), (1, 3)]


@pytest.mark.req("SIM-GUARD-2", "SIM-STO-8")
def test_a_restored_run_continues_with_the_waiting_payments() -> None:
    run = rate_limited_run()
    run.step(3)

    other = Run.from_state(decode(encode(run.run.config)), run.run.state())

    assert other.queue_depth == 6
    run.step(4)
    Headless(run.plan, other).step(4)
    assert other.digests() == run.run.digests()
    assert other.state() == run.run.state()


@pytest.mark.req("SIM-GUARD-2")
def test_a_payment_that_waited_meets_the_current_network() -> None:
    run = rate_limited_run()
    run.step(1)
    run.do(Freeze("a"))

    failed = [event.error.code for event in events_of(run, 1) if isinstance(event, TxFailed)]

    assert failed[:2] == [Code.ROUTING_NO_ROUTE] * 2


@pytest.mark.req("SIM-RUN-9")
def test_a_restart_clears_the_queue() -> None:
    run = rate_limited_run()
    run.step(3)

    run.do(Restart())

    assert run.run.queue_depth == 0


@pytest.mark.req("SIM-ADP-11", "SIM-GUARD-2")
def test_a_long_queue_keeps_the_policy_from_clearing() -> None:
    run = rate_limited_run(
        clearing_policy="adaptive",
        adaptive_window_ticks="1",
        clearing_every_n_ticks="1",
        adaptive_queue_depth_threshold="3",
    )

    decisions = [event.reason for event in events_of(run, 3) if isinstance(event, ClearingDecision)]

    assert decisions[1:] == ["CLEARING_SKIPPED_GUARDRAIL"] * 2
    assert decisions[0] != "CLEARING_SKIPPED_GUARDRAIL"
