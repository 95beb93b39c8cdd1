"""The gates of a request, in this order: host, origin, content type, size, requests, identity, bodies.

Each gate makes one check and raises an error, which the envelope sends in the common form. Cheap checks come first, and
tokens are checked only after host and origin.
"""

import asyncio
import ipaddress
import math
import re
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Self

from starlette.datastructures import Headers
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from pendula.documents import CONTENT_TYPES
from pendula.kernel.errors import WorldBroken
from pendula.kernel.limits import BODIES_BYTES, BODY_BYTES, HEADER_SECONDS, REQUESTS
from pendula.server.errors import (
    BodiesBusy,
    BodyTooLarge,
    ForeignOrigin,
    HostNotAllowed,
    HttpRefused,
    InvalidHead,
    NotIdentified,
    SlowRequest,
    TooManyRequests,
    WrongContentType,
)
from pendula.server.security.identity import (
    LOCAL_OPERATOR,
    Asking,
    Principal,
    Role,
    Sessions,
    TokenStore,
    Via,
    asking,
    cookie_value,
    is_loopback,
)
from pendula.server.settings import DEFAULT_PORTS, Settings

AT_ONCE = 10
SECONDS_EACH = 6.0
MOST_ADDRESSES = 4096
SIGN_IN = "/api/v1/session"
SIGN_IN_BYTES = 4096
SMALL_BYTES = 64 * 1024
# Long enough for several large bodies; after that the client should retry.
PATIENCE_SECONDS = 5.0
READING = frozenset({"GET", "HEAD", "OPTIONS"})
HEALTH = "/healthz"
# CORS headers for pages from allowed origins.
PREFLIGHT = {
    "access-control-allow-methods": "GET, HEAD, POST, PUT, PATCH, DELETE",
    "access-control-allow-headers": "authorization, content-type, last-event-id, x-admin-token, x-request-id",
    "access-control-max-age": "600",
}
# Public paths: the page, and what it needs to ask for a token.
PUBLIC = frozenset({"/", "/docs", "/favicon.svg", HEALTH, "/readyz", "/openapi.json", "/api/v1/session"})
# The built page and documentation, the same on every server.
PUBLIC_FOLDERS = ("/assets/", "/docs/")
# A body has the time limit of a head plus one second per this many bytes: generous for slow lines, too short to idle.
SLOWEST_BYTES_PER_SECOND = 64 * 1024
# Headers that proxies add.
PROXY_HEADERS = frozenset({"forwarded", "via", "x-real-ip"})
PROXY_PREFIX = "x-forwarded-"

_HOST = re.compile(r"(?:\[(?P<six>[0-9A-Fa-f.]*:[0-9A-Fa-f:.]*)\]|(?P<name>[^:\[\]]+))(?::(?P<port>[0-9]{1,5}))?")


class Gates:
    """The application behind its gates."""

    def __init__(
        self,
        app: ASGIApp,
        settings: Settings,
        tokens: TokenStore,
        sessions: Sessions,
        wrong_tokens: "WrongTokens",
        bodies: "BodyBudget",
    ) -> None:
        self._app = app
        self._settings = settings
        self._most, self._seconds = settings.allowed(BODY_BYTES), settings.allowed(HEADER_SECONDS)
        self._requests = Requests(settings.allowed(REQUESTS))
        self._identity = Identity(settings, tokens, sessions, wrong_tokens)
        self._bodies = bodies

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        headers, settings = Headers(scope=scope), self._settings
        check_host(scope, headers, settings)
        if is_preflight(scope, headers) and allowed_origin(headers, settings) is not None:
            await Response(status_code=204, headers=PREFLIGHT)(scope, receive, send)
            return
        check_origin(scope, headers, settings)
        check_content_type(scope, headers)
        bounded = bounded_body(scope, headers, receive, self._most, self._seconds)
        with (
            self._requests.slot(scope),
            self._identity.known(scope, headers, bounded),
            BodyInMemory(self._bodies, self._most, headers, bounded) as body,
        ):
            await self._app(scope, body.receive, send)


def check_host(scope: Scope, headers: Headers, settings: Settings) -> None:
    """The Host header names this server: loopback with our port, our own address, or an allowed host.

    This prevents DNS rebinding, where an attacker's host name resolves to 127.0.0.1.
    """
    hosts = headers.getlist("host")
    server = scope.get("server") or ("", None)
    if len(hosts) != 1 or not host_allowed(hosts[0], scope["scheme"], server[1], settings):
        shown = ", ".join(hosts)[:256]
        raise HostNotAllowed(
            f"The Host header {shown!r} does not name this server; "
            "use loopback with its port, or allow the name with --allowed-host",
            host=shown,
        )


