"""Sessions of browsers: a page cannot put a header on an event stream, so it trades its token for a cookie once.

Sessions live in memory, under the sha256 of the cookie, for 12 hours at most and never longer than their token. A
restart ends them all; the page asks for the token again.
"""

import secrets
from collections.abc import Callable
from hashlib import sha256

from starlette.requests import cookie_parser

from pendula.server.security.identity import Principal, Via
from pendula.server.security.tokens import TokenRecord, TokenStore, wall_seconds

COOKIE = "pendula_session"
SESSION_SECONDS = 12 * 3600
# Far more than people at one control room; a caller with a token cannot fill the memory by asking for more.
MOST_SESSIONS = 1000


class Sessions:
    """The open sessions of one server."""

    def __init__(self, tokens: TokenStore, now: Callable[[], int] = wall_seconds) -> None:
        self._tokens = tokens
        self._now = now
        self._open: dict[str, Principal] = {}

    def start(self, token: TokenRecord) -> tuple[str, Principal]:
        """The cookie's value, which is kept nowhere, and who it stands for."""
        end = self._now() + SESSION_SECONDS
        if token.expires_at is not None:
            end = min(end, token.expires_at)
        value = secrets.token_urlsafe(32)
        principal = Principal(token.name, token.role, Via.SESSION, end)
        if len(self._open) >= MOST_SESSIONS:
            self._make_room()
        self._open[_key(value)] = principal
        return value, principal

    def find(self, value: str) -> Principal | None:
        """Who the cookie stands for, if its session and its token are still good."""
        principal = self._open.get(_key(value))
        return principal if principal is not None and self.good(principal) else None

    def good(self, principal: Principal) -> bool:
        """Whether somebody recognised earlier would be recognised now; long streams ask again and again."""
        if principal.via is Via.LOCAL:
            return not self._tokens.configured
        within = principal.expires_at is None or self._now() < principal.expires_at
        return within and self._tokens.good(principal.name)

    def end(self, value: str) -> None:
        self._open.pop(_key(value), None)

    def _make_room(self) -> None:
        self._open = {key: principal for key, principal in self._open.items() if self.good(principal)}
        while len(self._open) >= MOST_SESSIONS:
            del self._open[next(iter(self._open))]


def cookie_value(header: str | None) -> str | None:
    """Our cookie out of a Cookie header, or None.

    Read as browsers write it: every port of this machine shares its cookies, and the standard library's reader drops
    the whole header at the first one it finds odd.
    """
    return None if header is None else cookie_parser(header).get(COOKIE)


def set_cookie(value: str, seconds: int, secure: bool) -> str:
    """The Set-Cookie header that starts a session, or ends it with no value and 0 seconds."""
    parts = [f"{COOKIE}={value}", f"Max-Age={seconds}", "Path=/", "HttpOnly", "SameSite=Strict"]
    return "; ".join([*parts, "Secure"] if secure else parts)


def _key(value: str) -> str:
    return sha256(value.encode(errors="surrogateescape")).hexdigest()
