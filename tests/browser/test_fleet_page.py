"""The page of a fleet in a real browser: a running hall, a truck paused, explained and resumed, and its past."""

from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import Browser, Locator, Page, expect

from tests.browser.conftest import Watched, open_live, wait_for
from tests.server.schedulers.fleet.halls import HALL


@pytest.fixture(scope="module")
def fleets(plain: str, browser: Browser) -> Iterator[str]:
    """Three fleets: `hall` runs at ten times real time, the trucks of `silent` do not report, and `paused` runs until a
    test pauses it.

    They are created early, since silent trucks go offline only after seconds.
    """
    context = browser.new_context()
    ask, scheduler = context.request, f"{plain}/api/v1/fleet"
    assert ask.post(f"{scheduler}?name=hall&speed=10", data=HALL).status == 201
    assert ask.post(f"{scheduler}?name=silent", data=HALL).status == 201
    assert ask.post(f"{scheduler}?name=paused&speed=10", data=HALL).status == 201
    for robot in ("R1", "R2", "R3"):
        silence = {"robotId": robot, "type": "SILENCE", "forMs": 3_600_000}
        assert ask.post(f"{scheduler}/silent/faults", data=silence).ok
    yield f"{plain}/#/schedulers/fleet"
    # Running fleets would slow down the tests of other modules.
    for name in ("hall", "silent", "paused"):
        assert ask.post(f"{scheduler}/{name}/close").ok
    context.close()


def opened(page: Page, address: str) -> Page:
    open_live(page, address)
    wait_for(page, "[data-testid=hall] canvas")
    return page


@pytest.fixture
def fleet(fleets: str, watched: Watched) -> Page:
    return opened(watched.page, f"{fleets}/hall")


@pytest.fixture
def silent(fleets: str, watched: Watched) -> Page:
    """Each test has a truck of its own."""
    page = opened(watched.page, f"{fleets}/silent")
    expect(page.get_by_test_id("trucks").locator("tbody tr", has_text="offline")).to_have_count(3)
    return page


def row_of(page: Page, robot: str) -> Locator:
    return page.get_by_test_id("trucks").locator("tbody tr", has=page.get_by_test_id(f"truck-{robot}"))


def act(page: Page, action: str, reason: str) -> None:
    page.get_by_test_id(f"do-{action}").click()
    page.get_by_test_id("truck-reason").fill(reason)
    page.get_by_test_id("truck-send").click()


def test_a_truck_is_paused_explained_and_resumed_and_the_slider_shows_the_past(fleet: Page, watched: Watched) -> None:
    before = fleet.request.get(f"{fleet.url.split('#')[0]}api/v1/fleet/hall/now").json()
    fleet.get_by_test_id("truck-R1").click()
    act(fleet, "PAUSE_ROBOT", "floor cleaning")
    expect(fleet.get_by_test_id("truck-status")).to_have_text("R1 is paused")
    expect(fleet.get_by_test_id("truck-why")).to_have_text("R1 stops: an operator paused it.")
    expect(row_of(fleet, "R1")).to_contain_text("paused")

    # The other trucks reach it and wait.
    waiting = fleet.get_by_test_id("trucks").locator("tbody tr", has_text="waits")
    expect(waiting.first).to_be_visible()
    act(fleet, "RESUME_ROBOT", "dry again")
    expect(fleet.get_by_test_id("truck-status")).to_have_text("R1 is resumed")
    expect(row_of(fleet, "R1")).to_contain_text("drives")

    fleet.goto(f"{fleet.url.split('?')[0]}?at={before['n']}")
    expect(fleet.get_by_test_id("hall")).to_have_attribute("data-tick", str(before["tick"]))
    expect(fleet.get_by_test_id("panel-alerts")).to_have_count(0)
    assert watched.errors == []


