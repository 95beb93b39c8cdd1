"""The demonstration mode: events without a ledger."""

import pytest

from pendula.credit.commands import Tick
from pendula.credit.events import ClearingDone, ClearingPlan, TxUpdated
from pendula.credit.runs.headless import Headless, plan_run
from pendula.credit.settings import Settings, change_settings
from pendula.documents import from_value
from tests.credit.conftest import network


@pytest.mark.req("SIM-ACT-6")
def test_a_very_long_tick_of_the_demonstration_stays_within_the_budget() -> None:
    options = change_settings(Settings(), {"tick_ms_base": "1000000000"})
    run = Headless(plan_run(from_value(network(("b", "a", 10))), seed=4, mode="fixtures", settings=options))

    counts = [sum(isinstance(event, TxUpdated) for event in run.do(Tick()).events) for _ in range(3)]

    assert counts[1:] == [20, 20]


def test_the_demonstration_highlights_lines_from_creditor_to_debtor() -> None:
    run = Headless(plan_run(from_value(network(("b", "a", 10))), seed=4, mode="fixtures"))

    events = [event for _ in range(30) for event in run.do(Tick()).events]

    plans = [event.steps[0].highlight_edges for event in events if isinstance(event, ClearingPlan)]
    done = [event.cycle_edges for event in events if isinstance(event, ClearingDone)]
    assert {(edge.source, edge.target) for edges in plans + done for edge in edges} == {("b", "a")}
    assert plans
    assert done
