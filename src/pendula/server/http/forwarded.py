"""The client address and scheme as reported by a proxy.

Used only with `behind_proxy`; otherwise any client could set these headers. The last entry of a list counts, which our
proxy added. X-Forwarded-Host is ignored: a page can set it and would bypass the host gate.
"""

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send

SCHEMES = frozenset({"http", "https"})


class Forwarded:
    """Replaces the proxy's address and scheme by those of the client."""

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
