"""One HTTP connection with time limits: a head that does not arrive in time is answered with 408.

Errors before there is a request (a head that is not HTTP, too long, too slow or with two body lengths; too many
connections) are answered in the common error form, and the connection is closed. A client that does not read for a
while is disconnected, which frees the slot of its stream.

Closing a socket with unread bytes resets the connection, and the client may never see the response. So the response is
sent, our half is closed, and further input is read and dropped, for at most some seconds and megabytes.
"""

import asyncio
import secrets
from collections.abc import Callable, Mapping
from typing import Any, ClassVar, cast

import h11
import structlog
from uvicorn.protocols.http.h11_impl import STATUS_PHRASES, H11Protocol

from pendula.kernel.limits import HEADER_SECONDS, READER_SECONDS, REQUESTS, STREAMS
from pendula.server.errors import HttpRefused, InvalidHead, SlowRequest, TooManyRequests, error_body
from pendula.server.settings import Settings

LINGER_SECONDS = 2.0
LINGER_BYTES = 16 * 1024 * 1024

LARGEST_HEAD = 32 * 1024
MOST_LINGERING = 64

log = structlog.get_logger("pendula.server")


class LingeringTransport:
    """A transport whose `close` waits for the client while `may_send` returns true."""

    def __init__(
        self, transport: asyncio.Transport, loop: asyncio.AbstractEventLoop, may_send: Callable[[], bool]
    ) -> None:
        self._transport = transport
        self._loop = loop
        self._may_send = may_send
        self._left = LINGER_BYTES
        self._timer: asyncio.TimerHandle | None = None

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)

    @property
    def is_lingering(self) -> bool:
        return self._timer is not None

    def is_closing(self) -> bool:
        return self.is_lingering or self._transport.is_closing()

    def close(self) -> None:
        """Close now, or when the client has ended, was too slow, or sent too much."""
        if self.is_closing():
            return
        if not self._may_send():
            self._transport.close()
            return
        self._timer = self._loop.call_later(LINGER_SECONDS, self._transport.close)
        # Uvicorn pauses reading if a body arrives faster than it is read.
        self._transport.resume_reading()
        if self._transport.can_write_eof():
            self._transport.write_eof()

    def drop(self, data: bytes) -> None:
        """Count and drop input."""
        self._left -= len(data)
        if self._left < 0:
            self._transport.close()

    def lost(self) -> None:
        if self._timer is not None:
            self._timer.cancel()


class StrictConnection(h11.Connection):
    """H11's reader, which limits only incomplete heads and accepts two body lengths.

    A proxy may see another end of a request with both lengths, which allows request smuggling.
    """

    def __init__(self, most: int = LARGEST_HEAD) -> None:
        super().__init__(h11.SERVER, most)
        self._most = most
        self.fault: str | None = None

    def next_event(self) -> h11.Event | type[h11.NEED_DATA] | type[h11.PAUSED]:
        if self.their_state is not h11.IDLE:
            return super().next_event()
        before = self._buffered()
        event = super().next_event()
        if isinstance(event, h11.Request):
            self._check(event, before - self._buffered())
        return event

    def _buffered(self) -> int:
        return len(self.trailing_data[0])

    def _check(self, request: h11.Request, size: int) -> None:
        names = {name for name, _ in request.headers}
        if size > self._most:
            self.fault = f"The request head has {size} bytes; the limit is {self._most}"
        elif {b"content-length", b"transfer-encoding"} <= names:
            self.fault = "The request has both Content-Length and Transfer-Encoding; send only one of them"
        if self.fault is not None:
            raise h11.RemoteProtocolError(self.fault)


