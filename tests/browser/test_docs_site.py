"""The documentation site in a real browser, from the served package: search, navigation, colours, missing pages."""

import re

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.browser.conftest import Watched
from tests.campaigns import campaign_except

TITLE = re.compile(r"^\s*Leases and fences")


def search(page: Page, words: str, name: re.Pattern[str]) -> Locator:
    """The first result whose text matches `name`."""
    page.get_by_role("textbox", name="Search").click()
    page.get_by_role("textbox", name="Search").press_sequentially(words)
    return page.locator(".md-search-result__link", has_text=name).first


def sidebar(page: Page) -> Locator:
    return page.locator("nav.md-nav--primary")


def test_a_search_finds_a_page_with_links_to_its_neighbours(plain: str, watched: Watched) -> None:
    page = watched.page
    page.goto(f"{plain}/docs/")

    search(page, "leases and fences", TITLE).click()
    expect(page.get_by_role("heading", level=1)).to_have_text(TITLE)
    page.get_by_role("link", name="Next").click()
    expect(page.get_by_role("heading", level=1)).to_have_text(re.compile("^Effects that happen once"))
    page.get_by_role("link", name="Previous").click()
    expect(page.get_by_role("heading", level=1)).to_have_text(TITLE)

    assert watched.errors == []


@pytest.mark.campaign
def test_generated_pages_are_in_the_sidebar_and_in_the_search(plain: str, watched: Watched) -> None:
    page = watched.page
    page.goto(f"{plain}/docs/reference/python/jobs.html")

    expect(sidebar(page).get_by_role("link", name="Codes")).to_be_visible()
    search(page, "defer_within", re.compile("defer_within")).click()
    expect(page.locator(r"[id='pendula.jobs.defer_within']")).to_be_in_viewport()

    assert watched.errors == []


@pytest.mark.parametrize(
    "path", campaign_except(["how-to/deeper/nothing"], ["nothing.html", "how-to/nothing.html", "how-to/deeper/nothing"])
)
def test_a_missing_page_has_the_layout_of_the_site(plain: str, watched: Watched, path: str) -> None:
    page = watched.page

    answer = page.goto(f"{plain}/docs/{path}")

    assert answer is not None
    assert answer.status == 404
    expect(page.get_by_role("heading", level=1)).to_have_text("There is no such page")
    sidebar(page).get_by_role("link", name="Documentation").click()
    expect(page.get_by_role("heading", level=1)).to_have_text(re.compile("^Documentation"))


@pytest.mark.campaign
def test_the_chosen_theme_is_kept_on_the_next_page(plain: str, watched: Watched) -> None:
    page = watched.page
    page.goto(f"{plain}/docs/")

    expect(page.locator("body")).to_have_attribute("data-md-color-scheme", "default")
    page.locator("label[title='Dark']").click()
    expect(page.locator("body")).to_have_attribute("data-md-color-scheme", "slate")
    page.goto(f"{plain}/docs/reference/glossary.html")
    expect(page.locator("body")).to_have_attribute("data-md-color-scheme", "slate")

    assert watched.errors == []


def test_nothing_is_fetched_from_another_host(plain: str, watched: Watched) -> None:
    page = watched.page
    requests: list[str] = []
    page.on("request", lambda request: requests.append(request.url))

    page.goto(f"{plain}/docs/")
    expect(search(page, "journal", re.compile("journal"))).to_be_visible()

    assert [url for url in requests if not url.startswith(f"{plain}/docs/")] == []
