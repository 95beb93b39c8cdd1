"""Enqueue over HTTP, one job per request, beside a route of that server that validates and echoes the body.

The server is a separate process; the clients are connections of this process that each send the next request after the
answer to the last.
"""

import asyncio
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from decimal import Decimal
from functools import partial
from http import HTTPStatus
from http.client import HTTPConnection
from itertools import count
from pathlib import Path
from time import monotonic, sleep
from urllib.parse import urlsplit

from msgspec.json import encode

from bench.jobs_loads import body
from bench.measuring.wall_time import Turns
from pendula.cli.benchmarks import Progress, Row, Target, checkout, compared

ENQUEUE, RETURN = "/scheduler/jobs", "/scheduler/bench/return"
HALF = Target(">=", Decimal("0.5"))
CLIENTS = {1: None, 16: HALF, 64: None}
REQUESTS, QUICK_REQUESTS = 640, 128
ROUNDS, QUICK_ROUNDS = 9, 2
READY_SECONDS, STOP_SECONDS = 30, 15


class Clients:
    """Connections to one server; every enqueue is a new job."""

    def __init__(self, address: str) -> None:
        parts = urlsplit(address)
        assert parts.hostname is not None
        assert parts.port is not None
        self._host, self._port = parts.hostname, parts.port
        self._numbers = count()

    def wait_until_ready(self) -> None:
        """Wait for the store, which opens after the server starts to answer."""
        end = monotonic() + READY_SECONDS
        while self._status_of("/readyz") != HTTPStatus.OK:
            assert monotonic() < end, "the server does not get ready"
            sleep(0.05)

    def _status_of(self, path: str) -> int:
        with closing(HTTPConnection(self._host, self._port, timeout=READY_SECONDS)) as connection:
            connection.request("GET", path)
            return connection.getresponse().status

    def send(self, path: str, clients: int, requests: int) -> None:
        asyncio.run(self._all(path, clients, requests))

    async def _all(self, path: str, clients: int, requests: int) -> None:
        await asyncio.gather(*(self._one(path, requests // clients) for _ in range(clients)))

    async def _one(self, path: str, requests: int) -> None:
        reader, writer = await asyncio.open_connection(self._host, self._port)
        for _ in range(requests):
            writer.write(self._request(path))
            head = await reader.readuntil(b"\r\n\r\n")
            assert head.startswith((b"HTTP/1.1 200", b"HTTP/1.1 201")), head
            await reader.readexactly(_length(head))
        writer.close()
        await writer.wait_closed()

    def _request(self, path: str) -> bytes:
        sent = encode(body(next(self._numbers)))
        head = (
            f"POST {path} HTTP/1.1\r\nhost: {self._host}:{self._port}\r\n"
            f"content-type: application/json\r\ncontent-length: {len(sent)}\r\n\r\n"
        )
        return head.encode() + sent


def rows(place: Path, quick: bool, progress: Progress, unfair: str | None) -> list[Row]:
    requests, rounds = (QUICK_REQUESTS, QUICK_ROUNDS) if quick else (REQUESTS, ROUNDS)
    found = []
    with _server(place / "data") as address:
        clients = Clients(address)
        clients.wait_until_ready()
        for number, target in CLIENTS.items():
            progress(f"enqueue over HTTP, {_clients(number)}")
            # A single client waits for every flush.
            sent = requests // 4 if number == 1 else requests
            turns = Turns()
            for _ in turns.rounds(rounds):
                turns.take(ENQUEUE, partial(clients.send, ENQUEUE, number, sent))
                turns.take(RETURN, partial(clients.send, RETURN, number, sent))
            found.append(_row(number, sent, turns, target, unfair))
    return found


def _row(clients: int, sent: int, turns: Turns, target: Target | None, unfair: str | None) -> Row:
    return compared(
        f"enqueue over HTTP, {_clients(clients)}, full durability",
        sent / turns.seconds(ENQUEUE),
        sent / turns.seconds(RETURN),
        "requests/s",
        against="read, validate, return",
        ratio=1 / turns.share(ENQUEUE, RETURN),
        target=target,
        unfair=unfair,
        fairness="both routes pass the same gates and read the same bodies; clients and server share the machine",
    )


def _clients(number: int) -> str:
    return f"{number} client{'' if number == 1 else 's'}"


def _length(head: bytes) -> int:
    for line in head.split(b"\r\n"):
        name, _, value = line.partition(b":")
        if name.lower() == b"content-length":
            return int(value)
    raise AssertionError(head)


@contextmanager
def _server(data: Path) -> Iterator[str]:
    """The address of a server that stops at the end of the block."""
    command = [sys.executable, "-m", "bench.jobs_server", str(data.resolve())]
    with subprocess.Popen(command, cwd=checkout(), stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            address = process.stdout.readline().strip()
            assert address, "the server did not start"
            yield address
        finally:
            process.terminate()
            process.wait(STOP_SECONDS)
