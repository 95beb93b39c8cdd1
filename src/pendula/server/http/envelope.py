"""The outermost middleware: request ids, security headers, the error form, a log line and metrics.

No exception leaves this layer: a `PendulaError` is sent with its code, anything else as `internal_error`, whose
traceback is only in the log. A scheduler whose specification has its own error form translates the errors below its
prefix, including those of the gates.
"""

import re
import secrets
import time
from collections.abc import Callable, Mapping
from typing import Protocol

import structlog
from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import ClientDisconnect
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from pendula.kernel.errors import PendulaError, WorldBroken
from pendula.server.errors import error_response, internal_error_response
from pendula.server.monitoring import Metrics
from pendula.server.security.gates import allowed_origin, principal_of, split_host
from pendula.server.security.identity import is_loopback
from pendula.server.settings import Settings

CONTENT_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "font-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
)
REQUEST_ID = re.compile(r"[A-Za-z0-9._-]{1,64}")
SECURITY_HEADERS: Mapping[str, str] = {
    "content-security-policy": CONTENT_POLICY,
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "no-referrer",
    "permissions-policy": "camera=(), geolocation=(), microphone=(), payment=(), usb=()",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
}
# One year, the usual value.
HTTPS_ONLY = "max-age=31536000"

log = structlog.get_logger("pendula.server")


class ErrorTranslator(Protocol):
    """Translates errors below the prefix of a scheduler into the form of its specification."""

    def translated(self, error: PendulaError, scope: Scope) -> PendulaError: ...

    def response(self, error: PendulaError, scope: Scope) -> Response:
        """The response for a translated error."""
        ...

    def defect(self) -> PendulaError:
        """The error sent for an internal error, which is already logged."""
        ...


def request_id(offered: str | None) -> str:
    """The caller's id if it is well-formed, else a new one."""
    if offered is not None and REQUEST_ID.fullmatch(offered):
        return offered
    return secrets.token_hex(16)


class Exchange:
    """One request and its response."""

    def __init__(self, scope: Scope, receive: Receive, send: Send, settings: Settings) -> None:
        headers = Headers(scope=scope)
        # Read when the response is sent: by then the scope has the scheme reported by a proxy.
        self._scope = scope
        # A browser would apply it to every port of localhost, including other programs without TLS.
        self._is_loopback = is_loopback(split_host(headers.get("host", ""))[0] or "localhost")
        self._origin = allowed_origin(headers, settings)
        self.id = request_id(headers.get("x-request-id"))
        self.status: int | None = None
        self.left = False
        self._receive = receive
        self._send = send
        self._unread = "transfer-encoding" in headers or headers.get("content-length", "0") != "0"

    async def receive(self) -> Message:
        message = await self._receive()
        if not message.get("more_body", False):
            self._unread = False
        return message

    async def send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]
            headers = MutableHeaders(scope=message)
            headers["x-request-id"] = self.id
            for name, value in SECURITY_HEADERS.items():
                headers.setdefault(name, value)
            headers.setdefault("cache-control", "no-store")
            if self._scope["scheme"] == "https" and not self._is_loopback:
                headers["strict-transport-security"] = HTTPS_ONLY
            if self._origin is not None:
                # On errors too, so that an allowed page can read them.
                headers["access-control-allow-origin"] = self._origin
                headers["access-control-allow-credentials"] = "true"
                headers["access-control-expose-headers"] = "x-request-id"
                headers["cross-origin-resource-policy"] = "cross-origin"
                headers.add_vary_header("Origin")
            if self._unread:
                # Otherwise the rest of a refused body would be read to its end.
                headers["connection"] = "close"
        await self._send(message)


