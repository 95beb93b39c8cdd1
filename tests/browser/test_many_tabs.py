"""Many tabs of one browser: they share one connection, show when the server is down, and are live again afterwards."""

import json
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, Request, expect

from tests.browser.conftest import TIMEOUT_MS, wait_for
from tests.ports import free_port

# Several schedulers; those with the most expensive pages only once.
SCHEDULERS = ("tally", "actions", "playback", "fleet", "credit", "tally", "playback", "tally", "playback", "tally")


class KillableServer:
    """A server that can be killed and started again at the same address, with the same data."""

    def __init__(self, data: Path) -> None:
        self._data = data
        self._port = free_port()
        self.address = f"http://127.0.0.1:{self._port}"
        self._server: subprocess.Popen[str] | None = None

    def start(self) -> None:
        flags = ("--demo", "--port", str(self._port), "--data", str(self._data), "--json")
        command = [sys.executable, "-m", "tests.server.with_tally", "serve", *flags]
        self._server = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        assert self._server.stdout is not None
        assert json.loads(self._server.stdout.readline())["address"] == self.address

    def kill(self) -> None:
        if self._server is not None:
            self._server.send_signal(signal.SIGKILL)
            self._server.communicate(timeout=300)
            self._server = None


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KillableServer]:
    killable = KillableServer(tmp_path_factory.mktemp("data"))
    killable.start()
    yield killable
    killable.kill()


@pytest.fixture(scope="module", params=[4, pytest.param(10, marks=pytest.mark.campaign)])
def tabs(server: KillableServer, browser: Browser, request: pytest.FixtureRequest) -> Iterator[list[Page]]:
    context = browser.new_context(reduced_motion="reduce")
    context.set_default_timeout(TIMEOUT_MS)
    yield [opened(context, f"{server.address}/#/schedulers/{scheduler}") for scheduler in SCHEDULERS[: request.param]]
    context.close()


# No shared workers, and a visibility that the test controls: without a screen all tabs are visible.
WITHOUT_SHARED_WORKER = """
delete globalThis.SharedWorker;
let shown = "visible";
Object.defineProperty(document, "visibilityState", { get: () => shown });
globalThis.setVisibility = (now) => { shown = now; document.dispatchEvent(new Event("visibilitychange")); };
"""


def opened(context: BrowserContext, address: str) -> Page:
    page = context.new_page()
    # Do not wait, so that the tabs load in parallel.
    page.goto(address, wait_until="commit")
    return page


def expect_live(page: Page) -> None:
    wait_for(page, "[data-testid=connection][data-state=live]")


def expect_new_events(pages: list[Page]) -> None:
    """Wait until a new event of the demo is shown in each tab."""
    newest = [page.get_by_test_id("events").locator("tbody tr").first for page in pages]
    for row in newest:
        expect(row).to_be_visible(timeout=TIMEOUT_MS)
    texts = [row.inner_text() for row in newest]
    for page, row, text in zip(pages, newest, texts, strict=True):
        expect(row).not_to_have_text(text, timeout=TIMEOUT_MS)
        expect_live(page)


def test_many_tabs_are_live_and_share_one_connection(tabs: list[Page]) -> None:
    streams: list[Request] = []
    for page in tabs:
        page.on("request", lambda request: streams.append(request) if request.resource_type == "eventsource" else None)
        expect_live(page)
    for page in tabs:
        page.get_by_test_id("nav-tally").click()
    expect_new_events(tabs)

    # Only the shared worker opens streams.
    assert streams == []


def test_every_tab_shows_a_lost_connection_and_recovers(server: KillableServer, tabs: list[Page]) -> None:
    for page in tabs:
        expect_live(page)

    server.kill()

    for page in tabs:
        badge = page.get_by_test_id("connection")
        expect(badge).to_contain_text(re.compile(r"Connection lost at \d\d:\d\d:\d\d"), timeout=TIMEOUT_MS)
        expect(page.get_by_test_id("scheduler")).to_be_visible()
        grey = page.get_by_test_id("scheduler").evaluate(
            "scheduler => getComputedStyle(scheduler.closest('main > *')).filter"
        )
        assert grey == "grayscale(1)"
    server.start()
    for page in tabs:
        expect_live(page)
    expect_new_events(tabs)


@pytest.mark.campaign
def test_without_shared_workers_only_the_visible_tab_has_a_connection(server: KillableServer, browser: Browser) -> None:
    context = browser.new_context(reduced_motion="reduce")
    context.set_default_timeout(TIMEOUT_MS)
    context.add_init_script(WITHOUT_SHARED_WORKER)
    pages: list[Page] = []
    # More tabs than the browser allows connections to one host.
    for _ in range(7):
        for page in pages:
            page.evaluate("setVisibility('hidden')")
        pages.append(opened(context, f"{server.address}/#/schedulers/tally"))
        expect_live(pages[-1])
    assert pages[-1].evaluate("typeof SharedWorker") == "undefined"
    pages[-1].evaluate("setVisibility('hidden')")
    pages[0].evaluate("setVisibility('visible')")

    expect_new_events(pages[:1])
    context.close()
