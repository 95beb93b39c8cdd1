"""What is served to the tests of this room: worlds, without the living example."""

from collections.abc import Sequence

import pytest

from pendula.server.hosting.room_spec import RoomSpec
from tests.server.worlds import STILL


@pytest.fixture
def rooms() -> Sequence[RoomSpec]:
    return (STILL,)
