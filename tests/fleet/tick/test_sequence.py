"""Command numbers increase; an older command never replaces a newer one."""

import pytest

from pendula.fleet.tick.aiming import acknowledged, following, newer


@pytest.mark.req("FLT-RTP-8")
def test_the_next_command_is_newer_than_the_last() -> None:
    assert newer(following(811), 811)


@pytest.mark.req("FLT-RTP-8")
def test_the_same_command_again_is_not_taken_up() -> None:
    assert not newer(811, 811)


@pytest.mark.req("FLT-RES-13")
@pytest.mark.parametrize(("ack", "expected"), [(811, False), (812, True), (813, True)])
def test_a_command_is_acknowledged_by_itself_or_a_later_one(ack: int, expected: bool) -> None:
    assert acknowledged(812, ack) is expected
