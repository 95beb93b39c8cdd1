"""Contents of the digests and events of a tick."""

from collections.abc import Callable
from dataclasses import replace
from hashlib import sha256

import msgspec
import pytest

from pendula.fleet import tick_events as events_module
from pendula.fleet.contracts.traffic import PriorityClass, RobotHealth
from pendula.fleet.driving.records import Record, Retraction, Waiting
from pendula.fleet.events import HoldChanged, Incident, ReportDropped, Ticked
from pendula.fleet.scenarios import Run, shipped
from pendula.fleet.tick.alarms import alert
from pendula.fleet.tick_events import locks_digest, tick_events
from pendula.fleet.units import metres
from pendula.fleet.views.reasons import resource_id
from tests.fleet.health.troubled import Hall


@pytest.mark.req("FLT-OBS-1")
def test_the_digest_of_commands_is_that_of_their_contract_numbers() -> None:
    run = Run(shipped("hall"))
    seen = set()
    for _ in range(200):
        before = run.traffic.records
        outputs = run.step()
        ticked = next(iter(tick_events(before, outputs, outputs.aims)))
        decided = [
            (
                one.robot_id,
                one.seq,
                one.mode,
                one.hold_reason,
                *(("", 0) if one.plan is None else (one.plan.route_id, one.plan.revision)),
                (metres(one.target_um), metres(one.stop_um), metres(one.speed_um_s), one.valid_ms),
            )
            for one in outputs.aims
        ]
        assert isinstance(ticked, Ticked)
        assert ticked.commands == "sha256:" + sha256(msgspec.msgpack.encode(decided)).hexdigest()
        seen |= {metres(um) for one in outputs.aims for um in (one.target_um, one.stop_um, one.speed_um_s)}
    assert len(seen) > 20


def test_texts_of_lengths_match_the_contract_and_their_cache_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(events_module, "MOST_TEXTS", 50)
    texts = events_module._Metres()

    for micros in (*range(-2_000_000, 2_000_001, 7_919), 0, -1, 1_000_000, 1_500_000):
        assert texts[micros] == texts[micros] == str(metres(micros))
        assert len(texts) <= 50


def lost_on_another(hall: Hall) -> None:
    second = hall.drivers["R2"]
    hall.first.off = (second.x - hall.first.x, second.y - hall.first.y)


def lost(hall: Hall) -> None:
    hall.first.off = (300_000, 2_000_000)


def unsure(hall: Hall) -> None:
    hall.first.sure = 400_000


def deaf(hall: Hall) -> None:
    hall.first.deaf = True


def silent(hall: Hall) -> None:
    hall.first.mute = True


@pytest.mark.req("FLT-OBS-11", "FLT-FAIL-4", "FLT-FAIL-6", "FLT-FAIL-18")
@pytest.mark.parametrize(
    ("trouble", "incidents"),
    [
        (lost, [("STOP_POSE_JUMP", "R1")]),
        (lost_on_another, [("STOP_POSE_JUMP", "R1"), ("STOP_FOREIGN_OCCUPANCY", "R2")]),
        (unsure, [("STOP_OFF_ROUTE", "R1")]),
        (deaf, [("STOP_NO_COMMS", "R1")]),
        (silent, []),
    ],
)
def test_a_fault_is_at_most_one_incident(trouble: Callable[[Hall], None], incidents: list[tuple[str, str]]) -> None:
    hall = Hall()
    trouble(hall)
    found: list[Incident] = []
    for _ in range(25):
        before = hall.traffic.records
        outputs = hall.step()
        found += [one for one in tick_events(before, outputs, outputs.aims) if isinstance(one, Incident)]

    assert [(one.code, *one.robot_ids) for one in found if one.robot_ids != ("R3",)] == incidents


@pytest.mark.req("FLT-OBS-11")
def test_trucks_that_wait_for_each_other_are_an_incident() -> None:
    hall = Hall()
    records = hall.traffic.records
    rings = [alert(1, code, "ERROR", 0) for code in ("DEADLOCK_SUSPECTED", "DEADLOCK_CONFIRMED", "WAIT_TOO_LONG")]
    outputs = replace(hall.step(), alerts=tuple(rings))
    found = [one.code for one in tick_events(records, outputs, ()) if isinstance(one, Incident)]

    assert found == ["DEADLOCK_SUSPECTED", "DEADLOCK_CONFIRMED"]


CHANGES: dict[str, Callable[[Record], object]] = {
    "granted": lambda one: setattr(one, "granted", one.granted + 1),
    "at_um": lambda one: setattr(one, "at_um", one.at_um + 1),
    "bound_um": lambda one: setattr(one, "bound_um", one.bound_um + 1),
    "hold_um": lambda one: setattr(one, "hold_um", one.hold_um + 1),
    "farthest_um": lambda one: setattr(one, "farthest_um", one.farthest_um + 1),
    "seq": lambda one: setattr(one, "seq", one.seq + 1),
    "ack_seq": lambda one: setattr(one, "ack_seq", one.ack_seq + 1),
    "health": lambda one: setattr(one, "health", RobotHealth.STALE),
    "stop_code": lambda one: setattr(one, "stop_code", "STOP_OPERATOR"),
    "priority": lambda one: setattr(one, "priority", PriorityClass.OBSTACLE),
    "rank": lambda one: setattr(one, "rank", one.rank + 1),
    "held": lambda one: one.held.popitem(),
    "waiting": lambda one: setattr(one, "waiting", Waiting("WAIT_NODE", 3, 1, 4)),
    "retraction": lambda one: setattr(one, "retraction", Retraction(1, 2, (3,))),
    "route": lambda one: setattr(one, "track", None),
}


@pytest.mark.req("FLT-OBS-1")
@pytest.mark.parametrize("name", CHANGES)
def test_the_digest_of_locks_covers_everything_a_snapshot_shows(name: str) -> None:
    record = Hall().record()
    other = record.copied()
    CHANGES[name](other)

    assert locks_digest([other]) != locks_digest([record])


@pytest.mark.req("FLT-OBS-1")
def test_a_blocker_is_an_event_only_when_it_changes() -> None:
    hall = Hall()
    outputs = hall.step()
    zone = hall.site.zone(hall.site.node_number["A1"])

    def held_by(number: int) -> list[Record]:
        records = [one.copied() for one in outputs.scene.records]
        records[0].waiting, records[0].stop_code = Waiting("WAIT_NODE", zone, number, None), None
        return records

    def changes(before: int, after: int) -> list[tuple[str, str | None, str | None]]:
        scene = replace(outputs.scene, records=held_by(after))
        events = tick_events(held_by(before), replace(outputs, scene=scene), ())
        holds = [one for one in events if isinstance(one, HoldChanged)]
        return [(one.robot_id, one.blocker_robot_id, one.requested_resource_id) for one in holds]

    assert changes(1, 1) == []
    assert changes(1, 2) == [("R1", "R3", resource_id(hall.site, zone))]


@pytest.mark.req("FLT-OBS-1", "FLT-FAIL-17")
def test_a_report_that_was_dropped_is_an_event() -> None:
    hall = Hall()
    hall.first.clock_ms = -10_000
    before = hall.traffic.records
    outputs = hall.step()

    assert ReportDropped("R1", "REPORT_OUTDATED") in tick_events(before, outputs, ())
