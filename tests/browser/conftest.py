"""A real Chromium and a real server, started from the package as a user would."""

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from playwright.sync_api import Browser, ConsoleMessage, Error, Page, ViewportSize, expect, sync_playwright

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

# Long for a busy machine of few cores; what is there at once costs none of it.
PATIENCE_MS = 120_000
SCREEN: ViewportSize = {"width": 1280, "height": 720}

Serve = Callable[..., str]

expect.set_options(timeout=PATIENCE_MS)


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    program = os.environ.get("CHROMIUM") or next((found for name in NAMES if (found := shutil.which(name))), None)
    assert program, "no Chromium: set CHROMIUM to its path, or run ./test, which finds or installs one"
    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=program, args=list(FLAGS))
        yield chromium
        chromium.close()


@contextmanager
def servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Serve]:
    """Starts servers; each is stopped at the end and must then have stopped cleanly."""
    started: list[subprocess.Popen[str]] = []

    def start(*flags: str, data: Path | None = None) -> str:
        place = data or tmp_path_factory.mktemp("data")
        command = [sys.executable, "-m", "pendula", "serve", "--port", "0", "--data", str(place), "--json", *flags]
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
        server.communicate(timeout=120)
        assert server.returncode == 0


@pytest.fixture(scope="module")
def serve(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Serve]:
    """Servers of a module's own."""
    with servers(tmp_path_factory) as start:
        yield start


@pytest.fixture(scope="session")
def plain(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A server without the demo, one for all: schedulers are empty but for what a module brings into its own."""
    with servers(tmp_path_factory) as start:
        yield start()


@pytest.fixture(scope="session")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The demo, one for all: each scheduler has tests of its own, which leave the others alone."""
    with servers(tmp_path_factory) as start:
        yield start("--demo")


def there(page: Page, selector: str) -> None:
    """Wait until something is on the page; `expect` looks only twice a second, which a page is opened in often."""
    page.wait_for_function("selector => document.querySelector(selector) !== null", arg=selector)


def live(page: Page, address: str) -> None:
    """Open a page and wait until it hears of what happens."""
    page.goto(address)
    there(page, "[data-testid=connection][data-state=live]")


class Watched:
    """A page whose console and failed requests are remembered."""

    def __init__(self, page: Page) -> None:
        self.page = page
        self.errors: list[str] = []
        page.on("console", self._hear)
        page.on("pageerror", self._fall)

    def leave(self) -> None:
        """Whatever the page still says concerns the next test no more."""
        self.page.remove_listener("console", self._hear)
        self.page.remove_listener("pageerror", self._fall)

    def _hear(self, message: ConsoleMessage) -> None:
        if message.type in ("error", "warning"):
            self.errors.append(f"{message.type}: {message.text}")

    def _fall(self, error: Error) -> None:
        self.errors.append(f"page error: {error}")


@pytest.fixture(scope="session")
def tab(browser: Browser) -> Iterator[Page]:
    """One for all: a new one takes a machine of two cores half a second longer to show a page."""
    context = browser.new_context(viewport=SCREEN)
    context.set_default_timeout(PATIENCE_MS)
    yield context.new_page()
    context.close()


@pytest.fixture
def watched(tab: Page) -> Iterator[Watched]:
    """An empty page on which nothing is left of the test before but what the browser has fetched."""
    watched = Watched(tab)
    yield watched
    watched.leave()
    for page in tab.context.pages:
        # A test that failed may have left it at a place that has no storage.
        page.evaluate("try { localStorage.clear(); sessionStorage.clear() } catch {}")
        if page != tab:
            page.close()
    tab.context.clear_cookies()
    tab.set_viewport_size(SCREEN)
    tab.goto("about:blank")
