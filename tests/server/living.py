"""Servers for tests: an app in this event loop, or a real one in a thread with its own socket."""

import asyncio
import socket
import ssl
import threading
import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from types import TracebackType
from typing import Any, Self

import httpx
import msgspec
from fastapi import FastAPI

from pendula.server.app import create_app
from pendula.server.data_directory import DataDirectory
from pendula.server.http.connection import PatientProtocol
from pendula.server.http.page import Page
from pendula.server.runtime.engine_host import real_disk
from pendula.server.runtime.scheduler_spec import SchedulerSpec
from pendula.server.runtime.supervisor import MakeDisk, Supervisor
from pendula.server.serving import bind, server_for
from pendula.server.settings import Settings
from tests.server.tally_scheduler import SCHEDULER

ORIGIN = "http://127.0.0.1:8765"
JSON = {"content-type": "application/json"}
TALLY = msgspec.structs.replace(SCHEDULER, engines={"main": {"seed": 7}})
BASE = "/api/v1/tally/main"


@asynccontextmanager
async def running(
    settings: Settings,
    schedulers: Sequence[SchedulerSpec] = (TALLY,),
    *,
    page: Page | None = None,
    disk: MakeDisk = real_disk,
) -> AsyncIterator[FastAPI]:
    """An app with its engines open."""
    app = create_app(settings, schedulers, page=page, disk=disk)
    async with app.router.lifespan_context(app):
        await supervisor_of(app).opened()
        yield app


def supervisor_of(app: FastAPI) -> Supervisor:
    supervisor: Supervisor = app.state.supervisor
    return supervisor


def client_of(app: FastAPI, *, caller: str = "127.0.0.1", **options: Any) -> httpx.AsyncClient:
    """A client with the address `caller`; exceptions of the app have to become responses."""
    transport = httpx.ASGITransport(app, client=(caller, 50_000), raise_app_exceptions=True)
    return httpx.AsyncClient(transport=transport, base_url=options.pop("base_url", ORIGIN), **options)


def until(holds: Callable[[], bool]) -> None:
    """Repeat the request until the condition holds, ever less often: the server shares this process.

    Fails instead of hanging.
    """
    end, pause = time.monotonic() + 120, 0.001
    while not holds():
        assert time.monotonic() < end
        time.sleep(pause)
        pause = min(2 * pause, 0.01)


def code_of(response: httpx.Response) -> str:
    """The code of an answer in the one error form."""
    body = response.json()
    assert set(body) == {"error"}
    assert set(body["error"]) == {"code", "message", "details"}
    assert response.headers["x-request-id"]
    code: str = body["error"]["code"]
    return code


class LiveServer:
    """A server in its own thread, on a port chosen by the operating system."""

    def __init__(self, settings: Settings, schedulers: Sequence[SchedulerSpec] = (TALLY,)) -> None:
        self._ready = threading.Event()
        self._settings = settings
        self._data = DataDirectory.lock(settings.data)
        self.listening = bind(settings)
        self.port: int = self.listening.getsockname()[1]
        self.app = create_app(settings, schedulers, data=self._data)
        self._server = server_for(self.app, settings, self._ready.set)
        self._thread = threading.Thread(target=self._server.run, args=([self.listening],), name="live-server")

    @property
    def url(self) -> str:
        return f"{'https' if self._settings.tls else 'http'}://127.0.0.1:{self.port}"

    def client(self, **options: Any) -> httpx.Client:
        given = {"timeout": 120, **options}
        return httpx.Client(base_url=self.url, trust_env=False, verify=_trusting(), **given)

    def connect(self) -> socket.socket:
        return socket.create_connection(("127.0.0.1", self.port), timeout=120)

    @property
    def protocol(self) -> type[PatientProtocol]:
        """The protocol of every connection, with its limits."""
        found = self._server.config.http
        assert isinstance(found, type)
        assert issubclass(found, PatientProtocol)
        return found

    def answering(self) -> list[PatientProtocol]:
        """The connections on which a request is being answered."""
        return list(self._server.answering())

    def signal_stop(self) -> None:
        self._server.should_exit = True

    def stop(self) -> None:
        self.signal_stop()
        self._thread.join()
        self.listening.close()
        self._data.close()

    def __enter__(self) -> Self:
        self._thread.start()
        assert self._ready.wait(120)
        with self.client() as client:
            until(lambda: client.get("/readyz").status_code == 200)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()


def _trusting() -> ssl.SSLContext:
    """Accepts any certificate: these tests do not verify the server."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context


class StreamReader:
    """A reader of an event stream under the control of a test: it takes a chunk only on request.

    `ASGITransport` returns a response only when it is complete, which a stream never is.
    """

    def __init__(self, app: FastAPI, path: str, query: str = "", headers: dict[str, str] | None = None) -> None:
        fields = {"host": "127.0.0.1:8765", **(headers or {})}
        self._scope: dict[str, Any] = {
            "type": "http",
            "asgi": {"version": "3.0", "spec_version": "2.3"},
            "http_version": "1.1",
            "method": "GET",
            "scheme": "http",
            "path": path,
            "raw_path": path.encode(),
            "query_string": query.encode(),
            "root_path": "",
            "headers": [(name.encode(), value.encode()) for name, value in fields.items()],
            "client": ("127.0.0.1", 50_000),
            "server": ("127.0.0.1", 8765),
            "state": {},
        }
        self._app = app
        self._gone = asyncio.Event()
        self._chunks: asyncio.Queue[bytes] = asyncio.Queue()
        self._readable = asyncio.Event()
        self._readable.set()
        self._text = b""
        self.status = 0
        self.headers: dict[str, str] = {}

    async def __aenter__(self) -> Self:
        self.task = asyncio.create_task(self._app(self._scope, self._receive, self._send))
        while not self.status:
            await asyncio.sleep(0)
        return self

    async def __aexit__(self, *_: object) -> None:
        self._gone.set()
        self._readable.set()
        await self.task

    def pause_reading(self) -> None:
        self._readable.clear()

    def resume_reading(self) -> None:
        self._readable.set()

    async def messages(self, count: int) -> list[dict[str, str]]:
        """The next `count` messages, without comments."""
        found: list[dict[str, str]] = []
        while len(found) < count:
            while b"\n\n" not in self._text:
                self._text += await asyncio.wait_for(self._chunks.get(), 120)
            block, _, self._text = self._text.partition(b"\n\n")
            fields = dict(line.split(": ", 1) for line in block.decode().split("\n") if not line.startswith(":"))
            if "event" in fields:
                found.append(fields)
        return found

    async def chunk(self) -> bytes:
        return await self._chunks.get()

    async def ended(self) -> bytes:
        """Wait for the end of the stream and return its unread rest."""
        await asyncio.wait_for(self.task, 120)
        while not self._chunks.empty():
            self._text += self._chunks.get_nowait()
        return self._text

    async def _receive(self) -> dict[str, Any]:
        if self._scope.pop("fresh", True):
            self._scope["fresh"] = False
            return {"type": "http.request", "body": b"", "more_body": False}
        await self._gone.wait()
        return {"type": "http.disconnect"}

    async def _send(self, message: Any) -> None:
        await self._readable.wait()
        if message["type"] == "http.response.start":
            self.status = message["status"]
            self.headers = {name.decode(): value.decode() for name, value in message["headers"]}
        else:
            self._chunks.put_nowait(message.get("body", b""))