def host_allowed(host: str, scheme: str, own_port: int | None, settings: Settings) -> bool:
    """Whether a Host header, or the host of an Origin, names this server."""
    name, port = split_host(host)
    if name is None:
        return False
    if _is_own_address(name, settings.host):
        return port == own_port or (port is None and own_port == DEFAULT_PORTS[scheme])
    allowed = (split_host(entry) for entry in settings.allowed_hosts)
    return any(name == known and (wanted is None or port == wanted) for known, wanted in allowed)


def split_host(host: str) -> tuple[str | None, int | None]:
    """Name and port of `name`, `name:80`, `[::1]:80`; no name for other forms."""
    match = _HOST.fullmatch(host)
    if match is None:
        return None, None
    name = match["six"] or match["name"]
    return name.lower(), None if match["port"] is None else int(match["port"])


def _is_own_address(name: str, bound: str) -> bool:
    if is_loopback(name):
        return True
    try:
        return not ipaddress.ip_address(bound).is_unspecified and name == bound
    except ValueError:
        return name == bound


def is_preflight(scope: Scope, headers: Headers) -> bool:
    """Whether a browser asks if a page may send a request. It is answered for allowed origins."""
    return scope["method"] == "OPTIONS" and "access-control-request-method" in headers


def check_origin(scope: Scope, headers: Headers, settings: Settings) -> None:
    """Requests that change something come from our own page, an allowed origin, or no page."""
    # The browser hides the reason from the page but shows it in its developer tools.
    if scope["method"] in READING and not is_preflight(scope, headers):
        return
    if allowed_origin(headers, settings) is not None:
        return
    site = headers.get("sec-fetch-site", "none")
    # same-site is foreign too, since all ports of localhost are the same site.
    if site not in ("same-origin", "none"):
        origin = headers.get("origin", "of that page")[:256]
        raise ForeignOrigin(
            f"Sec-Fetch-Site is {site[:64]!r}; only the server's own page may send this, or a page from an allowed "
            f"origin: --allowed-origin {origin}",
            site=site[:64],
        )
    own_port = (scope.get("server") or ("", None))[1]
    for origin in headers.getlist("origin"):
        scheme, _, host = origin.partition("://")
        same = host.lower() == headers.get("host", "").lower() and scheme == scope["scheme"]
        known = scheme in DEFAULT_PORTS and host_allowed(host, scheme, own_port, settings)
        if not same and not (known and scheme == scope["scheme"]):
            raise ForeignOrigin(
                f"The origin {origin[:256]!r} is foreign; only the server's own page may send this, or an allowed "
                f"origin: --allowed-origin {origin[:256]}",
                origin=origin[:256],
            )


def allowed_origin(headers: Headers, settings: Settings) -> str | None:
    """The origin of the calling page if it is allowed; several Origin headers are not."""
    origins = headers.getlist("origin")
    return origins[0] if len(origins) == 1 and origins[0].lower() in settings.allowed_origins else None


def check_content_type(scope: Scope, headers: Headers) -> None:
    """Bodies of requests that change something are JSON, JSON5 or YAML: HTML forms cannot send these.

    A request without a body needs no content type; its origin is checked.
    """
    if scope["method"] not in READING and not _says_nothing(headers):
        given = headers.get("content-type", "")
        if given.partition(";")[0].strip().lower() not in CONTENT_TYPES:
            raise WrongContentType(
                f"The content type is {given[:128]!r}; it must be application/json", content_type=given[:128]
            )


def _says_nothing(headers: Headers) -> bool:
    empty = headers.get("content-length", "0") == "0" and "transfer-encoding" not in headers
    return empty and "content-type" not in headers


