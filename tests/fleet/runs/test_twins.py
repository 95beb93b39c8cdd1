"""A fleet restored from the state of another decides exactly as that one."""

from collections.abc import Callable

import pytest
from msgspec.structs import replace

from pendula.fleet.engine import FleetEngine
from pendula.fleet.map.site import CompiledMap
from pendula.fleet.scenarios import Run, shipped
from pendula.fleet.scenarios.model import Scenario
from pendula.kernel.canonical import Json
from tests.fleet.runs.twins import Twins, waits_for_what_somebody_holds
from tests.fleet.scenarios.random_faults import faulty
from tests.fleet.scenarios.random_runs import site

MINUTE_MS = 60_000


def driven(scenario: Scenario, chosen: Callable[[FleetEngine], bool], site: CompiledMap | None = None) -> Twins:
    """A scenario to its end, with twins."""
    made: list[Twins] = []

    def make_applier(engine: FleetEngine, config: Json) -> Twins:
        made.append(Twins(engine, config, chosen))
        return made[0]

    Run(scenario, site, make_applier).run()
    return made[0]


def every_third_tick(engine: FleetEngine) -> bool:
    return engine.traffic.tick_number % 3 == 0


@pytest.mark.req("FLT-OBS-3", "FLT-TEST-23")
def test_a_truck_keeps_its_wait_in_a_fleet_restored_from_its_state() -> None:
    twins = driven(replace(shipped("patrol"), seed=1, duration_ms=45_000, expect=()), waits_for_what_somebody_holds)

    assert twins.made > 10
    assert twins.differences == []


@pytest.mark.long
@pytest.mark.req("FLT-OBS-3", "FLT-TEST-23")
@pytest.mark.parametrize("name", ["direction-starvation", "hall", "jam-with-a-way-round", "offline", "patrol", "spur"])
def test_any_tick_of_a_scenario_continues_from_its_state(name: str) -> None:
    assert driven(shipped(name), every_third_tick).differences == []


@pytest.mark.long
@pytest.mark.req("FLT-OBS-3", "FLT-TEST-23")
@pytest.mark.parametrize("seed", range(5_000, 5_100, 5))
def test_any_tick_of_a_run_with_faults_continues_from_its_state(seed: int) -> None:
    case = faulty(seed, 10, 2 * MINUTE_MS)

    assert driven(case.scenario(), every_third_tick, site(case.map_seed, case.parks)).differences == []
