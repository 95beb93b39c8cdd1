"""Shared by all tests: hypothesis profiles, long cases, and the list of tests that could not run."""

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

NOT_RUN = "NOT RUN: "

# No test fails on a slow machine: no deadlines, no check of the speed of drawing examples.
UNTIMED = (HealthCheck.too_slow,)
settings.register_profile("test", derandomize=True, max_examples=100, deadline=None, suppress_health_check=UNTIMED)
settings.register_profile("long", max_examples=2000, deadline=None, suppress_health_check=UNTIMED, print_blob=True)


# Removed from the environment: programs started by tests reject unknown variables of Pendula.
LONG = os.environ.pop("PENDULA_LONG", None) == "1"


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--campaign", action="store_true", help="run only the cases marked campaign")
    parser.addoption("--with-campaign", action="store_true", help="run the cases marked campaign too")
    parser.addoption("--long", action="store_true", default=LONG, help="run the cases marked long and campaign too")
    parser.addoption("--not-run", metavar="FILE", help="append what could not run here to this file")


def pytest_configure(config: pytest.Config) -> None:
    settings.load_profile("long" if config.getoption("--long") else "test")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if config.getoption("--long"):
        return
    campaign, both = bool(config.getoption("--campaign")), bool(config.getoption("--with-campaign"))
    kept: list[pytest.Item] = []
    left_out: list[pytest.Item] = []
    for item in items:
        marks = {mark.name for mark in item.iter_markers()}
        runs = "long" not in marks and (both or ("campaign" in marks) is campaign)
        (kept if runs else left_out).append(item)
    config.hook.pytest_deselected(items=left_out)
    items[:] = kept


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Pass `pytest.skip("NOT RUN: name (reason)")` to ./test, which lists them at the end."""
    noted = config.getoption("--not-run")
    if noted is None:
        return
    reasons = [report.longrepr[2].removeprefix("Skipped: ") for report in terminalreporter.getreports("skipped")]
    with Path(noted).open("a", encoding="utf-8") as file:
        file.writelines(f"{reason}\n" for reason in reasons if reason.startswith(NOT_RUN))


@pytest.fixture
def interruptible() -> Iterator[None]:
    """Restore interrupts here and in started programs: background processes inherit that they are ignored."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)
