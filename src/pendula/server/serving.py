"""Run the server: lock the data, bind the port, serve until stopped, flush every journal, unlock.

Configuration errors are found before the first request and reported in one sentence.
"""

import asyncio
import ctypes
import errno
import resource
import signal
import socket
import ssl
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from types import FrameType
from typing import Any

import structlog
import uvicorn
from fastapi import FastAPI

from pendula.kernel.limits import HEADER_SECONDS
from pendula.server import monitoring
from pendula.server.app import create_app
from pendula.server.data_directory import DataDirectory
from pendula.server.errors import HostUnusable, PortTaken, TlsUnusable, UnsafeBinding
from pendula.server.http.connection import PatientProtocol, most_connections, protocol_for
from pendula.server.runtime.scheduler_spec import SchedulerSpec
from pendula.server.runtime.supervisor import Supervisor
from pendula.server.schedulers import left_out, schedulers_for
from pendula.server.security.identity import TokenStore, is_loopback
from pendula.server.settings import Settings

# For requests being answered; streams end at once.
GRACE_SECONDS = 10
KEEP_ALIVE_SECONDS = 15
# Journals, directories, the page, libraries.
FILES_BESIDES = 256
# Pause before accepting again when the system has no free descriptor.
PAUSE_SECONDS = 1
REPORT_SECONDS = 2.0  # between two log lines about what shutdown waits for
TOLD_MOST = 10

log = structlog.get_logger("pendula.server")

ARENAS = 2
GIVE_BACK_SECONDS = 30.0


class TlsDoor:
    """Accepts TLS connections; a handshake counts as a connection and has the time limit of a head.

    asyncio's own server would allow a handshake one minute and count the connection only afterwards. A connection over
    the limit is closed without a response, which needs a finished handshake.
    """

    def __init__(self, server: "Server", listening: socket.socket, context: ssl.SSLContext) -> None:
        self._server = server
        self._listening = listening
        self._context = context
        self._seconds = server.settings.allowed(HEADER_SECONDS)
        self._most = most_connections(server.settings)
        self._greeting: set[asyncio.Task[None]] = set()
        self._taking = asyncio.get_running_loop().create_task(self._take())

    async def close(self) -> None:
        """Stop accepting; open connections continue."""
        tasks = (self._taking, *self._greeting)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _take(self) -> None:
        loop = asyncio.get_running_loop()
        self._listening.setblocking(False)
        while True:
            try:
                connection, _ = await loop.sock_accept(self._listening)
            except OSError as error:
                log.warning("not_accepted", problem=error.strerror)
                await asyncio.sleep(PAUSE_SECONDS)
                continue
            if len(self._greeting) + len(self._server.server_state.connections) >= self._most:
                connection.close()
                continue
            task = loop.create_task(self._greet(connection))
            self._greeting.add(task)
            task.add_done_callback(self._greeting.discard)

    async def _greet(self, connection: socket.socket) -> None:
        loop = asyncio.get_running_loop()
        try:
            await loop.connect_accepted_socket(
                self._server.protocol,
                connection,
                ssl=self._context,
                ssl_handshake_timeout=self._seconds,
                ssl_shutdown_timeout=self._seconds,
            )
        except OSError as error:
            log.debug("no_handshake", problem=str(error))


class Server(uvicorn.Server):
    """Uvicorn that ends event streams before it waits for connections, and treats a signal as a normal stop."""

    def __init__(
        self, config: uvicorn.Config, settings: Settings, supervisor: Supervisor, on_ready: Callable[[], None]
    ) -> None:
        super().__init__(config)
        self.settings = settings
        self._supervisor = supervisor
        self._on_ready = on_ready
        self._doors: list[TlsDoor] = []
        self._tidying: asyncio.Task[None] | None = None

    def protocol(self) -> asyncio.Protocol:
        """The protocol of a new connection."""
        made: asyncio.Protocol = self.config.http_protocol_class(  # type: ignore[call-arg]
            config=self.config, server_state=self.server_state, app_state=self.lifespan.state
        )
        return made

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        context = self.config.ssl
        listening = sockets or []
        # With TLS, `TlsDoor` listens instead of uvicorn.
        await super().startup(listening if context is None else [])
        if context is not None:
            self._doors = [TlsDoor(self, one, context) for one in listening]
        self._tidying = asyncio.get_running_loop().create_task(_give_memory_back())
        if self.started:
            self._on_ready()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        log.info("stopping")
        if self._tidying is not None:
            self._tidying.cancel()
        self._supervisor.stop_streams()
        await asyncio.gather(*(door.close() for door in self._doors))
        report = asyncio.get_running_loop().create_task(self._report_pending())
        try:
            await super().shutdown(sockets)
        finally:
            report.cancel()

    async def _report_pending(self) -> None:
        while True:
            await asyncio.sleep(REPORT_SECONDS)
            requests = [f"{connection.scope['method']} {connection.scope['path']}" for connection in self.answering()]
            if waits := [*sorted(requests), *self._supervisor.closing]:
                log.warning("stopping", waits_for=waits[:TOLD_MOST], more=max(0, len(waits) - TOLD_MOST))

    def answering(self) -> Iterator[PatientProtocol]:
        """Connections with a request being answered."""
        for one in list(self.server_state.connections):
            if isinstance(one, PatientProtocol) and one.is_answering:
                yield one

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:  # noqa: ARG002
        # Not stored: uvicorn would raise the signal again after a clean stop, with a wrong exit code.
        if self.should_exit and sig == signal.SIGINT:
            self.force_exit = True
        self.should_exit = True


