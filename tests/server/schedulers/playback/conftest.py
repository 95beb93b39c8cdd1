"""The scheduler under test: players, without the demo."""

from collections.abc import Sequence

import pytest

from pendula.server.runtime.scheduler_spec import SchedulerSpec
from tests.server.screens import STILL


@pytest.fixture
def schedulers() -> Sequence[SchedulerSpec]:
    return (STILL,)
