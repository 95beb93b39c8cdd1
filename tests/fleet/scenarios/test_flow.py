"""A fleet that always has tasks: a truck always advances, and every wait ends."""

from functools import cache

import pytest

from bench.fleet_throughput_loads import endless
from pendula.fleet import CompiledMap, compile_map
from pendula.fleet.compiler.generated_maps import Sample, built_warehouse, spur_grid
from pendula.fleet.compiler.samples import FL_STD
from pendula.fleet.scenarios import Run
from tests.fleet.scenarios.flow import Flow

MINUTE_MS = 60_000
# Longer than the longest loading, turning and braking of one truck after the other at a junction.
STILL_MS = 30_000
MAPS = {"grid": spur_grid, "one-way warehouse": lambda: built_warehouse(20, 300)}


@cache
def place(name: str) -> tuple[Sample, CompiledMap]:
    sample = MAPS[name]()
    return sample, compile_map(sample.source, (FL_STD,))


def flow(name: str, seed: int, duration_ms: int) -> Flow:
    sample, site = place(name)
    return Flow(Run(endless(sample, name, duration_ms, seed), site)).drive(duration_ms)


@pytest.mark.campaign
@pytest.mark.req("FLT-LIVE-6")
def test_a_truck_advances_when_twenty_trucks_start_at_once() -> None:
    driven = flow("grid", 0, MINUTE_MS)

    assert driven.still_ms < STILL_MS // 3


@pytest.mark.long
@pytest.mark.req("FLT-LIVE-6", "FLT-LIVE-10")
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("name", MAPS)
def test_a_truck_always_advances_and_no_wait_exceeds_the_time_others_need_to_rest(name: str, seed: int) -> None:
    driven = flow(name, seed, 30 * MINUTE_MS)

    assert driven.still_ms < STILL_MS
    assert driven.longest_ms < driven.bound_ms
    assert not [code for code in driven.run.measures.alerts if code.startswith("DEADLOCK")]
