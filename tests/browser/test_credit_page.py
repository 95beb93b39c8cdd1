"""The page of the credit scheduler in a real browser: the running village of the demo, and a ring of five."""

import re

import pytest
from playwright.sync_api import Page, expect

from tests.browser.conftest import Serve, Watched, wait_for

RING = ("anna", "bakery", "farm", "dmytro", "cafe")


def opened(watched: Watched, demo: str) -> Page:
    page = watched.page
    page.goto(f"{demo}/#/schedulers/credit")
    wait_for(page, "[data-testid=network] canvas")
    return page


@pytest.fixture
def five(demo: str, watched: Watched) -> Page:
    """The page of a paused run without debts."""
    ask, runs = watched.page.request, f"{demo}/api/v1/simulator/runs"
    ask.post(f"{demo}/api/v1/simulator/admin/runs/stop-all")
    made = ask.post(runs, data={"scenario_id": "ring-of-five", "mode": "real", "intensity_percent": 70})
    run_id = made.json()["run_id"]
    assert ask.post(f"{runs}/{run_id}/pause").ok
    watched.page.goto(f"{demo}/#/schedulers/credit/{run_id}")
    wait_for(watched.page, "[data-testid=network] canvas")
    expect(watched.page.get_by_test_id("run-state")).to_contain_text("paused")
    return watched.page


def pay(page: Page, payer: str, payee: str, amount: str) -> None:
    page.get_by_test_id("pay-from").select_option(payer)
    page.get_by_test_id("pay-to").select_option(payee)
    page.get_by_test_id("pay-amount").fill(amount)
    page.get_by_test_id("pay").click()


def stop_planned_payments(page: Page) -> None:
    """Set the intensity to 0, so that only manual payments are made."""
    page.get_by_test_id("intensity").focus()
    with page.expect_response("**/intensity"):
        page.keyboard.press("Home")
    expect(page.get_by_test_id("run-controls").locator("output")).to_have_text("0 %")


def test_the_village_is_live(demo: str, watched: Watched) -> None:
    page = opened(watched, demo)
    expect(page.get_by_test_id("connection")).to_have_attribute("data-state", "live")
    committed = page.get_by_test_id("readout-committed").locator("dd")
    before = committed.inner_text()

    expect(committed).not_to_have_text(before)

    expect(page.get_by_test_id("panel-network")).to_contain_text("100 participants")
    expect(page.get_by_test_id("events").locator("li").first).to_contain_text("→")
    expect(page.get_by_test_id("curve-debt").locator("svg")).to_be_visible()
    page.set_viewport_size({"width": 390, "height": 844})
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    assert watched.errors == []


def test_the_network_is_navigated_by_keyboard_and_shown_as_tables(demo: str, watched: Watched) -> None:
    page = opened(watched, demo)
    page.get_by_test_id("network").focus()

    page.keyboard.press("ArrowRight")

    status = page.get_by_test_id("network-status")
    expect(status).to_contain_text(re.compile("Trusted by .* trusts"))
    page.keyboard.press("Escape")
    expect(status).to_contain_text("wider: more used")
    page.get_by_test_id("network-tables").locator("summary").click()
    expect(page.get_by_test_id("participants").locator("tbody tr")).to_have_count(100)
    page.get_by_test_id("lines").locator("tbody button").first.click()
    expect(status).to_contain_text("trusts")
    assert watched.errors == []


@pytest.mark.campaign
def test_the_village_is_forked_and_compared(demo: str, watched: Watched) -> None:
    page = opened(watched, demo)
    page.get_by_test_id("what-if").select_option("off")
    page.get_by_test_id("what-if-ticks").select_option("30")

    page.get_by_test_id("compare").click()

    expect(page.get_by_test_id("verdict")).to_contain_text(re.compile("diverge at tick .* with the change"))
    clearings = page.get_by_test_id("what-if-table").locator("tr").filter(has_text="clearings").locator("td")
    expect(clearings.nth(1)).not_to_have_text("0")
    expect(clearings.nth(2)).to_have_text("0")
    expect(page.get_by_test_id("what-if-curve").locator("svg")).to_be_visible()
    assert watched.errors == []


def test_the_slider_and_a_link_show_the_run_at_a_past_moment(demo: str, watched: Watched) -> None:
    page = opened(watched, demo)
    expect(page.get_by_test_id("time-slider-input")).to_be_enabled()

    page.get_by_test_id("time-slider-input").press("Home")

    expect(page.get_by_test_id("past-banner")).to_contain_text(
        re.compile(r"Viewing tick \d+: the state after record 0")
    )
    figures = page.get_by_test_id("past-run").get_by_test_id("readouts").inner_text()
    page.reload()
    expect(page.get_by_test_id("past-run").get_by_test_id("readouts")).to_have_text(figures, use_inner_text=True)
    page.get_by_test_id("back-to-live").click()
    expect(page.get_by_test_id("run-controls")).to_be_visible()
    assert watched.errors == []


