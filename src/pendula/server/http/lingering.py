"""Closes a connection while the client may still send, without losing the response.

Closing a socket with unread bytes resets the connection, and the client may never see the response. So the response is
sent, our half is closed, and further input is read and dropped, for at most some seconds and megabytes.
"""

import asyncio
from collections.abc import Callable
from typing import Any

LINGER_SECONDS = 2.0
LINGER_BYTES = 16 * 1024 * 1024


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
