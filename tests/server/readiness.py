"""Waiting until a server that says where it is has opened all that it serves."""

import time
from urllib.error import HTTPError
from urllib.request import ProxyHandler, build_opener

PATIENCE_SECONDS = 300


def wait_until_ready(address: str) -> None:
    """Schedulers start after the server answers; who asks before is told to try again in a moment."""
    end = time.monotonic() + PATIENCE_SECONDS
    straight = build_opener(ProxyHandler({}))
    while True:
        try:
            with straight.open(f"{address}/readyz", timeout=120):
                return
        except HTTPError:
            assert time.monotonic() < end, "the schedulers did not start"
            time.sleep(0.1)