def bounded_body(scope: Scope, headers: Headers, receive: Receive, most: int, seconds: int) -> Receive:
    """A body has at most `most` bytes, declared or not, and keeps arriving; GET and HEAD have none.

    Signing in is public, so its body is limited to 4 KiB.
    """
    declared = headers.get("content-length", "0")
    if scope["method"] in READING and ("transfer-encoding" in headers or declared.strip("0")):
        # An unread body would make a stream wait for it, and end when it does not arrive.
        raise InvalidHead(f"{scope['method']} must not have a body")
    if scope.get("path") == SIGN_IN:
        most = SIGN_IN_BYTES
    if declared.isascii() and declared.isdigit():
        _check_size(int(declared[:20]), most)
    clock = asyncio.get_running_loop()
    start = clock.time()
    size = 0
    complete = False

    async def bounded() -> Message:
        nonlocal size, complete
        if complete:
            return await receive()
        try:
            async with asyncio.timeout_at(start + seconds + size / SLOWEST_BYTES_PER_SECOND):
                message = await receive()
        except TimeoutError:
            raise SlowRequest(f"The body stopped arriving after {size} bytes", received=size) from None
        size += len(message.get("body", b""))
        complete = not message.get("more_body", False)
        _check_size(size, most)
        return message

    return bounded


def _check_size(size: int, most: int) -> None:
    if size > most:
        raise BodyTooLarge(
            f"The body has at least {size} bytes; the limit is {most}", limit=BODY_BYTES.name, value=size, allowed=most
        )


class Requests:
    """At most `most` requests are answered at a time. Streams have separate limits; health always answers."""

    def __init__(self, most: int) -> None:
        self._most = most
        self.answering = 0

    @contextmanager
    def slot(self, scope: Scope) -> Iterator[None]:
        if self.answering >= self._most and scope["path"] != HEALTH:
            raise TooManyRequests(
                f"{self.answering} requests are being answered; the limit is {self._most}",
                limit=REQUESTS.name,
                allowed=self._most,
            )
        slot = Slot(self)
        scope.setdefault("state", {})["slot"] = slot
        try:
            yield
        finally:
            slot.release()


class Slot:
    """One of the `requests` slots; released once, at the end or when the request becomes a stream."""

    def __init__(self, requests: Requests) -> None:
        self._requests = requests
        self._held = True
        requests.answering += 1

    def release(self) -> None:
        if self._held:
            self._held = False
            self._requests.answering -= 1


class Identity:
    """Identifies the caller by bearer token, session cookie or, while no token is configured, as a local program.

    A wrong Authorization header is always refused. The cookie of an ended session is ignored, since browsers send it by
    themselves. Other callers can reach only public paths.
    """

    def __init__(self, settings: Settings, tokens: TokenStore, sessions: Sessions, wrong: "WrongTokens") -> None:
        self._settings = settings
        self._tokens = tokens
        self._sessions = sessions
        self._wrong = wrong

    @contextmanager
    def known(self, scope: Scope, headers: Headers, receive: Receive) -> Iterator[None]:
        public = is_public(scope["path"])
        try:
            principal = self._recognise(scope, headers)
        except WorldBroken:
            # If tokens cannot be read, all callers are refused; health and the page still work.
            if not public:
                raise
            principal = None
        if principal is None and not public:
            raise unauthenticated(scope, self._settings)
        scope.setdefault("state", {})["principal"] = principal
        token = asking.set(None if principal is None else Asking(principal.name, receive))
        try:
            yield
        finally:
            asking.reset(token)

    def _recognise(self, scope: Scope, headers: Headers) -> Principal | None:
        offered = headers.get("authorization")
        if offered is not None:
            return self._bearer(offered, scope)
        # Clients of the simulator protocol send it empty while they have no token.
        if admin := headers.get("x-admin-token", "").strip():
            return self._admin(admin, scope)
        cookie = cookie_value(headers.get("cookie"))
        found = None if cookie is None else self._sessions.find(cookie)
        if found is not None:
            return found
        return LOCAL_OPERATOR if self._is_local(scope) and not self._tokens.configured else None

    def _bearer(self, offered: str, scope: Scope) -> Principal:
        kind, _, secret = offered.partition(" ")
        record = self._tokens.check(secret.strip()) if kind.lower() == "bearer" else None
        if record is None:
            refusal = NotIdentified("The Authorization header is not valid: send Bearer and a valid token")
            raise self._wrong.wrong(scope, refusal)
        self._wrong.right(scope)
        return Principal(record.name, record.role, Via.TOKEN, record.expires_at)

    def _admin(self, secret: str, scope: Scope) -> Principal:
        record = self._tokens.check(secret)
        if record is None or record.role is not Role.ADMIN:
            refusal = NotIdentified(
                "The X-Admin-Token header requires the token of an admin (pendula token new --name NAME --role admin); "
                "send any other token as Authorization: Bearer, or leave the header empty"
            )
            raise self._wrong.wrong(scope, refusal)
        self._wrong.right(scope)
        return Principal(record.name, record.role, Via.TOKEN, record.expires_at)

    def _is_local(self, scope: Scope) -> bool:
        # Behind a proxy every caller has the proxy's address, whether the proxy was declared or not.
        client = scope.get("client")
        is_proxied = self._settings.behind_proxy or proxy_header(scope) is not None
        return client is not None and not is_proxied and is_loopback(client[0])


