"""The core of the scheduler against the oracle: thousands of random histories, compared after every call."""

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.campaigns import campaign_after
from tests.playback.histories import Comparison, play

HISTORIES, MANY_HISTORIES = 1000, 10_000
CALLS_MOST = 32


def play_numbered(number: int) -> None:
    random = Random(number)
    comparison = Comparison.drawn(random)
    try:
        play(comparison, random, CALLS_MOST)
    except BaseException as trouble:
        trouble.add_note(f"history {number}, after the calls: {'; '.join(comparison.calls)}")
        raise


@pytest.mark.req("PLAY-LOOK-3")
@pytest.mark.req("PLAY-LOOK-4")
@pytest.mark.req("PLAY-LOOK-5")
@pytest.mark.req("PLAY-LOOK-6")
@pytest.mark.req("PLAY-LOOK-7")
@pytest.mark.req("PLAY-SWRR-6")
@pytest.mark.req("PLAY-CACHE-9")
@pytest.mark.req("PLAY-API-3")
@pytest.mark.req("PLAY-API-7")
@pytest.mark.req("PLAY-API-8")
@pytest.mark.parametrize("first", campaign_after(1, range(0, HISTORIES, HISTORIES // 4)))
def test_seeded_histories_agree_with_the_oracle(first: int) -> None:
    for number in range(first, first + HISTORIES // 4):
        play_numbered(number)


@pytest.mark.long
def test_many_more_seeded_histories_agree_with_the_oracle() -> None:
    for number in range(HISTORIES, HISTORIES + MANY_HISTORIES):
        play_numbered(number)


@given(st.randoms(use_true_random=False))
def test_any_history_agrees_with_the_oracle(random: Random) -> None:
    play(Comparison.drawn(random), random, 12)
