"""The index of a time slider stays small and evenly spread, however long the journal is."""

from itertools import pairwise

import pytest

from pendula.server.hosting import moments
from pendula.server.hosting.moments import Moments
from pendula.testing import FaultyDisk
from pendula.testing.tally import Advance
from tests.kernel.journals import do, new_driver


def test_moments_of_a_long_journal_are_sampled_evenly_with_both_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(moments, "MOST_TIMES", 16)
    driver = new_driver(FaultyDisk())
    index = Moments(driver.journal, {})
    for t in range(1, 101):
        do(driver, Advance(t))
        if t % 7 == 0:
            index.spread(2)

    times = [moment.t for moment in index.spread(201)]

    assert (times[0], times[-1]) == (1, 100)
    assert len(times) <= 17
    steps = {after - before for before, after in pairwise(times[:-1])}
    assert len(steps) == 1
