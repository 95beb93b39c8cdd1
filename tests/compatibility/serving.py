"""Engines found again as they were left: in this process from their journals, and by a server from its data."""

import re
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path
from typing import Any
from urllib.request import urlopen

from pendula.actions import World
from pendula.credit import Run
from pendula.kernel.disk import RealDisk
from pendula.kernel.driver import Driver
from pendula.kernel.engine import Engine
from pendula.kernel.journal import FileJournal
from pendula.playback import Player
from pendula.testing.tally import Tally
from tests.compatibility.questions import JOURNALS
from tests.server.readiness import wait_until_ready

ENGINES: Mapping[str, type[Engine[Any, Any]]] = {"actions": World, "credit": Run, "playback": Player, "tally": Tally}
# What a server tells of the engines and jobs it finds in its data. A player goes on by itself, and the tally is
# served in demonstrations only: their states are read from their journals alone.
PATHS = (
    "/api/v1/actions/town/state",
    "/api/v1/playback/channels",
    "/scheduler/audit",
)
PATIENCE_SECONDS = 30


def states(folder: Path, journals: Mapping[str, str] = JOURNALS) -> dict[str, str]:
    """Digests of the states of all engines of a generation, by the name of their journals."""
    return {name: state(folder / journal) for name, journal in journals.items()}


def state(journal: Path) -> str:
    """The digest of the state in which an engine left its journal; nothing is written."""
    opened = FileJournal.open(RealDisk(journal, make=False), read_only=True)
    driver: Driver[Any, Any] = Driver.recover(opened, lambda header: ENGINES[header.room])
    assert list(driver.engine.broken()) == []
    return sha256(driver.engine.state()).hexdigest()


@contextmanager
def served(data: Path, *options: str) -> Iterator[str]:
    """A server of its own process on this data; its address. It is interrupted in the end, and closes its journals."""
    words = [sys.executable, "-m", "pendula", "serve", "--data", str(data), "--port", "0", *options]
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as server:
        assert server.stdout is not None
        try:
            found = (re.search(r"is at (http://\S+)", line) for line in server.stdout)
            address = next(filter(None, found), None)
            assert address is not None, f"{words} ended before it served"
            wait_until_ready(address[1])
            yield address[1]
        finally:
            server.send_signal(signal.SIGTERM)
            server.communicate(timeout=PATIENCE_SECONDS)


def told_of(data: Path) -> dict[str, str]:
    """Digests of what a server says that finds this data; it may write into it."""
    with served(data) as address:
        return {path: _digest(f"{address}{path}") for path in PATHS}


def _digest(url: str) -> str:
    with urlopen(url, timeout=PATIENCE_SECONDS) as reply:
        return sha256(reply.read()).hexdigest()
