"""The control room in a real browser, from the served package."""

import json
import re
import sys
from itertools import combinations
from pathlib import Path
from subprocess import run

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import Serve, Watched, open_live
from tests.campaigns import campaign_after


def test_the_page_opens_with_its_schedulers_and_without_console_errors(demo: str, watched: Watched) -> None:
    page = watched.page
    open_live(page, f"{demo}/")

    expect(page.get_by_test_id("scheduler-card-tally")).to_have_attribute("data-state", "ready")
    expect(page.get_by_test_id("readiness")).to_have_attribute("data-status", "ready")
    page.get_by_test_id("nav-tally").click()
    expect(page.get_by_test_id("scheduler")).to_have_attribute("data-live", "true")
    expect(page.get_by_test_id("connection")).to_have_attribute("data-state", "live")
    assert watched.errors == []


def test_every_scheduler_shows_live_figures_in_human_units(demo: str, watched: Watched) -> None:
    page = watched.page
    open_live(page, f"{demo}/")

    for scheduler in ("actions", "credit", "fleet", "jobs", "playback"):
        figures = page.get_by_test_id(f"scheduler-card-{scheduler}").get_by_test_id("figures")
        expect(figures.locator("dd")).to_have_count(4)
    expect(page.get_by_test_id("engine-actions-town")).to_contain_text(re.compile(r"\d (d|h|min)\b.* · "))
    assert watched.errors == []


def test_an_item_that_needs_attention_links_to_its_cause(demo: str, watched: Watched) -> None:
    page = watched.page
    open_live(page, f"{demo}/")

    # The archive of the demo never answers.
    page.get_by_test_id("need").get_by_role("link", name="archive did not answer").first.click()

    expect(page.get_by_test_id("panel-job")).to_contain_text("did not answer")
    expect(page.get_by_test_id("panel-dead")).to_be_visible()
    assert watched.errors == []


def test_the_page_of_a_scheduler_is_loaded_when_it_is_opened(demo: str, watched: Watched) -> None:
    page = watched.page
    fetched: set[str] = set()
    page.on("request", lambda request: fetched.update(re.findall(r"/assets/scheduler-(\w+)-", request.url)))
    open_live(page, f"{demo}/")
    assert not fetched

    page.get_by_test_id("nav-tally").click()
    expect(page.get_by_test_id("scheduler")).to_be_visible()
    page.get_by_test_id("nav-playback").click()
    expect(page.get_by_test_id("screen")).to_be_visible()

    assert fetched == {"generic", "playback"}


def test_new_events_appear_without_a_reload(demo: str, watched: Watched) -> None:
    page = watched.page
    open_live(page, f"{demo}/#/schedulers/tally")
    rows = page.get_by_test_id("events").locator("tbody tr")
    expect(rows.first).to_be_visible()
    newest = rows.first.inner_text()

    expect(rows.first).not_to_have_text(newest)

    assert watched.errors == []


def test_the_slider_shows_the_past_and_returns_to_live(demo: str, watched: Watched) -> None:
    page = watched.page
    open_live(page, f"{demo}/#/schedulers/tally")
    expect(page.get_by_test_id("time-slider-input")).to_be_enabled()

    page.get_by_test_id("time-slider-input").focus()
    page.keyboard.press("Home")

    expect(page.get_by_test_id("past-banner")).to_be_visible()
    expect(page.get_by_test_id("readout-record").locator("dd")).to_have_text("0")
    page.get_by_test_id("back-to-live").click()
    expect(page.get_by_test_id("past-banner")).to_be_hidden()
    assert watched.errors == []


def test_the_slider_shows_times_finds_incidents_and_plays(demo: str, watched: Watched) -> None:
    page = watched.page
    open_live(page, f"{demo}/#/schedulers/tally")
    expect(page.get_by_test_id("slider-ticks")).to_contain_text("tick")

    refused = page.request.post(f"{demo}/api/v1/tally/demo/commands", data={"type": "take", "amount": 1_000_000_000})
    assert refused.status == 409
    page.reload()
    page.get_by_test_id("incident-before").click()
    expect(page.get_by_test_id("slider-status")).to_contain_text("cannot be taken")
    expect(page.get_by_test_id("past-banner")).to_contain_text(re.compile("Viewing .*tick.*: the state after"))
    page.get_by_test_id("speed").select_option("100")
    page.get_by_test_id("play").click()

    expect(page.get_by_test_id("scheduler")).to_have_attribute("data-live", "true")
    expect(page.get_by_test_id("play")).to_have_attribute("aria-pressed", "false")
    assert watched.errors == []