class PatientProtocol(H11Protocol):
    """Uvicorn's protocol with time limits for receiving a head and for sending a response."""

    conn: StrictConnection

    header_seconds: ClassVar[int] = HEADER_SECONDS.default
    reader_seconds: ClassVar[int] = READER_SECONDS.default
    most_connections: ClassVar[int] = 2 * (REQUESTS.default + STREAMS.default)

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.conn = StrictConnection()
        self._head_timer: asyncio.TimerHandle | None = None
        self._reader_timer: asyncio.TimerHandle | None = None
        self._refused = False

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        self._lingering = LingeringTransport(transport, self.loop, self._may_send)
        super().connection_made(cast(asyncio.Transport, self._lingering))
        if len(self.connections) > self.most_connections:
            self._refuse(TooManyRequests(f"{self.most_connections} connections are open; this is the limit"))
        else:
            self._wait_for_head()

    def _may_send(self) -> bool:
        """Whether the client may still be sending at close; only some connections over the limit are waited for."""
        if len(self.connections) > self.most_connections + MOST_LINGERING:
            return False
        return self._refused or self.conn.their_state is h11.SEND_BODY

    def data_received(self, data: bytes) -> None:
        if self._lingering.is_lingering:
            self._lingering.drop(data)
            return
        if self._between_requests() and self._head_timer is None:
            self._wait_for_head()
        super().data_received(data)
        if not self._between_requests():
            self._stop_waiting()

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_waiting()
        self._stop_watching()
        self._lingering.lost()
        super().connection_lost(exc)

    def on_response_complete(self) -> None:
        # Uvicorn's idle timer applies until the next head begins.
        super().on_response_complete()
        self._stop_waiting()

    def pause_writing(self) -> None:
        super().pause_writing()
        self._stop_watching()
        self._watch()

    def resume_writing(self) -> None:
        self._stop_watching()
        super().resume_writing()

    def send_400_response(self, msg: str) -> None:
        self._refuse(InvalidHead(self.conn.fault or f"This is not an HTTP request: {msg}"))

    @property
    def is_answering(self) -> bool:
        """Whether a request is being answered."""
        return not self._between_requests()

    def _between_requests(self) -> bool:
        return self.cycle is None or self.cycle.response_complete

    def _wait_for_head(self) -> None:
        self._head_timer = self.loop.call_later(self.header_seconds, self._too_slow)

    def _stop_waiting(self) -> None:
        if self._head_timer is not None:
            self._head_timer.cancel()
            self._head_timer = None

    def _too_slow(self) -> None:
        self._head_timer = None
        self._refuse(SlowRequest(f"No complete request head arrived within {self.header_seconds} seconds"))

    def _watch(self) -> None:
        left = self.transport.get_write_buffer_size()
        self._reader_timer = self.loop.call_later(self.reader_seconds, self._look_at_reader, left)

    def _stop_watching(self) -> None:
        if self._reader_timer is not None:
            self._reader_timer.cancel()
            self._reader_timer = None

    def _look_at_reader(self, left_before: int) -> None:
        """Disconnect a client that has read nothing since the last check."""
        if self.transport.get_write_buffer_size() < left_before:
            self._watch()
            return
        client = None if self.client is None else self.client[0]
        log.info("reader_stalled", client=client, seconds=self.reader_seconds)
        # Aborted, since closing would wait for the client to read the rest.
        self.transport.abort()

    def _refuse(self, error: HttpRefused) -> None:
        if self.transport.is_closing():
            return
        if self.conn.our_state in (h11.IDLE, h11.SEND_RESPONSE):
            body = error_body(error.code, error.message, error.details)
            self.transport.write(_answer(self.conn, error.status, body))
            self._refused = True
        self.transport.close()


def _answer(conn: h11.Connection, status: int, body: bytes) -> bytes:
    headers: Mapping[str, str] = {
        "content-type": "application/json",
        "content-length": str(len(body)),
        "connection": "close",
        "x-request-id": secrets.token_hex(16),
        "x-content-type-options": "nosniff",
    }
    response = h11.Response(status_code=status, headers=list(headers.items()), reason=STATUS_PHRASES[status])
    parts = (conn.send(response), conn.send(h11.Data(data=body)), conn.send(h11.EndOfMessage()))
    return b"".join(part for part in parts if part is not None)


def most_connections(settings: Settings) -> int:
    """Twice the number of allowed requests and streams."""
    return 2 * (settings.allowed(REQUESTS) + settings.allowed(STREAMS))


def protocol_for(settings: Settings) -> type[PatientProtocol]:
    """The protocol with the limits of these settings."""
    limits = {
        "header_seconds": settings.allowed(HEADER_SECONDS),
        "reader_seconds": settings.allowed(READER_SECONDS),
        "most_connections": most_connections(settings),
    }
    return type("ConfiguredProtocol", (PatientProtocol,), limits)
