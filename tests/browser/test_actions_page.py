"""The page of a world in a real browser: the town of the demo, running, and a workshop whose time does not advance."""

import re

import pytest
from playwright.sync_api import Page, expect

from tests.browser.conftest import Watched, open_live, wait_for

WORKSHOP = {
    "epoch": {"index": 0, "start_at": "2025-07-01T00:00:00", "end_at": "2025-07-02T00:00:00"},
    "action_defs": {
        "repair": {"base_duration_min": 50, "effort": "medium", "interruptible": False, "locks": ["workshop"]}
    },
    "actions_submitted": [
        {"id": "A1", "actor": "ann", "verb": "repair", "submitted_at": "2025-07-01T08:00:00"},
        {"id": "A2", "actor": "bob", "verb": "repair", "submitted_at": "2025-07-01T08:05:00"},
        {"id": "A3", "actor": "bob", "verb": "fly", "submitted_at": "2025-07-01T08:06:00"},
    ],
}


def opened(watched: Watched, demo: str, world: str = "town") -> Page:
    page = watched.page
    open_live(page, f"{demo}/#/schedulers/actions/{world}")
    wait_for(page, "[data-testid=timeline] canvas")
    return page


def world_at_work(watched: Watched, demo: str, name: str) -> Page:
    """The page of a world at 08:10: A1 runs, A2 waits for it."""
    ask = watched.page.request
    made = ask.post(f"{demo}/api/v1/actions?name={name}", data=WORKSHOP)
    assert made.status in (201, 409)
    if made.status == 201:
        assert ask.post(f"{demo}/api/v1/actions/{name}/advance", data={"to": 490}).ok
    return opened(watched, demo, name)


@pytest.fixture
def workshop(demo: str, watched: Watched) -> Page:
    """A world whose time no test advances."""
    return world_at_work(watched, demo, "workshop")


def test_the_town_is_live(demo: str, watched: Watched) -> None:
    page = opened(watched, demo)
    time = page.get_by_test_id("readout-time").locator("dd")
    before = time.inner_text()

    expect(time).not_to_have_text(before)

    expect(page.get_by_test_id("title")).to_have_text("Actions")
    expect(page.get_by_test_id("events").locator("tbody tr").first).to_contain_text(re.compile("starts|done"))
    expect(page.get_by_test_id("resources")).to_contain_text("flour")
    expect(page.get_by_test_id("locks")).to_contain_text("oven")
    assert watched.errors == []


def test_a_waiting_action_explains_itself(workshop: Page, watched: Watched) -> None:
    why = workshop.get_by_test_id("waiting").get_by_test_id("why")
    sentence = why.locator("summary").first
    expect(sentence).to_have_text("A2 waits for workshop, held by A1 until 2025-07-01 08:50.")

    sentence.focus()
    workshop.keyboard.press("Enter")

    expect(why.get_by_test_id("reason").nth(1)).to_be_visible()
    expect(why.get_by_test_id("reason").nth(1)).to_have_attribute("data-code", "lock")
    assert watched.errors == []


def test_history_filters_problems(workshop: Page) -> None:
    rows = workshop.get_by_test_id("events").locator("tbody tr")
    expect(rows).to_have_count(2)

    workshop.get_by_test_id("filter-problems").click()

    expect(rows).to_have_count(1)
    expect(rows).to_contain_text("UnknownVerb")


def send(page: Page, command: str, **fields: str) -> None:
    choice = page.get_by_test_id("command-choice")
    choice.get_by_label("Command", exact=True).select_option(command)
    for name, value in fields.items():
        choice.get_by_test_id(f"field-{name}").fill(value)
    choice.get_by_test_id("send-command").click()


