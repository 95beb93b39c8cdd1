"""Behind a proxy: who calls, and by which scheme, as the proxy says.

Only in use with `behind_proxy`; otherwise these headers are the words of a stranger. Of a list the last entry counts,
the one our own proxy added. X-Forwarded-Host is never believed: a page can set it, and the host gate would be gone.
"""

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send

SCHEMES = frozenset({"http", "https"})


class Forwarded:
    """Puts the caller's address and scheme in place of the proxy's."""

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
