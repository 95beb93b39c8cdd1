"""The bundled scenarios meet their expectations, without collisions."""

import os
import subprocess
import sys

import pytest
from msgspec.structs import replace

from pendula.fleet.scenarios import Run, shipped, shipped_names
from pendula.fleet.tick import TrafficRefused
from tests.campaigns import campaign_after, campaign_except

# Minutes of traffic each: for the long campaign.
SLOW = ("backward", "hall", "patrol")
# Judged with what else they show, in test_troubles.
TROUBLED = ("given-back-late", "late-acks", "noise", "offline", "overrun", "pose-jump")
# Beside the seed of each file.
MORE_SEEDS = range(1, 20)


# Seconds each: in every run.
QUICK = (
    *("arrival", "crossing", "crossing-every", "crossing-turn", "follow", "idle-in-the-way", "near-lanes"),
    *("near-lanes-apart", "tail-swing", "tail-swing-apart", "triangle-12"),
)


def named(*every: str) -> list[object]:
    return [
        pytest.param(name, marks=pytest.mark.long) if name in SLOW else campaign_except(QUICK, [name])[0]
        for name in every
    ]


@pytest.mark.req("FLT-TEST-5", "FLT-TEST-10", "FLT-TEST-11", "FLT-TEST-12", "FLT-TEST-16", "FLT-TEST-17", "FLT-TEST-18")
@pytest.mark.req("FLT-TEST-20", "FLT-TEST-21", "FLT-TEST-26", "FLT-TEST-28", "FLT-TEST-41", "FLT-GEO-17")
@pytest.mark.parametrize("name", named(*(name for name in shipped_names() if name not in TROUBLED)))
def test_a_shipped_scenario_meets_its_expectations(name: str) -> None:
    assert Run(shipped(name)).run().unmet == ()


@pytest.mark.long
@pytest.mark.parametrize("seed", MORE_SEEDS)
@pytest.mark.parametrize("name", shipped_names())
def test_a_shipped_scenario_meets_its_expectations_with_any_seed(name: str, seed: int) -> None:
    assert Run(replace(shipped(name), seed=seed)).run().unmet == ()


@pytest.mark.req("FLT-LIVE-4")
def test_three_trucks_that_would_jam_are_not_started_under_the_rule() -> None:
    jam = shipped("triangle-8")
    assert not jam.traffic.refuge

    with pytest.raises(TrafficRefused, match="'R3' cannot start where it stands"):
        Run(replace(jam, traffic=replace(jam.traffic, refuge=True)))


@pytest.mark.req("FLT-TEST-12", "FLT-LIVE-4")
def test_of_three_trucks_that_would_jam_the_third_gets_no_route_and_the_alert_names_the_reason() -> None:
    run = Run(shipped("triangle-8-refused"))
    run.run(2_000)
    at_ms, alert = run.measures.notices["ROUTE_REFUSED"]

    assert at_ms <= 200
    assert alert.robotId == "R3"
    assert (alert.details["code"], alert.details["cycle"]) == ("WAIT_SAFE_STATE", ["R1", "R2", "R3"])


@pytest.mark.req("FLT-TEST-12", "FLT-DCL-17")
def test_with_the_rule_off_the_same_three_trucks_jam_and_the_alert_is_raised() -> None:
    jam = shipped("triangle-8-refused")
    run = Run(replace(jam, traffic=replace(jam.traffic, refuge=False)))
    run.run(40_000)
    at_ms, alert = run.measures.alerts["DEADLOCK_SUSPECTED"]

    assert at_ms - alert.sinceMs <= 5_100
    assert alert.details["robotIds"] == ["R1", "R2", "R3"]
    assert "DEADLOCK_CONFIRMED" in run.measures.alerts
    assert run.measures.violations == {}


@pytest.mark.req("FLT-DCL-17", "FLT-DCL-16")
def test_of_two_trucks_nose_to_nose_the_one_with_another_way_is_rerouted() -> None:
    run = Run(shipped("jam-with-a-way-round"))
    changed = []
    while run.now_ms < 60_000:
        changed += [(route.robot_id, route.revision) for route in run.step().accepted_routes if route.revision > 1]

    assert changed == [("R2", 2)]


@pytest.mark.req("FLT-TEST-11")
@pytest.mark.parametrize("name", campaign_after(1, ["crossing", "crossing-turn", "crossing-every"]))
def test_the_node_of_a_crossing_never_has_two_holders(name: str) -> None:
    run = Run(shipped(name))
    most = 0
    while not run.is_over:
        holders = [lock.robotId for lock in run.step().snapshot().nodeLocks if lock.nodeId == "X"]
        most = max(most, len(holders))

    assert most == (0 if name == "crossing" else 1)


@pytest.mark.campaign
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
