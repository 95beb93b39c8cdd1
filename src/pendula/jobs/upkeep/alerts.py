"""Alerts go out: stored with the change that raised them, and handed to every sink at least once, also after a crash.

Each sink gets the alerts in order. One that fails is tried again with growing pauses, and holds up neither the others
nor any call of the scheduler. An alert counts as delivered when all sinks have taken it; after a crash in between some
get it again, and drop it by its `alert_id`. All processes that deliver from one store need the same sinks.
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
    """The sink that is always there: one line of JSON in the log of the process."""
    level = logging.CRITICAL if alert.get("severity") == "critical" else logging.WARNING
    log.log(level, "%s", encode(alert).decode())


def to_log_quietly(alert: Alert) -> None:
    """For a living example, whose alerts are made up: they are there to be seen, and nobody has to come."""
    log.info("%s", encode(alert).decode())


class Webhook:
    """Posts alerts as JSON to an address; whatever is not answered with 2xx was not taken."""

    def __init__(self, url: str, timeout_sec: float = TIMEOUT_SEC) -> None:
        if not url.startswith(("http://", "https://")):
            raise WrongUsage("A webhook has an address that begins with http:// or https://", url=url)
        self.url = url
        self._timeout = timeout_sec
        self._opener = urllib.request.build_opener(_Stay)

    def __call__(self, alert: Alert) -> None:
        headers = {"Content-Type": "application/json", "User-Agent": "pendula"}
        request = urllib.request.Request(self.url, encode(alert), headers, method="POST")
        with self._opener.open(request, timeout=self._timeout) as reply:
            reply.read(1)


class _Stay(urllib.request.HTTPRedirectHandler):
    """A redirected POST arrives without its body: it must not pass for a delivery."""

    def redirect_request(self, *_asked: Any, **_more: Any) -> None:
        return None


class _Post(msgspec.Struct):
    """One sink, how far it has come, and when it may be tried again."""

    sink: Sink
    position: int = 0
    failures: int = 0
    not_before: int = 0


class Alerts:
    """Delivers the alerts of a store; `start` does so in the background until `close`."""

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
        self._posts = [_Post(first), *(_Post(sink) for sink in sinks)]
        self._poll = poll_sec
        self._ticks = ticks
        self._marked = 0
        self._loop = BackgroundLoop(
            "pendula-jobs-alerts", self._round, log=log, trouble="alerts cannot be delivered", pause_sec=poll_sec
        )

    def deliver(self) -> int:
        """Hand out what waits, as far as the sinks take it; the number up to which all have."""
        for post in self._posts:
            if self._ticks() >= post.not_before:
                self._hand_out(post)
        upto = min(post.position for post in self._posts)
        if upto > self._marked:
            self._store.write(lambda tx: tx.alerts_delivered(upto, self._clock()))
            self._marked = upto
        return upto

    def start(self) -> None:
        self._loop.start()

    def close(self, seconds: float = CLOSE_SEC) -> None:
        """Stop; what is not delivered stays in the store."""
        self._loop.close(seconds)

    def _hand_out(self, post: _Post) -> None:
        while not self._loop.closed:
            # Sent outside of any transaction: a slow receiver keeps nobody from writing.
            waiting = self._store.read(lambda look: look.alerts_waiting(post.position, AT_ONCE))
            for n, alert in waiting:
                try:
                    post.sink(shown_alert(alert))
                except Exception as trouble:
                    self._failed(post, trouble)
                    return
                post.position, post.failures = n, 0
            if len(waiting) < AT_ONCE:
                return

    def _failed(self, post: _Post, trouble: Exception) -> None:
        post.failures += 1
        pause = min(FIRST_PAUSE_SEC << min(post.failures - 1, 16), LONGEST_PAUSE_SEC)
        post.not_before = self._ticks() + pause * SECOND
        name = getattr(post.sink, "url", None) or getattr(post.sink, "__qualname__", type(post.sink).__qualname__)
        log.warning(
            "alerts cannot be handed to %s; again in %d s: %s: %s", name, pause, type(trouble).__name__, trouble
        )

    def _round(self) -> float:
        self.deliver()
        return self._poll
