"""The cost of serving a run: events to many readers, heartbeats during ticks, bytes of the journal."""

import asyncio
import gc
import socket
import tempfile
import threading
from collections.abc import AsyncIterator, Callable
from decimal import Decimal
from multiprocessing import get_context
from multiprocessing.process import BaseProcess
from pathlib import Path
from selectors import EVENT_READ, DefaultSelector
from statistics import median
from time import process_time, sleep
from typing import Any

import msgspec
from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import Response

from pendula.cli.benchmarks import Progress, Row, Target, compared
from pendula.credit.commands import Tick
from pendula.credit.engine import Run
from pendula.credit.runs.headless import plan_run
from pendula.credit.settings import Settings as RunSettings
from pendula.credit.settings import change_settings
from pendula.documents import from_value
from pendula.kernel.canonical import encode
from pendula.kernel.disk import RealDisk
from pendula.kernel.driver import begin_recording
from pendula.server.api.requests import Viewer
from pendula.server.app import create_app
from pendula.server.monitoring import configure
from pendula.server.runtime.engine_host import Work
from pendula.server.runtime.streams import StreamResponse
from pendula.server.schedulers.credit.owners import LOCAL_OWNER
from pendula.server.schedulers.credit.scenarios import bundled_scenario
from pendula.server.schedulers.credit.scheduler import scheduler_for
from pendula.server.schedulers.credit.service import SNAPSHOT_EVERY, SimulatorService
from pendula.server.schedulers.credit.shapes import NewRun
from pendula.server.schedulers.credit.stream import RunStream, StreamEvent
from pendula.server.serving import bind, server_for
from pendula.server.settings import LogFormat, LogLevel, Settings

CLIENTS = 10
BATCH = 20  # events of a busy tick
BARE = "/api/v1/simulator/bench/bare"
BEAT_MS = 50
JOURNAL_MOST = 50 * 2**20 / 10_000  # bytes a tick
ENVIRONMENT = {
    "SIMULATOR_HEARTBEAT_MS": "3600000",
    "SIMULATOR_REAL_AMOUNT_CAP": "500",
    "SIMULATOR_EVENT_BUFFER_SIZE": "1000000",
    "SIMULATOR_SSE_SUB_QUEUE_MAX": "1000000",
}

NEARLY = Target(">=", Decimal("0.8"))
AT_MOST = Target("<=", Decimal(1))


def rows(quick: bool, progress: Progress) -> list[Row]:
    configure(LogFormat.JSON, LogLevel.ERROR)
    events = 2000 if quick else 8000
    progress(f"{events} events to {CLIENTS} readers")
    results = _events(events, 3 if quick else 7)
    progress("heartbeats during the ticks of a village")
    results.append(_heartbeats(40 if quick else 200))
    progress("the journal of a village")
    return [*results, _journal(SNAPSHOT_EVERY + 100)]


class Serving:
    """A server with one run, and a bare route that streams the same bytes."""

    def __init__(self, data: str, **environment: str) -> None:
        self.settings = Settings(port=0, data=data, log_level=LogLevel.ERROR)
        self.bare: list[bytes] = []
        self.waiting = 0
        self.begin = asyncio.Event()
        router = APIRouter()

        @router.get(BARE)
        async def bare(_request: Request, _who: Viewer) -> Response:
            return StreamResponse(self._bare(), lambda: None, ())

        scheduler = scheduler_for(self.settings, {**ENVIRONMENT, **environment})
        scheduler = msgspec.structs.replace(scheduler, routers=(router, *scheduler.routers))
        self._socket = bind(self.settings)
        self.port: int = self._socket.getsockname()[1]
        ready = threading.Event()
        self._app = create_app(self.settings, (scheduler,))
        self._server = server_for(self._app, self.settings, ready.set)
        self._thread = threading.Thread(target=self._serve)
        self._thread.start()
        assert ready.wait(30)
        self.service: SimulatorService = self._app.state.supervisor.service("credit")
        while self.service.state != "ready":
            pass

    def _serve(self) -> None:
        self._server.run([self._socket])

    async def _bare(self) -> AsyncIterator[bytes]:
        self.waiting += 1
        await self.begin.wait()
        for chunk in self.bare:
            yield chunk
            await asyncio.sleep(0)

    def on_loop(self, work: Any) -> Any:
        return asyncio.run_coroutine_threadsafe(work, self.loop).result()

    @property
    def loop(self) -> asyncio.AbstractEventLoop:
        return self.service._housekeeping._task.get_loop()  # type: ignore[union-attr]

    def close(self) -> None:
        self._server.should_exit = True
        self._thread.join()
        self._socket.close()

    def read(self, path: str, most: int) -> BaseProcess:
        """Readers in a separate process; each disconnects after `most` bytes."""
        process = get_context("spawn").Process(target=read_all, args=(self.port, path, most))
        process.start()
        return process


