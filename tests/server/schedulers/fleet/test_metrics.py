"""Metrics of a fleet, each on its own and without a server."""

from types import SimpleNamespace
from typing import Any, cast

import pytest
from prometheus_client.registry import CollectorRegistry

from pendula.fleet.contracts import HoldReason, TaskState
from pendula.fleet.events import AlertRaised, FleetEvent, Incident, ReportDropped, TaskMoved, TickFailed, TickLate
from pendula.fleet.runs import Watch
from pendula.fleet.tick.reasons import alert, resource_id
from pendula.fleet.tick.records import Waiting
from pendula.server.schedulers.fleet.metrics import FleetMetrics
from tests.fleet.tick.troubled import Hall


class Counted:
    """The figures of one fleet, called hall."""

    def __init__(self, hall: Hall | None = None) -> None:
        self.registry = CollectorRegistry()
        book = SimpleNamespace(open={"T-1": None, "T-2": None})
        engine = SimpleNamespace(traffic=hall and hall.traffic, dispatch=SimpleNamespace(book=book))
        self.watch = None if hall is None else Watch(hall.traffic.records, hall.params)
        loops: Any = {} if hall is None else {"hall": SimpleNamespace(engine=engine, watch=self.watch)}
        self.figures = FleetMetrics(self.registry, lambda: cast(Any, loops))

    def value(self, name: str, **labels: str) -> float | None:
        return self.registry.get_sample_value(f"pendula_fleet_{name}", {"fleet": "hall", **labels})


@pytest.mark.req("FLT-OBS-9")
def test_events_of_a_tick_are_counted_by_code() -> None:
    counted = Counted()
    events: list[FleetEvent] = [
        ReportDropped("R1", "REPORT_OUTDATED"),
        AlertRaised(alert(1, "DEADLOCK_SUSPECTED", "ERROR", 0)),
        Incident("inc-1-1", "STOP_POSE_JUMP", ("R1",)),
        TaskMoved("T-1", TaskState.IN_PROGRESS, TaskState.DONE, "UNLOADED", "R1"),
        TickLate(1, 300),
        TickFailed(2, "no"),
    ]
    counted.figures.ticked("hall", 0.004, events)
    counted.figures.lost("hall", 1.5)

    assert counted.value("reports_dropped_total", code="REPORT_OUTDATED") == 1
    assert counted.value("alerts_total", code="DEADLOCK_SUSPECTED") == 1
    assert counted.value("alerts_total", code="STOP_POSE_JUMP") == 1
    assert counted.value("tasks_total", state="DONE") == 1
    assert (counted.value("ticks_late_total"), counted.value("seconds_lost_total")) == (2, 1.5)
    assert (counted.value("tick_seconds_count"), counted.value("tick_seconds_sum")) == (1, 0.004)


@pytest.mark.req("FLT-OBS-9")
def test_driving_and_idle_trucks_do_not_count_as_waiting() -> None:
    counted = Counted()
    trucks = [
        (0, HoldReason.TRAFFIC_HOLD, "WAIT_NODE"),
        (1_000_000, HoldReason.TRAFFIC_HOLD, "WAIT_NODE"),
        (2_000_000, HoldReason.NONE, "NONE"),
        (0, HoldReason.NONE, "IDLE_NO_TASK"),
    ]
    counted.figures.waited("hall", 500, trucks)

    assert counted.value("wait_seconds_total", reason="WAIT_NODE") == 0.5
    assert counted.value("wait_seconds_total", reason="IDLE_NO_TASK") is None
    assert counted.value("distance_metres_total") == 1.5


@pytest.mark.req("FLT-OBS-9")
def test_the_longest_silence_and_the_longest_wait_count() -> None:
    hall = Hall()
    hall.first.mute = True
    hall.run(25)
    zone = hall.site.zone(hall.site.node_number["A1"])
    for record in hall.traffic.records:
        record.waiting, record.waiting_since_ms, record.request_ms = None, None, None
    for number, since in ((1, 4_000), (2, 7_000)):
        record = hall.record(number)
        record.waiting = Waiting("WAIT_NODE", zone, 0, None)
        record.waiting_since_ms, record.request_ms = hall.now - since - 1_000, hall.now - since
    counted = Counted(hall)

    assert counted.value("telemetry_age_seconds") == 2.5
    assert counted.value("longest_wait_seconds") == 8
    assert counted.value("resource_wait_seconds", resource=resource_id(hall.site, zone)) == 7
    assert counted.value("trucks", health="OFFLINE") == 1
    assert counted.value("tasks_open") == 2


@pytest.mark.req("FLT-OBS-9", "FLT-OSC-10")
def test_the_worst_swings_and_the_least_distance_are_metrics() -> None:
    counted = Counted(Hall())
    assert counted.watch is not None
    counted.watch.swings.worst |= {
        "goHoldChanges": (2, "R1", 0),
        "holdBackUm": (300_000, "R1", 0),
        "targetBackUm": (450_000, "R2", 0),
        "directionFlips": (1, "A<->B", 0),
        "replans": (6, "R3", 0),
    }
    counted.watch.closest.least_m = 0.25

    assert counted.value("go_hold_changes") == 2
    assert counted.value("hold_back_metres") == 0.3
    assert counted.value("target_back_metres") == 0.45
    assert counted.value("direction_flips") == 1
    assert counted.value("replans") == 6
    assert counted.value("envelope_distance_metres") == 0.25


def test_an_unknown_distance_is_no_metric() -> None:
    counted = Counted(Hall())

    assert counted.value("envelope_distance_metres") is None
    assert counted.value("replans") == 0
