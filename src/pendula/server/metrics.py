"""Prometheus metrics: requests, commands, flushes, streams and gaps, in a registry per app.

Labels are route patterns, methods, statuses, schedulers and engines: few values, no secrets.
"""

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4

METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})
ENGINE = ("scheduler", "engine")


class Metrics:
    """The counters of one app."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        here = self.registry
        route = ("route", "method")
        self._requests = Counter("pendula_requests", "Requests answered", (*route, "status"), registry=here)
        self._seconds = Histogram("pendula_request_seconds", "Seconds until answered", route, registry=here)
        self.commands = Counter("pendula_commands", "Commands applied", (*ENGINE, "result"), registry=here)
        self.flushes = Counter("pendula_flushes", "Journal flushes", ENGINE, registry=here)
        self.waiting = Gauge("pendula_waiting_commands", "Commands waiting for their flush", ENGINE, registry=here)
        self.streams = Gauge("pendula_streams_open", "Event streams open", registry=here)
        self.body_bytes = Gauge("pendula_body_bytes", "Bytes of large bodies held", registry=here)
        self.gaps = Counter("pendula_stream_gaps", "Gaps sent to slow readers", ENGINE, registry=here)
        self.engines_broken = Gauge("pendula_engine_broken", "1 if the engine refuses commands", ENGINE, registry=here)

    def answered(self, route: str, method: str, status: int | None, seconds: float) -> None:
        """Count a finished request; `status` is None if the client disconnected first."""
        known = method if method in METHODS else "other"
        self._requests.labels(route, known, "none" if status is None else str(status)).inc()
        self._seconds.labels(route, known).observe(seconds)

    def text(self) -> tuple[bytes, str]:
        """All metrics in Prometheus text format, with the content type."""
        return generate_latest(self.registry), CONTENT_TYPE_PLAIN_0_0_4
