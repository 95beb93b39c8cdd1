"""Prometheus metrics of served runs; there are few labels, and none is an id."""

from collections import Counter as Tally
from collections.abc import Iterable, Iterator

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram
from prometheus_client.core import CounterMetricFamily, Metric

from pendula.credit.events import ClearingDone, Event, TxFailed, TxUpdated
from pendula.credit.model import TECHNICAL, Code
from pendula.server.schedulers.credit.stream import Entry

SECONDS = (0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1, 3, 10)


class RunCounters:
    """The counters of one process."""

    def __init__(self, registry: CollectorRegistry) -> None:
        name = "geo_simulator_"
        self.tick_seconds = Histogram(
            name + "tick_duration_seconds", "Seconds of a tick", ("phase",), buckets=SECONDS, registry=registry
        )
        self.tick_lag = Histogram(name + "tick_lag_seconds", "How late a beat was", buckets=SECONDS, registry=registry)
        self.actions = Counter(name + "actions", "Finished actions", ("action", "result"), registry=registry)
        self.in_flight = Gauge(name + "inflight_actions", "Running actions", registry=registry)
        self.action_seconds = Histogram(
            name + "action_duration_seconds", "Seconds of an action", ("action",), buckets=SECONDS, registry=registry
        )
        self.clients = Gauge(name + "sse_clients", "Open streams of runs", registry=registry)
        # Counted here and collected on request: incrementing a Prometheus counter costs more than sending an event.
        self.streamed: Tally[str] = Tally()
        self.bytes_streamed = 0
        registry.register(self)
        self.disconnects = Counter(name + "sse_disconnects", "Streams that ended", ("reason",), registry=registry)
        self.buffered = Gauge(name + "event_buffer_size", "Events in the ring buffers", registry=registry)
        self.dropped = Counter(name + "event_dropped", "Dropped events", ("reason",), registry=registry)

    def collect(self) -> Iterator[Metric]:
        sent = CounterMetricFamily("geo_simulator_sse_events_sent", "Events sent to readers", labels=["type"])
        for kind, count in sorted(self.streamed.items()):
            sent.add_metric([kind], count)
        yield sent
        yield CounterMetricFamily("geo_simulator_sse_bytes_sent", "Bytes sent to readers", self.bytes_streamed)

    def count(self, events: Iterable[Event]) -> None:
        """Count finished actions."""
        for event in events:
            match event:
                case TxUpdated():
                    self.actions.labels("payment", "committed").inc()
                case TxFailed():
                    technical = Code(event.error.code) in TECHNICAL
                    self.actions.labels("payment", "error" if technical else "rejected").inc()
                case ClearingDone():
                    self.actions.labels("clearing", "done").inc()
                case _:
                    pass


class FrameWriter:
    """Joins and counts frames; up-to-date readers get the same frames, which are joined once."""

    def __init__(self) -> None:
        self._items: Iterable[Entry] = ()
        self._frames = b""
        self._types: Tally[str] = Tally()

    def write(self, items: Iterable[Entry], counters: RunCounters) -> bytes:
        if items is not self._items:
            self._items, self._frames = items, b"".join([entry.frame for entry in items])
            self._types = Tally([entry.type for entry in items])
        for kind, count in self._types.items():
            counters.streamed[kind] += count
        counters.bytes_streamed += len(self._frames)
        return self._frames
