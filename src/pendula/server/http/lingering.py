"""A connection that is closed while the other side may still send: what it sends is dropped for a bounded while.

Whoever closes a socket with unread bytes in it resets the connection, and the other side may never see the answer that
said why. So the answer is sent, then our half is closed, and the rest is read and forgotten: for some seconds and some
megabytes at most, after which the connection is closed in any case.
"""

import asyncio
from collections.abc import Callable
from typing import Any

LINGER_SECONDS = 2.0
LINGER_BYTES = 16 * 1024 * 1024


class LingeringTransport:
    """A transport whose `close` waits for the other side, where `may_send` says that it may not have ended."""

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
        """Close now, or when the other side has ended, was too slow, or sent too much."""
        if self.is_closing():
            return
        if not self._may_send():
            self._transport.close()
            return
        self._timer = self._loop.call_later(LINGER_SECONDS, self._transport.close)
        # Uvicorn pauses reading where a body comes faster than it is taken.
        self._transport.resume_reading()
        if self._transport.can_write_eof():
            self._transport.write_eof()

    def drop(self, data: bytes) -> None:
        """What came meanwhile."""
        self._left -= len(data)
        if self._left < 0:
            self._transport.close()

    def lost(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
