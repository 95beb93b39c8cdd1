"""Prometheus metrics of served fleets (FLT-OBS-9): ticks, waits by reason, tasks, trucks, telemetry, swings, distances.

Counters grow with each tick; gauges are read from the engines on collection. Labels are fleet names, codes of the
contract and resource names of the map, so callers cannot add labels.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Protocol

from prometheus_client import Counter, Histogram
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector, CollectorRegistry

from pendula.fleet.contracts import HoldReason
from pendula.fleet.engine import FleetEngine
from pendula.fleet.events import AlertRaised, FleetEvent, Incident, ReportDropped, TaskMoved, TickFailed, TickLate
from pendula.fleet.runs import Watch
from pendula.fleet.tasks import OperationDone, OperationFailed
from pendula.fleet.tasks.model import TaskEventRefused
from pendula.fleet.tick.reasons import resource_id
from pendula.fleet.tick.records import Record
from pendula.fleet.units import MILLION

MOVING_UM_S = 20_000
# Swings: name of the gauge, divisor to its unit, help text.
_SWINGS = {
    "goHoldChanges": ("go_hold_changes", 1, "Most changes between GO and HOLD of a truck in 10 s"),
    "holdBackUm": ("hold_back_metres", MILLION, "Farthest that hold points of a truck moved back in 10 s"),
    "targetBackUm": ("target_back_metres", MILLION, "Farthest that targets of a truck moved back in 10 s"),
    "directionFlips": ("direction_flips", 1, "Most changes of direction of a lane in 60 s"),
    "replans": ("replans", 1, "Most reroutes of a moving truck in 60 s"),
}
SECONDS = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5)


class ServedFleet(Protocol):
    @property
    def engine(self) -> FleetEngine: ...

    @property
    def watch(self) -> Watch: ...


class FleetMetrics(Collector):
    """Metrics of all fleets of a server; `loops` gives the fleets that are served now."""

    def __init__(self, registry: CollectorRegistry, loops: Callable[[], Mapping[str, ServedFleet]]) -> None:
        self._loops = loops
        self._seconds = Histogram(
            "pendula_fleet_tick_seconds", "Inputs to outcome.", ["fleet"], buckets=SECONDS, registry=registry
        )

        def counter(name: str, sentence: str, *labels: str) -> Counter:
            return Counter(f"pendula_fleet_{name}", sentence, ["fleet", *labels], registry=registry)

        self._waits = counter("wait_seconds", "Time that trucks stood, by reason.", "reason")
        self._distance = counter("distance_metres", "Distance driven.")
        self._tasks = counter("tasks", "Tasks that entered a state.", "state")
        self._alerts = counter("alerts", "Alerts and incidents.", "code")
        self._dropped = counter("reports_dropped", "Rejected reports.", "code")
        self._late = counter("ticks_late", "Late or failed ticks.")
        self._lost = counter("seconds_lost", "Total delay of ticks.")
        self._of_fleets = (
            self._seconds,
            self._waits,
            self._distance,
            self._tasks,
            self._alerts,
            self._dropped,
            self._late,
            self._lost,
        )
        registry.register(self)

    def forget(self, fleet: str) -> None:
        """Remove the metrics of a closed fleet, so that stale values are not read as current."""
        for metric in self._of_fleets:
            metric.remove_by_labels({"fleet": fleet})

    def ticked(self, fleet: str, seconds: float, events: Sequence[FleetEvent]) -> None:
        self._seconds.labels(fleet).observe(seconds)
        for event in events:
            match event:
                case TaskMoved():
                    self._tasks.labels(fleet, event.state.value).inc()
                case AlertRaised():
                    self._alerts.labels(fleet, event.alert.code).inc()
                case Incident():
                    self._alerts.labels(fleet, event.code).inc()
                case ReportDropped() | TaskEventRefused(event=OperationDone() | OperationFailed()):
                    self._dropped.labels(fleet, event.code).inc()
                case TickLate() | TickFailed():
                    self._late.labels(fleet).inc()

    def lost(self, fleet: str, seconds: float) -> None:
        """Count the delay of the next tick."""
        self._lost.labels(fleet).inc(seconds)

    def waited(self, fleet: str, period_ms: int, speeds_and_codes: Iterable[tuple[int, HoldReason, str]]) -> None:
        """Count one tick of driving or standing for each truck."""
        for speed_um_s, hold, code in speeds_and_codes:
            self._distance.labels(fleet).inc(speed_um_s * period_ms / 1e9)
            if hold is not HoldReason.NONE and speed_um_s < MOVING_UM_S:
                self._waits.labels(fleet, code).inc(period_ms / 1000)

    def collect(self) -> Iterator[Metric]:
        trucks = GaugeMetricFamily("pendula_fleet_trucks", "Trucks by health.", labels=["fleet", "health"])
        age = GaugeMetricFamily("pendula_fleet_telemetry_age_seconds", "Age of the oldest report.", labels=["fleet"])
        open_tasks = GaugeMetricFamily("pendula_fleet_tasks_open", "Open tasks.", labels=["fleet"])
        longest = GaugeMetricFamily("pendula_fleet_longest_wait_seconds", "Longest current wait.", labels=["fleet"])
        places = GaugeMetricFamily(
            "pendula_fleet_resource_wait_seconds",
            "Longest current wait for each resource that a truck waits for.",
            labels=["fleet", "resource"],
        )
        for name, loop in sorted(self._loops().items()):
            traffic = loop.engine.traffic
            records, now = traffic.records, traffic.now_ms
            counts: dict[str, int] = {}
            for record in records:
                counts[record.health.value] = counts.get(record.health.value, 0) + 1
            for health, count in sorted(counts.items()):
                trucks.add_metric([name, health], count)
            age.add_metric([name], max((now - record.report_ms for record in records), default=0) / 1000)
            open_tasks.add_metric([name], len(loop.engine.dispatch.book.open))
            since = [record.waited_since_ms for record in records if record.waited_since_ms is not None]
            longest.add_metric([name], max((now - since_ms for since_ms in since), default=0) / 1000)
            for resource, since_ms in sorted(_waited_for(records).items()):
                places.add_metric([name, resource], (now - since_ms) / 1000)
        yield from (trucks, age, open_tasks, longest, places, *self._watched())

    def _watched(self) -> Iterator[Metric]:
        """Extremes since the fleet was opened, which sampling would miss."""
        loops = sorted(self._loops().items())
        for swing, (gauge, unit, sentence) in _SWINGS.items():
            family = _gauge(gauge, sentence)
            for name, loop in loops:
                family.add_metric([name], loop.watch.swings.most(swing) / unit)
            yield family
        closest = _gauge("envelope_distance_metres", "Least distance of two envelopes at reported positions")
        for name, loop in loops:
            if loop.watch.closest.least_m is not None:
                closest.add_metric([name], loop.watch.closest.least_m)
        yield closest


def _gauge(name: str, sentence: str) -> GaugeMetricFamily:
    return GaugeMetricFamily(f"pendula_fleet_{name}", f"{sentence}, since the fleet was opened.", labels=["fleet"])


def _waited_for(records: Sequence[Record]) -> dict[str, int]:
    """When the longest wait for each resource began, by resource name."""
    since: dict[str, int] = {}
    for record in records:
        waiting, since_ms = record.waiting, record.request_ms
        if waiting is not None and waiting.resource is not None and since_ms is not None:
            name = resource_id(record.site, waiting.resource)
            since[name] = min(since_ms, since.get(name, since_ms))
    return since
