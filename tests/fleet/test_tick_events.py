"""Contents of the digests and events of a tick."""

from collections.abc import Callable
from dataclasses import replace
from hashlib import sha256

import msgspec
import pytest

from pendula.fleet import events
from pendula.fleet.contracts import PriorityClass, RobotHealth
from pendula.fleet.events import HoldChanged, Incident, ReportDropped, Ticked, locks_digest, tick_events
from pendula.fleet.scenarios import Run, shipped
from pendula.fleet.tick.reasons import alert, resource_id
from pendula.fleet.tick.records import Record, Retraction, Waiting
from pendula.fleet.units import metres
from tests.fleet.tick.troubled import Hall


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
                aim.robot_id,
                aim.seq,
                aim.mode,
                aim.hold_reason,
                *(("", 0) if aim.plan is None else (aim.plan.route_id, aim.plan.revision)),
                (metres(aim.target_um), metres(aim.stop_um), metres(aim.speed_um_s), aim.valid_ms),
            )
            for aim in outputs.aims
        ]
        assert isinstance(ticked, Ticked)
        assert ticked.commands == "sha256:" + sha256(msgspec.msgpack.encode(decided)).hexdigest()
        seen |= {metres(um) for aim in outputs.aims for um in (aim.target_um, aim.stop_um, aim.speed_um_s)}
    assert len(seen) > 20


def test_texts_of_lengths_match_the_contract_and_their_cache_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(events, "MOST_TEXTS", 50)
    texts = events._Metres()

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
        found += [event for event in tick_events(before, outputs, outputs.aims) if isinstance(event, Incident)]

    assert [(incident.code, *incident.robot_ids) for incident in found if incident.robot_ids != ("R3",)] == incidents


@pytest.mark.req("FLT-OBS-11")
def test_trucks_that_wait_for_each_other_are_an_incident() -> None:
    hall = Hall()
    records = hall.traffic.records
    rings = [alert(1, code, "ERROR", 0) for code in ("DEADLOCK_SUSPECTED", "DEADLOCK_CONFIRMED", "WAIT_TOO_LONG")]
    outputs = replace(hall.step(), alerts=tuple(rings))
    found = [event.code for event in tick_events(records, outputs, ()) if isinstance(event, Incident)]

    assert found == ["DEADLOCK_SUSPECTED", "DEADLOCK_CONFIRMED"]


CHANGES: dict[str, Callable[[Record], object]] = {
    "granted": lambda record: setattr(record, "granted", record.granted + 1),
    "at_um": lambda record: setattr(record, "at_um", record.at_um + 1),
    "bound_um": lambda record: setattr(record, "bound_um", record.bound_um + 1),
    "hold_um": lambda record: setattr(record, "hold_um", record.hold_um + 1),
    "farthest_um": lambda record: setattr(record, "farthest_um", record.farthest_um + 1),
    "seq": lambda record: setattr(record, "seq", record.seq + 1),
    "ack_seq": lambda record: setattr(record, "ack_seq", record.ack_seq + 1),
    "health": lambda record: setattr(record, "health", RobotHealth.STALE),
    "stop_code": lambda record: setattr(record, "stop_code", "STOP_OPERATOR"),
    "priority": lambda record: setattr(record, "priority", PriorityClass.OBSTACLE),
    "rank": lambda record: setattr(record, "rank", record.rank + 1),
    "held": lambda record: record.held.popitem(),
    "waiting": lambda record: setattr(record, "waiting", Waiting("WAIT_NODE", 3, 1, 4)),
    "retraction": lambda record: setattr(record, "retraction", Retraction(1, 2, (3,))),
    "route": lambda record: setattr(record, "track", None),
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
        records = [record.copied() for record in outputs.scene.records]
        records[0].waiting, records[0].stop_code = Waiting("WAIT_NODE", zone, number, None), None
        return records

    def changes(before: int, after: int) -> list[tuple[str, str | None, str | None]]:
        scene = replace(outputs.scene, records=held_by(after))
        events = tick_events(held_by(before), replace(outputs, scene=scene), ())
        holds = [event for event in events if isinstance(event, HoldChanged)]
        return [(change.robot_id, change.blocker_robot_id, change.requested_resource_id) for change in holds]

    assert changes(1, 1) == []
    assert changes(1, 2) == [("R1", "R3", resource_id(hall.site, zone))]


@pytest.mark.req("FLT-OBS-1", "FLT-FAIL-17")
def test_a_report_that_was_dropped_is_an_event() -> None:
    hall = Hall()
    hall.first.clock_ms = -10_000
    before = hall.traffic.records
    outputs = hall.step()

    assert ReportDropped("R1", "REPORT_OUTDATED") in tick_events(before, outputs, ())