def test_a_task_is_held_and_resumed_from_the_page(fleet: Page, watched: Watched) -> None:
    scheduler = f"{fleet.url.split('#')[0]}api/v1/fleet/hall"
    # With a paused fleet no truck takes the task during the test.
    fleet.request.post(f"{scheduler}/actions", data={"type": "PAUSE_FLEET", "reason": "fire drill"})
    fleet.request.post(f"{scheduler}/tasks", data={"taskId": "mine", "pickNodeId": "WEST", "dropNodeId": "EAST"})
    fleet.get_by_test_id("task-mine").click()
    for action, status in (("HOLD_TASK", "is held until"), ("RESUME_TASK", "is resumed")):
        fleet.get_by_test_id(f"do-{action}").click()
        fleet.get_by_test_id("task-reason").fill("the goods are blocked")
        fleet.get_by_test_id("task-send").click()
        expect(fleet.get_by_test_id("task-status")).to_contain_text(status)
    fleet.request.post(f"{scheduler}/actions", data={"type": "RESUME_FLEET", "reason": "over"})
    assert watched.errors == []


def test_the_map_is_drawn_and_a_truck_selected_by_keyboard(fleet: Page, watched: Watched) -> None:
    hall = fleet.get_by_test_id("hall")
    hall.focus()
    fleet.keyboard.press("ArrowRight")
    expect(fleet.get_by_test_id("panel-truck").locator("h2")).to_have_text("R1")
    fleet.keyboard.press("Escape")
    expect(fleet.get_by_test_id("panel-truck")).to_have_count(0)

    drawn = fleet.evaluate(
        """() => [...document.querySelectorAll('[data-testid=hall] canvas')].map((canvas) => {
             const { data } = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height);
             const colours = new Uint32Array(data.buffer);
             return new Set(colours).size > 20 && colours.filter((one) => one !== colours[0]).length;
           })"""
    )
    assert len(drawn) == 1
    assert drawn[0] > 2_000
    assert watched.errors == []


def test_nothing_is_wider_than_the_screen(fleet: Page) -> None:
    for width in (390, 1280):
        fleet.set_viewport_size({"width": width, "height": 900})

        assert fleet.evaluate("document.documentElement.scrollWidth") <= width


def truck_now(page: Page, robot: str) -> dict[str, Any]:
    origin, _, place = page.url.partition("/#/schedulers/")
    trucks = page.request.get(f"{origin}/api/v1/{place.partition('?')[0]}/now").json()["trucks"]
    truck: dict[str, Any] = next(truck for truck in trucks if truck["robot_id"] == robot)
    return truck


def paused_before_a_lane(page: Page) -> str:
    """Pause the fleet at a moment at which a standing truck holds more than its own place."""
    origin, _, place = page.url.partition("/#/schedulers/")
    fleet = f"{origin}/api/v1/{place.partition('?')[0]}"
    while True:
        for kind, wait_ms in (("PAUSE_FLEET", 1_000), ("RESUME_FLEET", 300)):
            assert page.request.post(f"{fleet}/actions", data={"type": kind, "reason": "a look"}).ok
            page.wait_for_timeout(wait_ms)
            trucks = page.request.get(f"{fleet}/now").json()["trucks"]
            robot: str | None = next((truck["robot_id"] for truck in trucks if truck["releasable"]), None)
            if robot is not None and kind == "PAUSE_FLEET":
                return robot


@pytest.mark.req("FLT-FAIL-11")
def test_resources_are_released_only_after_a_confirmation(fleets: str, watched: Watched) -> None:
    page = opened(watched.page, f"{fleets}/paused")
    robot = paused_before_a_lane(page)
    page.get_by_test_id(f"truck-{robot}").click()
    held = truck_now(page, robot)["releasable"]
    page.get_by_test_id("do-FORCE_RELEASE").click()
    expect(page.get_by_test_id("truck-send")).to_be_disabled()
    page.get_by_test_id(f"truck-release-{held[0]}").check()
    page.get_by_test_id("truck-reason").fill("secured where it stands")
    page.get_by_test_id("truck-secured").check()
    page.get_by_test_id("truck-send").click()
    expect(page.get_by_test_id("truck-status")).to_contain_text("Confirm within 60 s")
    assert truck_now(page, robot)["releasable"] == held

    page.get_by_test_id("truck-send").click()
    expect(page.get_by_test_id("truck-status")).to_have_text(f"Released from {robot}: {held[0]}")
    assert held[0] not in truck_now(page, robot)["releasable"]
    assert watched.errors == []


