"""The page of a player in a real browser: the running frame of the demo, and a hall whose item does not change."""

import pytest
from playwright.sync_api import Page, expect

from tests.browser.conftest import Watched, open_live, wait_for

HALL = {"name": "hall", "seed": 1, "channels": ["a", "b"], "dwell_ms": 3_600_000}


def opened(watched: Watched, demo: str, player: str = "frame") -> Page:
    page = watched.page
    open_live(page, f"{demo}/#/schedulers/playback/{player}")
    wait_for(page, "[data-testid=screen] figure svg")
    return page


@pytest.fixture
def hall(demo: str, watched: Watched) -> Page:
    """The page of a player that shows record 1 of channel a until a command changes it."""
    api = f"{demo}/api/v1/playback"
    ask = watched.page.request
    if ask.get(f"{api}/hall/now").status == 404:
        for channel, first in (("a", 1), ("b", 11)):
            records = [{"id": first + place, "ts": 100 - place} for place in range(3)]
            assert ask.put(f"{api}/channels/{channel}", data={"records": records}).ok
        assert ask.post(api, data=HALL).status == 201
    else:
        assert ask.post(f"{api}/hall/reset", data={"reason": "the next test"}).ok
        assert ask.post(f"{api}/hall/next", headers={"content-type": "application/json"}).ok
    return opened(watched, demo, "hall")


def test_the_frame_is_live(demo: str, watched: Watched) -> None:
    page = opened(watched, demo)
    before = page.get_by_test_id("on-id").inner_text()

    expect(page.get_by_test_id("on-id")).not_to_have_text(before)

    expect(page.get_by_test_id("title")).to_have_text("Playback")
    # More items may have been shown since.
    expect(page.get_by_test_id("before").locator("button", has_text=before).first).to_be_visible()
    expect(page.get_by_test_id("coming").locator("svg").first).to_be_visible()
    expect(page.get_by_test_id("exposure").locator("[data-channel]")).to_have_count(3)
    assert page.get_by_test_id("dwell").locator("progress").evaluate("p => p.value") <= 1
    page.set_viewport_size({"width": 360, "height": 740})
    assert page.evaluate("document.documentElement.scrollWidth") <= 360
    assert watched.errors == []


def test_the_buttons_move_the_player(hall: Page, watched: Watched) -> None:
    on = hall.get_by_test_id("on-id")
    expect(on).to_have_text("1")

    hall.get_by_test_id("do-next").click()
    expect(on).to_have_text("11")
    hall.get_by_test_id("do-prev").click()
    expect(on).to_have_text("1")
    hall.get_by_test_id("do-pause").click()
    expect(hall.get_by_test_id("dwell")).to_contain_text("paused")
    hall.get_by_test_id("do-resume").click()
    expect(hall.get_by_test_id("do-pause")).to_be_visible()
    hall.get_by_test_id("do-insert").click()
    expect(hall.get_by_test_id("pool").locator("tbody tr")).to_have_count(1)
    expect(hall.get_by_test_id("pool")).to_contain_text("50.0 %")
    hall.get_by_test_id("do-ban").click()
    expect(on).not_to_have_text("1")
    expect(hall.get_by_test_id("exposure")).to_contain_text("1 banned")
    assert watched.errors == []


def test_a_requested_item_is_shown_next(hall: Page, watched: Watched) -> None:
    coming = hall.get_by_test_id("coming").locator("button")
    expect(coming.nth(2)).to_contain_text("12")

    coming.nth(2).click()
    expect(hall.get_by_test_id("panel-viewer-controls")).to_contain_text("Item 12 of b")
    hall.get_by_test_id("do-pin").click()
    expect(coming.first).to_have_attribute("data-origin", "pinned")
    expect(coming.first).to_contain_text("12")
    hall.get_by_test_id("do-next").click()
    hall.get_by_test_id("why-now").click()

    expect(hall.get_by_test_id("on-id")).to_have_text("12")
    expect(hall.get_by_test_id("screen")).to_contain_text("requested by a viewer")
    why = hall.get_by_test_id("panel-why-item")
    expect(why.get_by_test_id("reason").first).to_have_attribute("data-code", "pinned")
    # It does not use up the turn of a channel.
    expect(coming.first).to_contain_text("11")
    assert watched.errors == []


