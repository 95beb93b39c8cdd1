"""The owner of a run: the name of a token; for local callers the name in a signed cookie, or `local` without one.

A cookie holds a name and a time, signed by an HMAC with a key beside the store. It grants no access: without a token
only requests from this machine are accepted.
"""

import hmac
import os
import secrets
from collections.abc import Callable
from hashlib import sha256
from http.cookies import CookieError, SimpleCookie
from pathlib import Path

from pendula.server.schedulers.credit.records import DEMO_OWNER, Owner, Record
from pendula.server.security.identity import Principal, Role, Via

COOKIE = "pendula_simulator_owner"
LOCAL_OWNER = Owner("local", "anon")


class OwnerCookies:
    """Cookies of visitors; `clock` gives microseconds since 1970."""

    def __init__(self, key: bytes, clock: Callable[[], int], ttl_seconds: int, skew_seconds: int) -> None:
        self._key = key
        self._clock = clock
        self.ttl_seconds = ttl_seconds
        self._skew = skew_seconds

    def new(self) -> tuple[Owner, str]:
        """A new visitor, and the value of its cookie."""
        name = f"anon_{secrets.token_hex(8)}"
        return Owner(name, "anon"), self._value(name, self._clock() // 1_000_000)

    def owner(self, value: str) -> Owner | None:
        """The owner that a cookie names; None if it is forged, too old or from the future."""
        name, _, rest = value.partition(".")
        since, _, _ = rest.partition(".")
        if not (since.isascii() and since.isdigit() and len(since) < 15):
            return None
        if not hmac.compare_digest(self._value(name, int(since)).encode(), value.encode(errors="replace")):
            return None
        age = self._clock() // 1_000_000 - int(since)
        return Owner(name, "anon") if -self._skew <= age <= self.ttl_seconds else None

    def _value(self, name: str, since: int) -> str:
        signature = hmac.new(self._key, f"{name}.{since}".encode(), sha256).hexdigest()
        return f"{name}.{since}.{signature}"


def read_key(path: Path) -> bytes:
    """Read the key of this server, or create it; only the owner of the file may read it."""
    try:
        handle = os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600)
    except FileExistsError:
        return path.read_bytes()
    key = secrets.token_bytes(32)
    with os.fdopen(handle, "wb") as file:
        file.write(key)
        file.flush()
        os.fsync(file.fileno())
    return key


def cookie_of(header: str | None) -> str | None:
    try:
        cookie = SimpleCookie(header or "").get(COOKIE)
    except CookieError:
        return None
    return None if cookie is None else cookie.value


def owner_of(principal: Principal, cookie: str | None, cookies: OwnerCookies) -> Owner:
    if principal.via is not Via.LOCAL:
        return Owner(principal.name, "admin" if principal.role is Role.ADMIN else "participant")
    known = None if cookie is None else cookies.owner(cookie)
    return known or LOCAL_OWNER


def may_see(owner: Owner, record: Record) -> bool:
    """Owners see their runs, admins all runs, and everyone the demo."""
    return owner.kind == "admin" or record.owner.id in (owner.id, DEMO_OWNER)
