"""Ten tabs of one browser: all of them live by one connection, told when the server is gone, and live again after."""

import json
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, Request, expect

from tests.browser.conftest import PATIENCE_MS, there
from tests.ports import free_port

# Several schedulers, and those that draw most only once.
SCHEDULERS = ("tally", "actions", "playback", "fleet", "credit", "tally", "playback", "tally", "playback", "tally")


class Killable:
    """A server that can be killed and started again at the same address, with the same data."""

    def __init__(self, data: Path) -> None:
        self._data = data
        self._port = free_port()
        self.address = f"http://127.0.0.1:{self._port}"
        self._server: subprocess.Popen[str] | None = None

    def start(self) -> None:
        flags = ("--demo", "--port", str(self._port), "--data", str(self._data), "--json")
        command = [sys.executable, "-m", "pendula", "serve", *flags]
        self._server = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        assert self._server.stdout is not None
        assert json.loads(self._server.stdout.readline())["address"] == self.address

    def kill(self) -> None:
        if self._server is not None:
            self._server.send_signal(signal.SIGKILL)
            self._server.communicate(timeout=120)
            self._server = None


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Killable]:
    killable = Killable(tmp_path_factory.mktemp("data"))
    killable.start()
    yield killable
    killable.kill()


@pytest.fixture(scope="module")
def tabs(server: Killable, browser: Browser) -> Iterator[list[Page]]:
    context = browser.new_context(reduced_motion="reduce")
    context.set_default_timeout(PATIENCE_MS)
    yield [opened(context, f"{server.address}/#/schedulers/{scheduler}") for scheduler in SCHEDULERS]
    context.close()


# A browser without shared workers, and tabs that can be told that nobody looks at them: without a screen, all of them
# are shown at once.
ALONE = """
delete globalThis.SharedWorker;
let shown = "visible";
Object.defineProperty(document, "visibilityState", { get: () => shown });
globalThis.look = (now) => { shown = now; document.dispatchEvent(new Event("visibilitychange")); };
"""


def opened(context: BrowserContext, address: str) -> Page:
    page = context.new_page()
    # The next one is opened beside it.
    page.goto(address, wait_until="commit")
    return page


def expect_live(page: Page) -> None:
    there(page, "[data-testid=connection][data-state=live]")


def expect_news(pages: list[Page]) -> None:
    """The demo goes on, and what it does arrives in each of these tabs; they wait for it together."""
    newest = [page.get_by_test_id("events").locator("tbody tr").first for page in pages]
    for row in newest:
        expect(row).to_be_visible(timeout=PATIENCE_MS)
    said = [row.inner_text() for row in newest]
    for page, row, text in zip(pages, newest, said, strict=True):
        expect(row).not_to_have_text(text, timeout=PATIENCE_MS)
        expect_live(page)


def test_ten_tabs_are_live_and_answer_clicks(tabs: list[Page]) -> None:
    streams: list[Request] = []
    for page in tabs:
        page.on("request", lambda one: streams.append(one) if one.resource_type == "eventsource" else None)
        expect_live(page)
    for page in tabs:
        page.get_by_test_id("nav-tally").click()
    expect_news(tabs)

    # Streams are those of the worker, not of the pages.
    assert streams == []


def test_every_tab_says_that_the_server_is_gone_and_comes_back_with_it(server: Killable, tabs: list[Page]) -> None:
    for page in tabs:
        expect_live(page)

    server.kill()

    for page in tabs:
        badge = page.get_by_test_id("connection")
        expect(badge).to_contain_text(re.compile(r"Connection lost at \d\d:\d\d:\d\d"), timeout=PATIENCE_MS)
        expect(page.get_by_test_id("scheduler")).to_be_visible()
        grey = page.get_by_test_id("scheduler").evaluate(
            "scheduler => getComputedStyle(scheduler.closest('main > *')).filter"
        )
        assert grey == "grayscale(1)"
    server.start()
    for page in tabs:
        expect_live(page)
    expect_news(tabs)


def test_without_a_shared_worker_the_tab_that_is_looked_at_is_live_and_no_other_is_in_its_way(
    server: Killable, browser: Browser
) -> None:
    context = browser.new_context(reduced_motion="reduce")
    context.set_default_timeout(PATIENCE_MS)
    context.add_init_script(ALONE)
    pages: list[Page] = []
    # More than a browser has connections to one host.
    for _ in range(7):
        for page in pages:
            page.evaluate("look('hidden')")
        pages.append(opened(context, f"{server.address}/#/schedulers/tally"))
        expect_live(pages[-1])
    assert pages[-1].evaluate("typeof SharedWorker") == "undefined"
    pages[-1].evaluate("look('hidden')")
    pages[0].evaluate("look('visible')")

    expect_news(pages[:1])
    context.close()
