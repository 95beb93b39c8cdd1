"""Rate limit for wrong tokens by address: after a few, 429 with a retry time.

A valid token always passes and resets the count: tokens cannot be guessed (32 random bytes), so refusing valid ones
would only let strangers lock out others at the same address. The table is bounded: the address with the oldest wrong
token is dropped first.
"""

import ipaddress
import math
import time
from collections.abc import Callable
from typing import Any

from starlette.types import Scope

from pendula.server.errors import HttpRefused

AT_ONCE = 10
SECONDS_EACH = 6.0
MOST_ADDRESSES = 4096


class TooManyWrongTokens(HttpRefused):
    """Too many wrong tokens came from this address. Facts: `retry_after_seconds`."""

    code = "too_many_wrong_tokens"
    status = 429


class WrongTokens:
    """The addresses that sent wrong tokens, each with the time until which its allowance is used."""

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self._now = now
        # Ordered by the last wrong token.
        self._until: dict[str, float] = {}

    def __len__(self) -> int:
        return len(self._until)

    def wrong(self, scope: Scope, otherwise: HttpRefused) -> HttpRefused:
        """The error for a wrong token: `otherwise`, or `TooManyWrongTokens`."""
        address, now = address_of(scope), self._now()
        until = max(self._until.pop(address, now), now) + SECONDS_EACH
        over = until - now - AT_ONCE * SECONDS_EACH
        # Further tries do not extend the wait, or a forgotten program would lock itself out.
        self._until[address] = min(until, now + AT_ONCE * SECONDS_EACH)
        while len(self._until) > MOST_ADDRESSES:
            del self._until[next(iter(self._until))]
        if over <= 0:
            return otherwise
        seconds = math.ceil(over)
        return TooManyWrongTokens(
            f"Too many wrong tokens from this address; try again in {seconds} seconds with a valid one",
            retry_after_seconds=seconds,
        )

    def right(self, scope: Scope) -> None:
        """Reset the count of an address after a valid token."""
        if self._until:
            self._until.pop(address_of(scope), None)


def address_of(scope: Scope) -> str:
    """The client address, from a proxy only if declared; for IPv6 the /64 network."""
    client: Any = scope.get("client")
    text = "" if client is None else str(client[0])
    try:
        address = ipaddress.ip_address(text)
    except ValueError:
        return text
    if isinstance(address, ipaddress.IPv6Address):
        mapped = address.ipv4_mapped
        return str(ipaddress.ip_network((address, 64), strict=False)) if mapped is None else str(mapped)
    return text
