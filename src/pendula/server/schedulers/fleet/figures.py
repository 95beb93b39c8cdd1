"""What is counted of served fleets for Prometheus (FLT-OBS-9): ticks, waits by reason, tasks, trucks, telemetry,
how much trucks swing and how close they came to each other.

Numbers that only grow are counted as ticks tell them; those that come and go are read from the engines when somebody
asks. Labels are names of fleets, codes of the contract, and of places that trucks wait for the names that the map gives
them: as many as the map has, and none that a caller makes up later.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Protocol

from prometheus_client import Counter, Histogram
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector, CollectorRegistry

from pendula.fleet.contracts.traffic import HoldReason
from pendula.fleet.driving.records import Record
from pendula.fleet.engine import FleetEngine
from pendula.fleet.events import (
    AlertRaised,
    FleetEvent,
    Incident,
    ReportDropped,
    TaskEventRefused,
    TaskMoved,
    TickFailed,
    TickLate,
)
from pendula.fleet.runs import Watch
from pendula.fleet.tasks import OperationDone, OperationFailed
from pendula.fleet.units import MILLION
from pendula.fleet.views.reasons import resource_id

MOVING_UM_S = 20_000
# By the name of a swing: that of its gauge, what one of it is, and what it says.
_SWINGS = {
    "goHoldChanges": ("go_hold_changes", 1, "Most changes between GO and HOLD of a truck in 10 s"),
    "holdBackUm": ("hold_back_metres", MILLION, "Farthest that hold points of a truck went back in 10 s"),
    "targetBackUm": ("target_back_metres", MILLION, "Farthest that targets of a truck went back in 10 s"),
    "directionFlips": ("direction_flips", 1, "Most changes of direction of a lane in 60 s"),
    "replans": ("replans", 1, "Most new ways of a truck under way in 60 s"),
}
SECONDS = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5)


class Living(Protocol):
    """A fleet while it is served."""

    @property
    def engine(self) -> FleetEngine: ...

    @property
    def watch(self) -> Watch: ...


class Figures(Collector):
    """Counters of all fleets of a server; `loops` gives those that are served now."""

    def __init__(self, registry: CollectorRegistry, loops: Callable[[], Mapping[str, Living]]) -> None:
        self._loops = loops
        self._seconds = Histogram(
            "pendula_fleet_tick_seconds", "Inputs to outcome.", ["fleet"], buckets=SECONDS, registry=registry
        )

        def counter(name: str, sentence: str, *labels: str) -> Counter:
            return Counter(f"pendula_fleet_{name}", sentence, ["fleet", *labels], registry=registry)

        self._waits = counter("wait_seconds", "How long trucks stood, by reason.", "reason")
        self._distance = counter("distance_metres", "How far trucks drove.")
        self._tasks = counter("tasks", "Tasks that came into a state.", "state")
        self._alerts = counter("alerts", "Alerts and incidents.", "code")
        self._dropped = counter("reports_dropped", "Reports that could not be taken.", "code")
        self._late = counter("ticks_late", "Ticks that came late or failed.")
        self._lost = counter("seconds_lost", "By how much ticks came later than wanted.")
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
        """A fleet is served no more: nobody shall take its last figures for those of today."""
        for one in self._of_fleets:
            one.remove_by_labels({"fleet": fleet})

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
        """By so much the next tick comes later than wanted."""
        self._lost.labels(fleet).inc(seconds)

    def waited(self, fleet: str, period_ms: int, speeds_and_codes: Iterable[tuple[int, HoldReason, str]]) -> None:
        """One tick more of driving or standing, truck by truck."""
        for speed_um_s, hold, code in speeds_and_codes:
            self._distance.labels(fleet).inc(speed_um_s * period_ms / 1e9)
            if hold is not HoldReason.NONE and speed_um_s < MOVING_UM_S:
                self._waits.labels(fleet, code).inc(period_ms / 1000)

    def collect(self) -> Iterator[Metric]:
        trucks = GaugeMetricFamily("pendula_fleet_trucks", "Trucks by health.", labels=["fleet", "health"])
        age = GaugeMetricFamily("pendula_fleet_telemetry_age_seconds", "Age of the oldest report.", labels=["fleet"])
        open_tasks = GaugeMetricFamily("pendula_fleet_tasks_open", "Tasks that are not over.", labels=["fleet"])
        longest = GaugeMetricFamily("pendula_fleet_longest_wait_seconds", "Longest wait at present.", labels=["fleet"])
        places = GaugeMetricFamily(
            "pendula_fleet_resource_wait_seconds",
            "Longest wait at present for each resource that a truck waits for.",
            labels=["fleet", "resource"],
        )
        for name, loop in sorted(self._loops().items()):
            traffic = loop.engine.traffic
            records, now = traffic.records, traffic.now_ms
            counts: dict[str, int] = {}
            for one in records:
                counts[one.health.value] = counts.get(one.health.value, 0) + 1
            for health, count in sorted(counts.items()):
                trucks.add_metric([name, health], count)
            age.add_metric([name], max((now - one.report_ms for one in records), default=0) / 1000)
            open_tasks.add_metric([name], len(loop.engine.dispatch.book.open))
            since = [one.waited_since_ms for one in records if one.waited_since_ms is not None]
            longest.add_metric([name], max((now - one for one in since), default=0) / 1000)
            for resource, since_ms in sorted(_waited_for(records).items()):
                places.add_metric([name, resource], (now - since_ms) / 1000)
        yield from (trucks, age, open_tasks, longest, places, *self._watched())

    def _watched(self) -> Iterator[Metric]:
        """The worst of each, which a look now and then would miss."""
        loops = sorted(self._loops().items())
        for swing, (gauge, one, sentence) in _SWINGS.items():
            family = _gauge(gauge, sentence)
            for name, loop in loops:
                family.add_metric([name], loop.watch.swings.most(swing) / one)
            yield family
        closest = _gauge("envelope_distance_metres", "Least distance of two envelopes at the places that trucks report")
        for name, loop in loops:
            if loop.watch.closest.least_m is not None:
                closest.add_metric([name], loop.watch.closest.least_m)
        yield closest


def _gauge(name: str, sentence: str) -> GaugeMetricFamily:
    said = f"{sentence}, since the server serves the fleet."
    return GaugeMetricFamily(f"pendula_fleet_{name}", said, labels=["fleet"])


def _waited_for(records: Sequence[Record]) -> dict[str, int]:
    """What trucks wait for, by the names that operators know, and since when the first of them does."""
    found: dict[str, int] = {}
    for one in records:
        waiting, since_ms = one.waiting, one.request_ms
        if waiting is not None and waiting.resource is not None and since_ms is not None:
            name = resource_id(one.site, waiting.resource)
            found[name] = min(since_ms, found.get(name, since_ms))
    return found
