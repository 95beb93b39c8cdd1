"""Callers and their roles: viewers read, operators command, admins govern."""

from contextvars import ContextVar
from enum import StrEnum

from msgspec import Struct
from starlette.types import Receive

LOCAL = "local"


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
