"""Wrong tokens from one address: a few are a slip, many are answered with 429 and a time to come back.

A right token always passes, and makes up for the wrong ones before it: tokens cannot be guessed (they are 32 random
bytes), so refusing right ones would only let strangers lock out whoever shares an address with them. The table has a
bound: the address that was wrong longest ago is forgotten first.
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
    """What is remembered of addresses that sent wrong tokens: until when each has used up what it may."""

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self._now = now
        # In the order in which they were last wrong; a dict keeps it.
        self._until: dict[str, float] = {}

    def __len__(self) -> int:
        return len(self._until)

    def wrong(self, scope: Scope, otherwise: HttpRefused) -> HttpRefused:
        """What a caller hears whose token is wrong: `otherwise`, or that there were too many."""
        address, now = address_of(scope), self._now()
        until = max(self._until.pop(address, now), now) + SECONDS_EACH
        over = until - now - AT_ONCE * SECONDS_EACH
        # Who goes on in spite of it is not punished for longer, or a forgotten program would lock itself out.
        self._until[address] = min(until, now + AT_ONCE * SECONDS_EACH)
        while len(self._until) > MOST_ADDRESSES:
            del self._until[next(iter(self._until))]
        if over <= 0:
            return otherwise
        seconds = math.ceil(over)
        return TooManyWrongTokens(
            f"Too many wrong tokens came from this address; try again in {seconds} seconds, with a valid one",
            retry_after_seconds=seconds,
        )

    def right(self, scope: Scope) -> None:
        """Somebody there has a token that is in force."""
        if self._until:
            self._until.pop(address_of(scope), None)


def address_of(scope: Scope) -> str:
    """Where a request comes from, as far as the server was told to believe it; of IPv6 the network of a customer."""
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
