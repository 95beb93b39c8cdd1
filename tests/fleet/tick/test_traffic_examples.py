"""A tick reproduces the examples 13.7 to 13.10 of the contract."""

from decimal import Decimal
from typing import Any

import pytest

from pendula.fleet.contracts import CommandMode, serialise
from pendula.kernel.canonical import encode
from tests.fleet.documents import golden
from tests.fleet.tick.example import example


def same(value: Any, name: str, **others: Any) -> None:
    """Compare a payload with a golden file, except members that count something else here."""
    assert serialise(value) == encode({**golden(name), **others})


@pytest.mark.req("FLT-COR-1", "FLT-COR-5", "FLT-COR-8", "FLT-COR-9", "FLT-COR-11", "FLT-DCL-7", "FLT-RES-20")
def test_the_request_of_the_follower_is_that_of_the_contract() -> None:
    traffic, _ = example()

    same(traffic.request("R2"), "CorridorRequest")


@pytest.mark.req("FLT-COR-1", "FLT-COR-9")
def test_a_longer_lookahead_requests_more_and_holds_the_same() -> None:
    (near, near_outputs), (far, far_outputs) = (example(lookahead_um=ahead_um) for ahead_um in (5_300_000, 8_000_000))
    requests = [traffic.request("R2") for traffic in (near, far)]

    assert [request.units[-1].s1M for request in requests if request is not None] == [Decimal("9.5"), 16]
    assert near_outputs.results == far_outputs.results


@pytest.mark.req("FLT-DCL-3", "FLT-DCL-10", "FLT-DCL-12")
def test_the_result_of_the_leader_is_that_of_the_contract() -> None:
    _, outputs = example()

    same(outputs.results[0], "LockResult-granted")


@pytest.mark.req("FLT-DCL-9", "FLT-DCL-11", "FLT-DCL-14", "FLT-EVO-8", "FLT-RES-8", "FLT-RES-15", "FLT-OBS-8")
def test_the_result_of_the_follower_is_that_of_the_contract() -> None:
    _, outputs = example()

    same(outputs.results[1], "LockResult-blocked")


@pytest.mark.req("FLT-LIVE-5", "FLT-RES-1", "FLT-RES-17", "FLT-DCL-5", "FLT-EVO-6")
def test_the_snapshot_is_that_of_the_contract() -> None:
    traffic, outputs = example()

    same(outputs.snapshot(), "LockSnapshot", tick=outputs.tick, compiledMapHash=traffic.site.compiled_hash)


@pytest.mark.req("FLT-RTP-1", "FLT-RTP-2", "FLT-RTP-3", "FLT-RTP-6", "FLT-RTP-8")
def test_the_command_of_the_follower_is_that_of_the_contract() -> None:
    _, outputs = example()

    same(outputs.commands[1], "RollingTargetCommand", seq=outputs.tick)


@pytest.mark.req("FLT-RTP-4", "FLT-RTP-12")
def test_the_leader_is_commanded_to_turn_before_it_continues() -> None:
    _, outputs = example()
    command = outputs.commands[0]
    backwards = golden("LockResult-granted")["holdPoint"]["world"]["yaw"]

    assert (command.mode, command.targetYaw, command.targetS) == (CommandMode.TURN, backwards, Decimal(10))
