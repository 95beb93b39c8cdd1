"""Callers, their roles, access tokens and browser sessions: viewers read, operators command, admins govern.

A token has 32 random bytes, shown once, and is stored as sha256 with a name, a role and an expiry. `tokens.json` in the
data directory is replaced atomically and read again when it changes, so that a running server sees new and revoked
tokens. If the file cannot be read, all callers are refused. Revoked tokens stay listed: journals contain their names,
which must not be reused.

A page cannot set a header on an event stream, so it exchanges its token for a cookie. A session lasts at most 12 hours
and never longer than its token. Sessions are stored in `sessions.json` under the sha256 of the cookie, so that they
survive a restart and the file does not reveal cookies. If that file cannot be read or written, users sign in again
after a restart.
"""

import fcntl
import hmac
import ipaddress
import os
import re
import secrets
import threading
from base64 import urlsafe_b64encode
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from enum import StrEnum
from hashlib import sha256
from pathlib import Path

import msgspec
import structlog
from msgspec import Struct
from starlette.requests import cookie_parser
from starlette.types import Receive

from pendula.kernel.disk import RealDisk, replace
from pendula.kernel.wallclock import WallClock
from pendula.server.errors import InvalidToken, TokensUnreadable

LOCAL = "local"
TOKENS_FILE = "tokens.json"
LOCK = "tokens.lock"
SECRET_BYTES = 32
# The prefix identifies tokens for users, secret scanners and the log filter.
SECRET_PREFIX = "pendula_"
SECRET_PATTERN = re.compile(r"pendula_[A-Za-z0-9_-]{43}")
NAME = re.compile(r"[a-z0-9-]{1,64}")
COOKIE = "pendula_session"
SESSIONS_FILE = "sessions.json"
SESSION_SECONDS = 12 * 3600
# More than any control room needs; the limit bounds memory.
MOST_SESSIONS = 1000

log = structlog.get_logger("pendula.server")


class Role(StrEnum):
    """Each role includes the permissions of the ones before it."""

    VIEWER = "viewer"
    OPERATOR = "operator"
    ADMIN = "admin"

    def covers(self, needed: "Role") -> bool:
        ranks = list(Role)
        return ranks.index(self) >= ranks.index(needed)


class Via(StrEnum):
    """How the caller was recognised."""

    LOCAL = "local"
    TOKEN = "token"
    SESSION = "session"


class Principal(Struct, frozen=True):
    """A recognised caller; `name` is recorded in journals. `expires_at` is in seconds of Unix time."""

    name: str
    role: Role
    via: Via
    expires_at: int | None = None


# A local caller could as well start a server of its own, so without tokens it is an operator.
LOCAL_OPERATOR = Principal(LOCAL, Role.OPERATOR, Via.LOCAL)


class Asking:
    """The current caller, and how to detect a disconnect. `receive` is that of the request after its body."""

    def __init__(self, caller: str, receive: Receive) -> None:
        self.caller = caller
        self._receive = receive

    async def left(self) -> None:
        """Return when the caller has disconnected."""
        while (await self._receive())["type"] != "http.disconnect":
            pass


# Set for each authenticated request. Work without a request has no caller and no limit per caller.
asking: ContextVar[Asking | None] = ContextVar("asking", default=None)


def is_loopback(host: str) -> bool:
    """Whether `host` is reachable only from this machine; names other than localhost may resolve to any address."""
    if host.rstrip(".").lower() == "localhost":
        return True
    try:
        address = ipaddress.ip_address(host.strip("[]"))
    except ValueError:
        return False
    mapped = getattr(address, "ipv4_mapped", None)
    return bool((mapped or address).is_loopback)


class TokenRecord(Struct, frozen=True, forbid_unknown_fields=True):
    """A stored token. Times are in seconds of Unix time; `expires_at` None means never."""

    name: str
    role: Role
    sha256: str
    created_at: int
    expires_at: int | None = None
    revoked: bool = False

    def good_at(self, now: int) -> bool:
        return not self.revoked and (self.expires_at is None or now < self.expires_at)


class _StoredTokens(Struct, frozen=True, forbid_unknown_fields=True):
    format: int
    tokens: tuple[TokenRecord, ...] = ()


def wall_seconds() -> int:
    """Seconds of Unix time."""
    return WallClock().now() // 1_000_000