@pytest.mark.campaign
def test_a_link_shows_the_same_view(demo: str, watched: Watched) -> None:
    page = watched.page
    open_live(page, f"{demo}/#/schedulers/tally")
    expect(page.get_by_test_id("time-slider-input")).to_be_enabled()
    page.get_by_test_id("time-slider-input").press("Home")
    expect(page.get_by_test_id("readout-record").locator("dd")).to_have_text("0")
    link = page.url
    open_live(page, f"{demo}/#/schedulers/jobs")
    page.get_by_test_id("tab-gates").click()
    expect(page.get_by_test_id("time-slider-input")).to_be_enabled()
    page.get_by_test_id("time-slider-input").press("Home")
    expect(page.get_by_test_id("past-moment")).to_be_visible()
    jobs_link = page.url

    other = page.context.new_page()
    other.goto(link)
    expect(other.get_by_test_id("readout-record").locator("dd")).to_have_text("0")
    other.goto(jobs_link)
    expect(other.get_by_test_id("past-moment")).to_be_visible()
    other.get_by_test_id("back-to-live").click()
    expect(other.get_by_test_id("tab-gates")).to_have_attribute("aria-pressed", "true")
    assert watched.errors == []


def test_the_page_is_exported_as_table_picture_and_state(demo: str, watched: Watched) -> None:
    page = watched.page
    open_live(page, f"{demo}/#/schedulers/fleet")
    expect(page.get_by_test_id("trucks").locator("tbody tr").first).to_be_visible()
    page.get_by_test_id("export").locator("summary").click()
    files = {}
    for kind in ("CSV", "PNG", "JSON"):
        with page.expect_download() as download:
            page.get_by_test_id(f"export-{kind}").first.click()
        files[kind] = download.value.path().read_bytes()

    assert files["CSV"].startswith(b"truck,state,why,task,speed,waiting\r\n")
    assert files["PNG"].startswith(b"\x89PNG")
    assert {truck["robot_id"] for truck in json.loads(files["JSON"])["trucks"]} == {"R1", "R2", "R3", "R4"}
    assert watched.errors == []


def test_help_links_to_the_documentation(demo: str, watched: Watched) -> None:
    page = watched.page
    open_live(page, f"{demo}/#/schedulers/fleet")
    page.get_by_test_id("help").locator("summary").click()

    page.get_by_test_id("help").get_by_role("link", name="Never a jam").click()

    expect(page.get_by_role("heading", level=1)).to_have_text(re.compile("^Never a jam"))
    page.locator("nav.md-nav--primary").get_by_role("link", name="Documentation").click()
    expect(page.get_by_role("heading", level=1)).to_have_text(re.compile("^Documentation"))
    assert watched.errors == []


def test_a_why_question_returns_a_chain_of_reasons(demo: str, watched: Watched) -> None:
    page = watched.page
    open_live(page, f"{demo}/#/schedulers/tally")
    page.get_by_test_id("why-choice").get_by_label("Question", exact=True).select_option("json")
    form = page.get_by_test_id("why-form")
    form.locator("textarea").fill('{"take": 1000000000}')

    form.get_by_role("button").click()

    expect(page.get_by_test_id("reason").first).to_have_attribute("data-code", "not_enough")
    expect(page.get_by_test_id("reason-chain")).to_contain_text("cannot be taken")
    assert watched.errors == []


def test_a_refused_command_shows_the_reason(demo: str, watched: Watched) -> None:
    page = watched.page
    open_live(page, f"{demo}/#/schedulers/tally")
    choice = page.get_by_test_id("command-choice")
    choice.get_by_label("Command", exact=True).select_option("Take")
    choice.get_by_test_id("field-amount").fill("1000000000")

    choice.get_by_test_id("send-command").click()

    expect(page.get_by_test_id("refusal")).to_have_attribute("data-code", "not_enough")
    assert [error for error in watched.errors if "409" not in error] == []


def test_the_json_form_has_an_example_that_works(demo: str, watched: Watched) -> None:
    page = watched.page
    open_live(page, f"{demo}/#/schedulers/tally")
    choice = page.get_by_test_id("command-choice")
    choice.get_by_label("Command", exact=True).select_option("json")
    form = page.get_by_test_id("command-form")

    form.locator("textarea").fill(form.locator("textarea").get_attribute("placeholder") or "")
    form.get_by_role("button").click()

    expect(page.get_by_test_id("command-done")).to_contain_text("Done (record")
    assert watched.errors == []


