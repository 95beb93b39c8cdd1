"""A scheduler whose extra is not installed is skipped, and the others are served."""

import sys

import pytest

from pendula.server.schedulers import left_out, schedulers_for
from pendula.server.settings import Settings


def test_a_scheduler_without_its_extra_is_skipped_with_its_install_command(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "shapely", None)

    assert left_out() == {
        "fleet": 'The scheduler fleet is left out: it needs shapely; install with: pip install "pendula[fleet]"'
    }
    assert [scheduler.name for scheduler in schedulers_for(Settings())] == ["actions", "credit", "jobs", "playback"]


def test_no_scheduler_is_skipped_when_everything_is_installed() -> None:
    assert left_out() == {}
