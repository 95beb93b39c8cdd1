"""A room whose extra is not installed is left out, and the others are served."""

import sys

import pytest

from pendula.server.rooms import left_out, rooms_for
from pendula.server.settings import Settings


def test_a_room_without_its_extra_is_left_out_with_the_command_that_installs_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "shapely", None)

    assert left_out() == {
        "fleet": 'The room fleet is left out: it needs shapely; install with: pip install "pendula[fleet]"'
    }
    assert [room.name for room in rooms_for(Settings())] == ["actions", "credit", "jobs", "playback"]


def test_no_room_is_left_out_where_everything_is_installed() -> None:
    assert left_out() == {}
