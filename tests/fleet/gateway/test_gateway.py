"""Requirements on gateways: only trucks that can stop, only the newest command, and a stop in silence."""

import pytest
from msgspec.structs import replace

from pendula.fleet.compiler.samples import FL_STD
from pendula.fleet.contracts import Acknowledgement, RollingTargetCommand
from pendula.fleet.gateway import Outbox, RobotRefused, register
from pendula.fleet.scenarios import Run, shipped
from pendula.fleet.scenarios.model import ScenarioEvent
from pendula.fleet.simulator import FaultKind


def first_command() -> RollingTargetCommand:
    return Run(shipped("arrival")).step().commands[0]


@pytest.mark.req("FLT-RTP-13")
@pytest.mark.parametrize("capabilities", [(), ("ackSeq", "turnInPlace"), ("resume",)])
def test_a_truck_without_a_way_to_stop_is_refused(capabilities: tuple[str, ...]) -> None:
    with pytest.raises(RobotRefused, match="no truck without a way to stop is let in"):
        register([replace(FL_STD, capabilities=capabilities)])


@pytest.mark.req("FLT-RTP-13")
def test_a_truck_with_an_unknown_capability_is_refused() -> None:
    with pytest.raises(RobotRefused, match="names fly, which no gateway knows"):
        register([replace(FL_STD, capabilities=("stop", "fly"))])


@pytest.mark.req("FLT-RTP-13")
def test_a_scenario_with_a_refused_truck_does_not_start() -> None:
    scenario = shipped("arrival")
    mute = replace(scenario, profiles=tuple(replace(one, capabilities=()) for one in scenario.profiles))

    with pytest.raises(RobotRefused):
        Run(mute)


@pytest.mark.req("FLT-RTP-8")
def test_an_older_command_is_not_sent() -> None:
    outbox, command = Outbox(), first_command()

    sent = [outbox.accept(replace(command, seq=seq), 100) for seq in (5, 4, 5, 6)]

    assert sent == [True, False, False, True]


@pytest.mark.req("FLT-RTP-8", "FLT-FAIL-1")
def test_no_truck_acknowledges_more_than_it_was_sent() -> None:
    outbox, command = Outbox(), first_command()
    outbox.accept(replace(command, seq=5), 100)

    told = [outbox.acknowledge(Acknowledgement("1.0.0", "R1", seq, command.stopLineS, 150)) for seq in (3, 900, 2)]

    assert told == [3, 5, 5]


@pytest.mark.req("FLT-RTP-9")
def test_a_truck_of_a_silent_manager_is_stopped_once_when_its_command_expires() -> None:
    outbox, command = Outbox(), first_command()
    outbox.accept(command, 1_000)

    assert [outbox.overdue(at) for at in (1_700, 1_701, 1_800)] == [(), ("R1",), ()]


@pytest.mark.req("FLT-RTP-9", "FLT-TEST-47")
def test_a_simulated_truck_without_commands_stops_before_its_known_stop_line() -> None:
    scenario = replace(shipped("arrival"), events=(ScenarioEvent(12_000, FaultKind.DEAFNESS, "R1", 20_000),))
    run = Run(scenario)
    run.run(20_000)
    truck = run.world.trucks[0]
    assert truck.order is not None

    assert truck.v_um_s == 0
    assert truck.s_um <= truck.order.stop_line_um
    assert truck.overrun_um <= 0


@pytest.mark.req("FLT-FAIL-17")
def test_a_truck_with_a_wrong_clock_is_stale_and_recovers() -> None:
    scenario = replace(shipped("arrival"), events=(ScenarioEvent(8_000, FaultKind.BAD_TELEMETRY, "R1", 1_000),))
    run = Run(scenario)
    result = run.run()

    assert ("R1", "STOP_STALE_TELEMETRY") in run.measures.stops
    assert result.unmet == ()
