"""Limits the bytes of request bodies in memory: a large body waits until there is space.

A body and its parsed form stay in memory until the request is answered; then its bytes are released. Small bodies are
not counted: `requests` bounds them, and uploads do not delay commands. A waiting body is not read.
"""

import asyncio
from collections import deque

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from pendula.kernel.limits import BODIES_BYTES, BODY_BYTES
from pendula.server.errors import BodiesBusy
from pendula.server.settings import Settings

SMALL_BYTES = 64 * 1024
# Long enough for several large bodies; after that the client should retry.
PATIENCE_SECONDS = 5.0


class BodyBudget:
    """A budget of bytes, granted in order of arrival. Used on the event loop."""

    def __init__(self, most: int) -> None:
        self.most = most
        self.held = 0
        self.most_held = 0
        self._waiting: deque[tuple[int, asyncio.Future[None]]] = deque()

    async def take(self, size: int) -> int:
        """Wait for `size` bytes, at most the whole budget; returns the granted number. Raises `BodiesBusy`."""
        wanted = min(size, self.most)
        if self._waiting or self.held + wanted > self.most:
            await self._wait(wanted)
        else:
            self._hold(wanted)
        return wanted

    def give_back(self, size: int) -> None:
        self.held -= size
        self._let_in()

    async def _wait(self, wanted: int) -> None:
        mine: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append((wanted, mine))
        try:
            async with asyncio.timeout(PATIENCE_SECONDS):
                await mine
        except BaseException as error:
            if mine.done() and not mine.cancelled():
                self.give_back(wanted)
            else:
                self._waiting.remove((wanted, mine))
                self._let_in()
            if not isinstance(error, TimeoutError):
                raise
            raise BodiesBusy(
                f"{self.held} bytes of bodies are being read; the limit is {self.most} at once",
                limit=BODIES_BYTES.name,
                allowed=self.most,
            ) from None

    def _let_in(self) -> None:
        while self._waiting and self.held + self._waiting[0][0] <= self.most:
            wanted, waiter = self._waiting.popleft()
            if not waiter.done():
                self._hold(wanted)
                waiter.set_result(None)

    def _hold(self, wanted: int) -> None:
        self.held += wanted
        self.most_held = max(self.most_held, self.held)


class BodiesGate:
    """Reads a large body when there is space for it. Behind the identity gate, so only known callers use the budget."""

    name = "bodies"

    def __init__(self, app: ASGIApp, settings: Settings, budget: BodyBudget) -> None:
        self.app = app
        self._most = settings.allowed(BODY_BYTES)
        self._budget = budget

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        held = 0
        size = 0
        declared = Headers(scope=scope).get("content-length", "0")
        expected = int(declared[:20]) if declared.isascii() and declared.isdigit() else 0

        async def roomy() -> Message:
            nonlocal held, size
            if not held and max(expected, size) > SMALL_BYTES:
                # The length of a chunked body is known only at its end.
                held = await self._budget.take(expected or self._most)
            message = await receive()
            size += len(message.get("body", b""))
            return message

        try:
            await self.app(scope, roomy, send)
        finally:
            if held:
                self._budget.give_back(held)
