"""Trucks behind a gateway: their reports wait for the next tick, up to a limit."""

from collections.abc import Iterator
from pathlib import Path

import msgspec

from pendula.fleet.contracts import RollingTargetCommand
from pendula.fleet.gateway import read_gateway
from pendula.fleet.tick.observing import TruckReport, screened
from pendula.server.schedulers.fleet.trucks import MOST_WAITING, RemoteTrucks


def report(robot_id: str, at_ms: int = 0) -> TruckReport:
    return TruckReport(robot_id, at_ms, 0, 0, 0, 0)


def test_a_truck_that_reports_too_often_displaces_no_others() -> None:
    trucks = RemoteTrucks(["R1", "R2"])
    trucks.receive([report("R1")], [], [])
    trucks.receive([report("R2", at) for at in range(10_000)], [], [])
    received = trucks.poll().reports

    assert [one.robotId for one in received] == ["R1", *["R2"] * MOST_WAITING]
    assert received[-1].nowMs == 9_999
    assert not trucks.poll().reports


def test_unknown_trucks_are_limited_and_displace_no_known_trucks() -> None:
    trucks = RemoteTrucks(["R1", "R2"])
    trucks.receive([report(f"stranger {number}") for number in range(10_000)], [], [])
    trucks.receive([report("R2")], [], [])
    names = [one.robotId for one in trucks.poll().reports]

    assert names[0] == "R2"
    assert len(names) == 1 + MOST_WAITING


def test_an_invalid_truck_name_is_not_stored() -> None:
    trucks = RemoteTrucks(["R1"])
    trucks.receive([report("R" * 150_000), report("R1"), report("\N{GRINNING FACE}" * 129)], [], [])
    reports = read_gateway(trucks.poll()).reports

    assert [one.robot_id for one in reports] == ["R1", "", ""]
    assert screened(reports, ["R1"], 0)[0] == [report("R1")]


class Counted(tuple[RollingTargetCommand, ...]):
    """Commands that count how often they are read."""

    read = 0

    def __iter__(self) -> Iterator[RollingTargetCommand]:
        Counted.read += 1
        return super().__iter__()


def test_commands_are_built_once_a_tick() -> None:
    golden = (Path(__file__).parents[3] / "fleet/golden/RollingTargetCommand.json").read_bytes()
    commands = Counted([msgspec.json.decode(golden, type=RollingTargetCommand)])
    trucks = RemoteTrucks(["R1"])

    trucks.send(commands)

    assert Counted.read == 1
    assert trucks.are_fresh()