class TooManyWrongTokens(HttpRefused):
    """Too many wrong tokens came from this address. Facts: `retry_after_seconds`."""

    code = "too_many_wrong_tokens"
    status = 429


class WrongTokens:
    """The addresses that sent wrong tokens, each with the time until which its allowance is used."""

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self._now = now
        # Ordered by the last wrong token.
        self._until: dict[str, float] = {}

    def __len__(self) -> int:
        return len(self._until)

    def wrong(self, scope: Scope, otherwise: HttpRefused) -> HttpRefused:
        """The error for a wrong token: `otherwise`, or `TooManyWrongTokens`."""
        address, now = address_of(scope), self._now()
        until = max(self._until.pop(address, now), now) + SECONDS_EACH
        over = until - now - AT_ONCE * SECONDS_EACH
        # Further tries do not extend the wait, or a forgotten program would lock itself out.
        self._until[address] = min(until, now + AT_ONCE * SECONDS_EACH)
        while len(self._until) > MOST_ADDRESSES:
            del self._until[next(iter(self._until))]
        if over <= 0:
            return otherwise
        seconds = math.ceil(over)
        return TooManyWrongTokens(
            f"Too many wrong tokens from this address; try again in {seconds} seconds with a valid one",
            retry_after_seconds=seconds,
        )

    def right(self, scope: Scope) -> None:
        """Reset the count of an address after a valid token."""
        if self._until:
            self._until.pop(address_of(scope), None)


def address_of(scope: Scope) -> str:
    """The client address, from a proxy only if declared; for IPv6 the /64 network."""
    client: Any = scope.get("client")
    text = "" if client is None else str(client[0])
    try:
        address = ipaddress.ip_address(text)
    except ValueError:
        return text
    if isinstance(address, ipaddress.IPv6Address):
        mapped = address.ipv4_mapped
        return str(ipaddress.ip_network((address, 64), strict=False)) if mapped is None else str(mapped)
    return text


def proxy_header(scope: Scope) -> str | None:
    """The first header that a proxy adds, if any."""
    names = Headers(scope=scope).keys()
    return next((name for name in names if name in PROXY_HEADERS or name.startswith(PROXY_PREFIX)), None)


def unauthenticated(scope: Scope, settings: Settings) -> NotIdentified:
    """The error for an unknown caller, with how to sign in."""
    header = proxy_header(scope)
    if settings.behind_proxy or header is None:
        return NotIdentified("Sign in: send a bearer token or a session cookie")
    return NotIdentified(
        f"The request came through a proxy (header {header[:64]!r}), so it may not come from this machine; send a "
        "bearer token or a session cookie, or declare the proxy with --behind-proxy",
        header=header[:64],
    )


def is_public(path: str) -> bool:
    """Whether a path needs no authentication."""
    return path in PUBLIC or path.startswith(PUBLIC_FOLDERS)


def principal_of(scope: Scope) -> Principal | None:
    """The caller found by the identity gate."""
    found: Any = scope.get("state", {}).get("principal")
    return found if isinstance(found, Principal) else None


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


class BodyInMemory:
    """The body of one request: a large one is read when there is space for it, which is given back at the end.

    Behind the identity gate, so only known callers use the budget.
    """

    def __init__(self, budget: BodyBudget, most: int, headers: Headers, receive: Receive) -> None:
        declared = headers.get("content-length", "0")
        self._expected = int(declared[:20]) if declared.isascii() and declared.isdigit() else 0
        self._budget = budget
        self._most = most
        self._receive = receive
        self._held = 0
        self._size = 0

    async def receive(self) -> Message:
        if not self._held and max(self._expected, self._size) > SMALL_BYTES:
            # The length of a chunked body is known only at its end.
            self._held = await self._budget.take(self._expected or self._most)
        message = await self._receive()
        self._size += len(message.get("body", b""))
        return message

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._held:
            self._budget.give_back(self._held)
