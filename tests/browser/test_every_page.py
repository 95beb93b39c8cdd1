"""Every page in light and dark, on a narrow and a wide screen: accessible, not cut off, and saved as a screenshot.

Accessibility is checked with axe-core: contrast, names, roles, order of headings.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page

from tests.browser.conftest import TIMEOUT_MS, wait_for
from tests.campaigns import campaign_except

ROOT = Path(__file__).resolve().parents[2]
AXE = ROOT / "web/node_modules/axe-core/axe.min.js"
SCREENSHOTS = ROOT / ".pendula/screenshots"
PAGES = {
    "overview": "/#/",
    "actions": "/#/schedulers/actions",
    "credit": "/#/schedulers/credit",
    "fleet": "/#/schedulers/fleet",
    "jobs": "/#/schedulers/jobs",
    "playback": "/#/schedulers/playback",
    "tally": "/#/schedulers/tally",
    "docs": "/docs/",
    "a-page-of-the-docs": "/docs/tutorials/first-engine.html",
    "a-page-of-the-python-reference": "/docs/reference/python/testing.html",
}
# An element that each page has once it is loaded; an empty page is not checked.
LOADED = {
    "overview": "[data-testid=figures]",
    "actions": "[data-testid=panel-waiting]",
    "credit": "[data-testid=panel-bottlenecks]",
    "fleet": "[data-testid=trucks] tbody tr",
    "jobs": "[data-testid=jobs] tbody tr",
    "playback": "[data-testid=folded-reason]",
    "tally": "[data-testid=panel-now] dl",
    "docs": "main h1",
    "a-page-of-the-docs": "main h1",
    "a-page-of-the-python-reference": "main h1",
}
SCREENS = [
    pytest.param((390, "dark"), id="narrow-dark"),
    pytest.param((1280, "light"), id="wide-light", marks=pytest.mark.long),
    pytest.param((1280, "dark"), id="wide-dark", marks=pytest.mark.long),
    pytest.param((390, "light"), id="narrow-light", marks=pytest.mark.long),
]


@pytest.fixture(scope="module", params=SCREENS)
def screen(browser: Browser, request: pytest.FixtureRequest) -> Iterator[tuple[Page, str]]:
    width, scheme = request.param
    context = browser.new_context(
        viewport={"width": width, "height": 900}, color_scheme=scheme, reduced_motion="reduce"
    )
    context.set_default_timeout(TIMEOUT_MS)
    yield context.new_page(), f"{width}-{scheme}"
    context.close()


@pytest.mark.parametrize("name", campaign_except(("overview", "credit", "fleet", "jobs", "a-page-of-the-docs"), PAGES))
def test_a_page_is_accessible(demo: str, screen: tuple[Page, str], name: str) -> None:
    page, kind = screen
    page.goto(f"{demo}{PAGES[name]}")
    wait_for(page, LOADED[name])

    SCREENSHOTS.mkdir(parents=True, exist_ok=True)
    page.screenshot(path=str(SCREENSHOTS / f"{name}-{kind}.png"), full_page=True)

    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    page.evaluate("for (const fold of document.querySelectorAll('details')) fold.open = true")
    assert serious_findings(page) == []


def serious_findings(page: Page) -> list[tuple[str, str]]:
    """Rule and element of each serious or critical finding of axe-core."""
    page.evaluate(AXE.read_text(encoding="utf-8"))
    findings: list[dict[str, Any]] = page.evaluate("axe.run(document).then((result) => result.violations)")
    return [
        (finding["id"], node["html"][:200] + " | " + node["failureSummary"][:200])
        for finding in findings
        if finding["impact"] in ("serious", "critical")
        for node in finding["nodes"]
    ]
