"""What Prometheus reads of served runs; labels are few and none of them is an id."""

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

from pendula.credit.events import ClearingDone, Event, TxFailed, TxUpdated
from pendula.credit.model import TECHNICAL, Code

SECONDS = (0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1, 3, 10)


class RunCounters:
    """The counters of one process."""

    def __init__(self, here: CollectorRegistry) -> None:
        name = "geo_simulator_"
        self.tick_seconds = Histogram(
            name + "tick_duration_seconds", "Seconds of a tick", ("phase",), buckets=SECONDS, registry=here
        )
        self.tick_lag = Histogram(name + "tick_lag_seconds", "How late a beat was", buckets=SECONDS, registry=here)
        self.actions = Counter(name + "actions", "Finished actions", ("action", "result"), registry=here)
        self.in_flight = Gauge(name + "inflight_actions", "Actions under way", registry=here)
        self.action_seconds = Histogram(
            name + "action_duration_seconds", "Seconds of an action", ("action",), buckets=SECONDS, registry=here
        )
        self.clients = Gauge(name + "sse_clients", "Streams of runs that are open", registry=here)
        self.sent = Counter(name + "sse_events_sent", "Events sent to readers", ("type",), registry=here)
        self.bytes_sent = Counter(name + "sse_bytes_sent", "Bytes sent to readers", registry=here)
        self.disconnects = Counter(name + "sse_disconnects", "Streams that ended", ("reason",), registry=here)
        self.buffered = Gauge(name + "event_buffer_size", "Events that can be read again", registry=here)
        self.dropped = Counter(name + "event_dropped", "Events that were not kept", ("reason",), registry=here)

    def count(self, events: list[Event]) -> None:
        """Actions that events tell of."""
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
