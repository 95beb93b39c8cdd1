"""After any fault of a truck in any phase, all trucks continue or wait for an operator."""

import pytest

from pendula.fleet.simulator import FaultKind
from pendula.fleet.simulator.truck import Fault
from tests.campaigns import campaign_after
from tests.fleet.scenarios.getting_over import KINDS, Trouble, drawn, left_standing

# Trucks wait for minutes of simulated time.
SLOW = (FaultKind.FAULT, FaultKind.LATE_ACKS, FaultKind.OFFLINE, FaultKind.OVERRUN)


@pytest.mark.req("FLT-FAIL-7", "FLT-FAIL-10", "FLT-LIVE-9")
@pytest.mark.parametrize(
    "seed",
    [
        pytest.param(seed, id=kind.value, marks=pytest.mark.campaign if kind in SLOW else ())
        for seed, kind in enumerate(KINDS)
    ],
)
def test_all_trucks_continue_after_a_fault_or_wait_for_an_operator(seed: int) -> None:
    assert list(left_standing(drawn(seed))) == []


@pytest.mark.req("FLT-FAIL-10", "FLT-LIVE-9")
@pytest.mark.parametrize(
    "trouble",
    campaign_after(
        1,
        [
            Trouble(Fault(FaultKind.NOISE, 2_500, by_um=245_895), "R2", "driving", 39_898, seed=365),
            Trouble(Fault(FaultKind.SILENCE, 30_000), "R3", "driving", 39_500, seed=1015),
            Trouble(Fault(FaultKind.SILENCE, 10_000), "R1", "loading", 122_000, seed=4),
        ],
    ),
    ids=["noise while it comes to its pick", "silent before its pick", "silent in its pick"],
)
def test_no_truck_is_left_standing_after_known_faults(trouble: Trouble) -> None:
    assert list(left_standing(trouble)) == []


@pytest.mark.long
@pytest.mark.req("FLT-FAIL-7", "FLT-FAIL-10", "FLT-LIVE-9")
@pytest.mark.parametrize("part", range(40))
def test_all_trucks_continue_after_many_faults(part: int) -> None:
    found = {seed: list(left_standing(drawn(seed))) for seed in range(100 + 10 * part, 110 + 10 * part)}

    assert {seed: trouble for seed, trouble in found.items() if trouble} == {}
