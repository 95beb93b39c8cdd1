"""Who asks, and what that lets them do: viewers look, operators command, admins govern."""

from enum import StrEnum

from msgspec import Struct

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