def test_a_command_shows_its_outcome(demo: str, watched: Watched) -> None:
    workshop = world_at_work(watched, demo, "commanded")
    panel = workshop.get_by_test_id("panel-command")

    send(workshop, "Submit an action", id="no-time", t="")
    expect(panel.get_by_test_id("refusal")).to_have_attribute("data-effect", "refused")
    expect(panel.get_by_test_id("refusal")).to_contain_text("submitted_at")

    send(workshop, "Submit an action", id="flight", verb="fly")
    expect(panel.get_by_test_id("command-done")).to_contain_text("takes effect when time advances")
    assert workshop.request.post(f"{demo}/api/v1/actions/commanded/advance", data={"by": 1}).ok
    expect(panel.get_by_test_id("refusal")).to_contain_text("Refused: ")
    expect(panel.get_by_test_id("refusal")).to_contain_text("fly")

    send(workshop, "Interrupt an action", target="A2", priority="900")
    expect(panel.get_by_test_id("command-done")).to_contain_text("takes effect when time advances")
    assert workshop.request.post(f"{demo}/api/v1/actions/commanded/advance", data={"by": 1}).ok
    expect(panel.get_by_test_id("refusal")).to_contain_text("No effect: A2 is not interrupted: it is not running.")
    assert watched.errors == []


@pytest.mark.campaign
def test_why_answers_about_the_moment_shown(demo: str, watched: Watched) -> None:
    workshop = world_at_work(watched, demo, "asked")
    waiting = workshop.get_by_test_id("panel-why")
    question = waiting.get_by_label("Question")
    expect(question.locator("option", has_text="Why A2 waits")).to_have_count(1)
    then = workshop.request.get(f"{demo}/api/v1/actions/asked/now").json()["n"]
    assert workshop.request.post(f"{demo}/api/v1/actions/asked/advance", data={"by": 60}).ok
    waiting.get_by_label("Question").focus()
    expect(question.locator("option", has_text="Why A2 runs")).to_have_count(1)

    workshop.goto(f"{demo}/#/schedulers/actions/asked?at={then}")
    expect(workshop.get_by_test_id("past-banner")).to_be_visible()
    question.select_option("Why A2 waits")
    waiting.get_by_test_id("ask-why").click()

    expect(waiting.get_by_test_id("reason").first).to_contain_text("A2 waits for workshop, held by A1")
    assert watched.errors == []


def test_the_timeline_is_drawn_and_navigated_by_keyboard(workshop: Page, watched: Watched) -> None:
    expect(workshop.get_by_test_id("events")).to_contain_text("A1")

    workshop.get_by_test_id("timeline").focus()
    workshop.keyboard.press("ArrowDown")

    status = workshop.get_by_test_id("timeline-status")
    expect(status).to_have_text("A1: ann, repair. Running since Tue 08:00, until 08:50 (40 min left). Locks: workshop.")
    workshop.get_by_text("Show as a table").click()
    expect(workshop.get_by_test_id("timeline-table").locator("tbody tr")).to_have_count(2)
    colours = "c => new Set(new Uint32Array(c.getContext('2d').getImageData(0, 0, c.width, c.height).data.buffer)).size"
    assert workshop.get_by_test_id("timeline").locator("canvas").evaluate(colours) > 20
    assert watched.errors == []


def test_the_slider_shows_the_past_of_the_town(demo: str, watched: Watched) -> None:
    page = opened(watched, demo)
    expect(page.get_by_test_id("time-slider-input")).to_be_enabled()

    page.get_by_test_id("time-slider-input").focus()
    page.keyboard.press("Home")

    expect(page.get_by_test_id("past-banner")).to_be_visible()
    expect(page.get_by_test_id("readout-time").locator("dd")).to_contain_text("00:00")
    expect(page.get_by_test_id("events")).to_contain_text("No events yet")
    page.get_by_test_id("back-to-live").click()
    expect(page.get_by_test_id("past-banner")).to_be_hidden()
    expect(page.get_by_test_id("events").locator("tbody tr").nth(1)).to_be_visible()
    assert watched.errors == []


def test_the_page_fits_a_narrow_screen(demo: str, watched: Watched) -> None:
    watched.page.set_viewport_size({"width": 360, "height": 740})
    page = opened(watched, demo)

    assert page.evaluate("document.documentElement.scrollWidth") <= 360
    assert watched.errors == []
