"""The series of a run: a row for each tick and equivalent, and its picture."""

from collections import Counter
from decimal import Decimal
from xml.etree import ElementTree

import pytest

from pendula.credit.authoring.villages import village
from pendula.credit.events import Event, Ticked, TxFailed
from pendula.credit.studies.chart import Named, Page, panels_svg
from pendula.credit.studies.series import Series
from tests.credit.conftest import headless, network


def test_the_rows_of_a_run_add_up_to_its_counters_and_clearings() -> None:
    run = headless(village(30, 2), seed=1, intensity=100, amount_cap="500", clearing_every_n_ticks="7")
    series = Series(run.run)

    run.step(40, series.watch)

    columns = series.columns().values
    counters = run.run.counters
    assert len(columns["tick"]) == 40
    assert sum(int(value or 0) for value in columns["committed"]) == counters.committed_total
    assert sum(int(value or 0) for value in columns["rejected"]) == counters.rejected_total > 0
    reduced = sum(Decimal(value or 0) for value in columns["debt_reduction"])
    assert reduced == sum(Decimal(row.debt_reduction) for row in run.clearing) > 0
    totals = run.result().totals["UNIT"]
    for name in ("wanted", "served", "volume"):
        assert sum(Decimal(value or 0) for value in columns[name]) == Decimal(totals[name] or 0) > 0
    assert columns["total_debt"][-1] == run.run.measured["UNIT"]["total_debt"]


def test_every_tick_has_a_row_for_each_equivalent() -> None:
    scenario = network(("b", "a", 10), equivalents=["UAH", "HOUR"])
    run = headless(scenario, intensity=100)
    series = Series(run.run)

    run.step(2, series.watch)

    assert [(row.tick, row.equivalent) for row in series.rows] == [(0, "HOUR"), (0, "UAH"), (1, "HOUR"), (1, "UAH")]


@pytest.mark.req("SIM-GUARD-2")
def test_every_tick_has_the_number_of_waiting_payments() -> None:
    limits = {"max_payments_per_sec": "3", "actions_per_tick_max": "5"}
    run = headless(network(("a", "b", 1000), ("b", "a", 1000)), seed=1, intensity=100, **limits)
    series = Series(run.run)

    run.step(3, series.watch)

    assert series.columns().values["queue_depth"] == [2, 4, 6]
    assert run.result().queue_depth == 6


def test_the_picture_of_a_run_has_its_rates_refusals_and_debts() -> None:
    run = headless(village(30, 2), seed=1, intensity=100, amount_cap="500", clearing_every_n_ticks="7")
    series = Series(run.run)
    run.step(40, series.watch)

    drawn = panels_svg(Page("village", "a run", 40), [Named(*panel) for panel in series.panels()])

    ElementTree.fromstring(drawn)
    for words in (
        "Committed rate",
        "Paid, of what was wanted",
        "no capacity",
        "no route at all",
        "cleared so far",
    ):
        assert words in drawn


def test_refusals_are_counted_by_reason_group_and_participant() -> None:
    run = headless(village(30, 2), seed=1, intensity=100, amount_cap="500")
    heard: list[Event] = []
    run.step(30, heard.extend)

    failed = [event for event in heard if isinstance(event, TxFailed)]
    refusals = run.result().refusals
    people = run.run.network.people
    assert failed
    assert refusals.participants == Counter(failure.sender for failure in failed)
    assert refusals.groups == Counter(people.all[people.index[failure.sender]].group or "" for failure in failed)
    assert sum(refusals.reasons.values()) == len(failed)
    never = sum(event.no_route_at_all or 0 for event in heard if isinstance(event, Ticked))
    assert refusals.reasons.get("no_route_at_all", 0) == never


def test_the_totals_of_a_run_cover_all_ticks() -> None:
    run = headless(village(30, 2), seed=1, intensity=100, amount_cap="500", clearing_every_n_ticks="7")
    run.step(40)

    total = run.result().totals["UNIT"]

    counters = run.run.counters
    assert (total["committed"], total["refused"]) == (counters.committed_total, counters.rejected_total)
    assert Decimal(str(total["success_rate"])) == round(
        Decimal(100 * counters.committed_total) / counters.attempts_total, 8
    )
    assert Decimal(str(total["cleared_amount"])) == sum(Decimal(row.cleared_amount) for row in run.clearing)


def test_a_repeated_warning_appears_once_with_a_count() -> None:
    options = {"amount_cap": "500", "clearing_time_budget_ms": "1", "work_units_per_ms": "1"}
    run = headless(village(30, 2), seed=1, intensity=100, routing_timeout_ms="1000000", **options)
    run.step(101)

    (warning,) = [warning for warning in run.diagnostics if warning.code == "nothing_cleared"]
    assert (warning.count, warning.last_tick, warning.facts["equivalent"]) == (4, 100, "UNIT")