@pytest.mark.parametrize(
    ("engine", "command", "result"),
    [
        ("actions/town", "Submit an action", "Submitted .record|Done: by-hand"),
        ("playback/frame", "Show this next", r"Done \(record"),
    ],
)
def test_offered_questions_and_commands_work_unchanged(
    demo: str, watched: Watched, engine: str, command: str, result: str
) -> None:
    page = watched.page
    open_live(page, f"{demo}/#/schedulers/{engine}")
    why, choice = page.get_by_test_id("panel-why"), page.get_by_test_id("panel-command")
    expect(choice.get_by_label("Command", exact=True).locator("option", has_text=command)).to_have_count(1)

    why.get_by_test_id("ask-why").click()
    expect(why.get_by_test_id("reason").first).to_be_visible()
    choice.get_by_label("Command", exact=True).select_option(command)
    choice.get_by_test_id("send-command").click()

    expect(choice.get_by_test_id("command-done")).to_contain_text(re.compile(result))
    assert watched.errors == []


def test_schedulers_are_reached_by_keyboard_alone(demo: str, watched: Watched) -> None:
    page = watched.page
    open_live(page, f"{demo}/")
    page.keyboard.press("Tab")
    expect(page.locator(":focus")).to_have_text(re.compile("skip", re.IGNORECASE))
    for _ in range(30):
        page.keyboard.press("Tab")
        if page.locator(":focus").get_attribute("data-testid") == "nav-tally":
            break
    page.keyboard.press("Enter")

    expect(page.get_by_test_id("scheduler")).to_be_visible()
    expect(page.get_by_test_id("nav-tally")).to_have_attribute("aria-current", "page")


@pytest.mark.campaign
def test_the_chosen_theme_is_kept_after_a_reload(demo: str, watched: Watched) -> None:
    page = watched.page
    open_live(page, f"{demo}/")
    colours = []
    for theme in ("light", "dark"):
        page.get_by_test_id(f"theme-{theme}").click()
        page.reload()
        expect(page.get_by_test_id("scheduler-cards")).to_be_visible()
        colours.append(page.evaluate("getComputedStyle(document.body).backgroundColor"))

    assert colours[0] != colours[1]
    assert watched.errors == []


def test_a_narrow_screen_needs_no_sideways_scrolling(demo: str, watched: Watched) -> None:
    page = watched.page
    page.set_viewport_size({"width": 360, "height": 740})
    for place in ("/", "/#/schedulers/tally"):
        open_live(page, f"{demo}{place}")

        assert page.evaluate("document.documentElement.scrollWidth") <= 360


@pytest.mark.parametrize("width", campaign_after(1, [320, 390, 880]))
def test_nothing_overlaps_the_brand_on_a_narrow_screen(demo: str, watched: Watched, width: int) -> None:
    page = watched.page
    page.set_viewport_size({"width": width, "height": 844})
    open_live(page, f"{demo}/")
    boxes = [page.locator(selector).bounding_box() for selector in (".brand-words", ".side-foot", ".nav")]

    for a, b in combinations(boxes, 2):
        assert a is not None
        assert b is not None
        beside = a["x"] + a["width"] <= b["x"] or b["x"] + b["width"] <= a["x"]
        assert beside or a["y"] + a["height"] <= b["y"] or b["y"] + b["height"] <= a["y"]


@pytest.mark.campaign
def test_a_scheduler_without_engines_says_so(plain: str, watched: Watched) -> None:
    page = watched.page
    page.goto(f"{plain}/")

    expect(page.get_by_test_id("scheduler-card-actions")).to_contain_text("No engine yet")
    assert watched.errors == []


@pytest.mark.campaign
def test_sign_in_and_sign_out_with_a_token(serve: Serve, watched: Watched, tmp_path: Path) -> None:
    new = [sys.executable, "-m", "pendula", "token", "new", "--name", "ann", "--role", "operator", "--json"]
    answer = run([*new, "--data", str(tmp_path)], capture_output=True, text=True, check=True).stdout
    secret = json.loads(answer)["secret"]
    address = serve("--demo", data=tmp_path)
    page = watched.page
    page.goto(f"{address}/")

    expect(page.get_by_test_id("sign-in")).to_be_visible()
    # No connection badge before sign-in.
    expect(page.get_by_test_id("connection")).to_have_count(0)
    page.get_by_test_id("token").fill(secret)
    page.keyboard.press("Enter")

    expect(page.get_by_test_id("who")).to_contain_text("ann")
    expect(page.get_by_test_id("scheduler-card-tally")).to_be_visible()
    assert secret not in page.url
    cookies = page.context.cookies()
    assert [(cookie["httpOnly"], cookie["sameSite"]) for cookie in cookies] == [(True, "Strict")]
    page.get_by_test_id("nav-tally").click()
    expect(page.get_by_test_id("events").locator("tbody tr").first).to_be_visible()
    expect(page.get_by_test_id("connection")).to_have_attribute("data-state", "live")
    page.get_by_test_id("sign-out").click()
    expect(page.get_by_test_id("sign-in")).to_be_visible()
