"""Dated payments and clearings of a scenario: the first actions of their tick."""

from typing import Any

import pytest

from pendula.credit.commands import Pay
from pendula.credit.events import ClearingDone, ClearingPlan, Event, TxFailed, TxUpdated
from pendula.credit.runs.headless import Headless
from pendula.documents import DocumentRefused
from pendula.kernel.canonical import Json
from tests.credit.conftest import headless, network

CIRCLE = (("B", "A", 9), ("C", "B", 9), ("A", "C", 9))


def paying(sender: str, receiver: str, amount: str, time: int = 0, **more: Json) -> Json:
    return {"time": time, "type": "payment", "params": {"from": sender, "to": receiver, "amount": amount, **more}}


def run_of(*events: Json, intensity: int = 0, **settings: str) -> Headless:
    return headless(network(*CIRCLE, events=list(events)), 1, intensity, **settings)


def events_of(run: Headless, ticks: int) -> list[Event]:
    events: list[Event] = []
    run.step(ticks, events.extend)
    return events


def payments(events: list[Event]) -> list[tuple[Any, ...]]:
    tried = [event for event in events if isinstance(event, TxUpdated | TxFailed)]
    return [(event.tick_index, event.seq, event.sender, event.receiver, event.amount) for event in tried]


@pytest.mark.req("SIM-SCN-8")
@pytest.mark.parametrize("intensity", [0, 100])
def test_a_dated_payment_is_the_first_action_of_its_tick(intensity: int) -> None:
    run = run_of(paying("A", "B", "2.50", time=1500, equivalent="uah"), intensity=intensity, actions_per_tick_max="2")

    tried = payments(events_of(run, 3))

    at_its_tick = [row for row in tried if row[0] == 2]
    assert at_its_tick[0] == (2, 0, "A", "B", "2.50")
    assert [row[1] for row in at_its_tick] == list(range(1 if intensity == 0 else 3))
    assert run.run.counters.attempts_total == len(tried)


@pytest.mark.req("SIM-SCN-8")
def test_a_dated_clearing_clears_what_the_payments_before_it_owe() -> None:
    around: list[Json] = [paying(*ends, "3") for ends in (("A", "B"), ("B", "C"), ("C", "A"))]
    clearing: Json = {"time": 0, "type": "clearing", "params": {"equivalent": "UAH"}}

    events = events_of(run_of(*around, clearing, paying("A", "B", "1")), 1)

    kinds = [type(event) for event in events if not isinstance(event, TxFailed)][:6]
    assert kinds == [TxUpdated, TxUpdated, TxUpdated, ClearingPlan, ClearingDone, TxUpdated]
    done = next(event for event in events if isinstance(event, ClearingDone))
    assert (done.reason, done.cleared_cycles, done.cleared_amount) == ("SCENARIO", 1, "3.00")


@pytest.mark.req("SIM-SCN-8")
def test_effects_hold_several_dated_payments() -> None:
    effects: Json = [{"from": "A", "to": "B", "amount": 1}, {"from": "B", "to": "C", "amount": "2"}]

    tried = payments(events_of(run_of({"time": 0, "type": "payment", "effects": effects}), 2))

    assert tried == [(0, 0, "A", "B", "1.00"), (0, 1, "B", "C", "2.00")]


@pytest.mark.req("SIM-SCN-8", "SIM-ERR-3")
def test_an_impossible_dated_payment_fails_like_a_planned_one() -> None:
    run = run_of(paying("A", "stranger", "1"), paying("A", "B", "500"))

    failed = [event for event in events_of(run, 1) if isinstance(event, TxFailed)]

    assert [event.error.code for event in failed] == ["PARTICIPANT_NOT_FOUND", "ROUTING_NO_CAPACITY"]
    assert run.run.counters.rejected_total == 2


@pytest.mark.req("SIM-SCN-8", "SIM-GUARD-2")
def test_a_dated_payment_precedes_waiting_payments() -> None:
    run = run_of(paying("A", "B", "0.01", time=1000), intensity=100, actions_per_tick_max="3", max_payments_per_sec="2")

    tried = payments(events_of(run, 2))

    assert [row[:2] for row in tried] == [(0, 0), (0, 1), (1, 0), (1, 2)]
    assert tried[2][2:] == ("A", "B", "0.01")


@pytest.mark.req("SIM-SCN-8", "SIM-DET-13")
def test_a_dated_payment_is_part_of_the_plan_digest() -> None:
    with_it, without = run_of(paying("A", "B", "1")), run_of()
    by_hand = run_of()
    by_hand.do(Pay("A", "B", "UAH", "1"))
    for run in (with_it, without, by_hand):
        run.step(1)

    assert with_it.run.digests()["plan"] != without.run.digests()["plan"]
    assert with_it.run.digests()["ledger"] == by_hand.run.digests()["ledger"]


@pytest.mark.req("SIM-SCN-8", "SIM-SCN-4")
@pytest.mark.parametrize(
    ("params", "path"),
    [
        ({"from": "A", "to": "B"}, "$.events[0].params.amount"),
        ({"from": "A", "amount": "1"}, "$.events[0].params.to"),
        ({"from": "A", "to": "B", "amount": "0"}, "$.events[0].params.amount"),
        ({"from": "A", "to": "B", "amount": "1.001"}, "$.events[0].params.amount"),
        ({"from": "A", "to": "A", "amount": "1"}, "$.events[0].params.to"),
        ({"from": "A", "to": "B", "amount": "1", "equivalent": "EUR"}, "$.events[0].params.equivalent"),
    ],
)
def test_an_incomplete_dated_payment_is_rejected_with_its_place(params: Json, path: str) -> None:
    with pytest.raises(DocumentRefused) as refused:
        run_of({"time": 0, "type": "payment", "params": params})

    assert [fault.path for fault in refused.value.faults] == [path]


@pytest.mark.req("SIM-SCN-8")
def test_a_payment_event_without_a_payment_is_a_warning() -> None:
    run = run_of({"time": 0, "type": "payment"})

    assert payments(events_of(run, 1)) == []
    assert [diagnostic.code for diagnostic in run.diagnostics if diagnostic.code == "event_without_action"] == [
        "event_without_action"
    ]
