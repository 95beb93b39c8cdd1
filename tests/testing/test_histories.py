"""Histories are decided by their seed and are as bad as they were asked to be; failures can be repeated."""

import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pendula.testing import Delivery, Faults, HistoryFailed, deliver, over_seeds

MESSAGES = [(n * 3, f"m{n}") for n in range(200)]
FAIR = Faults(late=0, repeated=0, lost=0, clock_jump=0)


def a_law_that_fails_for_17(seed: int) -> None:
    assert seed != 17, "seventeen"


def test_the_same_seed_gives_the_same_history() -> None:
    assert list(deliver(MESSAGES, 5)) == list(deliver(MESSAGES, 5))
    assert list(deliver(MESSAGES, 5)) != list(deliver(MESSAGES, 6))


def test_without_faults_everything_arrives_once_in_order_and_the_clock_is_right() -> None:
    assert list(deliver(MESSAGES, 5, FAIR)) == [Delivery(at, at, text, at) for at, text in MESSAGES]


def test_with_faults_messages_come_late_twice_and_out_of_order_and_clocks_jump() -> None:
    history = list(deliver(MESSAGES, 5))

    assert {one.message for one in history} == {text for _, text in MESSAGES}
    assert any(one.copy for one in history)
    assert any(one.at > one.sent for one in history)
    assert [one.sent for one in history] != sorted(one.sent for one in history)
    assert len({one.clock - one.at for one in history}) > 2


def test_messages_are_lost_only_if_configured() -> None:
    assert len(list(deliver(MESSAGES, 5, Faults(lost=50)))) < 180


@given(st.lists(st.tuples(st.integers(0, 50), st.integers()), max_size=20), st.integers(0, 1000))
def test_no_message_is_invented_or_arrives_before_it_was_sent(messages: list[tuple[int, int]], seed: int) -> None:
    history = list(deliver(messages, seed))

    assert {(one.sent, one.message) for one in history} == set(messages)
    assert all(one.at >= one.sent for one in history)
    assert [one.at for one in history] == sorted(one.at for one in history)


def test_a_failure_names_its_seed_and_the_command_that_repeats_it() -> None:
    assert over_seeds(a_law_that_fails_for_17, range(17)) == 17

    with pytest.raises(HistoryFailed) as caught:
        over_seeds(a_law_that_fails_for_17, range(100))

    line = str(caught.value).splitlines()[-1].removeprefix("repeat with: python ")
    repeated = subprocess.run([sys.executable, *line.split()], capture_output=True, text=True, check=False)
    assert "AssertionError: seventeen" in repeated.stderr
    other = subprocess.run([sys.executable, *line.split()[:-1], "18"], capture_output=True, text=True, check=False)
    assert (other.returncode, other.stderr) == (0, "")