@pytest.mark.campaign
@pytest.mark.req("FLT-FAIL-11")
def test_a_truck_is_removed_only_after_it_was_declared_secured(silent: Page, watched: Watched) -> None:
    silent.get_by_test_id("truck-R2").click()
    silent.get_by_test_id("do-REMOVE_ROBOT").click()
    silent.get_by_test_id("truck-reason").fill("to the workshop")
    silent.get_by_test_id("truck-send").click()
    assert silent.get_by_test_id("truck-secured").evaluate("box => box.validity.valueMissing")
    expect(silent.get_by_test_id("truck-status")).to_be_empty()

    silent.get_by_test_id("truck-secured").check()
    silent.get_by_test_id("truck-send").click()
    silent.get_by_role("button", name="Confirm").click()
    status = silent.get_by_test_id("truck-status")
    expect(status).to_contain_text("R2 is removed and its resources are released: ")
    assert watched.errors == []


@pytest.mark.campaign
@pytest.mark.req("FLT-FAIL-14")
def test_a_silent_truck_is_declared_absent(silent: Page, watched: Watched) -> None:
    silent.get_by_test_id("truck-R3").click()
    act(silent, "DECLARE_ABSENT", "in the workshop")

    expect(silent.get_by_test_id("truck-status")).to_have_text("R3 is marked absent")
    expect(silent.get_by_test_id("do-DECLARE_ABSENT")).to_have_count(0)
    assert truck_now(silent, "R3")["absent"]
    assert watched.errors == []


@pytest.mark.campaign
def test_every_fault_of_the_page_is_accepted(fleets: str, watched: Watched) -> None:
    page = opened(watched.page, f"{fleets}/paused")
    page.get_by_test_id("panel-simulation").locator("summary").click()
    form = page.get_by_role("form", name="Simulate a fault")
    faults = form.get_by_label("fault")
    titles = faults.locator("option").all_inner_texts()
    for title in titles:
        faults.select_option(title)
        form.get_by_test_id("start-fault").click()
        expect(page.get_by_test_id("panel-simulation").get_by_role("status")).to_contain_text(title)

    assert "loading that does not end" in titles
    assert watched.errors == []


def test_real_trucks_have_no_simulated_faults_and_a_task_says_why_it_waits(fleets: str, watched: Watched) -> None:
    scheduler = f"{fleets.split('#')[0]}api/v1/fleet"
    ask = watched.page.request
    assert ask.post(f"{scheduler}?name=real&live=true", data=HALL).status == 201
    task = {"taskId": "rush", "pickNodeId": "WEST", "dropNodeId": "EAST"}
    assert ask.post(f"{scheduler}/real/tasks", data=task).status == 201
    page = opened(watched.page, f"{fleets}/real")
    page.get_by_test_id("task-rush").click()

    expect(page.get_by_test_id("task-why")).to_contain_text("Task 'rush' waits: ")
    expect(page.get_by_test_id("panel-simulation").locator("summary")).to_have_text("Send a task")
    expect(page.get_by_role("form", name="Simulate a fault")).to_have_count(0)
    assert watched.errors == []
    assert ask.post(f"{scheduler}/real/close").ok


@pytest.mark.campaign
def test_a_pending_action_is_dropped_when_another_truck_is_selected(fleet: Page) -> None:
    fleet.get_by_test_id("truck-R1").click()
    fleet.get_by_test_id("do-PAUSE_ROBOT").click()
    expect(fleet.get_by_test_id("truck-send")).to_be_visible()
    fleet.get_by_test_id("truck-R2").click()

    expect(fleet.get_by_test_id("panel-truck").locator("h2")).to_have_text("R2")
    expect(fleet.get_by_test_id("truck-send")).to_have_count(0)
