"""The scenarios that come with Pendula run as they expect, and nobody collides."""

import os
import subprocess
import sys

import pytest
from msgspec.structs import replace

from pendula.fleet.scenarios import Run, shipped, shipped_names
from pendula.fleet.tick import TrafficRefused

# Minutes of traffic each: for the long campaign.
SLOW = ("backward", "hall", "patrol")


def named(*every: str) -> list[object]:
    return [pytest.param(name, marks=pytest.mark.long) if name in SLOW else name for name in every]


# Not marked, because the files expect less than the requirement: TEST-11 (one node lock policy), TEST-12 (the start is
# refused, not the third route), TEST-16 (the follower changes between go and hold too often), TEST-17 (never abreast
# instead of never both inside), TEST-19 (only that the work is done).
@pytest.mark.req("FLT-TEST-5", "FLT-TEST-10", "FLT-TEST-18")
@pytest.mark.req("FLT-TEST-20", "FLT-TEST-26", "FLT-TEST-28", "FLT-TEST-41", "FLT-GEO-17")
@pytest.mark.parametrize("name", named(*shipped_names()))
def test_a_shipped_scenario_comes_out_as_it_expects(name: str) -> None:
    assert Run(shipped(name)).run().unmet == ()


@pytest.mark.long
@pytest.mark.parametrize("seed", range(1, 20))
@pytest.mark.parametrize("name", shipped_names())
def test_a_shipped_scenario_comes_out_as_it_expects_with_any_seed(name: str, seed: int) -> None:
    assert Run(replace(shipped(name), seed=seed)).run().unmet == ()


@pytest.mark.req("FLT-LIVE-4")
def test_three_trucks_that_would_jam_are_not_started_under_the_rule() -> None:
    jam = shipped("triangle-8")
    assert not jam.traffic.refuge

    with pytest.raises(TrafficRefused, match="'R3' cannot start where it stands"):
        Run(replace(jam, traffic=replace(jam.traffic, refuge=True)))


@pytest.mark.req("FLT-TEST-43")
def test_a_run_has_the_same_digest_under_another_hash_seed() -> None:
    code = "from pendula.fleet.scenarios import *; print(Run(shipped('crossing')).run(20000).form['digest'])"
    digests = {
        subprocess.run(
            [sys.executable, "-c", code],
            env={**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": os.pathsep.join(sys.path)},
            capture_output=True,
            check=True,
            text=True,
        ).stdout
        for seed in ("1", "2")
    }

    assert len(digests) == 1


def test_another_seed_gives_another_run() -> None:
    digests = {Run(replace(shipped("crossing"), seed=seed)).run(10_000).form["digest"] for seed in (1, 2)}

    assert len(digests) == 2