async def _give_memory_back() -> None:
    while True:
        await asyncio.sleep(GIVE_BACK_SECONDS)
        await asyncio.to_thread(give_back)


def serve(
    settings: Settings, schedulers: Sequence[SchedulerSpec] | None = None, on_ready: Callable[[str], None] | None = None
) -> None:
    """Serve until SIGTERM or SIGINT; returns when every journal is flushed. `on_ready` receives the address.

    Raises `UnsafeBinding` and the `WorldBroken` errors of `pendula.server.errors`.
    """
    monitoring.configure(settings.log_format, settings.log_level)
    keep_few_arenas()
    # Checked first, so that a refused start creates no folder.
    check_binding(settings, TokenStore(settings.data))
    check_tls(settings)
    place = Path(settings.data).absolute()
    if not place.exists():
        log.info("data_directory_made", path=str(place))
    with DataDirectory.lock(settings.data) as data:
        allow_connections(most_connections(settings))
        with bind(settings) as listening:
            chosen = schedulers_for(settings) if schedulers is None else schedulers
            for name, why in left_out().items() if schedulers is None else ():
                log.warning("scheduler_left_out", scheduler=name, problem=why)
            where = address(settings, listening)

            def ready() -> None:
                log.info("serving", address=where, data=str(data.path), demo=settings.demo)
                if on_ready is not None:
                    on_ready(where)

            server_for(create_app(settings, chosen, data=data), settings, ready).run([listening])


def server_for(app: FastAPI, settings: Settings, on_ready: Callable[[], None] = lambda: None) -> Server:
    """The HTTP server of an app; it trusts no header of a client."""
    config = uvicorn.Config(
        app,
        http=protocol_for(settings),
        ws="none",
        lifespan="on",
        log_config=None,
        access_log=False,
        proxy_headers=False,
        server_header=False,
        timeout_keep_alive=KEEP_ALIVE_SECONDS,
        timeout_graceful_shutdown=GRACE_SECONDS,
        ssl_certfile=settings.tls_cert,
        ssl_keyfile=settings.tls_key,
    )
    return Server(config, settings, app.state.supervisor, on_ready)


def check_binding(settings: Settings, tokens: TokenStore) -> None:
    """Require a token and TLS on other interfaces than loopback; raises `UnsafeBinding`."""
    if is_loopback(settings.host):
        return
    missing = []
    if not tokens.configured:
        missing.append("a token (pendula token new)")
    if not settings.tls and not settings.behind_proxy:
        missing.append("TLS (--tls-cert, --tls-key) or a proxy with TLS (--behind-proxy)")
    if missing:
        raise UnsafeBinding(
            f"Serving on {settings.host} needs {' and '.join(missing)}; 127.0.0.1 does not",
            host=settings.host,
            missing=missing,
        )


def check_tls(settings: Settings) -> None:
    """Check that certificate and key can be read and match; raises `TlsUnusable`."""
    if settings.tls_cert is None:
        return
    try:
        ssl.create_default_context(ssl.Purpose.CLIENT_AUTH).load_cert_chain(settings.tls_cert, settings.tls_key)
    except (OSError, ValueError) as error:
        raise TlsUnusable(
            f"The certificate {settings.tls_cert} with its key cannot be used: {error}", tls_cert=settings.tls_cert
        ) from None


def allow_connections(most: int) -> None:
    """Raise the limit of open files for this many connections, as far as the system allows."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = most + FILES_BESIDES
    if hard != resource.RLIM_INFINITY:
        wanted = min(wanted, hard)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


def bind(settings: Settings) -> socket.socket:
    """The listening socket; raises `PortTaken` or `HostUnusable`."""
    try:
        found = socket.getaddrinfo(settings.host, settings.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
        family, _, _, _, place = found[0]
    except OSError as error:
        raise HostUnusable(
            f"The address {settings.host} does not exist: {error.strerror}", host=settings.host
        ) from None
    # With an explicit protocol, since asyncio sets TCP_NODELAY only then. Otherwise every response but the first on a
    # connection is delayed by 40 ms, until the client's system has acknowledged its head.
    listening = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind(place)
        # Listen now: two sockets with this option can share a port until one listens.
        listening.listen(2048)
    except OSError as error:
        listening.close()
        raise _not_bound(settings, error) from None
    return listening


def _not_bound(settings: Settings, error: OSError) -> PortTaken | HostUnusable:
    where = {"host": settings.host, "port": settings.port}
    if error.errno == errno.EADDRINUSE:
        return PortTaken(
            f"Port {settings.port} on {settings.host} is taken by another program; choose another with --port", **where
        )
    return HostUnusable(f"{settings.host}:{settings.port} cannot be used: {error.strerror}", **where)


def address(settings: Settings, listening: socket.socket) -> str:
    """The URL of the server."""
    host, port = listening.getsockname()[:2]
    shown = f"[{host}]" if ":" in host else host
    return f"{'https' if settings.tls else 'http'}://{shown}:{port}"


M_ARENA_MAX = -8


def _library() -> Any:
    try:
        library = ctypes.CDLL(None)
        return library if hasattr(library, "mallopt") and hasattr(library, "malloc_trim") else None
    except (OSError, TypeError):
        return None


def keep_few_arenas() -> bool:
    """Limit the number of arenas; call before starting threads. False if the C library does not support it."""
    library = _library()
    return library is not None and library.mallopt(M_ARENA_MAX, ARENAS) == 1


def give_back() -> None:
    """Return free memory to the system; other threads continue meanwhile."""
    library = _library()
    if library is not None:
        library.malloc_trim(0)
