"""Run the server: lock the data, take the port, serve until told to stop, flush every journal, let go.

Everything that can be wrong is found before the first request is taken, and said in one sentence.
"""

import errno
import resource
import signal
import socket
import ssl
from collections.abc import Callable, Sequence
from types import FrameType

import structlog
import uvicorn
from fastapi import FastAPI

from pendula.server import logs
from pendula.server.app import create_app
from pendula.server.datadir import DataDirectory
from pendula.server.errors import HostUnusable, PortTaken, TlsUnusable, UnsafeBinding
from pendula.server.house import House
from pendula.server.protocol import most_connections, protocol_for
from pendula.server.rooms import RoomSpec, rooms_for
from pendula.server.settings import Settings
from pendula.server.tokens import TokenStore

# Streams end at once when told to; this is for the requests that are being answered.
GRACE_SECONDS = 10
KEEP_ALIVE_SECONDS = 15
LARGEST_HEAD = 32 * 1024
# Journals, directories, the page, libraries.
FILES_BESIDES = 256

log = structlog.get_logger("pendula.server")


class Server(uvicorn.Server):
    """Uvicorn that ends event streams before it waits for connections, and treats a signal as a wish, not an error."""

    def __init__(self, config: uvicorn.Config, house: House, on_ready: Callable[[], None]) -> None:
        super().__init__(config)
        self._house = house
        self._on_ready = on_ready

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        if self.started:
            self._on_ready()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        log.info("stopping")
        self._house.stop_streams()
        await super().shutdown(sockets)

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:  # noqa: ARG002
        # Not remembered: uvicorn would raise the signal again after a clean stop, and the exit code would lie.
        if self.should_exit and sig == signal.SIGINT:
            self.force_exit = True
        self.should_exit = True


def serve(
    settings: Settings, rooms: Sequence[RoomSpec] | None = None, on_ready: Callable[[str], None] | None = None
) -> None:
    """Serve until SIGTERM or SIGINT; returns when every journal is flushed. `on_ready` is told the address.

    Raises `UnsafeBinding` and, where the world does not fit, the kinds of `WorldBroken` of `pendula.server.errors`.
    """
    logs.configure(settings.log_format, settings.log_level)
    with DataDirectory.lock(settings.data) as data:
        check_binding(settings, TokenStore(data.path))
        check_tls(settings)
        allow_connections(most_connections(settings))
        with bind(settings) as listening:
            chosen = rooms_for(settings) if rooms is None else rooms
            where = address(settings, listening)

            def ready() -> None:
                log.info("serving", address=where, data=str(data.path), demo=settings.demo)
                if on_ready is not None:
                    on_ready(where)

            server_for(create_app(settings, chosen, data=data), settings, ready).run([listening])


def server_for(app: FastAPI, settings: Settings, on_ready: Callable[[], None] = lambda: None) -> Server:
    """The HTTP server around an app, with nothing trusted that a caller can send."""
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
        h11_max_incomplete_event_size=LARGEST_HEAD,
        ssl_certfile=settings.tls_cert,
        ssl_keyfile=settings.tls_key,
    )
    return Server(config, app.state.house, on_ready)


def check_binding(settings: Settings, tokens: TokenStore) -> None:
    """Whoever can be reached from elsewhere needs a token and an encrypted way; raises `UnsafeBinding`."""
    if settings.loopback:
        return
    missing = []
    if not tokens.configured:
        missing.append("a token (pendula token new)")
    if not settings.tls and not settings.behind_proxy:
        missing.append("TLS (--tls-cert, --tls-key) or a proxy that gives it (--behind-proxy)")
    if missing:
        raise UnsafeBinding(
            f"Serving on {settings.host} needs {' and '.join(missing)}; 127.0.0.1 needs neither",
            host=settings.host,
            missing=missing,
        )


def check_tls(settings: Settings) -> None:
    """Certificate and key can be read and belong together; raises `TlsUnusable`."""
    if settings.tls_cert is None:
        return
    try:
        ssl.create_default_context(ssl.Purpose.CLIENT_AUTH).load_cert_chain(settings.tls_cert, settings.tls_key)
    except (OSError, ValueError) as error:
        raise TlsUnusable(
            f"The certificate {settings.tls_cert} with its key cannot be used: {error}", tls_cert=settings.tls_cert
        ) from None


def allow_connections(most: int) -> None:
    """Ask the system for as many open files as connections may need; where it allows fewer, fewer it is."""
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
        raise HostUnusable(f"There is no address {settings.host}: {error.strerror}", host=settings.host) from None
    listening = socket.socket(family, socket.SOCK_STREAM)
    try:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind(place)
        # Here, not later: two sockets with this option may share a port until one of them listens.
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
    """Where the server answers, as a browser would write it."""
    host, port = listening.getsockname()[:2]
    shown = f"[{host}]" if ":" in host else host
    return f"{'https' if settings.tls else 'http'}://{shown}:{port}"
