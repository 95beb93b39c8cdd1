"""Who asks, and what that lets them do: viewers look, operators command, admins govern."""

from contextvars import ContextVar
from enum import StrEnum

from msgspec import Struct
from starlette.types import Receive

LOCAL = "local"


class Role(StrEnum):
    """Each role may do all that the ones before it may."""

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
    """A recognised caller; `name` is what journals remember. `expires_at` is in seconds of Unix time."""

    name: str
    role: Role
    via: Via
    expires_at: int | None = None


# On this machine, without any token configured, whoever reaches the port could as well start their own server.
LOCAL_OPERATOR = Principal(LOCAL, Role.OPERATOR, Via.LOCAL)


class Asking:
    """Who asks, and how to notice that they have left. `receive` is that of the request, its body read."""

    def __init__(self, caller: str, receive: Receive) -> None:
        self.caller = caller
        self._receive = receive

    async def left(self) -> None:
        """Return when the caller has left."""
        while (await self._receive())["type"] != "http.disconnect":
            pass


# Set for each request that is let in. Work that no request asked for has no caller, and no limit per caller.
asking: ContextVar[Asking | None] = ContextVar("asking", default=None)
