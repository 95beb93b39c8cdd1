"""Wait until a server that printed its address has opened all its engines."""

import time
from urllib.error import HTTPError
from urllib.request import ProxyHandler, build_opener

PATIENCE_SECONDS = 300


def wait_until_ready(address: str) -> None:
    """Schedulers start after the server answers; until then it answers 503 with `Retry-After`."""
    end = time.monotonic() + PATIENCE_SECONDS
    straight = build_opener(ProxyHandler({}))
    while True:
        try:
            with straight.open(f"{address}/readyz", timeout=120):
                return
        except HTTPError:
            assert time.monotonic() < end, "the schedulers did not start"
            time.sleep(0.1)