@pytest.mark.campaign
def test_a_banned_artwork_leaves_every_channel_until_the_ban_is_lifted(hall: Page, watched: Watched) -> None:
    coming, bans = hall.get_by_test_id("coming"), hall.get_by_test_id("bans")
    expect(coming.get_by_text("11", exact=True).first).to_be_visible()

    coming.locator("button").first.click()
    hall.get_by_test_id("do-ban-artwork").click()
    expect(bans.locator("li")).to_have_count(1)
    expect(bans).to_contain_text("11")
    hall.get_by_test_id("do-next").click()
    expect(coming.locator("button").first).to_be_visible()
    expect(coming.get_by_text("11", exact=True)).to_have_count(0)
    hall.get_by_test_id("do-pin").click()
    expect(hall.get_by_test_id("panel-viewer-controls").get_by_role("alert")).to_contain_text("Artwork 11 is banned")

    hall.get_by_test_id("lift-11").click()

    expect(bans).to_have_count(0)
    assert [error for error in watched.errors if "422" not in error and "409" not in error] == []


def test_the_share_of_a_paused_channel_goes_to_the_other(hall: Page, watched: Watched) -> None:
    shares = hall.get_by_test_id("exposure")
    pause = hall.get_by_test_id("channel-b")
    expect(shares.locator("[data-channel=a]")).to_contain_text("target 50.0 %")

    pause.click()
    expect(pause).to_have_attribute("aria-pressed", "true")
    expect(shares.locator("[data-channel=b]")).to_contain_text("paused")
    expect(shares.locator("[data-channel=a]")).to_contain_text("target 100.0 %")
    hall.get_by_test_id("do-next").click()
    expect(hall.get_by_test_id("on-channel")).to_have_text("a")
    expect(hall.get_by_test_id("coming").locator("button", has_text="b")).to_have_count(0)

    pause.click()

    expect(pause).to_have_text("Pause")
    expect(shares.locator("[data-channel=b]")).to_contain_text("target 50.0 %")
    assert watched.errors == []


def test_viewer_controls_are_disabled_in_the_past(hall: Page, watched: Watched) -> None:
    expect(hall.get_by_test_id("time-slider-input")).to_be_enabled()
    hall.get_by_test_id("time-slider-input").focus()
    hall.keyboard.press("Home")
    expect(hall.get_by_test_id("past-banner")).to_be_visible()

    for button in ("do-pin", "do-ban-artwork", "channel-a", "channel-b"):
        expect(hall.get_by_test_id(button)).to_be_disabled()
    assert watched.errors == []


def test_a_selected_item_shows_why(hall: Page, watched: Watched) -> None:
    reasons = hall.get_by_test_id("panel-why-item").get_by_test_id("reason")
    expect(reasons.first).to_have_attribute("data-code", "turn_of_channel")
    expect(reasons.first).to_be_hidden()
    hall.get_by_test_id("folded-sentence").click()
    expect(reasons.first).to_be_visible()

    hall.get_by_test_id("coming").locator("button").first.click()

    expect(hall.get_by_test_id("panel-why-item")).to_contain_text("Why item 2 of b")
    expect(reasons.nth(2)).to_have_attribute("data-code", "largest_credit")
    expect(reasons.nth(2)).to_contain_text("a 32768, b 32768")
    hall.get_by_test_id("why-now").click()
    expect(hall.get_by_test_id("panel-why-item")).to_contain_text("Why item 1 of a")
    assert watched.errors == []


@pytest.mark.campaign
def test_the_slider_shows_the_past_of_the_player(hall: Page, watched: Watched) -> None:
    hall.get_by_test_id("do-next").click()
    expect(hall.get_by_test_id("time-slider-input")).to_be_enabled()

    hall.get_by_test_id("time-slider-input").focus()
    hall.keyboard.press("Home")

    expect(hall.get_by_test_id("past-banner")).to_be_visible()
    expect(hall.get_by_test_id("screen")).to_contain_text("Shown then")
    expect(hall.get_by_test_id("on-id")).to_have_text("1")
    expect(hall.get_by_test_id("do-next")).to_be_disabled()
    hall.get_by_test_id("back-to-live").click()
    expect(hall.get_by_test_id("do-next")).to_be_enabled()
    assert watched.errors == []
