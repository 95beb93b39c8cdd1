"""Sessions of browsers: a page cannot put a header on an event stream, so it trades its token for a cookie once.

Sessions live for 12 hours at most and never longer than their token. They are kept in `sessions.json`, under the sha256
of the cookie, so that a restart signs nobody out; whoever reads the file cannot make a cookie of it. A file that cannot
be read or written ends nothing but that: people sign in again.
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
from pendula.server.security.identity import Principal, Via
from pendula.server.security.tokens import TokenRecord, TokenStore, wall_seconds

COOKIE = "pendula_session"
FILE = "sessions.json"
SESSION_SECONDS = 12 * 3600
# Far more than people at one control room; a caller with a token cannot fill the memory by asking for more.
MOST_SESSIONS = 1000


log = structlog.get_logger("pendula.server")


class _Document(Struct, frozen=True, forbid_unknown_fields=True):
    format: int
    sessions: dict[str, Principal] = {}


class Sessions:
    """The open sessions of one server; kept in `directory`, where one is given. Safe for threads."""

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
        """Take up the sessions of before; without a file that can be read there are none."""
        if self._directory is None:
            return
        try:
            told = msgspec.json.decode((self._directory / FILE).read_bytes(), type=_Document)
        except FileNotFoundError:
            return
        except (OSError, ValueError) as error:
            log.warning("sessions_lost", problem=str(error))
            return
        with self._changing:
            self._open = {key: one for key, one in told.sessions.items() if one.via is Via.SESSION and told.format == 1}

    def start(self, token: TokenRecord) -> tuple[str, Principal]:
        """The cookie's value, which is kept nowhere, and who it stands for."""
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
            # They go on in memory; only a restart would end them.
            log.warning("sessions_not_kept", problem=str(error))

    def _free_journal_space(self) -> None:
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
