"""Several streams in one response, so that a browser needs one connection for all its tabs.

Each stream is opened like a separate request: the same gates, roles, limits and refusals, and its own slot. Its
messages pass through unchanged under its number; a stream that is refused or ends does not affect the others. The
response ends with the last stream. To change the set of streams, a client opens another response.
"""

import asyncio
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import suppress
from typing import Annotated, Any
from urllib.parse import unquote, urlsplit

from fastapi import APIRouter, Query
from msgspec import Struct
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.types import ASGIApp, Message, Scope

from pendula.server.api.openapi import READ_ERRORS, Responses, refusals
from pendula.server.api.requests import RequestId, Viewer, slot_of
from pendula.server.errors import InvalidRequest, NotAStream, error_body
from pendula.server.runtime.streams import OPENING, StreamResponse

PATH = "/api/v1/stream"
MOST_STREAMS = 64
MOST_ADDRESS = 512
MOST_REFUSAL_BYTES = 64 * 1024
BEAT_SECONDS = 5.0
BEAT = b"event: beat\ndata: beat\n\n"
HEADERS = (("cache-control", "no-store"),)
# Of the one request; each stream has its own.
OWN_HEADERS = frozenset({b"last-event-id", b"x-request-id"})

Addresses = Annotated[
    list[str],
    Query(
        min_length=1,
        max_length=MOST_STREAMS,
        description="The address of a stream, optionally preceded by its last seen event id and a space",
    ),
]

router = APIRouter()

_TOGETHER: Responses = {
    200: {
        "description": "Server-sent events: `opened`, `data`, `refused`, `ended` with a stream's number, and `beat`",
        "content": {"text/event-stream": {}},
    }
}


class Wanted(Struct, frozen=True):
    """One requested stream, and the event id after which it starts."""

    path: str
    query: str
    after: str | None


@router.get(
    PATH,
    tags=["server"],
    response_class=StreamingResponse,
    responses=_TOGETHER | refusals(READ_ERRORS),
)
async def together(request: Request, request_id: RequestId, _: Viewer, of: Addresses) -> Response:
    """Several streams in one response: each `of` is an address, numbered from 0."""
    wanted = [_wanted(number, address) for number, address in enumerate(of)]
    streams = CombinedStream(request.app, request.scope, request_id, wanted)
    slot_of(request).release()
    return StreamResponse(streams.chunks(), streams.stop, HEADERS)


def _wanted(number: int, address: str) -> Wanted:
    before, _, place = address.rpartition(" ")
    parts = urlsplit(place)
    if len(address) > MOST_ADDRESS or parts.netloc or not parts.path.startswith("/") or parts.path == PATH:
        fault = {"place": "query", "name": f"of[{number}]", "problem": "not the address of a stream"}
        raise InvalidRequest(
            f"The request is invalid: of[{number}] is not the address of a stream such as /api/v1/actions/town/stream",
            faults=[fault],
        )
    return Wanted(parts.path, parts.query, before or None)


class CombinedStream:
    """The streams of one response. A slow reader delays all of them; nothing is buffered for it."""

    def __init__(self, app: ASGIApp, scope: Scope, request_id: str, wanted: Sequence[Wanted]) -> None:
        self._app = app
        self._scope = scope
        self._request_id = request_id
        self._wanted = wanted
        self._messages: asyncio.Queue[bytes | None] = asyncio.Queue(maxsize=1)
        self._tasks: list[asyncio.Task[None]] = []

    async def chunks(self) -> AsyncIterator[bytes]:
        """The messages of all streams as they arrive; ends after the last stream."""
        yield OPENING
        self._tasks = [asyncio.create_task(self._follow(number, one)) for number, one in enumerate(self._wanted)]
        left = len(self._tasks)
        while left:
            try:
                async with asyncio.timeout(BEAT_SECONDS):
                    message = await self._messages.get()
            except TimeoutError:
                message = BEAT
            if message is None:
                left -= 1
            else:
                yield message

    def stop(self) -> None:
        """Stop all streams after the reader disconnects, which releases their slots."""
        for task in self._tasks:
            task.cancel()

    async def _follow(self, number: int, wanted: Wanted) -> None:
        inner = Inner(number, self._messages)
        # The error is already logged; the stream ends as it would alone.
        with suppress(Exception):
            await self._app(self._scope_of(wanted), _nothing_more, inner.send)
        await self._messages.put(inner.end())
        await self._messages.put(None)

    def _scope_of(self, wanted: Wanted) -> Scope:
        headers = [(name, value) for name, value in self._scope["headers"] if name not in OWN_HEADERS]
        headers.append((b"x-request-id", self._request_id.encode()))
        if wanted.after is not None:
            headers.append((b"last-event-id", wanted.after.encode("latin-1", "replace")))
        return {
            "type": "http",
            # Since this version a response does not listen for a disconnect.
            "asgi": {"version": "3.0", "spec_version": "2.4"},
            "http_version": self._scope["http_version"],
            "method": "GET",
            "scheme": self._scope["scheme"],
            "path": unquote(wanted.path),
            "raw_path": wanted.path.encode(),
            "query_string": wanted.query.encode(),
            "root_path": self._scope.get("root_path", ""),
            "headers": headers,
            "client": self._scope.get("client"),
            "server": self._scope.get("server"),
            "state": {},
        }


class Inner:
    """The response of one stream, redirected into the combined response."""

    def __init__(self, number: int, messages: "asyncio.Queue[bytes | None]") -> None:
        self._number = number
        self._messages = messages
        self._status = 0
        self._streams = False
        self._text = b""

    async def send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self._status = message["status"]
            self._streams = self._status == 200 and _is_stream(message["headers"])
            if self._streams:
                await self._messages.put(frame("opened", self._number))
        elif self._streams:
            *whole, self._text = (self._text + message.get("body", b"")).split(b"\n\n")
            if data := b"".join(frame("data", self._number, lines) for lines in map(_lines, whole) if lines):
                await self._messages.put(data)
        else:
            self._text = (self._text + message.get("body", b""))[:MOST_REFUSAL_BYTES]

    def end(self) -> bytes:
        """The last message about the stream."""
        if self._streams:
            return frame("ended", self._number)
        if self._status == 200:
            refused = NotAStream("This address is not an event stream")
            return frame("refused", self._number, [error_body(refused.code, refused.message, {})])
        return frame("refused", self._number, [self._text])


def frame(name: str, number: int, lines: Iterable[bytes] = ()) -> bytes:
    """One message of the combined response: the stream number, then lines of the stream."""
    data = (b"data: %b\n" % line for line in (b"%d" % number, *lines))
    return b"event: %b\n%b\n" % (name.encode(), b"".join(data))


def _lines(block: bytes) -> list[bytes]:
    """The lines of a message without comments, which only keep a connection alive."""
    return [line for line in block.split(b"\n") if line and not line.startswith(b":")]


def _is_stream(headers: Iterable[tuple[bytes, bytes]]) -> bool:
    return any(name.lower() == b"content-type" and value.startswith(b"text/event-stream") for name, value in headers)


async def _nothing_more() -> dict[str, Any]:
    return {"type": "http.request", "body": b"", "more_body": False}
