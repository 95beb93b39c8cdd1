"""A real Chromium and a real server, started from the package as a user would."""

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partialmethod
from pathlib import Path

import pytest
from playwright.sync_api import (
    APIRequestContext,
    Browser,
    ConsoleMessage,
    Error,
    Page,
    ViewportSize,
    expect,
    sync_playwright,
)

from tests.server.readiness import wait_until_ready

FLAGS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)
NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")

# Long enough for a busy machine with few cores.
TIMEOUT_MS = 120_000
SCREEN: ViewportSize = {"width": 1280, "height": 720}

Serve = Callable[..., str]

expect.set_options(timeout=TIMEOUT_MS)

# The server closes idle connections: a request that meets such a close (ECONNRESET) is sent again.
for method in ("get", "post", "put"):
    setattr(APIRequestContext, method, partialmethod(getattr(APIRequestContext, method), max_retries=3))


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    program = os.environ.get("CHROMIUM") or next((path for name in NAMES if (path := shutil.which(name))), None)
    assert program, "no Chromium: set CHROMIUM to its path, or run ./test, which finds or installs one"
    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=program, args=list(FLAGS))
        yield chromium
        chromium.close()


@contextmanager
def servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Serve]:
    """Start servers. Each is stopped at the end and must exit cleanly."""
    started: list[subprocess.Popen[str]] = []

    def start(*flags: str, data: Path | None = None) -> str:
        place = data or tmp_path_factory.mktemp("data")
        command = [
            sys.executable,
            "-m",
            "tests.server.with_tally",
            "serve",
            "--port",
            "0",
            "--data",
            str(place),
            "--json",
            *flags,
        ]
        server = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        started.append(server)
        assert server.stdout is not None
        address: str = json.loads(server.stdout.readline())["address"]
        wait_until_ready(address)
        return address

    yield start
    for server in started:
        server.send_signal(signal.SIGTERM)
    for server in started:
        server.communicate(timeout=300)
        assert server.returncode == 0


@pytest.fixture(scope="module")
def serve(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Serve]:
    """Servers for one test module."""
    with servers(tmp_path_factory) as start:
        yield start


@pytest.fixture(scope="session")
def plain(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A server without the demo, shared by all modules; a module adds data only to its own scheduler."""
    with servers(tmp_path_factory) as start:
        yield start()


@pytest.fixture(scope="session")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The demo, shared by all modules; the tests of one scheduler do not touch the others."""
    with servers(tmp_path_factory) as start:
        yield start("--demo")


def wait_for(page: Page, selector: str) -> None:
    """Wait until an element is on the page; faster than `expect`, which polls only twice a second."""
    page.wait_for_function("selector => document.querySelector(selector) !== null", arg=selector)


def open_live(page: Page, address: str) -> None:
    """Open a page and wait until its stream is live."""
    page.goto(address)
    wait_for(page, "[data-testid=connection][data-state=live]")


class Watched:
    """A page that records console errors, warnings and page errors."""

    def __init__(self, page: Page) -> None:
        self.page = page
        self.errors: list[str] = []
        page.on("console", self._record_message)
        page.on("pageerror", self._record_error)

    def detach(self) -> None:
        """Stop recording, so that later messages do not count for the next test."""
        self.page.remove_listener("console", self._record_message)
        self.page.remove_listener("pageerror", self._record_error)

    def _record_message(self, message: ConsoleMessage) -> None:
        if message.type in ("error", "warning"):
            self.errors.append(f"{message.type}: {message.text}")

    def _record_error(self, error: Error) -> None:
        self.errors.append(f"page error: {error}")


@pytest.fixture(scope="session")
def tab(browser: Browser) -> Iterator[Page]:
    """One tab for all tests; a new one needs half a second more per page on two cores."""
    context = browser.new_context(viewport=SCREEN)
    context.set_default_timeout(TIMEOUT_MS)
    yield context.new_page()
    context.close()


@pytest.fixture
def watched(tab: Page) -> Iterator[Watched]:
    """An empty page without storage, cookies or other tabs of the previous test; the HTTP cache is kept."""
    watched = Watched(tab)
    yield watched
    watched.detach()
    for page in tab.context.pages:
        # A failed test may have left a page without storage.
        page.evaluate("try { localStorage.clear(); sessionStorage.clear() } catch {}")
        if page != tab:
            page.close()
    tab.context.clear_cookies()
    tab.set_viewport_size(SCREEN)
    tab.goto("about:blank")