class HeadAnswered:
    """Answers HEAD wherever GET is allowed, with the same head and no body."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["method"] != "HEAD":
            await self.app(scope, receive, send)
            return
        # A copy, since the protocol must still see HEAD.
        asked = {**scope, "method": "GET"}
        complete = False

        async def send_head(message: Message) -> None:
            nonlocal complete
            if message["type"] == "http.response.start":
                await send(message)
            elif not complete:
                complete = True
                await send({"type": "http.response.body", "body": b"", "more_body": False})

        try:
            await self.app(asked, receive, send_head)
        finally:
            scope["route"] = asked.get("route")


class Envelope:
    """The outermost ASGI middleware; `gated` is the application behind its gates.

    `translators` are keyed by the prefix of the paths whose errors they translate.
    """

    def __init__(
        self,
        app: ASGIApp,
        gated: Callable[[ASGIApp], ASGIApp],
        metrics: Metrics,
        settings: Settings,
        translators: Mapping[str, ErrorTranslator] | None = None,
    ) -> None:
        self.app = app
        self._gated = gated(HeadAnswered(app))
        self._metrics = metrics
        self._settings = settings
        self._translators = translators or {}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        match scope["type"]:
            case "http":
                await self._exchange(scope, receive, send)
            case "websocket":
                await send({"type": "websocket.close", "code": 1008})
            case _:
                await self.app(scope, receive, send)

    async def _exchange(self, scope: Scope, receive: Receive, send: Send) -> None:
        exchange = Exchange(scope, receive, send, self._settings)
        scope.setdefault("state", {})["request_id"] = exchange.id
        start = time.perf_counter()
        with structlog.contextvars.bound_contextvars(request_id=exchange.id):
            try:
                await self._answer(scope, exchange)
            finally:
                self._record(scope, exchange, time.perf_counter() - start)

    async def _answer(self, scope: Scope, exchange: Exchange) -> None:
        try:
            await self._gated(scope, exchange.receive, exchange.send)
        except PendulaError as error:
            translator = self._translator(scope)
            translated = error if translator is None else translator.translated(error, scope)
            if exchange.status is not None:
                # A part of the response is sent; the connection can only be closed.
                raise
            if isinstance(translated, WorldBroken):
                # Responses contain no file paths; the log does.
                log.warning("world_broken", code=translated.code, problem=translated.message)
            response = error_response(translated) if translator is None else translator.response(translated, scope)
            await response(scope, exchange.receive, exchange.send)
        except ClientDisconnect:
            # The caller has disconnected; there is no response.
            exchange.left = True
        except Exception:
            log.exception("internal_error", method=scope["method"], path=scope["path"])
            translator = self._translator(scope)
            if translator is None:
                response = internal_error_response()
            else:
                response = translator.response(translator.defect(), scope)
            if exchange.status is not None:
                raise
            await response(scope, exchange.receive, exchange.send)

    def _translator(self, scope: Scope) -> ErrorTranslator | None:
        path = scope["path"]
        return next((it for prefix, it in self._translators.items() if is_below(path, prefix)), None)

    def _record(self, scope: Scope, exchange: Exchange, seconds: float) -> None:
        template = route_template(scope)
        principal = principal_of(scope)
        self._metrics.answered(template, scope["method"], exchange.status, seconds)
        client = scope.get("client")
        log.info(
            "client_left" if exchange.left else "request",
            method=scope["method"],
            path=scope["path"][:512],
            status=exchange.status,
            ms=round(seconds * 1000, 1),
            by=None if principal is None else principal.name,
            **({"client": None if client is None else client[0]} if exchange.left else {}),
        )


def route_template(scope: Scope) -> str:
    """The route pattern, so that ids do not become metrics labels."""
    return str(getattr(scope.get("route"), "path", "(none)"))


def is_below(path: str, prefix: str) -> bool:
    """Whether a path is the prefix or below it: `/a/b` is below `/a`, `/ab` is not."""
    return path == prefix or path.startswith(f"{prefix}/")


SCHEMES = frozenset({"http", "https"})


class Forwarded:
    """Replaces the proxy's address and scheme by those of the client."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        headers = Headers(scope=scope)
        scheme = _last(headers.getlist("x-forwarded-proto"))
        if scheme in SCHEMES:
            scope["scheme"] = scheme
        address = _last(headers.getlist("x-forwarded-for"))
        if address:
            scope["client"] = (address[:64], 0)
        await self.app(scope, receive, send)


def _last(values: list[str]) -> str:
    return ",".join(values).rpartition(",")[2].strip().lower()
