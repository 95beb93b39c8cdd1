"""Browser sessions: a page cannot set a header on an event stream, so it exchanges its token for a cookie.

A session lasts at most 12 hours and never longer than its token. Sessions are stored in `sessions.json` under the
sha256 of the cookie, so that they survive a restart and the file does not reveal cookies. If the file cannot be read or
written, users sign in again after a restart.
"""

import os
import secrets
import threading
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path

import msgspec
import structlog
from msgspec import Struct
from starlette.requests import cookie_parser

from pendula.kernel.disk import RealDisk, replace
from pendula.server.security.identity import Principal, TokenRecord, TokenStore, Via, wall_seconds

COOKIE = "pendula_session"
FILE = "sessions.json"
SESSION_SECONDS = 12 * 3600
# More than any control room needs; the limit bounds memory.
MOST_SESSIONS = 1000


log = structlog.get_logger("pendula.server")


class _Document(Struct, frozen=True, forbid_unknown_fields=True):
    format: int
    sessions: dict[str, Principal] = {}


class Sessions:
    """The open sessions of a server, stored in `directory` if given. Thread-safe."""

    def __init__(
        self,
        tokens: TokenStore,
        now: Callable[[], int] = wall_seconds,
        directory: str | os.PathLike[str] | None = None,
    ) -> None:
        self._tokens = tokens
        self._now = now
        self._directory = None if directory is None else Path(directory)
        self._changing = threading.Lock()
        self._open: dict[str, Principal] = {}

    def load(self) -> None:
        """Load stored sessions; none if the file cannot be read."""
        if self._directory is None:
            return
        try:
            stored = msgspec.json.decode((self._directory / FILE).read_bytes(), type=_Document)
        except FileNotFoundError:
            return
        except (OSError, ValueError) as error:
            log.warning("sessions_lost", problem=str(error))
            return
        with self._changing:
            self._open = {
                key: session
                for key, session in stored.sessions.items()
                if session.via is Via.SESSION and stored.format == 1
            }

    def start(self, token: TokenRecord) -> tuple[str, Principal]:
        """Start a session; returns the cookie value, which is not stored, and its principal."""
        end = self._now() + SESSION_SECONDS
        if token.expires_at is not None:
            end = min(end, token.expires_at)
        value = secrets.token_urlsafe(32)
        principal = Principal(token.name, token.role, Via.SESSION, end)
        with self._changing:
            if len(self._open) >= MOST_SESSIONS:
                self._free_journal_space()
            self._open[_key(value)] = principal
            self._keep()
        return value, principal

    def find(self, value: str) -> Principal | None:
        """The principal of a cookie, if its session and token are valid."""
        principal = self._open.get(_key(value))
        return principal if principal is not None and self.good(principal) else None

    def good(self, principal: Principal) -> bool:
        """Whether an earlier principal is still valid; checked repeatedly by long streams."""
        if principal.via is Via.LOCAL:
            return not self._tokens.configured
        within = principal.expires_at is None or self._now() < principal.expires_at
        return within and self._tokens.good(principal.name)

    def end(self, value: str) -> None:
        with self._changing:
            if self._open.pop(_key(value), None) is not None:
                self._keep()

    def _keep(self) -> None:
        if self._directory is None:
            return
        try:
            disk = RealDisk(self._directory)
            try:
                replace(disk, FILE, msgspec.json.encode(_Document(1, self._open)) + b"\n")
            finally:
                disk.close()
        except OSError as error:
            # Sessions continue in memory; only a restart ends them.
            log.warning("sessions_not_kept", problem=str(error))

    def _free_journal_space(self) -> None:
        self._open = {key: principal for key, principal in self._open.items() if self.good(principal)}
        while len(self._open) >= MOST_SESSIONS:
            del self._open[next(iter(self._open))]


def cookie_value(header: str | None) -> str | None:
    """Our cookie in a Cookie header, or None.

    All ports of a machine share cookies, and the standard library's parser drops the whole header at the first invalid
    one, so the header is parsed here.
    """
    return None if header is None else cookie_parser(header).get(COOKIE)


def set_cookie(value: str, seconds: int, secure: bool) -> str:
    """The Set-Cookie header that starts a session, or ends it with an empty value and 0 seconds."""
    parts = [f"{COOKIE}={value}", f"Max-Age={seconds}", "Path=/", "HttpOnly", "SameSite=Strict"]
    return "; ".join([*parts, "Secure"] if secure else parts)


def _key(value: str) -> str:
    return sha256(value.encode(errors="surrogateescape")).hexdigest()
