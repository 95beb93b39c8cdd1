"""A live manager: what it sends, and when it sends nothing."""

from collections.abc import Sequence
from pathlib import Path

import pytest
from msgspec import UNSET

from pendula.fleet.contracts import RollingTargetCommand
from pendula.fleet.engine import FleetEngine
from pendula.fleet.gateway import Received, ReportBatch, RobotRefused
from pendula.fleet.runs import Recording, recording_disk
from pendula.fleet.runs.managing import Manager
from tests.fleet.test_contract import head_on


class _Hall:
    """A gateway that keeps its commands, and a clock that advances on request."""

    def __init__(self) -> None:
        self.sent: list[int] = []
        self.verbs: set[tuple[object, object, object]] = set()
        self.now = 0
        self.takes_ms = 0

    def send(self, commands: Sequence[RollingTargetCommand]) -> None:
        self.sent.append(len(commands))
        self.verbs |= {(one.mode.value, one.verbs, one.speedLimitMps) for one in commands}

    def announce(self, routes: Sequence[object]) -> None: ...

    def operate(self, operations: Sequence[object]) -> None: ...

    def poll(self) -> Received:
        return Received(ReportBatch(head_on(10)[1][0].reports))

    def now_ms(self) -> int:
        read, self.now = self.now, self.now + self.takes_ms
        return read


def begun(directory: Path, hall: _Hall) -> Manager:
    config, _ = head_on(10)
    recording = Recording.begin(FleetEngine.create(config), config, recording_disk(directory))
    return Manager(recording, hall, hall.now_ms)


def test_every_punctual_tick_sends_a_command_to_every_truck(tmp_path: Path) -> None:
    hall = _Hall()
    manager = begun(tmp_path, hall)
    for now in (0, 100, 200):
        hall.now = now
        manager.tick()
    manager.recording.close()

    assert hall.sent == [2, 2, 2]
    assert manager.withheld == 0


@pytest.mark.req("FLT-RTP-13")
def test_a_fleet_with_a_truck_that_cannot_be_stopped_is_refused(tmp_path: Path) -> None:
    config, _ = head_on(10)
    assert isinstance(config, dict)
    deaf = {**config, "profiles": [{**one, "capabilities": ["ackSeq"]} for one in config["profiles"]]}
    with Recording.begin(FleetEngine.create(deaf), deaf, recording_disk(tmp_path)) as recording:
        hall = _Hall()
        with pytest.raises(RobotRefused, match="no truck without a way to stop is let in"):
            Manager(recording, hall, hall.now_ms)


@pytest.mark.req("FLT-RTP-13")
def test_trucks_that_can_only_pause_get_a_pause(tmp_path: Path) -> None:
    config, _ = head_on(10)
    assert isinstance(config, dict)
    paused = {**config, "profiles": [{**one, "capabilities": ["pause"]} for one in config["profiles"]]}
    hall = _Hall()
    with Recording.begin(FleetEngine.create(paused), paused, recording_disk(tmp_path)) as recording:
        manager = Manager(recording, hall, hall.now_ms)
        # Repeated old reports: soon all trucks are stale and must stop.
        for hall.now in range(0, 3_000, 100):
            manager.tick()

    assert ("STOP", ("pause",), UNSET) in hall.verbs
    assert {limit for _, _, limit in hall.verbs} == {UNSET}


@pytest.mark.req("FLT-FAIL-16")
def test_a_tick_that_takes_too_long_sends_no_command(tmp_path: Path) -> None:
    hall = _Hall()
    manager = begun(tmp_path, hall)
    hall.takes_ms = 201
    manager.tick()
    hall.takes_ms, hall.now = 0, 100
    manager.tick()
    manager.recording.close()

    assert hall.sent == [2]
    assert manager.withheld == 1


@pytest.mark.req("FLT-FAIL-16")
def test_a_failed_tick_sends_nothing_and_the_next_one_runs(tmp_path: Path) -> None:
    hall = _Hall()
    manager = begun(tmp_path, hall)
    manager.tick()
    hall.now = 100
    # This engine alone: the one that is built in its place from the journal is well.
    setattr(manager.recording.engine, "_decide", lambda *_: 1 / 0)  # noqa: B010
    failed = manager.tick()
    hall.now = 200
    manager.tick()
    manager.recording.close()

    assert failed is None
    assert hall.sent == [2, 2]


def test_a_clock_that_goes_back_sends_nothing(tmp_path: Path) -> None:
    hall = _Hall()
    manager = begun(tmp_path, hall)
    hall.now = 500
    manager.tick()
    hall.now = 400
    refused = manager.tick()
    manager.recording.close()

    assert refused is not None
    assert refused.refusal is not None
    assert hall.sent == [2]
