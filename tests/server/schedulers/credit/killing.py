"""A server with the simulator in its own process, to be killed."""

import multiprocessing
import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing.connection import Connection
from pathlib import Path

import httpx

from pendula.server.app import create_app
from pendula.server.data_directory import DataDirectory
from pendula.server.schedulers.credit.scheduler import scheduler_for
from pendula.server.serving import bind, server_for
from pendula.server.settings import Settings
from tests.server.schedulers.credit.simulators import QUICK

# Forked from one warm parent: a new interpreter for each kill takes a hundred times as long.
WARM = multiprocessing.get_context("forkserver")
WARM.set_forkserver_preload(["tests.server.schedulers.credit.killing"])


def serve(data: str, to_parent: Connection) -> None:
    settings = Settings(port=0, data=data)
    scheduler = scheduler_for(settings, {**QUICK, "SIMULATOR_HEARTBEAT_MS": "2"})
    listening = bind(settings)
    app = create_app(settings, (scheduler,), data=DataDirectory.lock(data))
    server_for(app, settings, lambda: to_parent.send(listening.getsockname()[1])).run([listening])


@contextmanager
def doomed(data: Path) -> Iterator[httpx.Client]:
    """A client of a server that is killed on exit."""
    ours, theirs = WARM.Pipe()
    process = WARM.Process(target=serve, args=(str(data), theirs), daemon=True)
    process.start()
    try:
        assert ours.poll(120)
        with httpx.Client(base_url=f"http://127.0.0.1:{ours.recv()}", trust_env=False, timeout=120) as client:
            yield client
    finally:
        assert process.pid is not None
        os.kill(process.pid, signal.SIGKILL)
        process.join()
