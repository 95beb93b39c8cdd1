"""The page of jobs in a real browser, with the demo: dead letters, objects with their state machine, gates."""

from typing import Any

import pytest
from playwright.sync_api import Page, expect

from tests.browser.conftest import Watched, wait_for


@pytest.fixture
def page(demo: str, watched: Watched) -> Page:
    watched.page.goto(f"{demo}/#/schedulers/jobs")
    wait_for(watched.page, "[data-testid=due-line]")
    return watched.page


def test_a_dead_letter_is_found_and_requeued(page: Page, watched: Watched) -> None:
    expect(page.get_by_test_id("readout-dead-letters")).to_have_attribute("data-alarm", "true")
    page.get_by_test_id("tab-dead").click()
    letter = page.get_by_test_id("dead-letter").last
    job = letter.get_attribute("data-job")
    expect(letter).to_contain_text("the archive did not answer")

    letter.get_by_test_id("requeue").click()

    expect(page.get_by_test_id("dead-status")).to_have_text(f"Requeued {job}.")
    expect(page.locator(f"[data-job={job}]")).to_have_count(0)
    page.goto(f"{page.url.split('#')[0]}#/schedulers/jobs/{job}")
    expect(page.get_by_test_id("panel-job").get_by_test_id("trail")).to_contain_text("requeued in the control room")
    assert watched.errors == []


def test_an_object_shows_its_current_state_and_why(page: Page, watched: Watched) -> None:
    page.get_by_test_id("tab-objects").click()
    page.get_by_test_id("objects-table").get_by_role("link", name="library-004-poisoned").click()

    panel = page.get_by_test_id("panel-object")
    expect(panel.get_by_test_id("why-sentence")).to_contain_text("memory library-004-poisoned has been")
    expect(panel.get_by_test_id("current-state")).to_have_count(1)
    # The object may be in transition; drawing and sentence agree at some moment.
    page.wait_for_function(
        """() => {
             const panel = document.querySelector("[data-testid=panel-object]");
             const place = panel.querySelector("[data-testid=current-state]")?.dataset.place;
             return panel.querySelector("[data-testid=why-sentence]")?.textContent.includes(`has been ${place} `);
           }"""
    )
    expect(panel.get_by_test_id("trail-event").last).to_contain_text("reported by a visitor")
    page.set_viewport_size({"width": 390, "height": 800})
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    assert watched.errors == []


def test_a_gate_is_set(page: Page, watched: Watched) -> None:
    page.get_by_test_id("tab-gates").click()
    page.get_by_test_id("gate-name").select_option("risk_gate")
    page.get_by_test_id("gate-verdict").select_option("limit")
    page.get_by_test_id("gate-reason").fill("the week before the election")
    page.get_by_test_id("your-name").fill("Ada")

    page.get_by_test_id("set-gate").click()

    expect(page.get_by_test_id("gate-status")).to_have_text("Set risk gate to limit (version 2).")
    row = page.get_by_test_id("gates-table").get_by_role("row", name="risk gate")
    expect(row).to_contain_text("limit")
    expect(row).to_contain_text("Ada")
    assert watched.errors == []


def create(page: Page, path: str, **body: object) -> dict[str, Any]:
    """An object or a job that the demo does not touch."""
    server = page.url.split("#")[0]
    answer = page.request.post(f"{server}scheduler/{path}", data=body)
    assert answer.ok, answer.text()
    return dict(answer.json())


def test_a_decision_about_an_object_is_confirmed_first(page: Page, watched: Watched) -> None:
    page.set_viewport_size({"width": 390, "height": 800})
    create(page, "objects", object_type="memory", object_id="mine-1", evidence_refs=["note:1"])
    page.goto(f"{page.url.split('#')[0]}#/schedulers/jobs/memory:mine-1")
    action = page.get_by_test_id("action-decide")
    action.locator("summary").click()
    action.get_by_test_id("action-decide-finding").select_option(label="verify: suspicious → quarantine")
    action.get_by_test_id("action-decide-reason").fill("the ink is too fresh")
    action.get_by_test_id("your-name").fill("Ada")

    action.get_by_test_id("action-decide-ask").click()
    expect(action).to_contain_text("Change mine-1 from")
    action.get_by_test_id("action-decide-confirm").click()

    panel = page.get_by_test_id("panel-object")
    expect(panel.get_by_test_id("why-sentence")).to_contain_text("because the ink is too fresh")
    expect(panel.get_by_test_id("trail-event").first).to_contain_text("user Ada")
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    assert watched.errors == []


@pytest.mark.campaign
def test_evidence_is_attached_and_a_job_cancelled(page: Page, watched: Watched) -> None:
    create(page, "objects", object_type="memory", object_id="mine-2", evidence_refs=["note:1"])
    page.goto(f"{page.url.split('#')[0]}#/schedulers/jobs/memory:mine-2")
    action = page.get_by_test_id("action-evidence")
    action.locator("summary").click()
    action.get_by_test_id("action-evidence-refs").fill("photo:1, photo:2")
    action.get_by_test_id("action-evidence-reason").fill("found in the attic")
    action.get_by_test_id("action-evidence-ask").click()
    action.get_by_test_id("action-evidence-confirm").click()
    expect(action.get_by_test_id("action-evidence-status")).to_contain_text("Attached evidence to")

    far = {"object_type": "memory", "object_id": "mine-3", "action": "archive", "run_at": "2040-01-01T00:00:00Z"}
    job = create(page, "jobs", **far)["job"]["job_id"]
    page.goto(f"{page.url.split('#')[0]}#/schedulers/jobs/{job}")
    cancel = page.get_by_test_id("action-cancel")
    cancel.locator("summary").click()
    cancel.get_by_test_id("action-cancel-reason").fill("not today")
    cancel.get_by_test_id("action-cancel-ask").click()
    cancel.get_by_test_id("action-cancel-confirm").click()

    expect(page.get_by_test_id("panel-job").get_by_test_id("trail")).to_contain_text("cancelled: not today")
    assert watched.errors == []


@pytest.mark.campaign
def test_the_slider_shows_the_past_and_returns_to_live(page: Page, watched: Watched) -> None:
    page.get_by_test_id("tab-objects").click()
    page.get_by_test_id("objects-table").get_by_role("link", name="library-004-poisoned").click()
    slider = page.get_by_test_id("time-slider-input")
    expect(slider).to_be_enabled()

    slider.fill("20")

    expect(page.get_by_test_id("past-banner")).to_contain_text("the state after event 20")
    expect(page.get_by_test_id("past-moment")).to_contain_text("Event")
    expect(page.get_by_test_id("past-places")).to_contain_text("candidate")
    expect(page.get_by_test_id("panel-object").get_by_test_id("why-sentence")).to_contain_text("was")
    expect(page.get_by_test_id("object-actions")).to_have_count(0)
    expect(page.get_by_test_id("panel-objects")).to_have_count(0)
    page.set_viewport_size({"width": 390, "height": 800})
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    page.get_by_test_id("back-to-live").click()
    expect(page.get_by_test_id("past-moment")).to_have_count(0)
    expect(page.get_by_test_id("panel-objects")).to_be_visible()
    assert watched.errors == []
