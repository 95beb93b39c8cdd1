"""Alerts: stored with the change that raised them and delivered to every sink at least once, also after a crash.

Each sink gets the alerts in order. A failing sink is retried with growing pauses and blocks neither other sinks nor
calls of the scheduler. An alert counts as delivered when all sinks have accepted it; after a crash some get it again
and can drop it by its `alert_id`. All processes that deliver from one store need the same sinks.
"""

import logging
import urllib.request
from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from pendula.jobs.background import CLOSE_SEC, BackgroundLoop
from pendula.jobs.calls.queries import shown_alert
from pendula.jobs.model import SECOND
from pendula.jobs.store.protocol import Store
from pendula.kernel.canonical import encode
from pendula.kernel.errors import WrongUsage
from pendula.kernel.wallclock import steady_us

log = logging.getLogger("pendula.jobs.alerts")

Alert = dict[str, Any]
Sink = Callable[[Alert], object]

POLL_SEC = 1.0
FIRST_PAUSE_SEC, LONGEST_PAUSE_SEC = 1, 300
AT_ONCE = 100
TIMEOUT_SEC = 10.0


def to_log(alert: Alert) -> None:
    """The default sink: one line of JSON in the log of the process."""
    level = logging.CRITICAL if alert.get("severity") == "critical" else logging.WARNING
    log.log(level, "%s", encode(alert).decode())


def to_log_quietly(alert: Alert) -> None:
    """The sink of the demo, whose alerts are fictional: level INFO."""
    log.info("%s", encode(alert).decode())


class Webhook:
    """Posts alerts as JSON to a URL; any reply but 2xx is a failure."""

    def __init__(self, url: str, timeout_sec: float = TIMEOUT_SEC) -> None:
        if not url.startswith(("http://", "https://")):
            raise WrongUsage("The URL of a webhook must begin with http:// or https://", url=url)
        self.url = url
        self._timeout = timeout_sec
        self._opener = urllib.request.build_opener(_NoRedirect)

    def __call__(self, alert: Alert) -> None:
        headers = {"Content-Type": "application/json", "User-Agent": "pendula"}
        request = urllib.request.Request(self.url, encode(alert), headers, method="POST")
        with self._opener.open(request, timeout=self._timeout) as reply:
            reply.read(1)


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """Reject redirects: a redirected POST loses its body and would count as delivered."""

    def redirect_request(self, *_args: Any, **_options: Any) -> None:
        return None


class _SinkState(msgspec.Struct):
    """The delivery state of one sink: last delivered number, failures, time of the next try."""

    sink: Sink
    position: int = 0
    failures: int = 0
    not_before: int = 0


class Alerts:
    """Delivers the alerts of a store, in the background from `start` to `close`."""

    def __init__(
        self,
        store: Store,
        clock: Callable[[], int],
        sinks: Sequence[Sink] = (),
        *,
        first: Sink = to_log,
        poll_sec: float = POLL_SEC,
        ticks: Callable[[], int] = steady_us,
    ) -> None:
        self._store = store
        self._clock = clock
        self._sinks = [_SinkState(first), *(_SinkState(sink) for sink in sinks)]
        self._poll = poll_sec
        self._ticks = ticks
        self._marked = 0
        self._loop = BackgroundLoop(
            "pendula-jobs-alerts", self._round, log=log, trouble="alerts cannot be delivered", pause_sec=poll_sec
        )

    def deliver(self) -> int:
        """Deliver waiting alerts; return the number up to which all sinks have accepted them."""
        for sink_state in self._sinks:
            if self._ticks() >= sink_state.not_before:
                self._deliver_to(sink_state)
        upto = min(sink_state.position for sink_state in self._sinks)
        if upto > self._marked:
            self._store.write(lambda tx: tx.alerts_delivered(upto, self._clock()))
            self._marked = upto
        return upto

    def start(self) -> None:
        self._loop.start()

    def close(self, seconds: float = CLOSE_SEC) -> None:
        """Stop; undelivered alerts stay in the store."""
        self._loop.close(seconds)

    def _deliver_to(self, sink_state: _SinkState) -> None:
        while not self._loop.closed:
            # Sent outside of any transaction: a slow receiver must not block writers.
            waiting = self._store.read(lambda look: look.alerts_waiting(sink_state.position, AT_ONCE))
            for n, alert in waiting:
                try:
                    sink_state.sink(shown_alert(alert))
                except Exception as trouble:
                    self._failed(sink_state, trouble)
                    return
                sink_state.position, sink_state.failures = n, 0
            if len(waiting) < AT_ONCE:
                return

    def _failed(self, sink_state: _SinkState, trouble: Exception) -> None:
        sink_state.failures += 1
        pause = min(FIRST_PAUSE_SEC << min(sink_state.failures - 1, 16), LONGEST_PAUSE_SEC)
        sink_state.not_before = self._ticks() + pause * SECOND
        name = getattr(sink_state.sink, "url", None) or getattr(
            sink_state.sink, "__qualname__", type(sink_state.sink).__qualname__
        )
        log.warning(
            "alerts cannot be delivered to %s; retry in %d s: %s: %s", name, pause, type(trouble).__name__, trouble
        )

    def _round(self) -> float:
        self.deliver()
        return self._poll