def test_a_manual_payment_is_committed_or_refused_with_a_reason(five: Page, watched: Watched) -> None:
    pay(five, "anna", "bakery", "4")
    expect(five.get_by_test_id("paid")).to_have_text("Anna paid 4.00 HOUR to Bakery.")
    expect(five.get_by_test_id("events")).to_contain_text("manual")
    assert watched.errors == []

    pay(five, "anna", "bakery", "40")
    expect(five.get_by_test_id("refused")).to_have_attribute("data-code", "ROUTING_NO_CAPACITY")
    expect(five.get_by_test_id("refused-because")).to_be_visible()
    five.get_by_test_id("show-line").click()

    expect(five.get_by_test_id("network-status")).to_contain_text("trusts")


@pytest.mark.campaign
def test_a_debt_cycle_is_cleared_manually(five: Page, watched: Watched) -> None:
    for payer, payee in zip(RING, (*RING[1:], RING[0]), strict=True):
        pay(five, payer, payee, "2")
        expect(five.get_by_test_id("paid")).to_contain_text(re.compile(f"^{payer.replace('cafe', 'café')}", re.I))

    five.get_by_test_id("clear").click()

    expect(five.get_by_test_id("cleared")).to_contain_text("Cleared 1 cycle, 2.00 HOUR in total.")
    expect(five.get_by_test_id("events")).to_contain_text("Cleared 1 cycle:")
    assert watched.errors == []


def test_a_run_is_started_and_controlled_with_its_buttons(five: Page, watched: Watched) -> None:
    state = five.get_by_test_id("run-state")
    five.get_by_test_id("start-run").locator("summary").click()
    five.get_by_test_id("scenario").select_option("ring-of-five")
    five.get_by_test_id("start").click()
    five.get_by_test_id("stop-and-start").click()
    expect(state).to_contain_text("running")
    # The browser logs the expected conflict of the first start.
    watched.errors.clear()

    five.get_by_test_id("run-pause").click()
    expect(state).to_contain_text("paused")
    stop_planned_payments(five)
    five.get_by_test_id("run-resume").click()
    expect(state).to_contain_text("running")
    five.get_by_test_id("run-stop").click()
    expect(state).to_contain_text("stopped")
    expect(five.get_by_test_id("pay")).to_be_disabled()
    five.get_by_test_id("run-restart").click()
    expect(state).to_contain_text("running")
    assert watched.errors == []


@pytest.mark.campaign
def test_starting_a_run_stops_the_demo_and_leaves_it_in_the_list(serve: Serve, watched: Watched) -> None:
    page = opened(watched, serve("--demo"))
    controls = page.get_by_test_id("run-controls")
    expect(controls).to_have_attribute("data-state", "running")
    run_id = page.evaluate("fetch('/api/v1/simulator/runs/active').then(r => r.json()).then(r => r.run_id)")
    page.get_by_test_id("start-run").locator("summary").click()
    expect(page.get_by_test_id("demo-stops")).to_contain_text("This stops the demo run")

    page.get_by_test_id("scenario").select_option("ring-of-five")
    page.get_by_test_id("start").click()

    expect(page.get_by_test_id("run-picker")).not_to_have_value(run_id)
    page.get_by_test_id("run-picker").select_option(run_id)
    expect(page.get_by_test_id("run-state")).to_contain_text("stopped")
    expect(page.get_by_test_id("run-stopped")).to_contain_text("another run starts")
    expect(page.get_by_test_id("panel-network")).to_contain_text("100 participants")
    assert watched.errors == []


@pytest.mark.campaign
def test_the_events_of_a_run_are_shown_after_a_reload(five: Page, watched: Watched) -> None:
    payment = "Anna → Bakery 4.00, manual"
    pay(five, "anna", "bakery", "4")
    expect(five.get_by_test_id("events")).to_contain_text(payment)

    five.reload()
    expect(five.get_by_test_id("events")).to_contain_text(payment)
    five.get_by_test_id("run-stop").click()
    expect(five.get_by_test_id("run-state")).to_contain_text("stopped")
    five.reload()

    expect(five.get_by_test_id("events")).to_contain_text(payment)
    assert watched.errors == []


@pytest.mark.campaign
def test_a_stopped_run_continues_as_a_new_one(five: Page, watched: Watched) -> None:
    pay(five, "anna", "bakery", "4")
    expect(five.get_by_test_id("paid")).to_be_visible()
    stop_planned_payments(five)
    five.get_by_test_id("run-stop").click()
    before = five.get_by_test_id("run-picker").input_value()

    five.get_by_test_id("run-continue").click()

    expect(five.get_by_test_id("run-state")).to_contain_text("running")
    expect(five.get_by_test_id("run-picker")).not_to_have_value(before)
    five.get_by_test_id("network-tables").locator("summary").click()
    expect(five.get_by_test_id("participants").locator("tr").filter(has_text="Bakery")).to_contain_text("4.00")
    assert watched.errors == []
