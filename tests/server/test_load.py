"""Ten minutes of mixed load on a real server: memory is stable after the third minute, and no response is a 5xx.

Growth in the first minutes has bounds: the newest 2 000 events of every engine (`kernel.stream.EventLog`),
those of every credit run with a quarter to spare (`schedulers.credit.stream.RunStream`), and engines cached for reads
of history. The operating system reports memory in pages that grow with the allocator, so "stable" has a
margin: it grew by 7 and 8 MiB from the third to the tenth minute, since rings of slow engines are half full after five.
A leak of 2 MiB a minute is detected.
"""

import json
import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import closing, suppress
from http.client import HTTPConnection, HTTPException, HTTPResponse
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

SECONDS = int(os.environ.get("LOAD_SECONDS", "600"))
SETTLED_SECONDS = 180
READY_SECONDS = 300  # the demo creates its history, possibly on a busy machine
MARGIN_KIB = 12 * 1024
CALLERS = 4
READERS = 8
PAUSE_SECONDS = 0.02
ENGINES = ("tally/demo", "actions/town", "playback/frame", "fleet/hall")
SIMULATOR = "/api/v1/simulator"


class Loaded:
    """A served demo and its memory usage."""

    def __init__(self, data: Path) -> None:
        command = [
            sys.executable,
            "-m",
            "tests.server.with_tally",
            "serve",
            "--demo",
            "--port",
            "0",
            "--data",
            str(data),
            "--json",
        ]
        quiet = {**os.environ, "PENDULA_LOG_LEVEL": "warning"}
        self._log = data.with_suffix(".log")
        with self._log.open("w") as log:
            self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log, text=True, env=quiet)
        self.host = ""
        self.end = 0.0
        self.statuses: Counter[int] = Counter()
        self.bad: list[str] = []
        self._counting = threading.Lock()

    def begin(self) -> None:
        """Wait until the server is ready and start the clock of the load."""
        assert self.process.stdout is not None
        first = self.process.stdout.readline()
        assert first, f"never served; the server: {self.log()}"
        self.host = json.loads(first)["address"].partition("//")[2]
        end = time.monotonic() + READY_SECONDS
        while (answer := self._readiness()) is not None:
            assert time.monotonic() < end, f"never ready: {answer}; the server: {self.log()}"
            time.sleep(0.2)
        self.end = time.monotonic() + SECONDS

    def _readiness(self) -> str | None:
        with closing(HTTPConnection(self.host, timeout=300)) as connection:
            connection.request("GET", "/readyz")
            response = connection.getresponse()
            data = response.read()
        return None if response.status == 200 else summary_of(response, data)

    @property
    def running(self) -> bool:
        return time.monotonic() < self.end

    def memory_kib(self) -> int:
        lines = Path(f"/proc/{self.process.pid}/status").read_text().splitlines()
        return next(int(line.split()[1]) for line in lines if line.startswith("VmRSS"))

    def call(self, connection: HTTPConnection, method: str, path: str, body: Any = None) -> Any:
        sent = None if body is None else json.dumps(body)
        connection.request(method, path, sent, {} if method == "GET" else {"content-type": "application/json"})
        response = connection.getresponse()
        data = response.read()
        with self._counting:
            self.statuses[response.status] += 1
            if response.status >= 500:
                self.bad.append(
                    f"{SECONDS - self.end + time.monotonic():.0f} s: {method} {path}: {summary_of(response, data)}"
                )
        return json.loads(data) if response.getheader("content-type", "").startswith("application/json") else data

    def log(self) -> str:
        """The end of the server log."""
        return self._log.read_text(errors="replace")[-4000:]


def summary_of(response: HTTPResponse, data: bytes) -> str:
    """A short form of an unexpected response: the failed checks of readiness, otherwise its body."""
    with suppress(ValueError, LookupError, TypeError):
        return f"{response.status} {[check for check in json.loads(data)['checks'] if not check['ok']]}"
    return f"{response.status} {data[:2000]!r}"


@pytest.fixture
def loaded(tmp_path: Path) -> Iterator[Loaded]:
    server = Loaded(tmp_path / "data")
    try:
        server.begin()
        yield server
    finally:
        server.process.send_signal(signal.SIGTERM)
        server.process.communicate(timeout=120)
    assert server.process.returncode == 0, server.log()


def call_everything(server: Loaded, seed: int) -> None:
    """Commands, states, records, moments of the past, reasons, jobs and figures, in a random order."""
    chance = random.Random(seed)
    with closing(HTTPConnection(server.host, timeout=300)) as connection:
        while server.running:
            call_something(server, connection, chance)
            time.sleep(PAUSE_SECONDS)


def call_something(server: Loaded, connection: HTTPConnection, chance: random.Random) -> None:
    base = f"/api/v1/{chance.choice(ENGINES)}"
    match chance.randrange(8):
        case 0:
            server.call(connection, "GET", f"{base}/state")
        case 1:
            journal = server.call(connection, "GET", f"{base}/journal?limit=5")
            at = chance.randint(journal["first_n"], journal["last_n"])
            server.call(connection, "GET", f"{base}/state?at={at}")
        case 2:
            server.call(connection, "POST", "/api/v1/tally/demo/commands", {"type": "add", "amount": 1})
        case 3:
            server.call(connection, "POST", "/api/v1/playback/frame/next")
        case 4:
            server.call(connection, "GET", "/metrics")
        case 5:
            server.call(connection, "POST", f"{base}/why", {"question": {"take": 5}})
        case 6:
            server.call(connection, "GET", "/scheduler/jobs?limit=50")
            server.call(connection, "GET", f"{SIMULATOR}/runs/active")
        case _:
            server.call(connection, "GET", "/api/v1/schedulers")
            server.call(connection, "GET", "/readyz")


def read_streams(server: Loaded, seed: int) -> None:
    """A stream of each engine by one connection, read for a while, left in the middle, opened again."""
    chance = random.Random(seed)
    wanted = "&".join(f"of={quote(f'/api/v1/{engine}/stream', safe='')}" for engine in ENGINES)
    while server.running:
        until = time.monotonic() + chance.random() * 20
        connection = HTTPConnection(server.host, timeout=300)
        with suppress(OSError, HTTPException):
            connection.request("GET", f"/api/v1/stream?{wanted}")
            response = connection.getresponse()
            while server.running and time.monotonic() < until:
                response.readline()
        connection.close()


@pytest.mark.long
def test_memory_is_stable_under_load_without_server_errors(loaded: Loaded) -> None:
    threads = [threading.Thread(target=call_everything, args=(loaded, seed)) for seed in range(CALLERS)]
    threads += [threading.Thread(target=read_streams, args=(loaded, seed)) for seed in range(READERS)]
    for thread in threads:
        thread.start()
    time.sleep(SETTLED_SECONDS)
    settled = loaded.memory_kib()
    taken = [settled]
    while loaded.running:
        time.sleep(15)
        taken.append(loaded.memory_kib())
    for thread in threads:
        thread.join()

    memory = ", ".join(f"{one // 1024}" for one in taken)
    sys.stdout.write(f"answers {dict(loaded.statuses)}; MiB every 15 s {memory}\n")
    assert not loaded.bad, "\n".join([*loaded.bad[:20], f"{len(loaded.bad)} in all; the server:", loaded.log()])
    assert loaded.statuses[200] > SECONDS
    assert taken[-1] - settled < MARGIN_KIB, f"MiB every 15 s: {memory}"
