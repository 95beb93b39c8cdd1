"""The capabilities of a truck select the form of its commands, and nothing else (FLT-RTP-13)."""

from collections.abc import Sequence

import pytest
from msgspec import UNSET
from msgspec.structs import replace

from pendula.fleet import explain
from pendula.fleet.compiler.samples import FL_STD
from pendula.fleet.contracts import CommandMode, RollingTargetCommand
from pendula.fleet.gateway import Gateway, Received, Selected, verbs
from pendula.fleet.map.routes import RoutePlan
from pendula.fleet.scenarios import Run, shipped
from pendula.fleet.tasks import Operation

ALL = frozenset(FL_STD.capabilities)


class Listening:
    """A gateway that remembers what goes through it."""

    def __init__(self, inner: Gateway) -> None:
        self._inner = inner
        self.received: list[RollingTargetCommand] = []

    def send(self, commands: Sequence[RollingTargetCommand]) -> None:
        self.received += commands
        self._inner.send(commands)

    def announce(self, routes: Sequence[RoutePlan]) -> None:
        self._inner.announce(routes)

    def operate(self, operations: Sequence[Operation]) -> None:
        self._inner.operate(operations)

    def poll(self) -> Received:
        return self._inner.poll()


def without(*missing: str, scenario: str = "crossing-turn") -> tuple[Run, Listening]:
    """A run whose trucks can do everything else, and the commands that they get."""
    plain = shipped(scenario)
    can = tuple(one for one in FL_STD.capabilities if one not in missing)
    run = Run(replace(plain, profiles=tuple(replace(profile, capabilities=can) for profile in plain.profiles)))
    run.gateway = listening = Listening(run.gateway)
    return run, listening


@pytest.mark.req("FLT-RTP-13")
@pytest.mark.parametrize(
    ("mode", "can", "expected"),
    [
        (CommandMode.STOP, ALL, ("stop",)),
        (CommandMode.STOP, ALL - {"stop"}, ("pause",)),
        (CommandMode.HOLD, ALL - {"stop"}, ("hold",)),
        (CommandMode.GO, ALL, ("go",)),
        (CommandMode.GO, ALL - {"stop"}, ("resume", "go")),
        (CommandMode.TURN, ALL - {"stop"}, ("resume", "turn")),
        (CommandMode.GO, ALL - {"stop", "resume"}, ("go",)),
    ],
)
def test_a_command_uses_only_capabilities_of_its_truck(
    mode: CommandMode, can: frozenset[str], expected: tuple[str, ...]
) -> None:
    assert verbs(mode, can) == expected


@pytest.mark.req("FLT-RTP-13")
def test_a_truck_with_all_capabilities_gets_the_decided_command() -> None:
    run, listening = without()
    for _ in range(100):
        listening.received.clear()
        decided = run.step().commands

        assert [replace(one, verbs=UNSET) for one in listening.received] == list(decided)
        assert all(one.verbs == (one.mode.value.lower(),) for one in listening.received)


@pytest.mark.req("FLT-RTP-13")
def test_no_command_has_a_limit_or_route_that_its_truck_cannot_follow() -> None:
    run, listening = without("speedLimit", "pathSlice")
    decided = [one for _ in range(100) for one in run.step().commands]

    assert any(one.pathSlice for one in decided)
    assert {(one.speedLimitMps, one.pathSlice) for one in listening.received} == {(UNSET, ())}


@pytest.mark.req("FLT-RTP-13")
def test_a_missing_capability_of_one_truck_does_not_affect_the_others() -> None:
    aims = Run(shipped("crossing-turn")).step().aims
    first, second = Selected(aims, {"R1": frozenset({"pause"}), "R2": ALL})

    assert first.speedLimitMps is UNSET
    assert second == replace(aims[1].command(), verbs=second.verbs)


@pytest.mark.req("FLT-RTP-13", "FLT-FAIL-1")
def test_a_truck_that_cannot_turn_is_held_at_a_turn_with_the_reason() -> None:
    run, listening = without("turnInPlace")
    while run.traffic.records[0].stop_code is None:
        run.step()
        assert run.now_ms < 60_000
    modes = {one.mode for one in listening.received}
    why = run.traffic.why("R1")

    assert CommandMode.HOLD in modes
    assert CommandMode.TURN not in modes
    assert all(one.targetYaw is UNSET for one in listening.received)
    assert why.code == "STOP_STUCK"
    assert explain.sentence(why) == (
        "R1 stops: it has to turn here and cannot turn on the spot; turn it by hand and clear its fault."
    )


@pytest.mark.req("FLT-RTP-3", "FLT-RTP-13")
def test_a_truck_with_a_speed_limit_of_zero_gets_a_hold() -> None:
    aims = Run(shipped("crossing-turn")).step().aims
    near, far = (replace(aims[0], mode=CommandMode.GO, speed_um_s=speed) for speed in (0, 1_000))
    held, goes = Selected((near, far), {"R1": ALL - {"stop"}})

    assert (held.mode, held.verbs) == (CommandMode.HOLD, ("hold",))
    assert (goes.mode, goes.verbs) == (CommandMode.GO, ("resume", "go"))


@pytest.mark.req("FLT-RTP-3")
def test_no_command_to_drive_has_a_speed_of_zero() -> None:
    run, listening = without(scenario="arrival")
    run.run()

    assert not [one for one in listening.received if one.mode is CommandMode.GO and not one.speedLimitMps]
