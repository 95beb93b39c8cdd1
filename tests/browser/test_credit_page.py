"""The page of the credit scheduler in a real browser: the village of the demo, alive, and five who are paid by hand."""

import re

import pytest
from playwright.sync_api import Page, expect

from tests.browser.conftest import Serve, Watched, there

AROUND = ("anna", "bakery", "farm", "dmytro", "cafe")


def opened(watched: Watched, demo: str) -> Page:
    page = watched.page
    page.goto(f"{demo}/#/schedulers/credit")
    there(page, "[data-testid=network] canvas")
    return page


@pytest.fixture
def five(demo: str, watched: Watched) -> Page:
    """The page of a paused run in which nobody owes anything."""
    ask, runs, wish = watched.page.request, f"{demo}/api/v1/simulator/runs", {"mode": "real", "intensity_percent": 70}
    ask.post(f"{demo}/api/v1/simulator/admin/runs/stop-all")
    made = ask.post(runs, data={"scenario_id": "ring-of-five", **wish})
    run_id = made.json()["run_id"]
    assert ask.post(f"{runs}/{run_id}/pause").ok
    watched.page.goto(f"{demo}/#/schedulers/credit/{run_id}")
    there(watched.page, "[data-testid=network] canvas")
    expect(watched.page.get_by_test_id("run-state")).to_contain_text("paused")
    return watched.page


def pay(page: Page, payer: str, payee: str, amount: str) -> None:
    page.get_by_test_id("pay-from").select_option(payer)
    page.get_by_test_id("pay-to").select_option(payee)
    page.get_by_test_id("pay-amount").fill(amount)
    page.get_by_test_id("pay").click()


def nobody_pays(page: Page) -> None:
    """But by hand, however long the run goes on."""
    page.get_by_test_id("intensity").focus()
    with page.expect_response("**/intensity"):
        page.keyboard.press("Home")
    expect(page.get_by_test_id("run-controls").locator("output")).to_have_text("0 %")


def test_the_village_lives_before_the_eyes(demo: str, watched: Watched) -> None:
    page = opened(watched, demo)
    expect(page.get_by_test_id("connection")).to_have_attribute("data-state", "live")
    made = page.get_by_test_id("readout-made").locator("dd")
    before = made.inner_text()

    expect(made).not_to_have_text(before)

    expect(page.get_by_test_id("panel-network")).to_contain_text("100 participants")
    expect(page.get_by_test_id("happened").locator("li").first).to_contain_text("→")
    expect(page.get_by_test_id("curve-debt").locator("svg")).to_be_visible()
    page.set_viewport_size({"width": 390, "height": 844})
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    assert watched.errors == []


def test_the_picture_is_read_with_keys_and_as_tables(demo: str, watched: Watched) -> None:
    page = opened(watched, demo)
    page.get_by_test_id("network").focus()

    page.keyboard.press("ArrowRight")

    told = page.get_by_test_id("network-told")
    expect(told).to_contain_text(re.compile("Trusted by .* trusts"))
    page.keyboard.press("Escape")
    expect(told).to_contain_text("the wider, the more is used")
    page.get_by_test_id("network-tables").locator("summary").click()
    expect(page.get_by_test_id("participants").locator("tbody tr")).to_have_count(100)
    page.get_by_test_id("lines").locator("tbody button").first.click()
    expect(told).to_contain_text("trusts")
    assert watched.errors == []


def test_the_village_is_forked_and_compared(demo: str, watched: Watched) -> None:
    page = opened(watched, demo)
    page.get_by_test_id("what-if").select_option("off")
    page.get_by_test_id("what-if-ticks").select_option("30")

    page.get_by_test_id("compare").click()

    expect(page.get_by_test_id("verdict")).to_contain_text(re.compile("ways part at tick .* would be made"))
    clearings = page.get_by_test_id("what-if-table").locator("tr").filter(has_text="clearings").locator("td")
    expect(clearings.nth(1)).not_to_have_text("0")
    expect(clearings.nth(2)).to_have_text("0")
    expect(page.get_by_test_id("what-if-curve").locator("svg")).to_be_visible()
    assert watched.errors == []


def test_the_slider_shows_the_run_as_it_was_and_a_link_the_same(demo: str, watched: Watched) -> None:
    page = opened(watched, demo)
    expect(page.get_by_test_id("time-slider-input")).to_be_enabled()

    page.get_by_test_id("time-slider-input").press("Home")

    expect(page.get_by_test_id("past-banner")).to_contain_text(
        re.compile(r"Viewing tick \d+: the state after record 0")
    )
    told = page.get_by_test_id("past-run").get_by_test_id("readouts").inner_text()
    page.reload()
    expect(page.get_by_test_id("past-run").get_by_test_id("readouts")).to_have_text(told, use_inner_text=True)
    page.get_by_test_id("back-to-live").click()
    expect(page.get_by_test_id("run-controls")).to_be_visible()
    assert watched.errors == []