class TokenStore:
    """The tokens of one data directory. Safe for several threads and processes."""

    def __init__(self, directory: str | os.PathLike[str], now: Callable[[], int] = wall_seconds) -> None:
        self._directory = Path(directory)
        self._now = now
        self._seen: tuple[int, int, int] | None = None
        self._records: tuple[TokenRecord, ...] = ()
        self._mutex = threading.Lock()

    def new(self, name: str, role: Role | str, expires: int | None = None) -> tuple[TokenRecord, str]:
        """Create a token that expires at `expires` (Unix seconds); only this call returns the secret."""
        now = self._now()
        _check_name(name)
        chosen = _role(role)
        if expires is not None and expires <= now:
            raise InvalidToken("The token would have expired already; choose a time in the future", expires=expires)
        secret = SECRET_PREFIX + urlsafe_b64encode(secrets.token_bytes(SECRET_BYTES)).rstrip(b"=").decode()
        record = TokenRecord(name, chosen, _digest(secret), now, expires)
        with self._writing() as records:
            if any(known.name == name for known in records):
                raise InvalidToken(f"A token named {name!r} exists or existed; choose an unused name", name=name)
            self._write((*records, record))
        return record, secret

    def list(self) -> tuple[TokenRecord, ...]:
        """All tokens in order of creation."""
        with self._mutex:
            return self._current()

    def revoke(self, name: str) -> TokenRecord:
        """Revoke a token."""
        with self._writing() as records:
            found = next((record for record in records if record.name == name), None)
            if found is None:
                known = [record.name for record in records]
                raise InvalidToken(
                    f"There is no token named {name!r}; there are {', '.join(known) or 'none'}", name=name, known=known
                )
            revoked = msgspec.structs.replace(found, revoked=True)
            self._write(tuple(revoked if record.name == name else record for record in records))
        return revoked

    def check(self, secret: str) -> TokenRecord | None:
        """The valid token with this secret. Every record is compared, in constant time."""
        offered = _digest(secret)
        found = None
        for record in self.list():
            if hmac.compare_digest(record.sha256, offered):
                found = record
        return found if found is not None and found.good_at(self._now()) else None

    def good(self, name: str) -> bool:
        """Whether the token of that name is valid."""
        return any(record.name == name and record.good_at(self._now()) for record in self.list())

    @property
    def configured(self) -> bool:
        """Whether a token was ever created here; then all callers need one."""
        return bool(self.list())

    @contextmanager
    def _writing(self) -> Iterator[tuple[TokenRecord, ...]]:
        RealDisk(self._directory).close()
        handle = os.open(self._directory / LOCK, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX)
            with self._mutex:
                yield self._current()
        finally:
            os.close(handle)

    def _write(self, records: tuple[TokenRecord, ...]) -> None:
        disk = RealDisk(self._directory)
        try:
            replace(disk, TOKENS_FILE, msgspec.json.format(msgspec.json.encode(_StoredTokens(1, records))) + b"\n")
        finally:
            disk.close()

    def _current(self) -> tuple[TokenRecord, ...]:
        path = self._directory / TOKENS_FILE
        try:
            facts = path.stat()
            seen = (facts.st_ino, facts.st_mtime_ns, facts.st_size)
            if seen != self._seen:
                self._records = _parse(path.read_bytes())
                self._seen = seen
        except FileNotFoundError:
            if self._seen is not None:
                # A vanished file must not disable authentication in a running server.
                raise TokensUnreadable(
                    f"{TOKENS_FILE} has vanished; restart the server to run without tokens"
                ) from None
            return ()
        except (OSError, ValueError) as error:
            raise TokensUnreadable(f"{path} cannot be read: {error}; repair or remove it", file=str(path)) from None
        return self._records


def _parse(data: bytes) -> tuple[TokenRecord, ...]:
    document = msgspec.json.decode(data, type=_StoredTokens)
    if document.format != 1:
        raise ValueError(f"format {document.format} is unknown; this version reads format 1")
    return document.tokens


def _digest(secret: str) -> str:
    return sha256(secret.encode(errors="surrogateescape")).hexdigest()


def _check_name(name: str) -> None:
    if not NAME.fullmatch(name) or name == LOCAL:
        allowed = "1 to 64 of a-z, 0-9 and '-', and not 'local', the name of callers without a token"
        raise InvalidToken(f"{name!r} is not a name for a token; it must be {allowed}", name=name)


def _role(role: Role | str) -> Role:
    try:
        return Role(role)
    except ValueError:
        raise InvalidToken(f"{role!r} is not a role; the roles are {', '.join(Role)}", role=str(role)) from None


class _StoredSessions(Struct, frozen=True, forbid_unknown_fields=True):
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
            stored = msgspec.json.decode((self._directory / SESSIONS_FILE).read_bytes(), type=_StoredSessions)
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
                replace(disk, SESSIONS_FILE, msgspec.json.encode(_StoredSessions(1, self._open)) + b"\n")
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