def read_all(port: int, path: str, most: int) -> None:
    waiting = DefaultSelector()
    for _ in range(CLIENTS):
        reader = socket.create_connection(("127.0.0.1", port))
        reader.sendall(f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n\r\n".encode())
        waiting.register(reader, EVENT_READ, [most])
    while waiting.get_map():
        for key, _ in waiting.select():
            assert isinstance(key.fileobj, socket.socket)
            data = key.fileobj.recv(1 << 16)
            key.data[0] -= len(data)
            if not data or key.data[0] <= 0:
                waiting.unregister(key.fileobj)
                key.fileobj.close()


def _events(count: int, rounds: int) -> list[Row]:
    with tempfile.TemporaryDirectory() as folder:
        serving = Serving(f"{folder}/data")
        record = serving.on_loop(serving.service.create(LOCAL_OWNER, NewRun("village-100", "real", 0, 42)))
        run = serving.service._open[record.run_id]
        batches = [[StreamEvent("tx.updated", "UNIT", _payment())] * BATCH for _ in range(count // BATCH)]
        stream = RunStream(record.run_id, lambda: 0)
        frames = [[entry.frame for entry in stream.put(batch)] for batch in batches]
        chunks = {
            "events": [frame for batch in frames for frame in batch],
            "batches": [b"".join(batch) for batch in frames],
        }
        size = sum(map(len, chunks["batches"]))

        async def publish() -> None:
            for batch in batches:
                run.stream.put(batch)
                run.wake()
                await asyncio.sleep(0)

        async def begin() -> None:
            serving.begin.set()

        def seconds_of(path: str, ready: Callable[[], int], work: Callable[[], Any]) -> float:
            serving.waiting, serving.begin = 0, asyncio.Event()
            readers = serving.read(path, size)
            while ready() < CLIENTS:
                sleep(0.01)
            gc.collect()
            started = process_time()
            serving.on_loop(work())
            readers.join()
            return process_time() - started

        seconds: dict[str, list[float]] = {"ours": [], **{name: [] for name in chunks}}
        for _ in range(rounds):
            path = f"/api/v1/simulator/runs/{record.run_id}/events"
            seconds["ours"].append(seconds_of(path, lambda: run.followers, publish))
            for name, bare in chunks.items():
                serving.bare = bare
                seconds[name].append(seconds_of(BARE, lambda: serving.waiting, begin))
        serving.close()
    delivered = count * CLIENTS
    return [
        # Ours writes all available events at once, and so does the generator of the target.
        _beside(seconds, "batches", delivered, "a bare generator of the same bytes, a batch at a time", NEARLY),
        _beside(seconds, "events", delivered, "the same, an event at a time", None),
    ]


def _beside(seconds: dict[str, list[float]], bare: str, delivered: int, against: str, target: Target | None) -> Row:
    return compared(
        f"events to {CLIENTS} readers, in batches of {BATCH}, beside bare {bare}",
        delivered / median(seconds["ours"]),
        delivered / median(seconds[bare]),
        "events/s",
        against=against,
        ratio=median(b / o for o, b in zip(seconds["ours"], seconds[bare], strict=True)),
        target=target,
        fairness="one server, real sockets, the readers in a separate process; CPU time of the server from the "
        "first event on; ours numbers and stores the events and filters them by equivalent",
    )


def _payment() -> bytes:
    """One streamed payment of the village: about a thousand bytes."""
    edges = [{"from": f"household-{at}", "to": f"shop-{at}"} for at in range(3)]
    patch = [{"source": "a", "target": "b", "used": "12.00", "available": "88.00", "trust_limit": "100.00"}] * 6
    form = {"type": "tx.updated", "equivalent": "UNIT", "amount": "12.00", "edges": edges, "edge_patch": patch}
    return encode(form)


def _heartbeats(beats: int) -> Row:
    with tempfile.TemporaryDirectory() as folder:
        serving = Serving(f"{folder}/data", SIMULATOR_HEARTBEAT_MS=str(BEAT_MS))
        record = serving.on_loop(serving.service.create(LOCAL_OWNER, NewRun("village-100", "real", 100, 42)))
        run = serving.service._open[record.run_id]
        late: list[float] = []
        next_tick = run._ticks._act

        def timed(seconds: float) -> Work | None:
            late.append(seconds)
            return next_tick(seconds)

        run._ticks._act = timed
        while len(late) < beats:
            pause = threading.Event()
            pause.wait(BEAT_MS / 1000)
        serving.close()
    return compared(
        f"the latest of {beats} heartbeats during a village at full intensity",
        max(late) * 1000,
        200,
        "ms late",
        against="the limit",
        target=AT_MOST,
        fairness="wall-clock time: includes all other load of the machine",
    )


def _journal(ticks: int) -> Row:
    return compared(
        f"bytes of the journal a tick, village at full intensity, {ticks} ticks",
        journal_bytes(ticks),
        JOURNAL_MOST,
        "bytes",
        against="50 MiB in 10 000 ticks",
        target=AT_MOST,
        fairness=f"a checkpoint every {SNAPSHOT_EVERY} ticks is included; the start is not",
    )


def journal_bytes(ticks: int, snapshot_every: int = SNAPSHOT_EVERY) -> float:
    """Journal bytes per tick of a served run."""
    settings = change_settings(RunSettings(), {"amount_cap": "500"})
    config = plan_run(from_value(bundled_scenario("village-100").document), seed=42, settings=settings).json
    with tempfile.TemporaryDirectory() as folder:
        driver = begin_recording(
            Run.create(config),
            config,
            RealDisk(Path(folder) / "journal"),
            min_free_bytes=0,
            keep_events=False,
            snapshot_every=snapshot_every,
            clock=lambda: "2026-01-01T00:00:00.000000Z",
        )
        driver.flush()
        before = driver.journal.total_bytes
        for _ in range(ticks):
            driver.submit(Tick(), "metronome")
        driver.flush()
        written = driver.journal.total_bytes - before
        driver.close()
    return written / ticks