def test_a_payment_by_hand_is_made_or_says_why_not(five: Page, watched: Watched) -> None:
    pay(five, "anna", "bakery", "4")
    expect(five.get_by_test_id("paid")).to_have_text("Anna paid 4.00 HOUR to Bakery.")
    expect(five.get_by_test_id("happened")).to_contain_text("by hand")
    assert watched.errors == []

    pay(five, "anna", "bakery", "40")
    expect(five.get_by_test_id("refused")).to_have_attribute("data-code", "ROUTING_NO_CAPACITY")
    expect(five.get_by_test_id("refused-because")).to_be_visible()
    five.get_by_test_id("show-line").click()

    expect(five.get_by_test_id("network-told")).to_contain_text("trusts")


def test_a_circle_of_debts_is_cleared_by_hand(five: Page, watched: Watched) -> None:
    for payer, payee in zip(AROUND, (*AROUND[1:], AROUND[0]), strict=True):
        pay(five, payer, payee, "2")
        expect(five.get_by_test_id("paid")).to_contain_text(re.compile(f"^{payer.replace('cafe', 'café')}", re.I))

    five.get_by_test_id("clear").click()

    expect(five.get_by_test_id("cleared")).to_contain_text("Cleared 1 circle, 2.00 HOUR in all.")
    expect(five.get_by_test_id("happened")).to_contain_text("Cleared 1 circle:")
    assert watched.errors == []


def test_a_run_is_started_and_steered_with_its_buttons(five: Page, watched: Watched) -> None:
    state = five.get_by_test_id("run-state")
    five.get_by_test_id("start-run").locator("summary").click()
    five.get_by_test_id("scenario").select_option("ring-of-five")
    five.get_by_test_id("start").click()
    five.get_by_test_id("stop-and-start").click()
    expect(state).to_contain_text("running")
    # What the first refusal wrote into the console was meant.
    watched.errors.clear()

    five.get_by_test_id("run-pause").click()
    expect(state).to_contain_text("paused")
    nobody_pays(five)
    five.get_by_test_id("run-resume").click()
    expect(state).to_contain_text("running")
    five.get_by_test_id("run-stop").click()
    expect(state).to_contain_text("stopped")
    expect(five.get_by_test_id("pay")).to_be_disabled()
    five.get_by_test_id("run-restart").click()
    expect(state).to_contain_text("running")
    assert watched.errors == []


def test_starting_a_run_says_that_the_demonstration_stops_and_leaves_it_in_the_list(
    serve: Serve, watched: Watched
) -> None:
    page = opened(watched, serve("--demo"))
    demonstration = page.get_by_test_id("run-controls")
    expect(demonstration).to_have_attribute("data-state", "running")
    run_id = page.evaluate("fetch('/api/v1/simulator/runs/active').then(r => r.json()).then(r => r.run_id)")
    page.get_by_test_id("start-run").locator("summary").click()
    expect(page.get_by_test_id("demo-makes-way")).to_contain_text("This stops the run of the demonstration")

    page.get_by_test_id("scenario").select_option("ring-of-five")
    page.get_by_test_id("start").click()

    expect(page.get_by_test_id("run-picker")).not_to_have_value(run_id)
    page.get_by_test_id("run-picker").select_option(run_id)
    expect(page.get_by_test_id("run-state")).to_contain_text("stopped")
    expect(page.get_by_test_id("run-stopped")).to_contain_text("the demonstration makes way for another run")
    expect(page.get_by_test_id("panel-network")).to_contain_text("100 participants")
    assert watched.errors == []


def test_what_happened_in_a_run_is_there_after_a_reload(five: Page, watched: Watched) -> None:
    told = "Anna → Bakery 4.00, by hand"
    pay(five, "anna", "bakery", "4")
    expect(five.get_by_test_id("happened")).to_contain_text(told)

    five.reload()
    expect(five.get_by_test_id("happened")).to_contain_text(told)
    five.get_by_test_id("run-stop").click()
    expect(five.get_by_test_id("run-state")).to_contain_text("stopped")
    five.reload()

    expect(five.get_by_test_id("happened")).to_contain_text(told)
    assert watched.errors == []


def test_a_run_that_was_stopped_goes_on_as_a_new_one(five: Page, watched: Watched) -> None:
    pay(five, "anna", "bakery", "4")
    expect(five.get_by_test_id("paid")).to_be_visible()
    nobody_pays(five)
    five.get_by_test_id("run-stop").click()
    before = five.get_by_test_id("run-picker").input_value()

    five.get_by_test_id("run-continue").click()

    expect(five.get_by_test_id("run-state")).to_contain_text("running")
    expect(five.get_by_test_id("run-picker")).not_to_have_value(before)
    five.get_by_test_id("network-tables").locator("summary").click()
    expect(five.get_by_test_id("participants").locator("tr").filter(has_text="Bakery")).to_contain_text("4.00")
    assert watched.errors == []
