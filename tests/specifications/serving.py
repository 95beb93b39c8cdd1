"""A served scheduler for the tests of a specification, with its logs kept out of the output of commands."""

import io
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import httpx

from pendula.server import monitoring
from pendula.server.runtime.scheduler_spec import SchedulerSpec
from pendula.server.settings import LogFormat, LogLevel, Settings
from tests.server.living import LiveServer


@contextmanager
def serving(settings: Settings, schedulers: Sequence[SchedulerSpec]) -> Iterator[httpx.Client]:
    """A client of a server in this process."""
    monitoring.configure(LogFormat.JSON, LogLevel.WARNING, io.StringIO())
    with LiveServer(settings, schedulers) as server, server.client() as client:
        yield client
